-- Restores: moments since which an older copy of this ledger is served again, declared by an operator. A copy does not
-- know the request keys that were bound after it was made. Until `unknown_until` no unknown request key runs for an API
-- key that was created up to `restored_at`.

CREATE TABLE restores (
    restored_at INTEGER PRIMARY KEY,
    unknown_until INTEGER NOT NULL,
    CHECK (unknown_until >= restored_at)
) STRICT;

CREATE TRIGGER restores_end_earlier_only BEFORE UPDATE ON restores
WHEN NEW.restored_at <> OLD.restored_at OR NEW.unknown_until > OLD.unknown_until
BEGIN SELECT RAISE(ABORT, 'the window of a restore only ends earlier'); END;
CREATE TRIGGER restores_stay BEFORE DELETE ON restores
BEGIN SELECT RAISE(ABORT, 'restores stay'); END;
