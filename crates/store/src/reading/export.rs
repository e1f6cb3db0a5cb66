//! Exports: pages of rows, each read by a short statement of its own through connections of their own.
//!
//! ```text
//! table scan    numbers (after, up to]  (after, up to]  …        parts of a table, in the order of its numbers
//! statement     1. ends of the period   2. opening, count and first entry of each part   3. rows, merged
//! ledger        1. count, unless the tables are short            2. rows of postings, then of operations
//! usage         1. parts of at most 20,000 summed rows           2. sums of each part, in a snapshot of its own
//! ```
//!
//! No statement returns more than 20,000 rows, and no snapshot lasts longer than one statement: the log of
//! SQLite is copied and begun anew while an export goes on, and a server cleans its tables.
//!
//! Never: a part that is left out. An export whose rows are not those that were counted fails.

mod ledger;
mod statement;
mod usage;

use std::sync::Arc;

use holdfast_domain::admin::report::ExportError;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{Timestamp, WalletId};
use sea_orm::{QueryResult, Statement, Value};
use tokio::sync::OwnedSemaphorePermit;

pub(super) use self::ledger::LedgerPages;
pub(super) use self::statement::StatementPages;
pub(super) use self::usage::UsagePages;
use crate::error::unavailable;
use crate::rows::{BadRow, Cells};
use crate::schema::blob;
use crate::store::Store;

/// Operations of one part: an operation has three entries, or more if it was opened again.
const OPERATIONS: i64 = 5_000;
/// Postings of one part.
const POSTINGS: i64 = 20_000;

/// Reader of one export: a place among those that are read at once.
pub(super) struct ExportReader {
    store: Store,
    _place: OwnedSemaphorePermit,
}

impl Store {
    /// A reader, unless as many exports are read as may be.
    pub(super) fn export_reader(&self) -> Result<ExportReader, ExportError> {
        let place = Arc::clone(&self.inner.exports).try_acquire_owned();
        let place = place.map_err(|_none| ExportError::Busy)?;
        Ok(ExportReader { store: self.clone(), _place: place })
    }
}

impl ExportReader {
    async fn query(
        &self,
        sql: &str,
        binds: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<QueryResult>, Unavailable> {
        let backend = self.store.dialect().backend();
        let statement = Statement::from_sql_and_values(backend, sql, binds);
        self.store.inner.pools.exports.query(statement).await
    }

    /// The database's clock.
    async fn now(&self) -> Result<Timestamp, Unavailable> {
        let clock = format!("SELECT {}", self.store.dialect().clock());
        self.row(&clock, [], |cells| cells.timestamp()).await
    }

    /// Reads the one row of a statement.
    async fn row<T>(
        &self,
        sql: &str,
        binds: impl IntoIterator<Item = Value>,
        read: impl FnOnce(&mut Cells<'_>) -> Result<T, BadRow>,
    ) -> Result<T, Unavailable> {
        let rows = self.query(sql, binds).await?;
        let row = rows.first().ok_or(BadRow::Value(0)).map_err(unavailable)?;
        read(&mut Cells::new(row)).map_err(unavailable)
    }
}

/// Table whose rows are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExportedTable {
    Operations,
    Postings,
}

impl ExportedTable {
    /// Rows of one part.
    const fn part(self) -> i64 {
        match self {
            Self::Operations => OPERATIONS,
            Self::Postings => POSTINGS,
        }
    }

    /// The last number that the table has.
    const fn last(self) -> &'static str {
        match self {
            Self::Operations => "SELECT coalesce(max(seq), 0) FROM operations",
            Self::Postings => "SELECT coalesce(max(seq), 0) FROM postings",
        }
    }

    /// The last number of the next part of a wallet's rows, if there are as many.
    const fn part_end(self) -> &'static str {
        match self {
            Self::Operations => {
                "SELECT seq FROM operations WHERE wallet_id = $1 AND seq > $2 ORDER BY seq LIMIT 1 OFFSET $3"
            }
            Self::Postings => {
                "SELECT seq FROM postings WHERE wallet_id = $1 AND seq > $2 ORDER BY seq LIMIT 1 OFFSET $3"
            }
        }
    }
}

/// Numbers of one part of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    table: ExportedTable,
    /// The number before the first one, and the last one.
    after: i64,
    up_to: i64,
}

/// Parts of a table, in the order of its numbers.
#[derive(Debug, Clone, Copy)]
struct TableScan {
    table: ExportedTable,
    /// Wallet of all rows; `None` for those of all wallets.
    wallet: Option<WalletId>,
    after: i64,
    last: i64,
}

impl TableScan {
    /// All rows of a wallet, those of later parts that come meanwhile too.
    const fn of_wallet(table: ExportedTable, wallet: WalletId) -> Self {
        Self { table, wallet: Some(wallet), after: i64::MIN, last: i64::MAX }
    }

    /// Rows that are there now.
    async fn of_now(
        reader: &ExportReader,
        table: ExportedTable,
        wallet: Option<WalletId>,
    ) -> Result<Self, Unavailable> {
        let last = reader.row(table.last(), [], |cells| cells.int()).await?;
        Ok(Self { table, wallet, after: -1, last })
    }

    /// The next part; `None` after the last one.
    async fn next(&mut self, reader: &ExportReader) -> Result<Option<Part>, Unavailable> {
        let Self { table, wallet, after, last } = *self;
        if after >= last {
            return Ok(None);
        }
        let part = table.part();
        let end = match wallet {
            None => Some(after.saturating_add(part)),
            Some(id) => {
                let binds = [blob(id.to_bytes()), after.into(), part.saturating_sub(1).into()];
                let rows = reader.query(table.part_end(), binds).await?;
                let end = rows.first().map(|row| Cells::new(row).int()).transpose();
                end.map_err(unavailable)?
            }
        };
        let up_to = end.map_or(last, |end| end.min(last));
        self.after = up_to;
        Ok(Some(Part { table, after, up_to }))
    }
}

/// More rows than were there at the beginning.
#[derive(Debug, thiserror::Error)]
#[error("an export came to more rows than it may have")]
struct BoundPassed;

/// Number of rows that may follow a page of so many.
fn room_after(room: u64, page: usize) -> Result<u64, Unavailable> {
    let rows = u64::try_from(page).unwrap_or(u64::MAX);
    room.checked_sub(rows).ok_or_else(|| unavailable(BoundPassed))
}
