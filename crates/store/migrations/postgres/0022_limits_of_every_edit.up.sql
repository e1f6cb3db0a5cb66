-- The revision of a wallet's limits moves with every edit of one of its API keys, so that a new limit changes no trigger.
-- Every gateway counts `edited` with an edit, one of the schema before too. Suspensions and revocations count as well,
-- and leave the limits alone.

CREATE OR REPLACE TRIGGER api_keys_revise_limits AFTER UPDATE OF edited ON api_keys
FOR EACH ROW WHEN (
    OLD.edited <> NEW.edited
    AND (OLD.suspended_at, OLD.revoked_at) IS NOT DISTINCT FROM (NEW.suspended_at, NEW.revoked_at)
)
EXECUTE FUNCTION holdfast_revise_limits();
