//! Things that want a look: stuck operations, routes that cool down, wallets that run low, nodes, the last
//! verification.

use holdfast_domain::admin::listing::{OperationFilter, Order, PageRequest, Scope, WalletFilter};
use holdfast_domain::admin::offer::RouteHealth;
use holdfast_domain::admin::{UseCase, WalletRecord};

use crate::cell::{Cell, Link, Tone};
use crate::desk::Desk;
use crate::failure::Failure;
use crate::pages::{jobs, models, operations};
use crate::section::{Section, Table};
use crate::visitor::Visitor;

/// Rows of a list on this page; the rest is a click away.
const SHOWN: u32 = 10;

pub(super) async fn sections(desk: &Desk, visitor: &Visitor) -> Result<Vec<Section>, Failure> {
    let mut sections: Vec<Section> = Vec::new();
    if visitor.may(UseCase::OperationRead) {
        sections.push(stuck(desk, visitor).await?.into());
    }
    if visitor.may(UseCase::ModelRead) && visitor.principal.sees_routes() {
        sections.push(cooling(desk, visitor)?.into());
    }
    if visitor.may(UseCase::WalletRead) {
        sections.push(low(desk, visitor).await?.into());
    }
    if visitor.may(UseCase::NodeRead) {
        sections.push(nodes(desk, visitor).await?.into());
    }
    if visitor.may(UseCase::JobRead) {
        sections.push(last_job(desk, visitor).await?.into());
    }
    Ok(sections)
}

async fn stuck(desk: &Desk, visitor: &Visitor) -> Result<Table, Failure> {
    let filter = OperationFilter { scope: Scope::Stale, ..OperationFilter::default() };
    let request = PageRequest::first(Order::Newest, SHOWN);
    let page = desk.accounts.operations(&visitor.principal, filter, request).await?;
    let rows = page.rows.iter().map(operations::row).collect();
    let table = Table::new("Stuck operations", &operations::HEAD, rows, "None is stuck.");
    Ok(match page.next {
        Some(_) => table.link(Link::new("All stuck operations", "/operations?scope=stuck")),
        None => table,
    })
}

fn cooling(desk: &Desk, visitor: &Visitor) -> Result<Table, Failure> {
    let offered = desk.accounts.models(&visitor.principal)?;
    let mut rows = Vec::new();
    for model in &offered.models {
        let unwell = model
            .routes
            .iter()
            .filter(|it| it.cools_for.is_some() || it.health != RouteHealth::Well);
        rows.extend(unwell.map(|route| models::health_row(model, route)));
    }
    let empty = "Every route is well, as far as this node has seen.";
    let link = Link::new("All routes", "/models");
    Ok(Table::new("Routes that cool down", &models::HEALTH_HEAD, rows, empty).link(link))
}

/// The newest wallets below their own thresholds.
async fn low(desk: &Desk, visitor: &Visitor) -> Result<Table, Failure> {
    let filter = WalletFilter { runs_low: true, ..WalletFilter::default() };
    let request = PageRequest::first(Order::Newest, SHOWN);
    let page = desk.accounts.wallets(&visitor.principal, filter, request).await?;
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

async fn nodes(desk: &Desk, visitor: &Visitor) -> Result<Table, Failure> {
    let nodes = desk.accounts.nodes(&visitor.principal).await?;
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

async fn last_job(desk: &Desk, visitor: &Visitor) -> Result<Table, Failure> {
    let request = PageRequest::first(Order::Newest, 1);
    let page = desk.accounts.jobs(&visitor.principal, request).await?;
    let rows = page.rows.iter().map(jobs::row).collect();
    let empty = "The book was never verified. A verification adds all rows up, and says whether \
        they agree.";
    let mut table = Table::new("Last verification", &jobs::HEAD, rows, empty);
    if visitor.may(UseCase::JobCreate) {
        table = table.link(Link::new("Start one", "/jobs/new"));
    }
    Ok(table.link(Link::new("All jobs", "/jobs")))
}
