-- A cancel ends an open operation. Its phase no longer shows that what it reserved was given back: bit 128 of its
-- reserved counters does.

DROP TRIGGER operations_keep_counters ON operations;
CREATE TRIGGER operations_keep_counters
AFTER UPDATE OF reserved_counters ON operations
FOR EACH ROW WHEN (NEW.generation = OLD.generation AND (
    (NEW.reserved_counters & OLD.reserved_counters) <> OLD.reserved_counters
    OR NEW.version <> OLD.version + 1
    OR NOT (OLD.phase IN ('leased', 'recorded')
        OR (OLD.phase = 'open' AND NEW.phase = 'abandoned' AND NEW.reserved_counters = (OLD.reserved_counters | 128)))
))
EXECUTE FUNCTION holdfast_refuse('what a generation was admitted with never changes');

-- Sums may have passed its number while it was open: its end puts it among the late ones, as a generation does.
CREATE TRIGGER operations_note_open_cancel
AFTER UPDATE OF reserved_counters ON operations
FOR EACH ROW WHEN (OLD.phase = 'open' AND NEW.phase = 'abandoned')
EXECUTE FUNCTION holdfast_note_later_generation();
