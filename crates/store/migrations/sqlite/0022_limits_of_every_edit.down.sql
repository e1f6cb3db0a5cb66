DROP TRIGGER api_keys_revise_limits;
CREATE TRIGGER api_keys_revise_limits
AFTER UPDATE OF requests_per_minute, tokens_per_minute, concurrency, spend_micros, spend_window ON api_keys
WHEN OLD.requests_per_minute IS NOT NEW.requests_per_minute
    OR OLD.tokens_per_minute IS NOT NEW.tokens_per_minute
    OR OLD.concurrency IS NOT NEW.concurrency
    OR OLD.spend_micros IS NOT NEW.spend_micros
    OR OLD.spend_window IS NOT NEW.spend_window
BEGIN UPDATE wallets SET limits_revision = limits_revision + 1 WHERE id = NEW.wallet_id; END;
