-- Edits of limits that count what was used before them. A gateway remembers the limits of a key for some seconds: a
-- claim that was judged by earlier ones meets another revision, and is judged again.

ALTER TABLE wallets ADD COLUMN limits_revision INTEGER NOT NULL DEFAULT 0;

-- By the table, so that an edit at a gateway of the schema before moves it too.
CREATE TRIGGER api_keys_revise_limits
AFTER UPDATE OF requests_per_minute, tokens_per_minute, concurrency, spend_micros, spend_window ON api_keys
WHEN OLD.requests_per_minute IS NOT NEW.requests_per_minute
    OR OLD.tokens_per_minute IS NOT NEW.tokens_per_minute
    OR OLD.concurrency IS NOT NEW.concurrency
    OR OLD.spend_micros IS NOT NEW.spend_micros
    OR OLD.spend_window IS NOT NEW.spend_window
BEGIN UPDATE wallets SET limits_revision = limits_revision + 1 WHERE id = NEW.wallet_id; END;
