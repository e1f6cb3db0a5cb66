//! A wallet's statement of a month: by day, with one line for the charges of a day and one for a payment; the requests
//! and payments of one day; or the journal, which has every transfer. And the month as a file.
//!
//! ```text
//! days ─▶ requests and payments of a day (`on`)      funds: what is available and on hold
//!   └──── journal (`view=journal`)                   both apart, transfer by transfer
//! ```
//!
//! The journal has its newest page first, and the entries of a page stand oldest first, between the balances before and
//! after them. The file has all of the month.

use axum::response::Response;
use holdfast_accounts::fields::members;
use holdfast_accounts::{Reference, StatementPage};
use holdfast_admin::statement_file;
use holdfast_domain::admin::WalletRecord;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{
    DailyStatement, DayMovement, LedgerOperation, MovementKind, StatementBalance, StatementEntry,
};
use holdfast_domain::ledger::{Account, PostingKind};
use holdfast_domain::ports::LedgerSource;
use holdfast_domain::{Currency, Micros, Timestamp};
use holdfast_wire::file::FileFormat;

use crate::failure::{Failure, FieldRefusal};
use crate::kit::counting::{self, ReportView};
use crate::kit::moment::{day_after, short};
use crate::kit::period::ON;
use crate::kit::{
    AFTER, Cell, Choices, FieldKind, Filter, FormField, Link, MONTH, Month, Page, Pages, Section,
    SentFields, StatementQuery, StatementView, Table, Visit, exact, grouped, isolated, with_query,
};
use crate::pages::parts::reference::to_wallet;
use crate::pages::parts::wallet::opened;

texts! { #[template(path = "pages/wallet.txt")] StatementText<'a> {
    Charges { count: &'a str, is_one: bool } = "charges",
    DayTitle { day: &'a str } = "day_title",
    HoldUnused = "hold_unused",
    HoldNotRun = "hold_not_run",
    HoldUnknown = "hold_unknown",
} }

const VIEW: &str = "view";
const JOURNAL: &str = "journal";

/// Part of the statement that an address names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum View {
    Days,
    /// Requests and payments of this day.
    Day(Period),
    Journal,
}

/// The page of a month.
pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let record = opened(&visit).await?;
    let wallet = &record.wallet;
    let base = format!("/wallets/{}", wallet.id);
    let now = visit.accounts().clock().await?;
    let written = || visit.query.raw(MONTH).to_owned();
    let shown = month_of(&visit.query, now).map_or_else(|_unread| written(), Month::text);
    let month = FormField::new(MONTH, members::MONTH.label, FieldKind::Month).value(shown);
    let mut fields = vec![month];
    let view = visit.query.get(VIEW);
    fields.extend(view.map(|view| FormField::hidden_value(VIEW, view)));
    let action = format!("{base}/statement");
    let filter = Filter { action, fields, submit: "Show statement".to_owned() };
    let found = sections(&visit, &record).await;
    Page::new(format!("Statement of {}", isolated(&wallet.name)))
        .below("Wallets", "/wallets")
        .below(&wallet.name, &base)
        .section(super::tabs(&record, "Statement"))
        .narrowed(filter, found)
}

/// The statement that the address names, with its moment.
async fn sections(visit: &Visit, record: &WalletRecord) -> Result<Vec<Section>, Failure> {
    let now = visit.accounts().clock().await?;
    let (day, month) = (on_day(&visit.query)?, month_of(&visit.query, now)?);
    let view = match (day, visit.query.get(VIEW)) {
        (Some(day), _) => View::Day(day),
        (None, Some(JOURNAL)) => View::Journal,
        (None, _) => View::Days,
    };
    let base = format!("/wallets/{}/statement", record.wallet.id);
    let text = month.text();
    let of_view = match view {
        View::Days => vec![(MONTH, Some(text.as_str()))],
        View::Day(_) => vec![(ON, visit.query.get(ON))],
        View::Journal => vec![(MONTH, Some(text.as_str())), (VIEW, Some(JOURNAL))],
    };
    // With the month, so that it stays the same one at midnight.
    let query = with_query("", &[of_view, vec![(AFTER, visit.query.get(AFTER))]].concat());
    let address = format!("{base}{query}");
    let of_view = SentFields::parse(query.trim_start_matches('?').as_bytes());
    let pages = Pages::new(visit, &base, &of_view);
    let (period, page) = match view {
        View::Days => (month.period(), None),
        View::Day(day) => (day, Some(pages.request()?)),
        View::Journal => (month.period(), Some(pages.request()?)),
    };
    let request = StatementQuery { wallet: to_wallet(record.wallet.id), period, page };
    let (statement, at) = match visit.shared.statement(&visit.visitor, request).await? {
        ReportView::There(statement, at) => (statement, at),
        ReportView::Absent(absence) => {
            let notice = absence.notice(&format!("Statement of {text}"), &address);
            return Ok(vec![views(&base, &text, view).into(), notice.into()]);
        }
    };
    let currency = record.wallet.currency;
    let (mut table, earlier) = match &*statement {
        StatementView::Days(daily) => (days(&base, daily, month, currency), None),
        StatementView::Entries(page) => {
            let table = match visit.query.get(ON) {
                Some(day) => requests(page, day, currency),
                None => journal(page, month, currency),
            };
            (table, pages.next(page.next)?)
        }
    };
    if let Some(earlier) = earlier {
        table = table.link(Link::new("Earlier entries", earlier));
    }
    let of = |month: Month| {
        let journal = Some(JOURNAL).filter(|_journal| view == View::Journal);
        with_query(&base, &[(MONTH, Some(&month.text())), (VIEW, journal)])
    };
    table = table.link(Link::new("Month before", of(month.before())));
    if month.end <= now {
        table = table.link(Link::new("Month after", of(Month::of(month.end))));
    }
    let file = with_query(&format!("{base}.csv"), &[(MONTH, Some(&text))]);
    let table = table.link(Link::new("Statement as CSV", file));
    let moment = counting::of_moment(at, &address).map(Section::from);
    let views = views(&base, &text, view);
    Ok([views.into()].into_iter().chain(moment).chain([table.into()]).collect())
}

/// The month of the address, or that of its day.
fn month_of(query: &SentFields, now: Timestamp) -> Result<Month, Failure> {
    match on_day(query)?.and_then(|day| day.from) {
        Some(day) => Ok(Month::of(day)),
        None => Month::requested(query, now),
    }
}

/// The day of the address.
fn on_day(query: &SentFields) -> Result<Option<Period>, Failure> {
    let Some(text) = query.get(ON) else { return Ok(None) };
    let day = holdfast_wire::api::moment(text).filter(|_day| text.len() == "2026-11-28".len());
    let day = day.ok_or_else(|| Failure::field(MONTH, FieldRefusal::NotADay))?;
    Ok(Some(Period { from: Some(day), to: Some(day_after(day)) }))
}

fn views(base: &str, month: &str, view: View) -> Choices {
    let of = |name: Option<&str>| with_query(base, &[(MONTH, Some(month)), (VIEW, name)]);
    let links = vec![
        (Link::new("By day", of(None)), view == View::Days),
        (Link::new("Journal", of(Some(JOURNAL))), view == View::Journal),
    ];
    Choices { label: "View".to_owned(), links }
}

/// Lines of a month: a day's charges have one, and so has each payment.
fn days(base: &str, daily: &DailyStatement, month: Month, currency: Currency) -> Table {
    let mut funds = daily.opening.funds();
    let mut rows = vec![ends("Opening balance", daily.opening, 3)];
    for movement in &daily.movements {
        let DayMovement { day, kind, reference, count, amount } = movement;
        funds = funds.and_then(|funds| funds.plus(*amount));
        let reference = reference.as_ref();
        let reference = reference.map(|it| format!("{} {}", it.source, it.external_reference));
        let day = short(*day);
        rows.push(vec![
            Cell::link(&day, with_query(base, &[(ON, Some(&day))])),
            Cell::text(summary(*kind, *count)),
            reference.map_or_else(|| Cell::text(""), Cell::text),
            Cell::Money(exact(*amount)),
            funds.map_or(Cell::Nothing, |funds| Cell::Money(exact(funds))),
        ]);
    }
    rows.push(ends("Closing balance", daily.closing, 3));
    let (amount, balance) = (format!("Amount, {currency}"), format!("Balance, {currency}"));
    let head = ["Day", "What", "Reference", &amount, &balance];
    let title = format!("Statement of {}", month.text());
    Table::new(&title, &head, rows, "").keep(&["What", &amount, &balance])
}

/// Name of so many movements of a kind.
fn summary(kind: MovementKind, count: u64) -> String {
    let (one, more) = match kind {
        MovementKind::Deposit => ("Deposit", "deposits"),
        MovementKind::Refund => ("Refund", "refunds"),
        MovementKind::Adjustment => ("Adjustment", "adjustments"),
        MovementKind::Charge => {
            let count_text = grouped(&count.to_string());
            return StatementText::Charges { count: &count_text, is_one: count == 1 }.to_string();
        }
    };
    if count == 1 { one.to_owned() } else { format!("{} {more}", grouped(&count.to_string())) }
}

/// Row of a balance at one end, after so many columns.
fn ends(name: &str, balance: StatementBalance, columns: usize) -> Vec<Cell> {
    let funds = balance.funds().map_or_else(|| "–".to_owned(), exact);
    let balance = match balance.held {
        Micros::ZERO => Cell::Money(funds),
        held => Cell::Part(funds, format!("{} on hold", exact(held))),
    };
    let mut row = vec![Cell::text(""), Cell::text(name)];
    row.extend(std::iter::repeat_n(Cell::text(""), columns.saturating_sub(1)));
    row.push(balance);
    row
}

/// Rows of a day: a request has one, and so has a payment. What a hold reserves or returns leaves the funds as they are.
fn requests(page: &StatementPage, day: &str, currency: Currency) -> Table {
    let statement = &page.statement;
    let mut rows = vec![ends("Opening balance", statement.opening, 4)];
    let moves = |entry: &&StatementEntry| {
        change(entry, Account::Available) != change(entry, Account::Held).negated()
    };
    for entry in statement.entries.iter().filter(moves) {
        let amount = change(entry, Account::Available).plus(change(entry, Account::Held));
        let [model, api_key] = of_operation(entry.operation.as_ref());
        rows.push(vec![
            Cell::moment(entry.transfer.at),
            Cell::link(name(entry), address(entry)),
            model,
            api_key,
            amount.map_or(Cell::Nothing, |amount| Cell::Money(exact(amount))),
            entry.after.funds().map_or(Cell::Nothing, |funds| Cell::Money(exact(funds))),
        ]);
    }
    rows.push(ends("Closing balance", statement.closing, 4));
    let (amount, balance) = (format!("Amount, {currency}"), format!("Balance, {currency}"));
    let head = ["Moment", "What", "Model", "API key", &amount, &balance];
    let title = StatementText::DayTitle { day }.to_string();
    Table::new(&title, &head, rows, "").keep(&["What", "Model", &amount, &balance])
}

/// Every transfer.
fn journal(page: &StatementPage, month: Month, currency: Currency) -> Table {
    let statement = &page.statement;
    let money = |amount| Cell::Money(exact(amount));
    let moved = |amount| if amount == Micros::ZERO { Cell::Nothing } else { money(amount) };
    let end = |name, StatementBalance { available, held }| {
        let nothing = || Cell::text("");
        let balances = [nothing(), nothing(), money(available), money(held)];
        let row = [nothing(), Cell::text(name)].into_iter().chain(balances);
        row.chain([nothing(), nothing(), nothing()]).collect()
    };
    let mut rows: Vec<Vec<Cell>> = vec![end("Balance before", statement.opening)];
    for entry in &statement.entries {
        let reason = match &entry.posted {
            Some(PostingKind::Adjustment(reason)) => Cell::text(reason),
            Some(PostingKind::Refund(operation)) => {
                Cell::link("of a request", format!("/operations/{operation}"))
            }
            Some(PostingKind::Deposit) | None => Cell::text(""),
        };
        let [model, api_key] = of_operation(entry.operation.as_ref());
        rows.push(vec![
            Cell::moment(entry.transfer.at),
            Cell::link(name(entry), address(entry)),
            moved(change(entry, Account::Available)),
            moved(change(entry, Account::Held)),
            money(entry.after.available),
            money(entry.after.held),
            model,
            api_key,
            reason,
        ]);
    }
    rows.push(end("Balance after", statement.closing));
    let head = ["Change", "Hold change", "Available", "On hold"];
    let [change, hold_change, available, on_hold] = head.map(|it| format!("{it}, {currency}"));
    let amounts = [change.as_str(), &hold_change, &available, &on_hold];
    let head = [&["Moment", "What"][..], &amounts, &["Model", "API key", "Reason"]].concat();
    let title = format!("Journal of {}", month.text());
    Table::new(&title, &head, rows, "").keep(&["What", &available])
}

/// Model and API key of a request.
fn of_operation(operation: Option<&LedgerOperation>) -> [Cell; 2] {
    let Some(LedgerOperation { model, api_key, api_key_name, .. }) = operation else {
        return [Cell::text(""), Cell::text("")];
    };
    let name = api_key_name.clone().unwrap_or_else(|| api_key.to_string());
    [Cell::text(model), Cell::link(name, format!("/keys/{api_key}"))]
}

/// Change of an account by a transfer.
fn change(StatementEntry { transfer, .. }: &StatementEntry, account: Account) -> Micros {
    if transfer.credit == account {
        transfer.amount
    } else if transfer.debit == account {
        transfer.amount.negated()
    } else {
        Micros::ZERO
    }
}

fn address(StatementEntry { transfer, .. }: &StatementEntry) -> String {
    match transfer.source {
        LedgerSource::Operation(id, _generation) => format!("/operations/{id}"),
        LedgerSource::Posting(id) => format!("/postings/{id}"),
    }
}

/// Name of a transfer on pages.
fn name(StatementEntry { transfer, .. }: &StatementEntry) -> String {
    match transfer.kind {
        "hold" => "Hold".to_owned(),
        "settle" => "Charge".to_owned(),
        "rest" => StatementText::HoldUnused.to_string(),
        "release" => StatementText::HoldNotRun.to_string(),
        "lapse" => StatementText::HoldUnknown.to_string(),
        "deposit" => "Deposit".to_owned(),
        "refund" => "Refund".to_owned(),
        "adjustment" => "Adjustment".to_owned(),
        other => other.to_owned(),
    }
}

/// The statement of a month as a file, as it is read.
pub(crate) async fn file(visit: Visit) -> Result<Response, Failure> {
    let id = visit.id()?;
    let month = Month::requested(&visit.query, visit.accounts().clock().await?)?;
    let (reference, period) = (Reference::Id(id), month.period());
    let file = visit.accounts().export_statement(visit.principal(), &reference, period).await?;
    Ok(statement_file(file, FileFormat::Csv))
}
