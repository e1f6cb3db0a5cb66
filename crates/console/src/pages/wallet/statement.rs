//! A wallet's statement by the month: what it had, what moved, what it has then; and the same as a file.
//!
//! The newest entries come first, a page at a time, and those of a page stand oldest first, between the balances before
//! and after them. The file has all of the month.

use axum::response::Response;
use holdfast_accounts::Reference;
use holdfast_accounts::fields::members;
use holdfast_admin::statement_file;
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::admin::report::{Statement, StatementBalance, StatementEntry};
use holdfast_domain::ledger::{Account, PostingKind};
use holdfast_domain::ports::LedgerSource;
use holdfast_domain::{Currency, Micros, Timestamp};
use holdfast_wire::file::FileFormat;
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::address::with_query;
use crate::kit::cell::{Cell, Link};
use crate::kit::console_state::StatementQuery;
use crate::kit::counting::{self, ReportView};
use crate::kit::field::{FieldKind, FormField};
use crate::kit::input::SentFields;
use crate::kit::month::{MONTH, Month};
use crate::kit::paging::{AFTER, Pages};
use crate::kit::section::{Filter, Section, Table};
use crate::kit::visit::Visit;

/// The form that chooses a month.
pub(crate) fn filter(record: &WalletRecord, query: &SentFields) -> Filter {
    let month = FormField::of(&members::MONTH, FieldKind::Month).value(query.raw(MONTH));
    Filter {
        action: format!("/wallets/{}", record.wallet.id),
        fields: vec![month],
        submit: "Show statement".to_owned(),
    }
}

/// A page of the statement of the month in the query, with its moment.
pub(crate) async fn sections(
    visit: &Visit,
    record: &WalletRecord,
) -> Result<Vec<Section>, Failure> {
    let id = Uuid::from_bytes(record.wallet.id.to_bytes());
    let now = visit.accounts().clock().await?;
    let month = Month::asked(&visit.query, now)?;
    let (base, text) = (format!("/wallets/{id}"), month.text());
    // With the month, so that it stays the same one at midnight.
    let params = with_query("", &[(MONTH, Some(&text)), (AFTER, visit.query.get(AFTER))]);
    let address = format!("{base}{params}");
    let of_month = SentFields::parse(params.trim_start_matches('?').as_bytes());
    let pages = Pages::new(visit, &base, &of_month);
    let (period, page) = (month.period(), pages.request()?);
    let asked = StatementQuery { wallet: Reference::Id(id), period, page };
    Ok(match visit.shared.statement(&visit.visitor, asked).await? {
        ReportView::There(statement, at) => {
            let moment = counting::of_moment(at, &address).map(Section::from);
            let earlier = pages.next(statement.next)?;
            let table = table(record, month, now, &statement.statement, earlier);
            moment.into_iter().chain([table.into()]).collect()
        }
        ReportView::Absent(absence) => {
            let what = format!("The statement of {}", month.text());
            vec![absence.notice(&what, &address).into()]
        }
    })
}

fn table(
    record: &WalletRecord,
    month: Month,
    now: Timestamp,
    statement: &Statement,
    earlier: Option<String>,
) -> Table {
    let (id, currency) = (record.wallet.id, record.wallet.currency);
    let mut rows = vec![balance("Balance before", statement.opening, currency)];
    rows.extend(statement.entries.iter().map(|entry| row(entry, currency)));
    rows.push(balance("Balance after", statement.closing, currency));
    let head = ["Moment", "What", "To available", "To held", "Available", "Held", "Reason"];
    let base = format!("/wallets/{id}");
    let title = format!("Statement of {}", month.text());
    let mut table = Table::new(&title, &head, rows, "").keep(&["What", "Available"]);
    if let Some(earlier) = earlier {
        table = table.link(Link::new("Earlier entries", earlier));
    }
    let of = |month: Month| format!("{base}?month={}", month.text());
    table = table.link(Link::new("Month before", of(month.before())));
    if month.end <= now {
        table = table.link(Link::new("Month after", of(Month::of(month.end))));
    }
    let file = format!("{base}/statement.csv?month={}", month.text());
    table.link(Link::new("Statement as CSV", file))
}

/// The statement of a month as a file, as it is read.
pub(crate) async fn file(visit: Visit) -> Result<Response, Failure> {
    let id = visit.id()?;
    let month = Month::asked(&visit.query, visit.accounts().clock().await?)?;
    let (reference, period) = (Reference::Id(id), month.period());
    let file = visit.accounts().export_statement(visit.principal(), &reference, period).await?;
    Ok(statement_file(file, FileFormat::Csv))
}

fn balance(name: &str, balance: StatementBalance, currency: Currency) -> Vec<Cell> {
    let nothing = || Cell::text("");
    vec![
        nothing(),
        Cell::text(name),
        nothing(),
        nothing(),
        Cell::money(balance.available, currency),
        Cell::money(balance.held, currency),
        nothing(),
    ]
}

fn row(entry: &StatementEntry, currency: Currency) -> Vec<Cell> {
    let StatementEntry { transfer, posted, after, .. } = entry;
    let change = |account: Account| {
        if transfer.credit == account {
            transfer.amount
        } else if transfer.debit == account {
            transfer.amount.negated()
        } else {
            Micros::ZERO
        }
    };
    let moved = |account| match change(account) {
        Micros::ZERO => Cell::Nothing,
        amount => Cell::money(amount, currency),
    };
    let page = match transfer.source {
        LedgerSource::Operation(id, _generation) => format!("/operations/{id}"),
        LedgerSource::Posting(id) => format!("/postings/{id}"),
    };
    let reason = match posted {
        Some(PostingKind::Adjustment(reason)) => Cell::text(reason),
        Some(PostingKind::Refund(operation)) => {
            Cell::link("of a request", format!("/operations/{operation}"))
        }
        Some(PostingKind::Deposit) | None => Cell::text(""),
    };
    vec![
        Cell::moment(transfer.at),
        Cell::link(transfer.kind, page),
        moved(Account::Available),
        moved(Account::Held),
        Cell::money(after.available, currency),
        Cell::money(after.held, currency),
        reason,
    ]
}
