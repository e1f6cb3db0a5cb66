ALTER TABLE operations DROP COLUMN usage_reasons;
