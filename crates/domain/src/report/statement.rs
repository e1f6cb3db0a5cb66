//! A wallet's statement: what it had, what moved, what it has then. The amounts before and after
//! each entry are counted back from the last one, which the store sums over the whole book: an
//! opening balance, the entries and the closing balance always add up. The wallet's own row is not
//! asked.

use crate::Micros;
use crate::ledger::{Account, PostingKind};
use crate::ports::LedgerEntry;

/// Balance of a wallet at some moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatementBalance {
    /// Funds that it can spend.
    pub available: Micros,
    /// Funds that running operations reserve.
    pub held: Micros,
}

/// A transfer with the balance after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementEntry {
    /// The transfer: amount, moment, accounts and source.
    pub transfer: LedgerEntry,
    /// Kind of the posting; `None` for a transfer that an operation made by itself.
    pub posted: Option<PostingKind>,
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
    /// [`AmountOverflow`] where the entries come to no amount.
    pub fn of(
        lines: Vec<(LedgerEntry, Option<PostingKind>)>,
        omitted: u64,
        closing: StatementBalance,
    ) -> Result<Self, AmountOverflow> {
        let mut entries = Vec::with_capacity(lines.len());
        let mut opening = closing;
        for (transfer, posted) in lines.into_iter().rev() {
            let after = opening;
            opening = after.before(&transfer).ok_or(AmountOverflow)?;
            entries.push(StatementEntry { transfer, posted, after });
        }
        entries.reverse();
        Ok(Self { opening, entries, omitted, closing })
    }
}

impl StatementBalance {
    /// The balance before this transfer, where `self` is the one after it.
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
