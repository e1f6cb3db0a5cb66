//! Wallets: the list, narrowed by name or balance.

use askama::Template;
use holdfast_accounts::{AccountsError, Reference};
use holdfast_domain::Micros;
use holdfast_domain::admin::listing::{Page as ListPage, WalletFilter};
use holdfast_domain::admin::{UseCase, WalletRecord, WalletState};

use crate::failure::Failure;
use crate::kit::cell::Cell;
use crate::kit::field::{Choice, FieldKind, FormField};
use crate::kit::input::SentFields;
use crate::kit::page::Page;
use crate::kit::paging::Pages;
use crate::kit::section::{Filter, Table};
use crate::kit::visit::Visit;
use crate::pages::parts::wallet::state;

/// Texts of the page.
#[derive(Debug, Template)]
#[template(path = "pages/wallets.txt")]
enum WalletsText {
    #[template(block = "empty")]
    Empty { may_create: bool },
}

const BELOW: &str = "available_below";
const NAME: &str = "name";
const STATE: &str = "state";
const LOW: &str = "low";
const ACTIVE: &str = "active";

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let found = found(&visit).await.map(|table| vec![table.into()]);
    Page::new("Wallets")
        .form(&visit, UseCase::WalletCreate, "/wallets/new")
        .narrowed(narrowing(&visit.query), found)
}

async fn found(visit: &Visit) -> Result<Table, Failure> {
    let below: Option<Micros> = visit.query.read(BELOW)?;
    let runs_low = visit.query.get(STATE) == Some(LOW);
    let state = visit.query.get(STATE).filter(|state| *state == ACTIVE);
    let state = state.map(|_active| WalletState::Active);
    let filter =
        WalletFilter { available_below: below, runs_low, state, ..WalletFilter::default() };
    let pages = Pages::new(visit, "/wallets", &visit.query);
    let listed = match visit.query.read::<Reference>(NAME)? {
        Some(reference) => named(visit, &reference, filter).await?,
        None => visit.accounts().wallets(visit.principal(), filter, pages.request()?).await?,
    };
    let next = pages.next(listed.next)?;
    let rows = listed.rows.iter().map(row).collect();
    let head = ["Name", "Available", "Held", "State", "Made"];
    let empty = &WalletsText::Empty { may_create: visit.may(UseCase::WalletCreate) }.to_string();
    Ok(Table::new("Wallets", &head, rows, empty).next(next))
}

/// The wallet of this name or id alone.
async fn named(
    visit: &Visit,
    reference: &Reference,
    filter: WalletFilter,
) -> Result<ListPage<WalletRecord>, Failure> {
    let found = match visit.accounts().wallet(visit.principal(), reference).await {
        Err(AccountsError::NotFound(_wallet)) => None,
        // The other fields hold, too: a row outside of them would contradict the form above it.
        found => Some(found?).filter(|record| filter.admits(record)),
    };
    Ok(ListPage::whole(found))
}

fn narrowing(query: &SentFields) -> Filter {
    let field = |name, label, kind| FormField::optional(name, label, kind).value(query.raw(name));
    let states = [("", "All"), (ACTIVE, "Active"), (LOW, "Runs low")];
    let states = states.map(|(value, label)| Choice::new(value, label)).to_vec();
    let fields = vec![
        field(NAME, "Name or id", FieldKind::Text),
        field(BELOW, "Available below", FieldKind::Amount),
        field(STATE, "State", FieldKind::Select(states)),
    ];
    Filter { action: "/wallets".to_owned(), fields, submit: "Narrow".to_owned() }
}

fn row(record: &WalletRecord) -> Vec<Cell> {
    let wallet = &record.wallet;
    vec![
        Cell::link(&wallet.name, format!("/wallets/{}", wallet.id)),
        Cell::money(wallet.available, wallet.currency),
        Cell::money(wallet.held, wallet.currency),
        state(record),
        Cell::moment(record.created_at),
    ]
}
