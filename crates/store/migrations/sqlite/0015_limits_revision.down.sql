ALTER TABLE wallets DROP COLUMN limits_revision;
