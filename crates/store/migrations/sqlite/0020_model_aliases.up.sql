-- Alias that a request named its model by, as its answer does in every replay. A row without one named it by its id.
-- A gateway of the schema before makes no such row, and replays those that it finds: a stored answer has its model's name.

ALTER TABLE operations ADD COLUMN model_alias TEXT CHECK (length(model_alias) BETWEEN 1 AND 64);
CREATE TRIGGER operations_keep_alias BEFORE UPDATE OF model_alias ON operations
BEGIN SELECT RAISE(ABORT, 'what an operation is bound to never changes'); END;
