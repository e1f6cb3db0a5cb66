DROP TRIGGER operations_keep_alias;
ALTER TABLE operations DROP COLUMN model_alias;
