//! Costs that no run can have caused, of operations that an earlier version has summed: found, and taken out of
//! their hours.
//!
//! The summing leaves such a cost out by itself; an earlier version did not. A correction is the rows with the
//! costs left out, less the rows with them, so that the two rules cannot differ. It counts as a step of the
//! summing: a step that was read before it is dropped, and it is dropped if a step was made since its own read. The
//! operation itself never changes.

use holdfast_domain::OperationId;
use holdfast_domain::ports::Unavailable;
use sea_orm::ConnectionTrait;

use super::facts::{Scope, Selection};
use super::summing::{KEYS, hours};
use super::{PAGE, pages, summed};
use crate::metrics;
use crate::reading::page::numbers;
use crate::reading::usage::AbsurdCosts;
use crate::reading::{ReadError, ReadTransaction, read};
use crate::rows::Cells;
use crate::rows::entity::operation;
use crate::store::Store;
use crate::transaction::hour::{CostExclusion, HourSums};
use holdfast_domain::admin::report::UsageFilter;

/// Operations that one correction is of.
const CORRECTED: usize = 1_000;

impl Store {
    /// Operations whose cost no run can have caused, and which are not excluded yet; `None` if there are none.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be read.
    pub async fn absurd_costs(&self) -> Result<Option<AbsurdCosts>, Unavailable> {
        self.summing_transaction(|db| {
            Box::pin(async move {
                let found = find(db, usize::MAX).await?;
                let operations = u64::try_from(found.len()).unwrap_or(u64::MAX);
                Ok(found.first().map(|(_seq, first)| AbsurdCosts { first: *first, operations }))
            })
        })
        .await
    }

    /// Takes these costs out of all sums; the number of operations whose cost was.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be read or written. Corrections that were made until then stay.
    pub async fn exclude_costs(&self) -> Result<u64, Unavailable> {
        let mut excluded = 0;
        loop {
            let found = self.summing_transaction(|db| Box::pin(exclusion(db))).await?;
            let Some(exclusion) = found else { return Ok(excluded) };
            let operations = exclusion.excluded.len();
            let is_written = self.exchange(exclusion.exchange(self.dialect())).await?;
            if is_written {
                metrics::costs_excluded(operations);
                excluded += u64::try_from(operations).unwrap_or(u64::MAX);
            }
        }
    }
}

/// The first operations with such a cost, by number and id.
async fn find(db: &ReadTransaction, most: usize) -> Result<Vec<(i64, OperationId)>, ReadError> {
    let all = numbers::<operation::Entity>(db, operation::Column::Seq).await?;
    let page_rows = u64::try_from(PAGE).unwrap_or(u64::MAX);
    let mut found = Vec::new();
    for page in pages(all, PAGE) {
        let room = u64::try_from(most - found.len()).unwrap_or(u64::MAX);
        let rows = db.query_all(&Scope::absurd(&page, room.min(page_rows))).await.map_err(read)?;
        for row in rows {
            let mut cells = Cells::new(&row);
            let seq = cells.int().map_err(ReadError::Row)?;
            let id = cells.bytes().map_err(ReadError::Row)?;
            found.push((seq, OperationId::from_bytes(id)));
        }
        if found.len() >= most {
            break;
        }
    }
    Ok(found)
}

/// The next correction; `None` if no cost is left.
async fn exclusion(db: &mut ReadTransaction) -> Result<Option<CostExclusion>, ReadError> {
    let excluded: Vec<i64> = find(db, CORRECTED).await?.into_iter().map(|(seq, _)| seq).collect();
    if excluded.is_empty() {
        return Ok(None);
    }
    let position = summed(db).await?;
    let filter = UsageFilter::default();
    let scope = |summed_to| Scope {
        dialect: db.dialect(),
        keys: &KEYS,
        filter: &filter,
        wallets: None,
        summed_to,
    };
    // From the first number on, each such cost is left out; an operation that is not summed yet is the same in
    // both, and changes no sum.
    let (before, after) = (scope(position.operations_to), scope(0));
    let ever = i64::MIN..i64::MAX;
    let those = Selection::Listed(excluded.clone());
    let refunds = i64::MIN..position.postings_to;
    let mut rows = HourSums::default();
    for (key, sums) in hours(db, &after.operations(&those, &ever)).await? {
        rows.add(key, sums);
    }
    for (key, sums) in hours(db, &before.operations(&those, &ever)).await? {
        rows.take(key, sums);
    }
    for (key, sums) in hours(db, &after.refunds_of(&those, &refunds)).await? {
        rows.add(key, sums);
    }
    for (key, sums) in hours(db, &before.refunds_of(&those, &refunds)).await? {
        rows.take(key, sums);
    }
    Ok(Some(CostExclusion { steps: position.steps, rows, excluded }))
}
