//! What needs attention: stuck operations, unhealthy routes, low and empty wallets, nodes, the last ledger check.
//!
//! Never: good news. A table without a row that is wrong is left out.

use holdfast_domain::Micros;
use holdfast_domain::admin::listing::{
    NodeListing, OperationFilter, Order, PageRequest, Scope, WalletFilter,
};
use holdfast_domain::admin::offer::RouteHealth;
use holdfast_domain::admin::{UseCase, WalletRecord, WalletState};

use crate::failure::Failure;
use crate::kit::cell::{Cell, Link, Tone};
use crate::kit::section::{Notice, Section, Table};
use crate::kit::visit::Visit;
use crate::pages::parts::{job, operation, route};

/// Rows of a list on this page; the rest is a click away.
const SHOWN: u32 = 10;

/// The tables of what is wrong, or one sentence.
pub(super) async fn sections(visit: &Visit) -> Result<Vec<Section>, Failure> {
    let mut found = Vec::new();
    if visit.may(UseCase::OperationRead) {
        found.push(stuck(visit).await?);
    }
    if visit.may(UseCase::ModelRead) && visit.principal().sees_routes() {
        found.push(unhealthy(visit)?);
    }
    if visit.may(UseCase::WalletRead) {
        found.push(low(visit).await?);
    }
    if visit.may(UseCase::NodeRead) {
        found.push(nodes(visit).await?);
    }
    if visit.may(UseCase::JobRead) {
        found.push(last_check(visit).await?);
    }
    found.retain(|table| !table.rows.is_empty());
    if found.is_empty() {
        return Ok(vec![Notice::new(Tone::Good, "Nothing needs attention.").into()]);
    }
    Ok(found.into_iter().map(Section::from).collect())
}

async fn stuck(visit: &Visit) -> Result<Table, Failure> {
    let filter = OperationFilter { scope: Scope::Stale, ..OperationFilter::default() };
    let request = PageRequest::first(Order::Newest, SHOWN);
    let page = visit.accounts().operations(visit.principal(), filter, request).await?;
    let rows = operation::rows(visit, &page.rows, operation::charge).await?;
    let table = Table::new("Stuck operations", &operation::HEAD, rows, "");
    Ok(match page.next {
        Some(_) => table.link(Link::new("All stuck operations", "/operations?scope=stuck")),
        None => table,
    })
}

fn unhealthy(visit: &Visit) -> Result<Table, Failure> {
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
    Ok(Table::new("Unhealthy routes", &route::HEALTH_HEAD, rows, "").link(link))
}

/// The newest wallets below their own thresholds, and the newest open ones without funds.
async fn low(visit: &Visit) -> Result<Table, Failure> {
    let low = WalletFilter { runs_low: true, ..WalletFilter::default() };
    let below = Some(Micros::new(1));
    let state = Some(WalletState::Active);
    let empty = WalletFilter { available_below: below, state, ..WalletFilter::default() };
    let request = PageRequest::first(Order::Newest, SHOWN);
    let low = visit.accounts().wallets(visit.principal(), low, request).await?;
    let empty = visit.accounts().wallets(visit.principal(), empty, request).await?;
    let is_new = |it: &&WalletRecord| low.rows.iter().all(|known| known.wallet.id != it.wallet.id);
    let rows = low.rows.iter().chain(empty.rows.iter().filter(is_new)).map(low_row).collect();
    let head = ["Wallet", "Available", "On hold", "Low-balance alert"];
    let mut table = Table::new("Low and empty wallets", &head, rows, "");
    if low.next.is_some() {
        table = table.link(Link::new("All low wallets", "/wallets?state=low"));
    }
    if empty.next.is_some() {
        let href = "/wallets?available_below=0.000001";
        table = table.link(Link::new("All empty wallets", href));
    }
    Ok(table)
}

fn low_row(record: &WalletRecord) -> Vec<Cell> {
    let wallet = &record.wallet;
    let money = |amount| Cell::money(amount, wallet.currency);
    vec![
        Cell::link(&wallet.name, format!("/wallets/{}", wallet.id)),
        money(wallet.available),
        money(wallet.held),
        record.low_balance.map_or(Cell::Nothing, money),
    ]
}

/// All nodes, if one of them is gone or has other settings.
async fn nodes(visit: &Visit) -> Result<Table, Failure> {
    let nodes = visit.accounts().nodes(visit.principal()).await?;
    let differs = |node: &NodeListing| node.settings_differ(&nodes);
    let is_wrong = nodes.iter().any(|it| !it.is_alive() || differs(it) == Some(true));
    let row = |node: &NodeListing| {
        let state = if node.is_alive() {
            Cell::badge("alive", Tone::Good)
        } else {
            Cell::badge("gone", Tone::Bad)
        };
        let settings = match differs(node) {
            Some(true) => Cell::badge("differ from others", Tone::Warning),
            Some(false) => Cell::badge("as all others", Tone::Good),
            None => Cell::Nothing,
        };
        vec![
            Cell::text(node.lease.node.name.as_str()),
            state,
            Cell::some_text(node.address.as_deref()),
            settings,
            Cell::moment(node.lease.ends_at),
        ]
    };
    let rows = nodes.iter().filter(|_| is_wrong).map(row).collect();
    let head = ["Node", "State", "Address", "Settings", "Lease until"];
    Ok(Table::new("Nodes", &head, rows, ""))
}

/// The last ledger check, if it failed or found the ledger out of balance.
async fn last_check(visit: &Visit) -> Result<Table, Failure> {
    let request = PageRequest::first(Order::Newest, 1);
    let page = visit.accounts().jobs(visit.principal(), request).await?;
    let is_bad = |cell: Cell| matches!(cell, Cell::Badge(_, Tone::Bad));
    let wrong = page.rows.iter().filter(|job| is_bad(job::state(job)) || is_bad(job::result(job)));
    let rows = wrong.map(job::row).collect();
    let table = Table::new("Last ledger check", &job::HEAD, rows, "");
    Ok(table.link(Link::new("All ledger checks", "/jobs")))
}
