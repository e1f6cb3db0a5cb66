DROP TRIGGER api_keys_revise_limits ON api_keys;
DROP FUNCTION holdfast_revise_limits;
ALTER TABLE wallets DROP COLUMN limits_revision;
