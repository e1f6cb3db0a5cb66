//! Notes on costs that ended rows do not have, as they are written and as reports add them.

/// Writes a note: the id, the generation, 1 if the cost is known, the cost, the moment. A cost is kept once, and
/// only for an ended row without one; that of a recorded row counts once it is settled.
pub(crate) const NOTE: &str = "INSERT INTO late_costs (op_seq, generation, known, cost, created_at)
    SELECT o.seq, o.generation, CAST($3 AS bigint), CAST($4 AS bigint), CAST($5 AS bigint)
    FROM operations AS o WHERE o.id = $1 AND o.generation = CAST($2 AS bigint)
    AND (CAST($3 AS bigint) = 0 OR (o.provider_cost IS NULL AND o.phase IN ('recorded', 'completed', 'refused', 'abandoned')))
    ON CONFLICT DO NOTHING RETURNING op_seq";

/// Condition: a note is of the ended generation of an operation whose row has no cost.
pub(crate) const IS_OF_OPERATION: &str = "operations.seq = late_costs.op_seq
    AND operations.generation = late_costs.generation AND operations.provider_cost IS NULL
    AND operations.phase IN ('completed', 'refused', 'abandoned')";
/// Cost of the run of `operations` that came after its ending.
pub(crate) const LATE_COST: &str = "(SELECT late_costs.cost FROM late_costs
    WHERE late_costs.op_seq = operations.seq AND late_costs.generation = operations.generation
    AND late_costs.known = 1 AND operations.provider_cost IS NULL)";
/// Effect of a note on the sums of its operation's group.
pub(crate) const COSTED: &str =
    "CASE WHEN operations.phase = 'completed' THEN late_costs.known END";
pub(crate) const COST: &str = "late_costs.cost";
/// Of a completed operation the hold is exposure while the cost is awaited; of another one it was, until the cost came.
pub(crate) const EXPOSURE: &str = "CASE
    WHEN late_costs.known = 1 AND operations.phase <> 'completed' THEN -operations.hold
    WHEN late_costs.known = 0 AND operations.phase = 'completed' AND NOT EXISTS
        (SELECT 1 FROM late_costs AS told WHERE told.op_seq = late_costs.op_seq
         AND told.generation = late_costs.generation AND told.known = 1) THEN operations.hold END";
/// The sums of refunds do not change the margin of an operation without a cost.
pub(crate) const MARGIN: &str = "CASE WHEN late_costs.known = 1 THEN coalesce(operations.charge, 0)
    - late_costs.cost - (SELECT CAST(coalesce(sum(postings.amount), 0) AS bigint) FROM postings
        WHERE postings.operation_id = operations.id AND postings.kind = 'refund') END";
