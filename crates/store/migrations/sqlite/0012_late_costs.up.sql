-- Costs of runs that their ended rows do not have: noted as awaited (known = 0), and once they are known (known = 1). An
-- ended row never changes; reports add what is noted here.

CREATE TABLE late_costs (
    op_seq INTEGER NOT NULL,
    generation INTEGER NOT NULL CHECK (generation > 0),
    known INTEGER NOT NULL CHECK (known IN (0, 1)),
    cost INTEGER CHECK (cost >= 0),
    created_at INTEGER NOT NULL,
    PRIMARY KEY (op_seq, generation, known),
    CHECK ((known = 1) = (cost IS NOT NULL))
) STRICT, WITHOUT ROWID;

CREATE TRIGGER late_costs_never_change BEFORE UPDATE ON late_costs
BEGIN SELECT RAISE(ABORT, 'late costs are append-only'); END;
CREATE TRIGGER late_costs_stay BEFORE DELETE ON late_costs
BEGIN SELECT RAISE(ABORT, 'late costs are append-only'); END;
