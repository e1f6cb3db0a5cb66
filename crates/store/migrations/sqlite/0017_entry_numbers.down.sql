ALTER TABLE postings DROP COLUMN number;
ALTER TABLE transfers DROP COLUMN number;
ALTER TABLE wallets DROP COLUMN entries;
