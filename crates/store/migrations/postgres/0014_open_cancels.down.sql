DROP TRIGGER operations_note_open_cancel ON operations;
DROP TRIGGER operations_keep_counters ON operations;
CREATE TRIGGER operations_keep_counters
AFTER UPDATE OF reserved_counters ON operations
FOR EACH ROW WHEN (NEW.generation = OLD.generation AND (
    (NEW.reserved_counters & OLD.reserved_counters) <> OLD.reserved_counters
    OR NEW.version <> OLD.version + 1 OR OLD.phase NOT IN ('leased', 'recorded')
))
EXECUTE FUNCTION holdfast_refuse('what a generation was admitted with never changes');
