-- Ways in which the usage of a run is not as its provider reported it: a bit for each reason, null for none. A program
-- of the schema before writes no such number. Without a check: it would read the whole table under its lock.

ALTER TABLE operations ADD COLUMN usage_reasons BIGINT;
