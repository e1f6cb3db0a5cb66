DROP INDEX posting_details_external_reference;
ALTER TABLE admin_requests DROP COLUMN canonical_digest;
