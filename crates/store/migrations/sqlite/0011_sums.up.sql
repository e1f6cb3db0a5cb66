-- Operations whose provider cost is left out of all sums, because no run can have cost so much: noted by the summing
-- of usage and by `holdfast usage exclude-costs`, and never struck. The operation itself never changes.

CREATE TABLE excluded_costs (
    op_seq INTEGER PRIMARY KEY
) STRICT;

CREATE TRIGGER excluded_costs_never_change BEFORE UPDATE ON excluded_costs
BEGIN SELECT RAISE(ABORT, 'excluded costs are append-only'); END;
CREATE TRIGGER excluded_costs_stay BEFORE DELETE ON excluded_costs
BEGIN SELECT RAISE(ABORT, 'excluded costs are append-only'); END;

-- Operations of the hour whose cost is left out. A program of the schema before leaves it alone.
ALTER TABLE usage_hours ADD COLUMN costs_excluded INTEGER NOT NULL DEFAULT 0 CHECK (costs_excluded >= 0);

-- One row: the youngest moment of a result that a purge has deleted, so that an audit finds those that were
-- deleted by another hand.
CREATE TABLE results_purged (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    youngest INTEGER NOT NULL
) STRICT;

-- Purges of the schema before noted nothing: what finished until now may have been deleted by them.
INSERT INTO results_purged (one, youngest)
SELECT 1, CAST(unixepoch('now', 'subsec') * 1000000 AS INTEGER) WHERE EXISTS (SELECT 1 FROM operations);
