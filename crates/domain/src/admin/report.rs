//! Reports: usage and statements as operators read them ([`Reports`]), and usage as the holder of an
//! API key reads it, by the hour, day or month and by model ([`HolderReports`]).
//!
//! A holder's report has only what its holder paid for, and no part of the operator's: no route, no cost, no
//! margin. The ports read; permissions and bounds are the caller's.
//!
//! ```
//! use holdfast_domain::Micros;
//! use holdfast_domain::admin::report::{GroupBy, Grouping, Totals};
//!
//! let micros = Micros::new;
//! let priced = Totals {
//!     completed: 2,
//!     charge: micros(300),
//!     costed: 2,
//!     provider_cost: micros(190),
//!     margin: micros(110),
//!     ..Totals::NOTHING
//! };
//! let unpriced = Totals { completed: 1, charge: micros(50), ..Totals::NOTHING };
//! let all = priced.plus(&unpriced);
//! assert_eq!((all.completed, all.charge), (3, micros(350)));
//! // An unknown cost is no cost of zero: the margin is that of the two operations with a known cost.
//! assert_eq!((all.costed, all.known().unwrap().margin), (2, micros(110)));
//! assert_eq!(unpriced.known(), None);
//! assert_eq!(Grouping::by_both(GroupBy::Day, GroupBy::Day), None);
//! ```

mod export;
mod statement;
mod sums;

use std::fmt;

use async_trait::async_trait;

pub use self::export::{
    EXPORT_PAGE, EXPORT_ROWS_MAX, EXPORTS_AT_ONCE, ExportError, ExportPages, LedgerExport,
    LedgerPosting, LedgerQuery, LedgerRow, LedgerWallet, StatementExport, UsageExport,
};
pub use self::statement::{
    AmountOverflow, DailyStatement, DayMovement, EntryPlace, LedgerOperation, MovementKind,
    Statement, StatementBalance, StatementEntry, StatementLine,
};
pub use self::sums::{
    Group, GroupBy, Grouping, KnownCost, Totals, UsageFilter, UsageQuery, UsageRow,
};
use crate::admin::listing::Period;
use crate::ports::Unavailable;
use crate::usage::MeterKind;
use crate::{ApiKeyId, Currency, Micros, OperationId, Timestamp, WalletId};

/// Operations that a report is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageScope {
    /// All of one API key.
    ApiKey(ApiKeyId),
    /// All of one wallet, for every API key.
    Wallet(WalletId),
}

/// Span of time that is summed, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageInterval {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A calendar month.
    Month,
}

/// Request for a report: what finished from one moment on, and before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageRequest {
    /// Operations that are summed.
    pub scope: UsageScope,
    /// Interval of each sum.
    pub interval: UsageInterval,
    /// First moment, the first one of an hour: whole hours are read at once.
    pub from: Timestamp,
    /// First moment after the last, the first one of an hour.
    pub to: Timestamp,
}

/// Sums over what finished in one interval, for one model in one currency.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelUsage {
    /// Moment at which the interval begins.
    pub start: Timestamp,
    /// Public id of the model.
    pub model: String,
    /// Currency of the amounts.
    pub currency: Currency,
    /// Operations that were answered and settled.
    pub completed: u64,
    /// Operations that the provider refused.
    pub refused: u64,
    /// Operations that ended without a known outcome.
    pub abandoned: u64,
    /// Completed operations whose meters were estimated.
    pub estimated: u64,
    /// Units that the completed used, in the order of [`MeterKind::ALL`].
    pub meters: [u64; MeterKind::COUNT],
    /// Charges of the completed.
    pub charge: Micros,
    /// Refunds of these charges, whenever they were made.
    pub refunded: Micros,
    /// True if a sum is more than a number can be: it is the largest then.
    pub is_incomplete: bool,
}

/// Failure of a report of usage.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// The report has more rows than it may have. No part of it is returned: a sum over some of the rows would
    /// pass for the whole.
    #[error("the report has more than {0} rows")]
    TooManyRows(u32),
    /// The store does not work.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Most reports that a process reads at once. A store has so many connections for them, apart from all others;
/// further reports wait.
pub const REPORTS_AT_ONCE: u16 = 2;

/// Reads reports for operators, each of one moment.
#[async_trait]
pub trait Reports: Send + Sync {
    /// Usage that finished in a period, summed for each group and currency, sorted by both. A sum that
    /// does not fit into 64 bits is the largest number, and marked. No more rows are read than the report may have and
    /// one.
    async fn usage(&self, query: UsageQuery) -> Result<Vec<UsageRow>, UsageError>;

    /// The statement of a wallet over a period, with at most its last `limit` entries. A missing wallet has one
    /// of zero.
    async fn statement(
        &self,
        wallet: WalletId,
        period: Period,
        limit: u32,
    ) -> Result<Statement, Unavailable>;

    /// The statement of the entries of a period that come before this place: those of a page before
    /// another one.
    async fn statement_before(
        &self,
        wallet: WalletId,
        period: Period,
        before: EntryPlace,
        limit: u32,
    ) -> Result<Statement, Unavailable>;

    /// The statement of a wallet over a period by day. Payments with a reference are movements of their own if it has
    /// at most so many then.
    async fn daily_statement(
        &self,
        wallet: WalletId,
        period: Period,
        movements_max: u32,
    ) -> Result<DailyStatement, Unavailable>;

    /// Begins an export of a wallet's statement over a period: of all entries up to the last one of now.
    async fn export_statement(
        &self,
        wallet: WalletId,
        period: Period,
        rows_max: u64,
    ) -> Result<StatementExport, ExportError>;

    /// Begins an export of usage that finished in a period: every group that [`Reports::usage`] has, once.
    async fn export_usage(
        &self,
        query: UsageQuery,
        rows_max: u64,
    ) -> Result<UsageExport, ExportError>;

    /// Begins an export of payments and charges, up to now. A charge counts at the moment at which it was settled.
    async fn export_ledger(
        &self,
        query: LedgerQuery,
        rows_max: u64,
    ) -> Result<LedgerExport, ExportError>;
}

/// Reads reports for holders.
#[async_trait]
pub trait HolderReports: Send + Sync + fmt::Debug {
    /// Sums of every interval and model with a finished operation, in the order of intervals, then of models.
    /// A reading that exceeds its time is `Unavailable`.
    async fn usage(&self, request: UsageRequest) -> Result<Vec<ModelUsage>, Unavailable>;

    /// Sums the refunds of an operation's charge.
    async fn refunded(&self, operation: OperationId) -> Result<Micros, Unavailable>;
}
