//! `/wallets/{id}/statement`: opening balance, entries and closing balance of a period.
//!
//! The newest page comes first, and the entries of a page stand oldest first, between the balances
//! before and after them: the closing balance of a page is the opening one of the page that came
//! before it. A file has no pages: it has all entries of its period.

use holdfast_accounts::{Reference, StatementPage};
use holdfast_domain::admin::listing::{Order, PageRequest, Period};
use holdfast_domain::admin::report::{StatementBalance, StatementEntry};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::ports::LedgerSource;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::answer::Answer;
use crate::csv::{AcceptsCsv, ReportAnswer, ReportFormat};
use crate::description::{Errors, WalletPath};
use crate::error::Problem;
use crate::export::statement_file;
use crate::page::{ListPages, PageQuery};
use crate::request::{Caller, Params};
use crate::value::Moment;

/// Period of a statement, and its page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatementParams {
    /// First moment of the period; the beginning if absent.
    #[param(inline)]
    from: Option<Moment>,
    /// The moment after the period; now if absent.
    #[param(inline)]
    to: Option<Moment>,
    /// Entries on the page: 1 to 200, 50 if absent. Entries without a number that share a moment are on one page,
    /// so a page may have more, or fewer. Not for a file.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// `next_cursor` of the page before. Not for a file.
    #[param(pattern = "^[A-Za-z0-9_-]{48}$")]
    cursor: Option<String>,
    /// Format; it overrides `Accept`.
    #[param(inline)]
    format: Option<ReportFormat>,
}

/// Page of a wallet's statement: opening balance, entries, closing balance, which add up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Statement)]
pub(crate) struct StatementView {
    #[schema(format = "uuid")]
    wallet_id: String,
    currency: String,
    from: Option<Moment>,
    to: Option<Moment>,
    opening: BalanceView,
    /// Entries, oldest first.
    entries: Vec<EntryView>,
    /// Entries of the period before those of this page.
    omitted_entries: u64,
    closing: BalanceView,
    /// True if the period has earlier entries.
    has_more: bool,
    /// Cursor of the page of the entries before these.
    next_cursor: Option<String>,
}

/// Balance of a wallet at some moment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Balance)]
struct BalanceView {
    available_micros: i64,
    held_micros: i64,
}

impl From<StatementBalance> for BalanceView {
    fn from(StatementBalance { available, held }: StatementBalance) -> Self {
        Self { available_micros: available.get(), held_micros: held.get() }
    }
}

/// Transfer, with the balance after it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StatementEntry)]
struct EntryView {
    at: Moment,
    /// `hold`, `settle`, `rest`, `release`, `lapse`, `deposit`, `refund` or `adjustment`.
    kind: String,
    /// Account that pays.
    debit: &'static str,
    /// Account that is paid.
    credit: &'static str,
    amount_micros: i64,
    #[schema(format = "uuid")]
    operation_id: Option<String>,
    generation: Option<u32>,
    #[schema(format = "uuid")]
    posting_id: Option<String>,
    /// Reason of an adjustment.
    reason: Option<String>,
    available_micros: i64,
    held_micros: i64,
}

impl From<StatementEntry> for EntryView {
    fn from(StatementEntry { transfer, posted, after, .. }: StatementEntry) -> Self {
        let (operation, generation, posting) = match transfer.source {
            LedgerSource::Operation(id, generation) => (Some(id), Some(generation), None),
            LedgerSource::Posting(id) => (None, None, Some(id)),
        };
        let (refunded, reason) = match posted {
            None | Some(PostingKind::Deposit) => (None, None),
            Some(PostingKind::Refund(operation)) => (Some(operation), None),
            Some(PostingKind::Adjustment(reason)) => (None, Some(reason)),
        };
        Self {
            at: Moment(transfer.at),
            kind: transfer.kind.to_owned(),
            debit: transfer.debit.label(),
            credit: transfer.credit.label(),
            amount_micros: transfer.amount.get(),
            operation_id: operation.or(refunded).map(|id| id.to_string()),
            generation,
            posting_id: posting.map(|id| id.to_string()),
            reason,
            available_micros: after.available.get(),
            held_micros: after.held.get(),
        }
    }
}

#[utoipa::path(
    get, path = "/wallets/{id}/statement", operation_id = "show_statement", tag = "wallets",
    params(WalletPath, StatementParams),
    responses(
        (
            status = 200,
            description = "A page; or all entries as a file, whose last row is `closing` with their number.",
            content(
                (StatementView = "application/json"), (String = "text/csv"), (String = "application/jsonl"),
            ),
        ),
        Errors,
    )
)]
/// Shows the statement of a wallet over a period.
pub(crate) async fn show(
    caller: Caller,
    accepts: AcceptsCsv,
    Params(params): Params<StatementParams>,
) -> Result<ReportAnswer<StatementView>, Problem> {
    let id: Uuid = caller.id()?;
    let bounds = [params.from, params.to];
    let [from, to] = bounds.map(|bound| bound.map(|Moment(at)| at));
    let period = Period { from, to };
    let format = accepts.format(params.format);
    let list = ListPages::new(&caller, "statement", &(id.to_string(), bounds))?;
    let wallet = Reference::Id(id);
    if let Some(format) = format.of_file() {
        // Refused and not ignored: a caller that sends a limit and gets a whole period may read far
        // more than it has room for.
        if params.limit.is_some() || params.cursor.is_some() {
            let message = "A file has no pages: send a period instead.";
            let param = if params.limit.is_some() { "limit" } else { "cursor" };
            return Err(Problem::invalid(param, message));
        }
        let file = caller.accounts().export_statement(&caller.principal, &wallet, period).await?;
        return Ok(ReportAnswer::File(statement_file(file, format)));
    }
    // The actor `local` gets one page of any length. With a cursor it is bounded as all others are,
    // because a cursor is the place within pages.
    let page = if caller.principal.has_unbounded_reports() && params.cursor.is_none() {
        PageRequest::first(Order::Newest, params.limit.unwrap_or(u32::MAX))
    } else {
        list.request(&PageQuery { limit: params.limit, cursor: params.cursor })?
    };
    // After the parameters and before the database: two readers serve the reports of all actors.
    let _place = caller.gate.begin_report(&caller.principal)?;
    let read = caller.accounts().statement(&caller.principal, &wallet, period, page).await?;
    let StatementPage { wallet, statement, next } = read;
    let currency = wallet.wallet.currency;
    let next_cursor = list.cursor(next)?;
    let view = move || StatementView {
        wallet_id: wallet.wallet.id.to_string(),
        currency: currency.to_string(),
        from: params.from,
        to: params.to,
        opening: statement.opening.into(),
        entries: statement.entries.into_iter().map(EntryView::from).collect(),
        omitted_entries: statement.omitted,
        closing: statement.closing.into(),
        has_more: next_cursor.is_some(),
        next_cursor,
    };
    Ok(ReportAnswer::Json(Answer::large(view).await?))
}

#[cfg(test)]
mod tests {
    use holdfast_domain::admin::report::EntryPlace;
    use holdfast_domain::ledger::Account;
    use holdfast_domain::ports::LedgerEntry;
    use holdfast_domain::{Micros, OperationId, PostingId, Timestamp};
    use serde_json::{Value, json};

    use super::*;

    const OPERATION: &str = "00000000-0000-0000-0000-000000000001";
    const POSTING: &str = "00000000-0000-0000-0000-000000000008";

    fn entry(source: LedgerSource, posted: Option<PostingKind>) -> StatementEntry {
        let transfer = LedgerEntry {
            at: Timestamp::from_micros(1_000_000),
            source,
            kind: "hold",
            debit: Account::Available,
            credit: Account::Held,
            amount: Micros::new(5),
        };
        let place = EntryPlace::Number(1);
        StatementEntry { place, transfer, posted, operation: None, after: balance(7) }
    }

    const fn balance(available: i64) -> StatementBalance {
        StatementBalance { available: Micros::new(available), held: Micros::new(9) }
    }

    /// An entry with these members, and with those that all entries here have.
    fn shown(source: &Value) -> Value {
        let mut entry = json!({
            "at": "1970-01-01T00:00:01.000000Z", "kind": "hold", "debit": "available",
            "credit": "held", "amount_micros": 5, "operation_id": null, "generation": null,
            "posting_id": null, "reason": null, "available_micros": 7, "held_micros": 9,
        });
        entry.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
        entry
    }

    #[test]
    fn a_statement_is_shown_entry_by_entry() {
        let operation = OperationId::from_u128(1);
        let moved = LedgerSource::Operation(operation, 2);
        let posted = LedgerSource::Posting(PostingId::from_u128(8));
        let entries = [
            entry(moved, None),
            entry(posted, Some(PostingKind::Deposit)),
            entry(posted, Some(PostingKind::Refund(operation))),
            entry(posted, Some(PostingKind::Adjustment("why".to_owned()))),
        ];
        let statement = StatementView {
            wallet_id: "w".to_owned(),
            currency: "EUR".to_owned(),
            from: Some(Moment(Timestamp::from_micros(1_000_000))),
            to: None,
            opening: balance(12).into(),
            entries: entries.map(EntryView::from).into(),
            omitted_entries: 3,
            closing: balance(7).into(),
            has_more: true,
            next_cursor: Some("c".to_owned()),
        };
        let expected = json!({
            "wallet_id": "w", "currency": "EUR", "from": "1970-01-01T00:00:01.000000Z", "to": null,
            "opening": {"available_micros": 12, "held_micros": 9},
            "entries": [
                shown(&json!({"operation_id": OPERATION, "generation": 2})),
                shown(&json!({"posting_id": POSTING})),
                shown(&json!({"operation_id": OPERATION, "posting_id": POSTING})),
                shown(&json!({"posting_id": POSTING, "reason": "why"})),
            ],
            "omitted_entries": 3, "closing": {"available_micros": 7, "held_micros": 9},
            "has_more": true, "next_cursor": "c",
        });
        assert_eq!(serde_json::to_value(&statement).unwrap(), expected);
    }
}
