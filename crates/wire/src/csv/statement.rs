//! A wallet's statement as CSV: opening balance, entries, closing balance, which add up.

use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{Statement, StatementBalance, StatementEntry};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::ports::LedgerSource;
use holdfast_domain::{Currency, Micros, Timestamp};

use super::{chosen, record};
use crate::api::rfc3339;

/// Names of the columns: the balances are those after the entry, as the opening and the closing row have
/// them.
pub const STATEMENT_COLUMNS: [&str; 13] = [
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
];

/// The opening balance, the entries, the closing balance; what a row has none of is empty. The
/// opening row says how many earlier entries of the period are left out.
#[must_use]
pub fn statement(
    Statement { opening, entries, omitted, closing }: &Statement,
    period: Period,
    currency: Currency,
) -> String {
    let currency = currency.to_string();
    let total = |kind: &str, at: Option<Timestamp>, balance: StatementBalance, omitted: String| {
        let StatementBalance { available, held } = balance;
        let at = at.map(rfc3339).unwrap_or_default();
        let [available, held] = [available, held].map(|amount| amount.get().to_string());
        let none = String::new;
        record(
            [
                at,
                kind.to_owned(),
                none(),
                none(),
                none(),
                available,
                held,
                none(),
                none(),
                none(),
                none(),
                currency.clone(),
                omitted,
            ]
            .iter()
            .map(String::as_str),
        )
    };
    let mut text = record(STATEMENT_COLUMNS);
    text.push_str(&total("opening", period.from, *opening, omitted.to_string()));
    for entry in entries {
        text.push_str(&record(entry_cells(entry, &currency).iter().map(String::as_str)));
    }
    text.push_str(&total("closing", period.to, *closing, String::new()));
    text
}

fn entry_cells(
    StatementEntry { transfer, posted, after, .. }: &StatementEntry,
    currency: &str,
) -> [String; STATEMENT_COLUMNS.len()] {
    let micros = |amount: Micros| amount.get().to_string();
    let none = String::new;
    let (operation, generation, posting) = match transfer.source {
        LedgerSource::Operation(id, generation) => (id.to_string(), generation.to_string(), none()),
        LedgerSource::Posting(id) => {
            let refunded = match posted {
                Some(PostingKind::Refund(operation)) => operation.to_string(),
                None | Some(PostingKind::Deposit | PostingKind::Adjustment(_)) => none(),
            };
            (refunded, none(), id.to_string())
        }
    };
    let reason = match posted {
        Some(PostingKind::Adjustment(reason)) => chosen(reason),
        None | Some(PostingKind::Deposit | PostingKind::Refund(_)) => none(),
    };
    [
        rfc3339(transfer.at),
        transfer.kind.to_owned(),
        transfer.debit.label().to_owned(),
        transfer.credit.label().to_owned(),
        micros(transfer.amount),
        micros(after.available),
        micros(after.held),
        operation,
        generation,
        posting,
        reason,
        currency.to_owned(),
        none(),
    ]
}
