DROP TRIGGER operations_note_open_cancel;
DROP TRIGGER operations_keep_counters;
CREATE TRIGGER operations_keep_counters BEFORE UPDATE OF reserved_counters ON operations
WHEN NEW.generation = OLD.generation AND (
    (NEW.reserved_counters & OLD.reserved_counters) <> OLD.reserved_counters
    OR NEW.version <> OLD.version + 1 OR OLD.phase NOT IN ('leased', 'recorded')
)
BEGIN SELECT RAISE(ABORT, 'what a generation was admitted with never changes'); END;
