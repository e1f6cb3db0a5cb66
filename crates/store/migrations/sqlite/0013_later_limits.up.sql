-- A limit that is set while operations run counts them: their rows get its bit, and keep those that they have. The
-- version moves with it, so that an ending that was judged by the row before is judged again.

DROP TRIGGER operations_keep_generation;
CREATE TRIGGER operations_keep_generation
BEFORE UPDATE OF hold, released, price_version, reserved_tokens, claim, node, incarnation, admitted_at, deadline
ON operations WHEN NEW.generation = OLD.generation
BEGIN SELECT RAISE(ABORT, 'what a generation was admitted with never changes'); END;
CREATE TRIGGER operations_keep_counters BEFORE UPDATE OF reserved_counters ON operations
WHEN NEW.generation = OLD.generation AND (
    (NEW.reserved_counters & OLD.reserved_counters) <> OLD.reserved_counters
    OR NEW.version <> OLD.version + 1 OR OLD.phase NOT IN ('leased', 'recorded')
)
BEGIN SELECT RAISE(ABORT, 'what a generation was admitted with never changes'); END;
