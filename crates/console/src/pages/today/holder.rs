//! The first page of a holder: their wallet, and how to use it. No data of another wallet.

use askama::Template;
use holdfast_domain::admin::UseCase;
use holdfast_domain::admin::listing::{
    ApiKeyFilter, ApiKeyListing, OperationFilter, Order, PageRequest, Period,
};
use holdfast_domain::admin::report::{GroupBy, Grouping, UsageFilter, UsageQuery};
use holdfast_domain::{Currency, Timestamp, WalletId};

use crate::failure::Failure;
use crate::kit::cell::{Cell, Link, Tone, money};
use crate::kit::counting::ReportView;
use crate::kit::isolation::isolated;
use crate::kit::moment::day_of;
use crate::kit::page::Page;
use crate::kit::section::{Facts, Notice, Section, Table};
use crate::kit::visit::Visit;
use crate::pages::parts::example;
use crate::pages::parts::operation;
use crate::pages::parts::reference::to_wallet;
use crate::pages::parts::usage::{revenue, sum};

/// Texts of the page.
#[derive(Debug, Template)]
#[template(path = "pages/home.txt")]
enum HolderText {
    #[template(block = "no_key")]
    Keyless { may_issue: bool },
    #[template(block = "no_request_yet")]
    FirstRequest,
    #[template(block = "no_model")]
    ModelAbsent,
}

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
        let today = day_of(visit.accounts().clock().await?);
        rows.extend(charged(visit, today, held.currency).await?);
    }
    let may_issue = visit.may(UseCase::ApiKeyIssue);
    let mut page = Page::new(isolated(&held.name))
        .action(true, "The wallet", href)
        .section(Facts::new("", rows));
    if visit.may(UseCase::ApiKeyRead) {
        page = page.section(keys(visit, may_issue).await?);
    }
    if visit.may(UseCase::OperationRead) {
        page = page.section(recent(visit).await?);
    }
    Ok(examples(visit)?.into_iter().fold(page, Page::section))
}

/// Charges less refunds of today, and its requests without a known outcome.
async fn charged(
    visit: &Visit,
    today: Timestamp,
    currency: Currency,
) -> Result<Vec<(&'static str, Cell)>, Failure> {
    let period = Period { from: Some(today), to: None };
    let by = Grouping::by(GroupBy::Day);
    let query = UsageQuery { by, filter: UsageFilter::default(), period, rows_max: None };
    let href = "/usage?period=today";
    let report = match visit.shared.usage(&visit.visitor, query, visit.shared.deadline()).await? {
        ReportView::There(report, _at) => report,
        ReportView::Absent(absence) => {
            return Ok(vec![("Spend today", Cell::link(absence.words(), href))]);
        }
    };
    let total = sum(&report.rows.iter().collect::<Vec<_>>());
    // By the hour too: operations are listed by when they began, and are counted by when they ended.
    Ok(vec![
        ("Spend today", Cell::link(money(revenue(&total), currency), href)),
        ("Unconfirmed requests today", Cell::link(total.abandoned.to_string(), href)),
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
    let empty = &HolderText::Keyless { may_issue }.to_string();
    let table = Table::new("API keys", &["Name", "State", "Ends"], rows, empty);
    Ok(table.link(Link::new("All API keys", "/keys")))
}

async fn recent(visit: &Visit) -> Result<Table, Failure> {
    let request = PageRequest::first(Order::Newest, SHOWN);
    let filter = OperationFilter::default();
    let page = visit.accounts().operations(visit.principal(), filter, request).await?;
    let rows = operation::rows(visit, &page.rows, operation::charge).await?;
    let empty = &HolderText::FirstRequest.to_string();
    let table = Table::new("Latest requests", &operation::HEAD, rows, empty);
    Ok(table.link(Link::new("All requests", "/operations")))
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
