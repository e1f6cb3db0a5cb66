ALTER TABLE postings DROP COLUMN number;
ALTER TABLE transfers DROP COLUMN number;
DROP SEQUENCE entries_seq;
