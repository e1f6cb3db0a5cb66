//! Alerts of *Home*: stuck operations, unhealthy routes, low and empty wallets, nodes, the last ledger check.
//!
//! Never: good news. A table without a row that is wrong is left out, unless only a part of its rows was read.

use holdfast_domain::Micros;
use holdfast_domain::admin::job::{Job, JobState};
use holdfast_domain::admin::listing::{OperationFilter, Order, PageRequest, Scope, WalletFilter};
use holdfast_domain::admin::offer::RouteHealth;
use holdfast_domain::admin::{UseCase, WalletRecord, WalletState};

use crate::failure::Failure;
use crate::kit::moment::second;
use crate::kit::{Cell, Link, Notice, Section, Table, Tone, Visit};
use crate::pages::parts::{job, node, operation, route};

texts! { #[template(path = "pages/home.txt")] WatchText<'a> {
    AllGood = "all_good",
    Restored { until: &'a str } = "restored",
    OlderStuck = "older_stuck",
    Low = "low",
    OlderLow = "older_low",
    NoResult = "no_result",
    NoCheck = "no_check",
} }

/// Rows of a list on this page; the rest is a click away.
const SHOWN: u32 = 10;

/// The tables of what is wrong, or one sentence.
pub(super) async fn sections(visit: &Visit) -> Result<Vec<Section>, Failure> {
    let (mut found, mut notices) = (Vec::new(), Vec::new());
    if visit.may(UseCase::OperationRead) {
        found.extend(stuck(visit).await?);
    }
    if visit.may(UseCase::ModelRead) && visit.principal().sees_routes() {
        found.extend(unhealthy(visit)?);
    }
    if visit.may(UseCase::RouteRead) {
        found.extend(failing(visit).await?);
    }
    if visit.may(UseCase::WalletRead) {
        found.extend(low(visit).await?);
    }
    if visit.may(UseCase::NodeRead) {
        notices.extend(restored(visit).await?);
        let nodes = visit.accounts().nodes(visit.principal()).await?;
        found.extend(node::need_attention(&nodes).then(|| node::table(&nodes)));
    }
    if visit.may(UseCase::JobRead) {
        found.extend(last_check(visit).await?);
    }
    if found.is_empty() && notices.is_empty() {
        let text = WatchText::AllGood.to_string();
        return Ok(vec![Notice::new(Tone::Good, text).into()]);
    }
    Ok(notices.into_iter().map(Section::from).chain(found.into_iter().map(Section::from)).collect())
}

/// The window of a restore that is open.
async fn restored(visit: &Visit) -> Result<Option<Notice>, Failure> {
    let open = visit.accounts().restore_window(visit.principal()).await?;
    Ok(open.map(|open| {
        let until = second(open.unknown_until);
        Notice::new(Tone::Warning, WatchText::Restored { until: &until }.to_string())
    }))
}

/// The table if it has rows, or if rows were left unread: an empty part is no proof.
fn unless_clear(table: Table, is_partial: bool) -> Option<Table> {
    Some(table).filter(|table| is_partial || !table.rows.is_empty())
}

async fn stuck(visit: &Visit) -> Result<Option<Table>, Failure> {
    let filter = OperationFilter { scope: Scope::Stale, ..OperationFilter::default() };
    let request = PageRequest::first(Order::Newest, SHOWN);
    let page = visit.accounts().operations(visit.principal(), filter, request).await?;
    let rows = operation::rows(visit, &page.rows, operation::charge).await?;
    let table = Table::new("Stuck requests", &operation::HEAD, rows, WatchText::OlderStuck);
    let is_partial = page.next.is_some();
    let table = match page.next {
        Some(_) => table.link(Link::new("All stuck requests", "/operations?scope=stuck")),
        None => table,
    };
    Ok(unless_clear(table, is_partial))
}

fn unhealthy(visit: &Visit) -> Result<Option<Table>, Failure> {
    let offered = visit.accounts().models(visit.principal())?;
    let mut rows = Vec::new();
    for model in &offered.models {
        let unwell = model
            .routes
            .iter()
            .filter(|it| it.cools_for.is_some() || it.health != RouteHealth::Well);
        rows.extend(unwell.map(|route| route::health_row(model, route)));
    }
    let link = Link::new("All routes", "/models");
    let table = Table::new("Unhealthy routes", &route::HEALTH_HEAD, rows, "").link(link);
    Ok(unless_clear(table, false))
}

/// Served routes whose last attempt failed, on any node. A route that was removed needs no attention.
async fn failing(visit: &Visit) -> Result<Option<Table>, Failure> {
    let routes = visit.accounts().routes(visit.principal()).await?;
    let failing = routes.iter().filter(|report| report.is_served && report.failing_since.is_some());
    let rows = failing.map(route::failing_row);
    let link = Link::new("All routes", "/routes");
    let table = Table::of("Failing routes", rows, "").link(link);
    Ok(unless_clear(table, false))
}

/// The newest wallets below their own thresholds, and the newest open ones without funds.
async fn low(visit: &Visit) -> Result<Option<Table>, Failure> {
    let low = WalletFilter { runs_low: true, ..WalletFilter::default() };
    let below = Some(Micros::new(1));
    let state = Some(WalletState::Active);
    let empty = WalletFilter { available_below: below, state, ..WalletFilter::default() };
    let request = PageRequest::first(Order::Newest, SHOWN);
    let low = visit.accounts().wallets(visit.principal(), low, request).await?;
    let empty = visit.accounts().wallets(visit.principal(), empty, request).await?;
    // An empty wallet may be below its own threshold, too: one row for both.
    let is_new = |it: &&WalletRecord| low.rows.iter().all(|known| known.wallet.id != it.wallet.id);
    let rows = low.rows.iter().chain(empty.rows.iter().filter(is_new)).map(low_row);
    let mut table = Table::of(&WatchText::Low.to_string(), rows, WatchText::OlderLow);
    if low.next.is_some() {
        table = table.link(Link::new("All low wallets", "/wallets?state=low"));
    }
    if empty.next.is_some() {
        let href = "/wallets?state=active&available_below=0.000001";
        table = table.link(Link::new("All empty wallets", href));
    }
    Ok(unless_clear(table, low.next.is_some() || empty.next.is_some()))
}

fn low_row(record: &WalletRecord) -> [(&'static str, Cell); 4] {
    let wallet = &record.wallet;
    let money = |amount| Cell::money(amount, wallet.currency);
    [
        ("Wallet", Cell::link(&wallet.name, format!("/wallets/{}", wallet.id))),
        ("Available", money(wallet.available)),
        ("On hold", money(wallet.held)),
        ("Low-balance alert", record.low_balance.map_or(Cell::Nothing, money)),
    ]
}

/// The last ledger check that has ended, if it failed or found mismatches, or a sentence if none has ended.
async fn last_check(visit: &Visit) -> Result<Option<Table>, Failure> {
    let request = PageRequest::first(Order::Newest, SHOWN);
    let page = visit.accounts().jobs(visit.principal(), request).await?;
    // A check that runs or was cancelled has no result: it must not hide the one before.
    let has_verdict = |job: &&Job| matches!(job.state, JobState::Done | JobState::Failed);
    let last = page.rows.iter().find(has_verdict);
    if last.is_some_and(|job| job::is_well(job) == Some(true)) {
        return Ok(None);
    }
    let empty = if page.next.is_some() { WatchText::NoResult } else { WatchText::NoCheck };
    let table = Table::of("Last ledger check", last.map(job::row), empty);
    let table = table.link(Link::new("All ledger checks", "/jobs"));
    let may_check = last.is_none() && visit.may(UseCase::JobCreate);
    let check = may_check.then(|| Link::new("Verify the ledger", "/jobs/new"));
    Ok(Some(check.into_iter().fold(table, Table::link)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_was_read_in_part_is_no_all_clear() {
        let empty = || Table::new("Low and empty wallets", &["Wallet"], Vec::new(), "Not all.");
        let found = unless_clear(empty(), true).map(|table| table.empty);
        assert_eq!(found.as_deref(), Some("Not all."));
        assert!(unless_clear(empty(), false).is_none());
        let one = Table::new("Low and empty wallets", &["Wallet"], vec![Vec::new()], "");
        assert!(unless_clear(one, false).is_some());
    }
}
