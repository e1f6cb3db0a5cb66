-- The revision of a wallet's limits moves with every edit of one of its API keys, so that a new limit changes no trigger.
-- Every gateway counts `edited` with an edit, one of the schema before too. Suspensions and revocations count as well,
-- and leave the limits alone.

DROP TRIGGER api_keys_revise_limits;
CREATE TRIGGER api_keys_revise_limits AFTER UPDATE OF edited ON api_keys
WHEN OLD.edited <> NEW.edited
    AND OLD.suspended_at IS NEW.suspended_at
    AND OLD.revoked_at IS NEW.revoked_at
BEGIN UPDATE wallets SET limits_revision = limits_revision + 1 WHERE id = NEW.wallet_id; END;
