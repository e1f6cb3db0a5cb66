-- Edits of limits that count what was used before them. A gateway remembers the limits of a key for some seconds: a
-- claim that was judged by earlier ones meets another revision, and is judged again.

ALTER TABLE wallets ADD COLUMN limits_revision BIGINT NOT NULL DEFAULT 0;

-- By the table, so that an edit at a gateway of the schema before moves it too.
CREATE FUNCTION holdfast_revise_limits() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path FROM CURRENT AS $$
BEGIN
    UPDATE wallets SET limits_revision = limits_revision + 1 WHERE id = NEW.wallet_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER api_keys_revise_limits
AFTER UPDATE OF requests_per_minute, tokens_per_minute, concurrency, spend_micros, spend_window ON api_keys
FOR EACH ROW WHEN (
    (OLD.requests_per_minute, OLD.tokens_per_minute, OLD.concurrency, OLD.spend_micros, OLD.spend_window)
    IS DISTINCT FROM (NEW.requests_per_minute, NEW.tokens_per_minute, NEW.concurrency, NEW.spend_micros, NEW.spend_window)
)
EXECUTE FUNCTION holdfast_revise_limits();
