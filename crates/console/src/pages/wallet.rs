//! A wallet: its balance, this month's charges and its threshold, a chart by API key, its latest requests and deposits,
//! its API keys, its people, and what can be done with it. Its statement is a page beside it.
//!
//! Each list is the beginning of one that has a page of its own, with a link to that.

pub(crate) mod close;
pub(crate) mod settings;
pub(crate) mod statement;
mod usage;

use holdfast_domain::WalletId;
use holdfast_domain::admin::listing::{
    ApiKeyFilter, Order, PageRequest, PostingFilter, PostingList,
};
use holdfast_domain::admin::{UseCase, WalletRecord};

use crate::failure::Failure;
use crate::kit::{Cell, Choices, Facts, Link, Notice, Page, Table, Tone, Visit, Visitor, isolated};
use crate::pages::parts::wallet::opened;
use crate::pages::parts::{api_key, operation, person, posting, refusal, wallet};

use self::usage::Spending;

texts! { #[template(path = "pages/wallet.txt")] WalletText {
    LowBalance = "low_balance",
    NoKey = "no_key",
    NoRequest = "no_request",
} }

const OVERVIEW: &str = "Overview";

/// Rows of each list on the page.
const LATEST: PageRequest = PageRequest::first(Order::Newest, 10);

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let record = opened(&visit).await?;
    let mut page = heading(&visit.visitor, &record);
    if record.runs_low() {
        let low = Notice::new(Tone::Warning, WalletText::LowBalance.to_string());
        page = page.section(low);
    }
    if visit.may(UseCase::StatementRead) {
        page = page.section(tabs(&record, OVERVIEW));
    }
    let spending = match visit.may(UseCase::UsageRead) {
        true => Some(Spending::read(&visit, &record.wallet).await?),
        false => None,
    };
    page = page.section(facts(&visit.visitor, &record, spending.as_ref()));
    if let Some(spending) = spending {
        page = page.section(spending.section(&visit, &record.wallet));
    }
    if visit.may(UseCase::OperationRead) {
        let empty = WalletText::NoRequest.to_string();
        page = page.section(operation::latest(&visit, Some(record.wallet.id), &empty).await?);
    }
    if visit.may(UseCase::PostingRead) {
        page = page.section(deposits(&visit, &record).await?);
    }
    if visit.may(UseCase::ApiKeyRead) {
        page = page.section(api_keys(&visit, &record).await?);
    }
    if visit.may(UseCase::PersonRead) {
        page = page.section(person::of_wallet(&visit, record.wallet.id, LATEST).await?);
    }
    Ok(refusal::of_wallet(&visit, record.wallet.id).await?.into_iter().fold(page, Page::section))
}

/// Pages of a wallet, of which one is shown.
fn tabs(record: &WalletRecord, here: &str) -> Choices {
    let base = format!("/wallets/{}", record.wallet.id);
    let statement = format!("{base}/statement");
    let links = [(OVERVIEW, base), ("Statement", statement)];
    let links = links.map(|(name, href)| (Link::new(name, href), name == here)).to_vec();
    Choices { label: "Wallet".to_owned(), links }
}

/// The title, and what can be done.
fn heading(visitor: &Visitor, record: &WalletRecord) -> Page {
    let (wallet, base) = (&record.wallet, format!("/wallets/{}", record.wallet.id));
    // Closing is for good: no form changes the wallet afterwards.
    let may = |use_case| record.closed_at.is_none() && visitor.may(use_case);
    let is_suspended = wallet.suspended_at.is_some();
    let (suspend, resume) = (UseCase::WalletSuspend, UseCase::WalletResume);
    let usage = format!("/usage?wallet={}", wallet.id);
    Page::new(isolated(&wallet.name))
        .below("Wallets", "/wallets")
        .action(may(UseCase::PostingDeposit), "Deposit", format!("{base}/deposit"))
        .action(may(UseCase::PostingAdjust), "Adjust", format!("{base}/adjust"))
        .action(may(UseCase::ApiKeyIssue), "New API key", api_key::issue_address(wallet.id))
        .action(visitor.may(UseCase::UsageRead), "Usage", usage)
        .action(may(UseCase::PersonInvite), "Invite", format!("/people/new?wallet={}", wallet.id))
        .action(may(UseCase::WalletUpdate), "Edit", format!("{base}/edit"))
        .danger(!is_suspended && may(suspend), "Suspend", format!("{base}/suspend"))
        .action(is_suspended && may(resume), "Resume", format!("{base}/resume"))
        .danger(may(UseCase::WalletClose), "Close", format!("{base}/close"))
}

fn facts(visitor: &Visitor, record: &WalletRecord, spending: Option<&Spending>) -> Facts {
    let wallet = &record.wallet;
    let money = |amount| Cell::money(amount, wallet.currency);
    let held = if visitor.may(UseCase::OperationRead) {
        let sum = crate::kit::money(wallet.held, wallet.currency);
        Cell::link(sum, running_address(wallet.id))
    } else {
        money(wallet.held)
    };
    let (spent, days_left) = match spending {
        Some(spending) => (spending.of_month(), spending.days_left(record)),
        None => (None, None),
    };
    let mut rows = vec![
        ("Available", money(wallet.available)),
        ("Spend this month", spent.map_or(Cell::Nothing, money)),
        ("Days left", days_left.map_or(Cell::Nothing, |days| Cell::text(days.to_string()))),
        ("Held", held),
        ("State", wallet::state(record)),
    ];
    rows.extend(settings::shown(record));
    rows.push(("Created", Cell::moment(record.created_at)));
    if let Some(closed_at) = record.closed_at {
        rows.push(("Closed", Cell::moment(closed_at)));
    } else if let Some(suspended_at) = wallet.suspended_at {
        rows.push(("Suspended", Cell::moment(suspended_at)));
    }
    rows.push(("Id", Cell::code(wallet.id)));
    Facts::new("", rows)
}

/// Address of all requests with an active hold on a wallet.
fn running_address(wallet: WalletId) -> String {
    format!("/operations?scope=running&wallet={wallet}")
}

async fn deposits(visit: &Visit, record: &WalletRecord) -> Result<Table, Failure> {
    let wallet = &record.wallet;
    let (list, operation) = (PostingList::Deposits, None);
    let filter = PostingFilter { list, wallet: Some(wallet.id), operation };
    let listed = visit.accounts().postings(visit.principal(), filter, LATEST).await?;
    let payments = |kind| posting::address(kind, wallet.id);
    Ok(posting::deposits(wallet, &listed.rows)
        .link(Link::new("All deposits", payments(posting::DEPOSIT)))
        .link(Link::new("Adjustments", payments(posting::ADJUSTMENT)))
        .link(Link::new("Refunds", payments(posting::REFUND))))
}

async fn api_keys(visit: &Visit, record: &WalletRecord) -> Result<Table, Failure> {
    let id = record.wallet.id;
    let filter = ApiKeyFilter { wallet: Some(id), ..Default::default() };
    let listed = visit.accounts().api_keys(visit.principal(), filter, LATEST).await?;
    let now = visit.accounts().clock().await?;
    let rows = listed.rows.iter().map(|row| api_key::row(&row.api_key, now)).collect();
    let all = Link::new("All API keys", format!("/keys?wallet={id}"));
    Ok(Table::new("API keys", &api_key::HEAD, rows, WalletText::NoKey).link(all))
}
