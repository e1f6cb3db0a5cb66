//! Exports: all rows of a statement, or of the ledger's payments and charges, a page at a time.
//!
//! ```text
//! begin ─▶ ends of the period, opening balance, bound judged ─▶ next_page … next_page ─▶ None
//! ```
//!
//! The set of rows is fixed when an export begins: entries of later moments are in none of its pages. Each page is
//! read by itself, so that an export of an hour keeps no snapshot for an hour. Dropping an export ends its reading.
//!
//! Never cut: an export has all rows of its period, or it ends with an error, or it is refused before its first row.

use async_trait::async_trait;

use super::{LedgerOperation, StatementBalance, StatementEntry, UsageRow};
use crate::admin::posting::PostingDetails;
use crate::debug_as;
use crate::ledger::PostingKind;
use crate::ports::Unavailable;
use crate::{Currency, Micros, PostingId, Timestamp, WalletId};

/// Most rows of an export.
pub const EXPORT_ROWS_MAX: u64 = 5_000_000;
/// Most exports that a process reads at once. A store has as many connections for them, apart from all others.
pub const EXPORTS_AT_ONCE: u16 = 2;
/// Most rows that a page has, and that one statement reads.
pub const EXPORT_PAGE: u32 = 20_000;

/// Refusal or failure of an export before its first row.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The period has more rows than an export may have.
    #[error("the period has {rows} rows, and an export has at most {rows_max}")]
    TooManyRows {
        /// Rows of the period.
        rows: u64,
        /// Bound of an export.
        rows_max: u64,
    },
    /// As many exports are read as may be at once.
    #[error("{EXPORTS_AT_ONCE} exports are being read, which is the most at once in a process")]
    Busy,
    /// The store does not work.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Pages of an export, in the order of its rows.
#[async_trait]
pub trait ExportPages<T>: Send {
    /// Next rows; `None` after the last one. After an error there are no more. Cancel safe only in so far as a dropped
    /// call ends the export: rows that it has read are lost.
    async fn next_page(&mut self) -> Result<Option<Vec<T>>, Unavailable>;
}

/// Export of a wallet's statement.
pub struct StatementExport {
    /// Balance before the first entry of the period.
    pub opening: StatementBalance,
    /// Balance after the last entry of the period.
    pub closing: StatementBalance,
    /// End of the period, or the beginning of the export if that came first; none for a period without an end.
    pub until: Option<Timestamp>,
    /// Number of the entries.
    pub rows: u64,
    /// Entries, oldest first, each with the balance after it.
    pub pages: Box<dyn ExportPages<StatementEntry>>,
}

debug_as!(StatementExport as it: "StatementExport({} rows)", it.rows);

/// Payments and charges of a period, of one wallet or of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerQuery {
    /// Wallet of all rows; `None` for all wallets.
    pub wallet: Option<WalletId>,
    /// First moment.
    pub from: Timestamp,
    /// The moment after the last one.
    pub to: Timestamp,
}

/// Payment or charge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerRow {
    /// Moment at which it was booked.
    pub at: Timestamp,
    /// Wallet that it moved.
    pub wallet: LedgerWallet,
    /// Change of the wallet's funds: negative for a charge.
    pub amount: Micros,
    /// Posting that moved them; `None` for a charge.
    pub posting: Option<LedgerPosting>,
    /// Operation of a charge or a refund.
    pub operation: Option<LedgerOperation>,
}

/// Wallet of a row, as an accountant knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerWallet {
    /// Id.
    pub id: WalletId,
    /// Name.
    pub name: String,
    /// Id in an outer system.
    pub external_id: Option<String>,
    /// Currency of its amounts.
    pub currency: Currency,
}

/// Deposit, refund or adjustment of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerPosting {
    /// Id.
    pub id: PostingId,
    /// Kind, with the reason of an adjustment.
    pub kind: PostingKind,
    /// Reference and note.
    pub details: PostingDetails,
}

/// Export of usage.
pub struct UsageExport {
    /// Sums of groups: of one span of time after another if the groups have one, sorted within each page. A page is of
    /// the moment at which it is read, so that refunds and late costs of meanwhile are in later pages only.
    pub pages: Box<dyn ExportPages<UsageRow>>,
}

debug_as!(UsageExport: "UsageExport");

/// Export of payments and charges.
pub struct LedgerExport {
    /// The period, cut at the moment at which the export began.
    pub query: LedgerQuery,
    /// Moment before which every row of the period is listed. Of later ones those may be missing whose commit was under
    /// way when the export began.
    pub until: Timestamp,
    /// Postings in the order in which they were made, then charges in the order of their operations.
    pub pages: Box<dyn ExportPages<LedgerRow>>,
}

debug_as!(LedgerExport as it: "LedgerExport({:?})", it.query);
