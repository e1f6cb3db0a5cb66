-- Alias that a request named its model by, as its answer does in every replay. A row without one named it by its id.
-- A gateway of the schema before makes no such row, and replays those that it finds: a stored answer has its model's name.
-- Without a check: it would read the whole table under its lock.

ALTER TABLE operations ADD COLUMN model_alias TEXT;
CREATE TRIGGER operations_keep_alias
AFTER UPDATE OF model_alias ON operations
FOR EACH ROW
EXECUTE FUNCTION holdfast_refuse('what an operation is bound to never changes');
