-- Edits of limits that count what was used before them. A gateway remembers the limits of a key for some seconds: a
-- claim that was judged by earlier ones meets another revision, and is judged again.

ALTER TABLE wallets ADD COLUMN limits_revision BIGINT NOT NULL DEFAULT 0;
