-- Restores: moments since which an older copy of this ledger is served again, declared by an operator. A copy does not
-- know the request keys that were bound after it was made. Until `unknown_until` no unknown request key runs for an API
-- key that was created up to `restored_at`.

CREATE TABLE restores (
    restored_at BIGINT PRIMARY KEY,
    unknown_until BIGINT NOT NULL,
    CHECK (unknown_until >= restored_at)
);

CREATE TRIGGER restores_end_earlier_only
BEFORE UPDATE ON restores
FOR EACH ROW WHEN (NEW.restored_at <> OLD.restored_at OR NEW.unknown_until > OLD.unknown_until)
EXECUTE FUNCTION holdfast_refuse('the window of a restore only ends earlier');
CREATE TRIGGER restores_stay
BEFORE DELETE ON restores
FOR EACH ROW
EXECUTE FUNCTION holdfast_refuse('restores stay');
