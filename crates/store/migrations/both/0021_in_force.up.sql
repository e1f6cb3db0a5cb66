-- What a wallet has in force: API keys, admin keys and webhooks, counted up to their bounds without a look at the
-- rows that have ended.

CREATE INDEX api_keys_in_force ON api_keys (wallet_id, ends_at) WHERE revoked_at IS NULL;
CREATE INDEX admin_keys_in_force ON admin_keys (wallet_id, ends_at) WHERE revoked_at IS NULL;
CREATE INDEX webhooks_in_force ON webhooks (wallet_id) WHERE disabled_at IS NULL;
