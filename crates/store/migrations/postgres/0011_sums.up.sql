-- Operations whose provider cost is left out of all sums, because no run can have cost so much: noted by the summing
-- of usage and by `holdfast usage exclude-costs`, and never struck. The operation itself never changes.

CREATE TABLE excluded_costs (
    op_seq BIGINT PRIMARY KEY
);

CREATE TRIGGER excluded_costs_never_change
BEFORE UPDATE ON excluded_costs
FOR EACH ROW
EXECUTE FUNCTION holdfast_refuse('excluded costs are append-only');
CREATE TRIGGER excluded_costs_stay
BEFORE DELETE ON excluded_costs
FOR EACH ROW
EXECUTE FUNCTION holdfast_refuse('excluded costs are append-only');
-- Operations of the hour whose cost is left out. A program of the schema before leaves it alone.
ALTER TABLE usage_hours ADD COLUMN costs_excluded BIGINT NOT NULL DEFAULT 0;

-- One row: the youngest moment of a result that a purge has deleted, so that an audit finds those that were
-- deleted by another hand.
CREATE TABLE results_purged (
    one BIGINT PRIMARY KEY CHECK (one = 1),
    youngest BIGINT NOT NULL
);

-- Purges of the schema before noted nothing: what finished until now may have been deleted by them.
INSERT INTO results_purged (one, youngest)
SELECT 1, CAST(extract(EPOCH FROM clock_timestamp()) * 1000000 AS bigint) WHERE EXISTS (SELECT 1 FROM operations);
