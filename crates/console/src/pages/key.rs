//! An API key: its limits beside what is used of them, what it used this month, its credentials in force, and what can
//! be done with it.
//!
//! Limits have the counters of their windows of now. The month is a report, which may be counted beside the page: then
//! a notice stands in its place, and the rest is shown.
//!
//! Never: a secret. Only the answer to the form that creates it shows it.

pub(crate) mod credential;
pub(crate) mod edit;
mod grant;
mod secret;

use holdfast_accounts::fields::members;
use holdfast_accounts::{ApiKeyRecord, Reference, UsageReport};
use holdfast_domain::admin::listing::{
    ApiKeyFilter, LiveCredential, OperationFilter, Order, PAGE_MAX, PageRequest, Period,
};
use holdfast_domain::admin::report::{GroupBy, Grouping, UsageFilter, UsageQuery, UsageRow};
use holdfast_domain::admin::{UseCase, WalletRecord};
use holdfast_domain::credential::{ApiKey, Bearer, MODELS_MAX};
use holdfast_domain::limits::{CountLimit, Counter, SpendWindow};
use holdfast_domain::{Micros, Timestamp};
use holdfast_wire::file::group_name;
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::counting::ReportView;
use crate::kit::moment::written;
use crate::kit::{
    Cell, Facts, Link, Page, Section, Table, Visit, Visitor, isolated, money, with_query,
};
use crate::pages::parts::{api_key, refusal};

texts! { #[template(path = "pages/key.txt")] KeyText { NoUsage = "no_usage" } }

pub(crate) async fn show(visit: Visit) -> Result<Page, Failure> {
    let id = visit.id()?;
    let record = visit.accounts().api_key(visit.principal(), &Reference::Id(id), None).await?;
    let key = &record.api_key;
    let now = record.counters.now;
    let wallet = wallet_of(&visit, key).await?;
    let mut facts = facts(key, &wallet, now);
    let mut page = heading(&visit.visitor, key, now);
    if visit.may(UseCase::OperationRead) {
        facts.rows.push(("Last used".to_owned(), last_use(&visit, key).await?));
    }
    facts.rows.push(("Id".to_owned(), Cell::code(key.id)));
    page = page.section(facts).section(limits(&record, &wallet));
    if visit.may(UseCase::UsageRead) {
        page = page.section(month(&visit, key, now).await?);
    }
    page = page.section(credentials(&visit, key).await?);
    Ok(refusal::of_key(&visit, key.id).await?.into_iter().fold(page, Page::section))
}

/// The wallet that pays for a key.
async fn wallet_of(visit: &Visit, key: &ApiKey) -> Result<WalletRecord, Failure> {
    let id = Reference::Id(Uuid::from_bytes(key.wallet.to_bytes()));
    Ok(visit.accounts().wallet(visit.principal(), &id).await?)
}

/// The title, and what can be done.
fn heading(visitor: &Visitor, key: &ApiKey, now: Timestamp) -> Page {
    let base = format!("/keys/{}", key.id);
    let is_revoked = key.revoked_at.is_some();
    let may = |use_case| !is_revoked && visitor.may(use_case);
    let is_suspended = key.suspended_at.is_some();
    let may_rotate = !key.has_ended(now) && may(UseCase::ApiKeyRotate);
    let (suspend, resume) = (UseCase::ApiKeySuspend, UseCase::ApiKeyResume);
    Page::new(isolated(&key.name))
        .below("API keys", "/keys")
        .action(may(UseCase::ApiKeyUpdate), "Edit", format!("{base}/edit"))
        .action(may_rotate, "Rotate", format!("{base}/rotate"))
        .danger(!is_suspended && may(suspend), "Suspend", format!("{base}/suspend"))
        .action(is_suspended && may(resume), "Resume", format!("{base}/resume"))
        .danger(may(UseCase::ApiKeyRevoke), "Revoke", format!("{base}/revoke"))
}

fn facts(key: &ApiKey, wallet: &WalletRecord, now: Timestamp) -> Facts {
    let wallet = &wallet.wallet;
    let mut rows = vec![
        ("Wallet", Cell::link(&wallet.name, format!("/wallets/{}", wallet.id))),
        ("State", api_key::state(key, now)),
        ("Models", api_key::models(key, MODELS_MAX)),
        (members::KEY_BALANCE.label, Cell::text(key.grant.balance.label())),
        (members::KEY_USAGE.label, Cell::text(key.grant.usage.label())),
        ("External id", Cell::some_text(key.external_id.as_deref())),
        ("Ends", Cell::some_moment(key.grant.ends_at)),
        ("Created", Cell::moment(key.created_at)),
    ];
    if let Some(revoked_at) = key.revoked_at {
        rows.push(("Revoked", Cell::moment(revoked_at)));
    } else if let Some(suspended_at) = key.suspended_at {
        rows.push(("Suspended", Cell::moment(suspended_at)));
    }
    Facts::new("", rows)
}

/// Limits beside what is used of them in the windows of now.
fn limits(record: &ApiKeyRecord, wallet: &WalletRecord) -> Facts {
    let limits = &record.api_key.grant.limits;
    let used = |counter| record.counters.counters.used(counter).unwrap_or(0);
    let counted = |limit: CountLimit| {
        let row = limit.row();
        let Some(most) = limits.count(limit) else { return (row.reading, Cell::text("no limit")) };
        let (used, bound) = (used(row.counter), i64::try_from(most).unwrap_or(i64::MAX));
        (row.reading, Cell::Meter(share(used, bound), format!("{used} of {most}")))
    };
    let currency = wallet.wallet.currency;
    let (spend_name, spend) = match limits.spend {
        None => ("Spend", Cell::text("no limit")),
        Some(spend) => {
            let spent = Micros::new(used(spend.window.counter()));
            let text = format!("{} of {}", money(spent, currency), money(spend.micros, currency));
            (spend_title(spend.window), Cell::Meter(share(spent.get(), spend.micros.get()), text))
        }
    };
    let counts = CountLimit::ALL.map(counted);
    Facts::new(
        "Limits, holds included",
        std::iter::once((spend_name, spend)).chain(counts).collect(),
    )
}

const fn spend_title(window: SpendWindow) -> &'static str {
    match window {
        SpendWindow::Day => "Spend today",
        SpendWindow::Month => "Spend this month",
        SpendWindow::Total => "Total spend",
    }
}

/// Share of a bound in percent, which is full at the most.
fn share(used: i64, bound: i64) -> u8 {
    // In 128 bits: a hundred times an amount may not fit 64.
    let percent = i128::from(used.max(0)) * 100 / i128::from(bound.max(1));
    u8::try_from(percent.min(100)).unwrap_or(100)
}

/// The newest operation of a key, by its admission.
async fn last_use(visit: &Visit, key: &ApiKey) -> Result<Cell, Failure> {
    let filter = OperationFilter { api_key: Some(key.id), ..Default::default() };
    let page = PageRequest::first(Order::Newest, 1);
    let listed = visit.accounts().operations(visit.principal(), filter, page).await?;
    Ok(Cell::some_moment(listed.rows.first().map(|row| row.operation.admitted_at)))
}

/// Usage of this month, by model; each leads to its days, which are of the same operations.
async fn month(visit: &Visit, key: &ApiKey, now: Timestamp) -> Result<Section, Failure> {
    let counter = Counter::SpendMonth;
    let begin = counter.window(now);
    let query = UsageQuery {
        by: Grouping::by(GroupBy::Model),
        filter: UsageFilter { api_key: Some(key.id), ..UsageFilter::default() },
        period: Period { from: Some(begin), to: counter.window_end(now) },
        rows_max: None,
    };
    let report = match visit.shared.usage(&visit.visitor, query, visit.shared.deadline()).await? {
        ReportView::There(report, _at) => report,
        ReportView::Absent(absence) => {
            let address = format!("/keys/{}", key.id);
            return Ok(absence.notice("Usage this month", &address).into());
        }
    };
    let UsageReport { rows, shows_costs } = &*report;
    let (id, from) = (key.id.to_string(), written(begin));
    let own = [("api_key", Some(id.as_str())), ("from", Some(from.as_str()))];
    let row = |row: &UsageRow| {
        let (totals, name) = (&row.totals, group_name(&row.group));
        let [own_key, own_from] = own;
        let days = [("first", Some("day")), own_key, ("model", Some(name.as_str())), own_from];
        let mut cells = vec![
            Cell::link(&name, with_query("/usage", &days)),
            Cell::count(totals.completed),
            Cell::count(totals.refused),
            Cell::count(totals.abandoned),
            Cell::money(totals.charge, row.currency),
            Cell::money(totals.refunded, row.currency),
        ];
        if *shows_costs {
            cells.push(Cell::money(totals.exposure, row.currency));
        }
        cells
    };
    let mut head = vec!["Model", "Completed", "Refused", "Outcome unknown", "Charged", "Refunded"];
    if *shows_costs {
        head.push("At risk");
    }
    let all = Link::new("All requests", format!("/operations?api_key={id}"));
    let began = Link::new("This month's requests", with_query("/operations", &own));
    let table = Table::new("This month", &head, rows.iter().map(row).collect(), KeyText::NoUsage);
    let table = table.keep(&["Charged"]);
    Ok(table.link(began).link(all).into())
}

/// Credentials in force, without what their bearers are checked by.
async fn credentials(visit: &Visit, key: &ApiKey) -> Result<Table, Failure> {
    let (name, wallet) = (Some(key.name.clone()), Some(key.wallet));
    let filter = ApiKeyFilter { name, wallet, ..ApiKeyFilter::default() };
    let page = PageRequest::first(Order::Newest, PAGE_MAX);
    let listed = visit.accounts().api_keys(visit.principal(), filter, page).await?;
    let own = listed.rows.into_iter().find(|row| row.api_key.id == key.id);
    let row = |credential: &LiveCredential| {
        [
            ("Begins with", Cell::code(format!("{}_…", Bearer::prefix(credential.id)))),
            ("Created", Cell::moment(credential.created_at)),
            ("Ends", Cell::some_moment(credential.ends_at)),
        ]
    };
    let rows = own.iter().flat_map(|own| own.credentials.iter()).map(row);
    Ok(Table::of("Credentials in force", rows, "No valid credential."))
}
