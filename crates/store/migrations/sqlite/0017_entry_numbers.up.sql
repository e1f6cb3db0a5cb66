-- Numbers of a wallet's entries (transfers and postings) in the order in which they moved it: moments do not have that
-- order after a clock was set. Null for entries that were written before, which come first. The wallet counts its numbers.
-- Without checks: they would read the whole tables.

ALTER TABLE wallets ADD COLUMN entries INTEGER NOT NULL DEFAULT 0;
ALTER TABLE transfers ADD COLUMN number INTEGER;
ALTER TABLE postings ADD COLUMN number INTEGER;
