//! A wallet's statement as a file: opening balance, entries, closing balance, which add up.

use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{StatementBalance, StatementEntry};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::ports::LedgerSource;
use holdfast_domain::{Currency, Timestamp};

use super::{CLOSING, FileCell, FileFormat, OPENING};
use crate::api::rfc3339;

/// Names of the columns: the balances are those after the entry, as the opening and the closing row have
/// them. `omitted_entries` is 0: readers of files of before, which could be cut, find it.
const COLUMNS: [&str; 14] = [
    "at",
    "kind",
    "debit",
    "credit",
    "amount_micros",
    "available_micros",
    "held_micros",
    "operation_id",
    "generation",
    "posting_id",
    "reason",
    "currency",
    "omitted_entries",
    "rows",
];

/// Rows of a statement in one format.
#[derive(Debug, Clone, Copy)]
pub struct StatementFileRows {
    /// Format of the file.
    pub format: FileFormat,
    /// Period of the statement.
    pub period: Period,
    /// Currency of the wallet.
    pub currency: Currency,
}

impl StatementFileRows {
    /// The columns and the opening balance, at the beginning of the period.
    #[must_use]
    pub fn opening(&self, opening: StatementBalance) -> String {
        let [none, omitted] = [FileCell::Nothing, FileCell::Count(0)];
        let row = self.total(OPENING, self.period.from, opening, [omitted, none]);
        self.format.head(&COLUMNS) + &row
    }

    /// The closing balance, with the number of entries.
    #[must_use]
    pub fn closing(
        &self,
        closing: StatementBalance,
        until: Option<Timestamp>,
        rows: u64,
    ) -> String {
        let counts = [FileCell::Nothing, FileCell::Count(rows)];
        self.total(CLOSING, until, closing, counts)
    }

    fn total(
        &self,
        kind: &str,
        at: Option<Timestamp>,
        balance: StatementBalance,
        [omitted, rows]: [FileCell; 2],
    ) -> String {
        let none = || FileCell::Nothing;
        let cells = [
            FileCell::some(at.map(rfc3339)),
            FileCell::text(kind),
            none(),
            none(),
            none(),
            FileCell::Number(balance.available.get()),
            FileCell::Number(balance.held.get()),
            none(),
            none(),
            none(),
            none(),
            FileCell::text(self.currency),
            omitted,
            rows,
        ];
        self.format.line(&COLUMNS, cells)
    }

    /// Row of an entry.
    #[must_use]
    pub fn entry(&self, StatementEntry { transfer, posted, after, .. }: &StatementEntry) -> String {
        let (operation, generation, posting) = match transfer.source {
            LedgerSource::Operation(id, generation) => (Some(id), Some(generation), None),
            LedgerSource::Posting(id) => {
                let refunded = match posted {
                    Some(PostingKind::Refund(operation)) => Some(*operation),
                    None | Some(PostingKind::Deposit | PostingKind::Adjustment(_)) => None,
                };
                (refunded, None, Some(id))
            }
        };
        let reason = match posted {
            Some(PostingKind::Adjustment(reason)) => Some(reason.as_str()),
            None | Some(PostingKind::Deposit | PostingKind::Refund(_)) => None,
        };
        let cells = [
            FileCell::text(rfc3339(transfer.at)),
            FileCell::text(transfer.kind),
            FileCell::text(transfer.debit.label()),
            FileCell::text(transfer.credit.label()),
            FileCell::Number(transfer.amount.get()),
            FileCell::Number(after.available.get()),
            FileCell::Number(after.held.get()),
            FileCell::some(operation),
            generation.map_or(FileCell::Nothing, |number| FileCell::Count(number.into())),
            FileCell::some(posting),
            FileCell::chosen(reason),
            FileCell::text(self.currency),
            FileCell::Nothing,
            FileCell::Nothing,
        ];
        self.format.line(&COLUMNS, cells)
    }
}
