//! Wallets: the list, narrowed by name or balance.

use axum::extract::State;
use holdfast_domain::Micros;
use holdfast_domain::account::{UseCase, WalletRecord};
use holdfast_domain::listing::WalletFilter;

use crate::address::with_query;
use crate::ask::Query;
use crate::cell::{Cell, Tone};
use crate::console::Desk;
use crate::failure::Failure;
use crate::form::{Field, FieldKind};
use crate::page::Page;
use crate::paging;
use crate::section::{Filter, Table};
use crate::visitor::Visitor;

const BELOW: &str = "available_below";

pub(crate) async fn list(
    State(desk): State<Desk>,
    visitor: Visitor,
    Query(query): Query,
) -> Result<Page, Failure> {
    let below: Option<Micros> = query.read(BELOW)?;
    let filter = WalletFilter { available_from: None, available_below: below };
    let listed =
        desk.accounts.wallets(&visitor.principal, filter, paging::request(&query)?).await?;
    let next = paging::next("/wallets", &query, listed.next);
    let rows = listed.rows.iter().map(row).collect();
    let head = ["Name", "Available", "Held", "State", "Made"];
    let empty =
        "There is no such wallet. Make one: what your customers pay in advance is kept there.";
    let below = Field::optional(BELOW, "Available below", FieldKind::Amount);
    let below = below.value(query.raw(BELOW));
    let filter =
        Filter { action: "/wallets".to_owned(), fields: vec![below], submit: "Narrow".to_owned() };
    Ok(Page::new("Wallets")
        .action(visitor.may(UseCase::WalletCreate), "Make a wallet", "/wallets/new")
        .section(filter)
        .section(Table::new("Wallets", &head, rows, empty).next(next)))
}

fn row(record: &WalletRecord) -> Vec<Cell> {
    let wallet = &record.wallet;
    vec![
        Cell::link(&wallet.name, with_query(&format!("/wallets/{}", wallet.id), &[])),
        Cell::money(wallet.available, wallet.currency),
        Cell::money(wallet.held, wallet.currency),
        state(record),
        Cell::moment(record.created_at),
    ]
}

/// State of a wallet.
pub(crate) fn state(record: &WalletRecord) -> Cell {
    match (record.closed_at, record.wallet.suspended_at) {
        (Some(_), _) => Cell::badge("closed", Tone::Plain),
        (None, Some(_)) => Cell::badge("suspended", Tone::Bad),
        (None, None) => Cell::badge("active", Tone::Good),
    }
}
