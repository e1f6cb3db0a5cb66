//! Things that want a look: stuck operations, routes that cool down, wallets that run low, nodes, the last
//! verification.

use holdfast_domain::admin::listing::{OperationFilter, Order, PageRequest, Scope, WalletFilter};
use holdfast_domain::admin::offer::RouteHealth;
use holdfast_domain::admin::{UseCase, WalletRecord};

use crate::failure::Failure;
use crate::kit::cell::{Cell, Link, Tone};
use crate::kit::section::{Section, Table};
use crate::kit::visit::Visit;
use crate::pages::parts::{job, operation, route};

/// Rows of a list on this page; the rest is a click away.
const SHOWN: u32 = 10;

pub(super) async fn sections(visit: &Visit) -> Result<Vec<Section>, Failure> {
    let mut sections: Vec<Section> = Vec::new();
    if visit.may(UseCase::OperationRead) {
        sections.push(stuck(visit).await?.into());
    }
    if visit.may(UseCase::ModelRead) && visit.principal().sees_routes() {
        sections.push(cooling(visit)?.into());
    }
    if visit.may(UseCase::WalletRead) {
        sections.push(low(visit).await?.into());
    }
    if visit.may(UseCase::NodeRead) {
        sections.push(nodes(visit).await?.into());
    }
    if visit.may(UseCase::JobRead) {
        sections.push(last_job(visit).await?.into());
    }
    Ok(sections)
}

async fn stuck(visit: &Visit) -> Result<Table, Failure> {
    let filter = OperationFilter { scope: Scope::Stale, ..OperationFilter::default() };
    let request = PageRequest::first(Order::Newest, SHOWN);
    let page = visit.accounts().operations(visit.principal(), filter, request).await?;
    let rows = operation::rows(visit, &page.rows, operation::charge).await?;
    let table = Table::new("Stuck operations", &operation::HEAD, rows, "None is stuck.");
    Ok(match page.next {
        Some(_) => table.link(Link::new("All stuck operations", "/operations?scope=stuck")),
        None => table,
    })
}

fn cooling(visit: &Visit) -> Result<Table, Failure> {
    let offered = visit.accounts().models(visit.principal())?;
    let mut rows = Vec::new();
    for model in &offered.models {
        let unwell = model
            .routes
            .iter()
            .filter(|it| it.cools_for.is_some() || it.health != RouteHealth::Well);
        rows.extend(unwell.map(|route| route::health_row(model, route)));
    }
    let empty = "Every route is well, as far as this node has seen.";
    let link = Link::new("All routes", "/models");
    Ok(Table::new("Routes that cool down", &route::HEALTH_HEAD, rows, empty).link(link))
}

/// The newest wallets below their own thresholds.
async fn low(visit: &Visit) -> Result<Table, Failure> {
    let filter = WalletFilter { runs_low: true, ..WalletFilter::default() };
    let request = PageRequest::first(Order::Newest, SHOWN);
    let page = visit.accounts().wallets(visit.principal(), filter, request).await?;
    let rows = page.rows.iter().map(low_row).collect();
    let head = ["Wallet", "Available", "Held", "Threshold"];
    let empty = "No wallet is below its threshold.";
    let table = Table::new("Wallets that run low", &head, rows, empty);
    Ok(match page.next {
        Some(_) => table.link(Link::new("All wallets that run low", "/wallets?state=low")),
        None => table,
    })
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

async fn nodes(visit: &Visit) -> Result<Table, Failure> {
    let nodes = visit.accounts().nodes(visit.principal()).await?;
    let row = |node: &holdfast_domain::admin::listing::NodeListing| {
        let state = if node.is_alive() {
            Cell::badge("alive", Tone::Good)
        } else {
            Cell::badge("gone", Tone::Bad)
        };
        let settings = match node.settings_differ(&nodes) {
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
    let rows = nodes.iter().map(row).collect();
    let head = ["Node", "State", "Address", "Settings", "Lease until"];
    let empty = "No node serves: start one with holdfast serve.";
    Ok(Table::new("Nodes", &head, rows, empty))
}

async fn last_job(visit: &Visit) -> Result<Table, Failure> {
    let request = PageRequest::first(Order::Newest, 1);
    let page = visit.accounts().jobs(visit.principal(), request).await?;
    let rows = page.rows.iter().map(job::row).collect();
    let empty = "The book was never verified. A verification adds all rows up, and says whether \
        they agree.";
    let mut table = Table::new("Last verification", &job::HEAD, rows, empty);
    if visit.may(UseCase::JobCreate) {
        table = table.link(Link::new("Start one", "/jobs/new"));
    }
    Ok(table.link(Link::new("All jobs", "/jobs")))
}
