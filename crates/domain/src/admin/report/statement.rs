//! A wallet's statement: its opening balance, its entries, its closing balance. The amounts before and after
//! each entry are counted back from the last one, which the store sums over the whole ledger: an opening
//! balance, the entries and the closing balance always add up. The wallet's own row is not read.
//!
//! Entries stand in the order in which they moved the wallet, which their moments do not have after
//! a clock was set. A period begins after the last entry with a moment before it, and ends with the
//! last entry with a moment before its end: each balance of a statement is one that the wallet had,
//! and each entry is in one of two adjacent periods.

use crate::admin::posting::DepositReference;
use crate::ledger::{Account, PostingKind};
use crate::ports::LedgerEntry;
use crate::{ApiKeyId, Micros, OperationId, Timestamp};

/// Balance of a wallet at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementBalance {
    /// Funds that it can spend.
    pub available: Micros,
    /// Funds that running operations reserve.
    pub held: Micros,
}

/// Place of an entry in the order of its wallet's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryPlace {
    /// Moment of an entry without a number. Such entries come before all that have one.
    Moment(Timestamp),
    /// Number of an entry, which is positive; no other entry of the wallet has it.
    Number(i64),
}

/// Operation of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerOperation {
    /// Id.
    pub id: OperationId,
    /// Public id of its model.
    pub model: String,
    /// API key that it was sent with.
    pub api_key: ApiKeyId,
    /// Name of that key; missing only in a damaged ledger.
    pub api_key_name: Option<String>,
}

/// Line of a statement, without the balance after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementLine {
    /// Place among the wallet's entries.
    pub place: EntryPlace,
    /// The transfer: amount, moment, accounts and source.
    pub transfer: LedgerEntry,
    /// Kind of the posting; `None` for a transfer that an operation made by itself.
    pub posted: Option<PostingKind>,
    /// Operation of such a transfer, with its model and API key.
    pub operation: Option<LedgerOperation>,
}

/// A transfer with the balance after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementEntry {
    /// Place among the wallet's entries.
    pub place: EntryPlace,
    /// The transfer: amount, moment, accounts and source.
    pub transfer: LedgerEntry,
    /// Kind of the posting; `None` for a transfer that an operation made by itself.
    pub posted: Option<PostingKind>,
    /// Operation of such a transfer, with its model and API key.
    pub operation: Option<LedgerOperation>,
    /// Balance after the transfer.
    pub after: StatementBalance,
}

/// A wallet's statement: opening balance, entries, closing balance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Balance before the first entry.
    pub opening: StatementBalance,
    /// Entries, oldest first.
    pub entries: Vec<StatementEntry>,
    /// Entries of the period before the first one here: the opening balance is after them.
    pub omitted: u64,
    /// Balance at the end of the period.
    pub closing: StatementBalance,
}

/// Kind of a movement of a wallet's funds: what a hold reserves or returns is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MovementKind {
    /// Deposit.
    Deposit,
    /// Refund of a charge.
    Refund,
    /// Adjustment.
    Adjustment,
    /// Charge of a request.
    Charge,
}

impl MovementKind {
    /// Every kind, in the order of a statement within a day.
    pub const ALL: [Self; 4] = [Self::Deposit, Self::Refund, Self::Adjustment, Self::Charge];

    /// Name in rows and files.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Deposit => "deposit",
            Self::Refund => "refund",
            Self::Adjustment => "adjustment",
            Self::Charge => "charge",
        }
    }
}

/// Movements of one kind on one UTC day, added up; a payment with a reference has its own if there are few.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DayMovement {
    /// First moment of the day.
    pub day: Timestamp,
    /// Kind of the movements.
    pub kind: MovementKind,
    /// Reference of the payment.
    pub reference: Option<DepositReference>,
    /// Number of the movements.
    pub count: u64,
    /// Change of the wallet's funds: negative for charges.
    pub amount: Micros,
}

/// A wallet's statement by day: opening funds, movements and closing funds add up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyStatement {
    /// Balance before the first movement.
    pub opening: StatementBalance,
    /// Movements by day, then by kind.
    pub movements: Vec<DayMovement>,
    /// Balance at the end of the period.
    pub closing: StatementBalance,
}

/// Amounts that no wallet can have: the book is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the transfers come to more than an amount can be")]
pub struct AmountOverflow;

impl Statement {
    /// Counts back from the end. `lines` are the last of the period, oldest first, and `omitted`
    /// how many of it come before them.
    ///
    /// # Errors
    ///
    /// [`AmountOverflow`] if the entries come to no amount.
    pub fn of(
        lines: Vec<StatementLine>,
        omitted: u64,
        closing: StatementBalance,
    ) -> Result<Self, AmountOverflow> {
        let mut entries = Vec::with_capacity(lines.len());
        let mut opening = closing;
        for StatementLine { place, transfer, posted, operation } in lines.into_iter().rev() {
            let after = opening;
            opening = after.before(&transfer).ok_or(AmountOverflow)?;
            entries.push(StatementEntry { place, transfer, posted, operation, after });
        }
        entries.reverse();
        Ok(Self { opening, entries, omitted, closing })
    }
}

impl StatementBalance {
    /// Balance of a wallet without an entry.
    pub const NOTHING: Self = Self { available: Micros::ZERO, held: Micros::ZERO };

    /// All funds; `None` beyond the range of an amount.
    #[must_use]
    pub fn funds(self) -> Option<Micros> {
        self.available.plus(self.held)
    }

    /// The sum of both; `None` beyond the range of an amount.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        let available = self.available.plus(other.available)?;
        Some(Self { available, held: self.held.plus(other.held)? })
    }

    /// The balance after this transfer, if `self` is the one before it; `None` beyond the range of an amount.
    #[must_use]
    pub fn after(self, transfer: &LedgerEntry) -> Option<Self> {
        let after = |account: Account, before: Micros| {
            let before =
                if transfer.debit == account { before.minus(transfer.amount)? } else { before };
            if transfer.credit == account { before.plus(transfer.amount) } else { Some(before) }
        };
        let available = after(Account::Available, self.available)?;
        Some(Self { available, held: after(Account::Held, self.held)? })
    }

    /// The balance before this transfer, if `self` is the one after it.
    fn before(self, transfer: &LedgerEntry) -> Option<Self> {
        let before = |account: Account, after: Micros| {
            let after =
                if transfer.credit == account { after.minus(transfer.amount)? } else { after };
            if transfer.debit == account { after.plus(transfer.amount) } else { Some(after) }
        };
        let available = before(Account::Available, self.available)?;
        Some(Self { available, held: before(Account::Held, self.held)? })
    }
}
