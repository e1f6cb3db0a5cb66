-- The canonical digest of a request: its version, the digest, and a MAC of both with the digest of before. A row
-- without one was written by a node of the version before. A payment is looked up by its id at its source, whose name
-- compares in lower case: rows that differ in it stay.

ALTER TABLE admin_requests ADD COLUMN canonical_digest BLOB CHECK (length(canonical_digest) = 65);
CREATE INDEX posting_details_external_reference ON posting_details (external_reference)
WHERE external_reference IS NOT NULL;
