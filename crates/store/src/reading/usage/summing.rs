//! Summing: finished operations and refunds are added to `usage_hours`, step by step, by any of the nodes.
//!
//! ```text
//! numbers      0 ........ operations_to ............ settled ............ last
//!              | in usage_hours |  a step: PAGE of them  |  not summed yet  |
//!              | or in late_ends|
//! ```
//!
//! A step reads a page of operations that are older than [`SETTLED`], those that ended late, and a page of
//! postings, all in one snapshot; then one transaction adds the finished ones, notes the running ones, deletes the
//! notes of those that had been noted, and moves the numbers on. It counts the steps, and has no effect if another
//! node has made one since the read: no row is summed twice, and no lock is held while a page is read.
//!
//! No row is missed. Below the settled number no row is added any more: every taker of a number has committed or
//! failed long ago ([`CREATION_DISORDER`]), and on a server with a transaction that writes for longer than that,
//! all wait. An operation that is passed while it is leased or recorded is noted by the step; one that is passed
//! while it is open is noted by its next generation, in the transaction that begins that (a trigger). A noted
//! operation is never taken from a page, only from its note, and a finished one never changes again. So endings and
//! refunds have no work for this.
//!
//! Clocks: a row is put into the hour of its own moment, whatever the order of moments; a clock that was set back
//! makes steps early or late by as much, and no sum wrong.

use std::time::Duration;

use holdfast_domain::ports::Unavailable;
use sea_orm::ConnectionTrait;
use sea_orm::sea_query::SelectStatement;

use super::facts::{Scope, Selection};
use super::{pages, summed};
use crate::metrics;
use crate::options::CREATION_DISORDER;
use crate::reading::page::{first_at, numbers};
use crate::reading::usage::SummingProgress;
use crate::reading::{ReadError, ReadTransaction, read};
use crate::rows::Cells;
use crate::rows::entity::{operation, posting};
use crate::schema::Dialect;
use crate::store::Store;
use crate::transaction::hour::{self, HourKey, HourSums, SummingPosition, SummingStep, WideSums};
use holdfast_domain::admin::report::{GroupBy, UsageFilter};

/// Age at which an operation is summed: no transaction of an older one is still open.
pub(crate) const SETTLED: Duration = Duration::from_secs(600);
const _: () = assert!(SETTLED.as_secs() > 2 * CREATION_DISORDER.as_secs());

/// Numbers of operations and of postings that one step sums: few enough not to hold up a writer that
/// waits for the step's transaction.
const PAGE: usize = 2_000;
/// Operations that ended late, which one step sums.
const LATE: u32 = 1_000;

/// Keys of the rows, in the order of [`HourKey`].
pub(super) const KEYS: [GroupBy; 5] =
    [GroupBy::Wallet, GroupBy::Hour, GroupBy::ApiKey, GroupBy::Model, GroupBy::Route];

const RUNNING: &str = "SELECT seq FROM operations WHERE seq >= $1 AND seq < $2
    AND phase IN ('leased', 'recorded')
    AND NOT EXISTS (SELECT 1 FROM late_ends WHERE op_seq = seq) ORDER BY seq";
const ENDED: &str = "SELECT op_seq FROM late_ends JOIN operations ON seq = op_seq
    WHERE finished_at IS NOT NULL AND op_seq < $2 ORDER BY op_seq LIMIT $1";
/// Statement whose row shows whether any row has not been summed, however young it is.
///
/// The last numbers, and not whether a row exists beyond: for that a server may read a whole table.
const UNSUMMED: &str = "SELECT CASE WHEN (SELECT max(seq) FROM operations) >= u.operations_to
    OR (SELECT max(seq) FROM postings) >= u.postings_to
    OR EXISTS (SELECT 1 FROM late_ends) THEN CAST(1 AS bigint) ELSE 0 END FROM usage_summed AS u";
/// Transactions of the server that write, or wait to be committed, and began before now by so many
/// microseconds.
const LONG_WRITES: &str = "SELECT
    (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
     AND backend_xid IS NOT NULL AND xact_start < now() - $1 * interval '1 microsecond')
    + (SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database())";

/// Every number below these is settled.
#[derive(Debug, Clone, Copy)]
struct SettledNumbers {
    operations: i64,
    postings: i64,
}

impl Store {
    /// Sums one page of operations and refunds that finished some time ago. Any number of nodes may do so at once.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the database cannot be read or written. Then no row was summed.
    pub async fn sum_usage(&self) -> Result<SummingProgress, Unavailable> {
        self.sum_usage_older_than(SETTLED).await
    }

    /// The same with another age. For tests, which have no time to wait.
    ///
    /// # Errors
    ///
    /// As [`Self::sum_usage`].
    #[doc(hidden)]
    pub async fn sum_usage_older_than(
        &self,
        age: Duration,
    ) -> Result<SummingProgress, Unavailable> {
        if !self.has_unsummed_rows().await? {
            return Ok(SummingProgress::Done);
        }
        // Before the snapshot: what was committed since is in it.
        if self.dialect() == Dialect::Postgres && self.has_long_writes().await? {
            tracing::info!("usage is not summed while a transaction stays open for minutes");
            return Ok(SummingProgress::Done);
        }
        let step = self.summing_transaction(move |db| Box::pin(step(db, age))).await?;
        let Some(step) = step else { return Ok(SummingProgress::Done) };
        let excluded = step.excluded.len();
        self.inner.backend.sum_usage(step).await?;
        if excluded > 0 {
            metrics::costs_excluded(excluded);
            tracing::error!(
                operations = excluded,
                "the provider cost of operations is more than a run can cost, and is left out of all sums"
            );
        }
        Ok(SummingProgress::Step)
    }

    /// True if rows are not summed yet: the only statement of an idle process, in place of the eleven of a step.
    async fn has_unsummed_rows(&self) -> Result<bool, Unavailable> {
        let rows = self.inner.pools.summing.query(self.dialect().statement(UNSUMMED, [])).await?;
        let found = rows.first().map_or(Ok(1), |row| Cells::new(row).int());
        Ok(found.map_err(crate::error::unavailable)? > 0)
    }

    pub(crate) async fn has_long_writes(&self) -> Result<bool, Unavailable> {
        let age = i64::try_from(CREATION_DISORDER.as_micros()).unwrap_or(i64::MAX);
        let rows = self.query(LONG_WRITES, [age.into()]).await?;
        let count = rows.first().map_or(Ok(0), |row| Cells::new(row).int());
        Ok(count.map_err(crate::error::unavailable)? > 0)
    }
}

/// The next step; `None` if there is no row to sum.
async fn step(db: &ReadTransaction, age: Duration) -> Result<Option<SummingStep>, ReadError> {
    let before = summed(db).await?;
    let settled = settled(db, before, age).await?;
    let next = |from, to| pages(from..to, PAGE).next().unwrap_or(from..from);
    let page = next(before.operations_to, settled.operations);
    let postings = next(before.postings_to, settled.postings);
    // Only of numbers that were passed: a later one is noted when it is reopened, and waits for its page, which
    // leaves it to its note. Deleted before that, it would be summed once more.
    let passed = before.operations_to.into();
    let ended: Vec<i64> = column(db, ENDED, [i64::from(LATE).into(), passed]).await?;
    if page.is_empty() && postings.is_empty() && ended.is_empty() {
        return Ok(None);
    }
    let mut rows = HourSums::default();
    let ever = i64::MIN..i64::MAX;
    let filter = UsageFilter::default();
    let summed_to = before.operations_to;
    let scope =
        Scope { dialect: db.dialect(), keys: &KEYS, filter: &filter, wallets: None, summed_to };
    let (mut running, mut excluded) = (Vec::new(), Vec::new());
    if !page.is_empty() {
        let numbers = Selection::Numbers(page.clone());
        add(db, &mut rows, &scope.operations(&numbers, &ever)).await?;
        excluded = excluded_of(db, &scope, &numbers).await?;
        running = column(db, RUNNING, [page.start.into(), page.end.into()]).await?;
    }
    if !ended.is_empty() {
        let noted = Selection::Listed(ended.clone());
        add(db, &mut rows, &scope.operations(&noted, &ever)).await?;
        excluded.extend(excluded_of(db, &scope, &noted).await?);
    }
    if !postings.is_empty() {
        add(db, &mut rows, &scope.refunds(&postings, &ever)).await?;
    }
    let (operations_to, postings_to) = (page.end, postings.end);
    Ok(Some(SummingStep { before, operations_to, postings_to, rows, running, ended, excluded }))
}

async fn settled(
    db: &ReadTransaction,
    before: SummingPosition,
    age: Duration,
) -> Result<SettledNumbers, ReadError> {
    let age = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
    let moment = db.now().await?.as_micros().saturating_sub(age);
    let operations = numbers::<operation::Entity>(db, operation::Column::Seq).await?;
    let postings = numbers::<posting::Entity>(db, posting::Column::Seq).await?;
    let operations = first_at::<operation::Entity>(
        db,
        [operation::Column::Seq, operation::Column::CreatedAt],
        moment,
        before.operations_to..operations.end,
    );
    let operations = operations.await?;
    let postings = first_at::<posting::Entity>(
        db,
        [posting::Column::Seq, posting::Column::CreatedAt],
        moment,
        before.postings_to..postings.end,
    );
    Ok(SettledNumbers { operations, postings: postings.await? })
}

async fn add(
    db: &ReadTransaction,
    sums: &mut HourSums,
    select: &SelectStatement,
) -> Result<(), ReadError> {
    for (key, more) in hours(db, select).await? {
        sums.add(key, more);
    }
    Ok(())
}

/// Sums of a statement, each with the key of its row.
pub(super) async fn hours(
    db: &ReadTransaction,
    select: &SelectStatement,
) -> Result<Vec<(HourKey, WideSums)>, ReadError> {
    let mut found = Vec::new();
    for row in db.query_all(select).await.map_err(read)? {
        let mut cells = Cells::new(&row);
        let key = HourKey::from_cells(&mut cells).map_err(ReadError::Row)?;
        // The currency is the wallet's, for ever.
        cells.skip(1);
        let more = hour::sums(&mut cells).map_err(ReadError::Row)?;
        found.push((key, more));
    }
    Ok(found)
}

/// Numbers of the operations whose cost is left out of the sums.
async fn excluded_of(
    db: &ReadTransaction,
    scope: &Scope<'_>,
    selection: &Selection,
) -> Result<Vec<i64>, ReadError> {
    let rows = db.query_all(&scope.excluded(selection)).await.map_err(read)?;
    rows.iter().map(|row| Cells::new(row).int().map_err(ReadError::Row)).collect()
}

async fn column<const N: usize>(
    db: &ReadTransaction,
    sql: &str,
    binds: [sea_orm::Value; N],
) -> Result<Vec<i64>, ReadError> {
    let rows = db.query(sql, binds).await?;
    rows.iter().map(|row| Cells::new(row).int().map_err(ReadError::Row)).collect()
}
