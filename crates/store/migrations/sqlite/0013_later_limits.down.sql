DROP TRIGGER operations_keep_counters;
DROP TRIGGER operations_keep_generation;
CREATE TRIGGER operations_keep_generation
BEFORE UPDATE OF hold, released, price_version, reserved_counters, reserved_tokens, claim, node, incarnation,
    admitted_at, deadline ON operations
WHEN NEW.generation = OLD.generation
BEGIN SELECT RAISE(ABORT, 'what a generation was admitted with never changes'); END;
