CREATE OR REPLACE TRIGGER api_keys_revise_limits
AFTER UPDATE OF requests_per_minute, tokens_per_minute, concurrency, spend_micros, spend_window ON api_keys
FOR EACH ROW WHEN (
    (OLD.requests_per_minute, OLD.tokens_per_minute, OLD.concurrency, OLD.spend_micros, OLD.spend_window)
    IS DISTINCT FROM (NEW.requests_per_minute, NEW.tokens_per_minute, NEW.concurrency, NEW.spend_micros, NEW.spend_window)
)
EXECUTE FUNCTION holdfast_revise_limits();
