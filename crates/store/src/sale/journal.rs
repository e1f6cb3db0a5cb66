//! The journal: commits go to the writer, reads to the pool, each in one statement.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::operation::{Node, Receipt, SealedResult, Transition};
use holdfast_domain::ports::{CommitError, CostNote, Durability, LeasedOperation, Unavailable};
use holdfast_domain::{ClaimId, Journal, Micros, OperationId, Snapshot, Timestamp};
use sea_orm::QueryResult;

use crate::batch::job::sealed_bytes;
use crate::error::unavailable;
use crate::rows::late_cost;
use crate::rows::{self, BadRow, Cells};
use crate::schema::blob;
use crate::store::Store;
use crate::transaction::exchange::Exchange;

#[async_trait]
impl Journal for Store {
    async fn load(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        let bytes_max = i64::try_from(self.inner.result_bytes_max).unwrap_or(i64::MAX);
        let binds = [blob(operation.to_bytes()), bytes_max.into()];
        let rows = self.query(&self.inner.texts.load, binds).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        let mut snapshot = snapshot(row).map_err(unavailable)?;
        snapshot.now = self.seen(snapshot.now);
        Ok(snapshot)
    }

    async fn result(&self, operation: OperationId) -> Result<Option<SealedResult>, Unavailable> {
        let rows = self.query(&self.inner.texts.result, [blob(operation.to_bytes())]).await?;
        let result = rows.first().map(|row| rows::result(&mut Cells::new(row))).transpose();
        Ok(result.map_err(unavailable)?.flatten())
    }

    async fn clock(&self) -> Result<Timestamp, Unavailable> {
        // Through the short reads: a probe must not wait behind results, and call the store silent.
        let rows = self.quick_query(&self.inner.texts.clock, []).await?;
        let row = rows.first().ok_or_else(|| unavailable(sqlx::Error::RowNotFound))?;
        Ok(self.seen(Cells::new(row).timestamp().map_err(unavailable)?))
    }

    fn durability(&self) -> Durability {
        self.inner.backend.durability()
    }

    async fn commit(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        // Before the queue: no batch waits for a change that cannot be written.
        if sealed_bytes(&change) > self.inner.backend.result_bytes_max() {
            crate::metrics::committed(&Err(CommitError::TooLarge));
            return Err(CommitError::TooLarge);
        }
        self.inner.backend.offer(change).await
    }

    async fn due(&self, limit: u32) -> Result<Vec<OperationId>, Unavailable> {
        let rows = self.query(&self.inner.texts.due, [i64::from(limit).into()]).await?;
        let id = |row| Cells::new(row).bytes().map(OperationId::from_bytes);
        rows.iter().map(id).collect::<Result<_, _>>().map_err(unavailable)
    }

    async fn leased_to(&self, node: &Node) -> Result<Vec<LeasedOperation>, Unavailable> {
        let values = [node.name.as_str().into(), blob(node.incarnation.to_bytes())];
        let rows = self.query(&self.inner.texts.leased_to, values).await?;
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
        self.inner.backend.purge(age, limit).await
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
