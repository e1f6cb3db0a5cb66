//! Frequent statements, spelled once for a database.

use crate::rows;
use crate::schema::Dialect;

/// Frequent statements, spelled once for a database.
#[derive(Debug)]
pub(crate) struct JournalStatements {
    pub(crate) load: String,
    pub(crate) result: String,
    pub(crate) clock: String,
    pub(crate) due: String,
    pub(crate) leased_to: String,
}

impl JournalStatements {
    pub(crate) fn of(dialect: Dialect) -> Self {
        let clock = dialect.clock();
        let load = format!(
            // One row in any case: a caller without an operation needs the clock as well.
            "SELECT {clock}, {}, {}, {} FROM (SELECT 1) AS once
             LEFT JOIN operations AS o ON o.id = $1
             LEFT JOIN prices AS p ON p.price_version = o.price_version
             LEFT JOIN results AS r ON r.op_seq = o.seq
             LEFT JOIN nodes AS n ON n.name = o.node",
            rows::LEASE,
            rows::RESULT,
            rows::OPERATION
        );
        let result = format!(
            "SELECT {} FROM operations AS o JOIN results AS r ON r.op_seq = o.seq WHERE o.id = $1",
            rows::WHOLE_RESULT
        );
        let is_running = dialect.is_running("o");
        let due = format!(
            // Materialized, so that the clock is read once and not for each row.
            "WITH clock(now) AS MATERIALIZED (SELECT {clock})
             SELECT o.id FROM operations AS o CROSS JOIN clock
             LEFT JOIN nodes AS n ON n.name = o.node
             WHERE {is_running}
             AND {} ORDER BY o.admitted_at, o.seq LIMIT $1",
            rows::is_due("now")
        );
        let leased_to = format!(
            "SELECT o.id, o.claim, o.cancel_asked FROM operations AS o
             WHERE {is_running} AND o.phase = 'leased'
             AND o.node = $1 AND o.incarnation = $2 ORDER BY o.seq"
        );
        Self { load, result, clock: format!("SELECT {clock}"), due, leased_to }
    }
}
