//! The first page of a holder: their wallet, and how to use it. No data of another wallet.

use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::listing::{ApiKeyFilter, ApiKeyListing, Order, PageRequest, Period};
use holdfast_domain::admin::report::{GroupBy, Grouping, UsageFilter, UsageQuery, UsageRow};
use holdfast_domain::limits::Counter;
use holdfast_domain::{Currency, Timestamp, WalletId};

use crate::failure::Failure;
use crate::kit::counting::ReportView;
use crate::kit::moment::day_of;
use crate::kit::{Cell, Facts, Link, Notice, Page, Section, Table, Tone, Visit, isolated, money};
use crate::pages::parts::example;
use crate::pages::parts::operation;
use crate::pages::parts::reference::to_wallet;
use crate::pages::parts::usage::{SPEND_OF_MONTH, revenue, start, sum};

texts! { #[template(path = "pages/home.txt")] HolderText {
    Keyless { may_issue: bool } = "no_key",
    FirstRequest = "no_request_yet",
    ModelAbsent = "no_model",
} }

/// Rows of a list on this page; the rest is a click away.
const SHOWN: u32 = 10;

pub(super) async fn page(visit: &Visit, wallet: WalletId) -> Result<Page, Failure> {
    let record = visit.accounts().wallet(visit.principal(), &to_wallet(wallet)).await?;
    let (held, href) = (&record.wallet, format!("/wallets/{wallet}"));
    let money = |amount| money(amount, held.currency);
    let mut rows = vec![
        ("Available", Cell::link(money(held.available), &href)),
        ("Held", Cell::link(money(held.held), "/operations?scope=running")),
    ];
    if visit.may(UseCase::UsageRead) {
        let now = visit.accounts().clock().await?;
        rows.extend(charged(visit, now, held.currency).await?);
    }
    let may_issue = visit.may(UseCase::ApiKeyIssue);
    let mut page = Page::new(isolated(&held.name))
        .action(true, "The wallet", href)
        .section(Facts::new("", rows));
    if visit.may(UseCase::ApiKeyRead) {
        page = page.section(keys(visit, may_issue).await?);
    }
    if visit.may(UseCase::OperationRead) {
        let empty = HolderText::FirstRequest.to_string();
        let latest = operation::latest(visit, None, &empty).await?;
        let is_used = !latest.rows.is_empty();
        page = page.section(latest);
        if is_used {
            return Ok(page);
        }
    }
    Ok(examples(visit)?.into_iter().fold(page, Page::section))
}

/// Charges less refunds of this month and of today, and requests of today without a known outcome.
async fn charged(
    visit: &Visit,
    now: Timestamp,
    currency: Currency,
) -> Result<Vec<(&'static str, Cell)>, Failure> {
    let period = Period { from: Some(Counter::SpendMonth.window(now)), to: None };
    let by = Grouping::by(GroupBy::Day);
    let query = UsageQuery { by, filter: UsageFilter::default(), period, rows_max: None };
    let (of_month, of_today) = ("/usage?period=month", "/usage?period=today");
    let report = match visit.shared.usage(&visit.visitor, query, visit.shared.deadline()).await? {
        ReportView::There(report, _at) => report,
        ReportView::Absent(absence) => {
            return Ok(vec![(SPEND_OF_MONTH, Cell::link(absence.words(), of_month))]);
        }
    };
    let month = sum(&report.rows.iter().collect::<Vec<_>>());
    let is_today = |row: &&UsageRow| start(&row.group) == Some(day_of(now));
    let today = sum(&report.rows.iter().filter(is_today).collect::<Vec<_>>());
    let spend = |total| money(revenue(total), currency);
    // By the hour too: operations are listed by when they began, and are counted by when they ended.
    Ok(vec![
        (SPEND_OF_MONTH, Cell::link(spend(&month), of_month)),
        ("Spend today", Cell::link(spend(&today), of_today)),
        ("Outcome unknown today", Cell::link(today.abandoned.to_string(), of_today)),
    ])
}

async fn keys(visit: &Visit, may_issue: bool) -> Result<Table, Failure> {
    let request = PageRequest::first(Order::Newest, SHOWN);
    let filter = ApiKeyFilter::default();
    let page = visit.accounts().api_keys(visit.principal(), filter, request).await?;
    let row = |ApiKeyListing { api_key, .. }: &ApiKeyListing| {
        let state = match (api_key.revoked_at, api_key.suspended_at) {
            (Some(_), _) => Cell::badge("revoked", Tone::Plain),
            (None, Some(_)) => Cell::badge("suspended", Tone::Bad),
            (None, None) => Cell::badge("in force", Tone::Good),
        };
        let end = Cell::some_moment(api_key.grant.ends_at);
        vec![Cell::link(&api_key.name, format!("/keys/{}", api_key.id)), state, end]
    };
    let rows = page.rows.iter().map(row).collect();
    let table =
        Table::new("API keys", &["Name", "State", "Ends"], rows, HolderText::Keyless { may_issue });
    Ok(table.link(Link::new("All API keys", "/keys")))
}

/// First requests to copy, for this service and a model of it; the API key is the reader's own.
fn examples(visit: &Visit) -> Result<Vec<Section>, Failure> {
    let offered = visit.accounts().models(visit.principal())?;
    let Some(model) = offered.models.first().map(|model| &model.contract.model) else {
        let text = HolderText::ModelAbsent.to_string();
        return Ok(vec![Notice::new(Tone::Warning, text).into()]);
    };
    let snippets = example::snippets(&visit.shared.options.base_url, "hfk_...", model.as_str());
    Ok(snippets.map(Section::from).to_vec())
}
