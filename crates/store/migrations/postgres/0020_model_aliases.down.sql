DROP TRIGGER operations_keep_alias ON operations;
ALTER TABLE operations DROP COLUMN model_alias;
