-- Costs of runs that their ended rows do not have: noted as awaited (known = 0), and once they are known (known = 1). An
-- ended row never changes; reports add what is noted here.

CREATE TABLE late_costs (
    op_seq BIGINT NOT NULL,
    generation holdfast_positive NOT NULL,
    known holdfast_flag NOT NULL,
    cost holdfast_natural,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (op_seq, generation, known),
    CHECK ((known = 1) = (cost IS NOT NULL))
);

CREATE TRIGGER late_costs_never_change
BEFORE UPDATE ON late_costs
FOR EACH ROW
EXECUTE FUNCTION holdfast_refuse('late costs are append-only');
CREATE TRIGGER late_costs_stay
BEFORE DELETE ON late_costs
FOR EACH ROW
EXECUTE FUNCTION holdfast_refuse('late costs are append-only');
