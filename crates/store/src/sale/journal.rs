//! The journal: commits go to the writer, reads to the pool, each in one statement.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::operation::{Node, Receipt, SealedResult, Transition};
use holdfast_domain::ports::{CommitError, CostNote, LeasedOperation, Unavailable};
use holdfast_domain::{ClaimId, Journal, Micros, OperationId, Snapshot, Timestamp};
use sea_orm::QueryResult;

use crate::batch::job::sealed_bytes;
use crate::rows::late_cost;
use crate::rows::{self, BadRow, Cells};
use crate::schema::{Dialect, blob};
use crate::transaction::exchange::Exchange;
use crate::{Store, WriteBackend, unavailable};

/// Statements that are asked often, spelled once for a database.
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
             AND (o.phase = 'recorded' OR o.deadline < now OR n.name IS NULL
                  OR n.incarnation <> o.incarnation OR n.ends_at <= now)
             ORDER BY o.admitted_at, o.seq LIMIT $1"
        );
        let leased_to = format!(
            "SELECT o.id, o.claim, o.cancel_asked FROM operations AS o
             WHERE {is_running} AND o.phase = 'leased'
             AND o.node = $1 AND o.incarnation = $2 ORDER BY o.seq"
        );
        Self { load, result, clock: format!("SELECT {clock}"), due, leased_to }
    }
}

#[async_trait]
impl Journal for Store {
    async fn load(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        let bytes_max = i64::try_from(self.inner.result_bytes_max).unwrap_or(i64::MAX);
        let binds = [blob(operation.to_bytes()), bytes_max.into()];
        let rows = self.query(&self.texts().load, binds).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        let mut snapshot = snapshot(row).map_err(unavailable)?;
        snapshot.now = self.seen(snapshot.now);
        Ok(snapshot)
    }

    async fn result(&self, operation: OperationId) -> Result<Option<SealedResult>, Unavailable> {
        let rows = self.query(&self.texts().result, [blob(operation.to_bytes())]).await?;
        let result = rows.first().map(|row| rows::result(&mut Cells::new(row))).transpose();
        Ok(result.map_err(unavailable)?.flatten())
    }

    async fn clock(&self) -> Result<Timestamp, Unavailable> {
        // Through the short reads: a probe must not wait behind results, and call the store silent.
        let rows = self.quick_query(&self.texts().clock, []).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        Ok(self.seen(Cells::new(row).timestamp().map_err(unavailable)?))
    }

    async fn commit(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        // Before the queue: nobody else's batch waits for what cannot be written.
        if sealed_bytes(&change) > self.result_bytes_max() {
            crate::metrics::committed(&Err(CommitError::TooLarge));
            return Err(CommitError::TooLarge);
        }
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.offer(change).await,
            WriteBackend::Postgres(postgres) => postgres.offer(change).await,
        }
    }

    async fn due(&self, limit: u32) -> Result<Vec<OperationId>, Unavailable> {
        let rows = self.query(&self.texts().due, [i64::from(limit).into()]).await?;
        let id = |row| Cells::new(row).bytes().map(OperationId::from_bytes);
        rows.iter().map(id).collect::<Result<_, _>>().map_err(unavailable)
    }

    async fn leased_to(&self, node: &Node) -> Result<Vec<LeasedOperation>, Unavailable> {
        let values = [node.name.as_str().into(), blob(node.incarnation.to_bytes())];
        let rows = self.query(&self.texts().leased_to, values).await?;
        let leased = |row| {
            let mut cells = Cells::new(row);
            Ok(LeasedOperation {
                operation: OperationId::from_bytes(cells.bytes()?),
                claim: ClaimId::from_bytes(cells.bytes()?),
                cancel_asked: cells.int()? != 0,
            })
        };
        rows.iter().map(leased).collect::<Result<_, BadRow>>().map_err(unavailable)
    }

    async fn note_cost(&self, note: CostNote) -> Result<bool, Unavailable> {
        let CostNote { operation, generation, cost } = note;
        let dialect = self.dialect();
        let written = move |now: Timestamp| {
            let binds = [
                blob(operation.to_bytes()),
                i64::from(generation).into(),
                i64::from(cost.is_some()).into(),
                cost.map(Micros::get).into(),
                now.as_micros().into(),
            ];
            dialect.statement(late_cost::NOTE, binds)
        };
        // One row, if the note was kept by this.
        let is_kept = |rows: Vec<i64>, _now| (Vec::new(), !rows.is_empty());
        self.exchange(Exchange::new(written, |cells| cells.int(), is_kept)).await
    }

    async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        match self.writing() {
            WriteBackend::Sqlite(sqlite) => sqlite.purge(age, limit).await,
            WriteBackend::Postgres(postgres) => postgres.purge(age, limit).await,
        }
    }
}

fn snapshot(row: &QueryResult) -> Result<Snapshot, BadRow> {
    let mut cells = Cells::new(row);
    let now = cells.timestamp()?;
    let lease = rows::lease(&mut cells)?;
    let result = rows::result(&mut cells)?;
    let operation = if cells.is_absent()? { None } else { Some(rows::operation(&mut cells)?) };
    Ok(Snapshot { operation, result, lease, now })
}
