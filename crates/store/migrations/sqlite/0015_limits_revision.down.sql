DROP TRIGGER api_keys_revise_limits;
ALTER TABLE wallets DROP COLUMN limits_revision;
