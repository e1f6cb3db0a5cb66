DROP TRIGGER operations_keep_counters ON operations;
DROP TRIGGER operations_keep_generation ON operations;
CREATE TRIGGER operations_keep_generation
AFTER UPDATE OF hold, released, price_version, reserved_counters, reserved_tokens, claim, node, incarnation,
    admitted_at, deadline ON operations
FOR EACH ROW WHEN (NEW.generation = OLD.generation)
EXECUTE FUNCTION holdfast_refuse('what a generation was admitted with never changes');
