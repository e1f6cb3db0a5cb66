//! Wallets: the list, narrowed by name or balance, and sorted by any column.

use holdfast_accounts::{AccountsError, Reference};
use holdfast_domain::Micros;
use holdfast_domain::admin::listing::{Page as ListPage, WalletFilter};
use holdfast_domain::admin::report::GroupBy;
use holdfast_domain::admin::{ResourceId, UseCase, WalletRecord, WalletState};

use crate::failure::Failure;
use crate::kit::sorting::{self, SortColumn};
use crate::kit::{Cell, FieldKind, Filter, FormField, Page, Pages, Section, Table, Visit};
use crate::pages::parts::reference::wallet_names;
use crate::pages::parts::usage::{SPEND_OF_MONTH, Spend, spend_cell, spend_of_month};
use crate::pages::parts::wallet::state;

texts! { #[template(path = "pages/wallets.txt")] WalletsText {
    Empty { may_create: bool } = "empty",
} }

const BELOW: &str = "available_below";
const NAME: &str = "name";
const STATE: &str = "state";
const LOW: &str = "low";
const ACTIVE: &str = "active";

const PATH: &str = "/wallets";

/// A wallet with its charges less refunds of this month.
type WalletRow = (WalletRecord, Option<Spend>);

/// Column of the charges of this month, which a role without usage has not.
const SPEND: usize = 2;
/// Order by each column.
const SORTS: [SortColumn<WalletRow>; 6] = [
    SortColumn::Text("name", |(record, _)| record.wallet.name.clone()),
    SortColumn::Number("available", |(record, _)| record.wallet.available.get().into()),
    SortColumn::Number("spend", |(_, spend)| {
        spend.map_or(i128::MIN, |(amount, _)| amount.get().into())
    }),
    SortColumn::Number("held", |(record, _)| record.wallet.held.get().into()),
    SortColumn::None,
    SortColumn::Number("created", |(record, _)| record.created_at.as_micros().into()),
];

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let found = found(&visit).await;
    Page::new("Wallets")
        .form(&visit, UseCase::WalletCreate, "/wallets/new")
        .narrowed(narrowing(&visit).await?, found)
}

async fn found(visit: &Visit) -> Result<Vec<Section>, Failure> {
    let below: Option<Micros> = visit.query.read(BELOW)?;
    let runs_low = visit.query.get(STATE) == Some(LOW);
    let state = visit.query.get(STATE).filter(|state| *state == ACTIVE);
    let state = state.map(|_active| WalletState::Active);
    let filter =
        WalletFilter { available_below: below, runs_low, state, ..WalletFilter::default() };
    let name = visit.query.read::<Reference>(NAME)?;
    let (spends, mut notices) = spend_of_month(visit, GroupBy::Wallet, PATH).await?;
    let spend = |record: &WalletRecord| {
        let none = (Micros::ZERO, record.wallet.currency);
        let thing = ResourceId::Wallet(record.wallet.id);
        spends.as_ref().map(|all| all.get(&thing).copied().unwrap_or(none))
    };
    let (name, filter, spend) = (&name, &filter, &spend);
    let read = |request| async move {
        let listed = match name {
            Some(reference) => named(visit, reference, filter).await?,
            None => visit.accounts().wallets(visit.principal(), filter.clone(), request).await?,
        };
        let with_spend = |record| {
            let spend = spend(&record);
            (record, spend)
        };
        Ok(listed.map(with_spend))
    };
    let pages = Pages::new(visit, PATH, &visit.query);
    let listed = sorting::page(&SORTS, (&pages, &visit.query), read).await?;
    let rows = listed.rows.iter().map(row).collect();
    let head = ["Name", "Available", SPEND_OF_MONTH, "Held", "State", "Created"];
    let table = Table::new(
        "Wallets",
        &head,
        rows,
        WalletsText::Empty { may_create: visit.may(UseCase::WalletCreate) },
    )
    .sorts(sorting::links(&SORTS, PATH, &visit.query))
    .column_if(spends.is_some(), SPEND)
    .next(listed.next);
    notices.extend(listed.notice);
    Ok(notices.into_iter().map(Section::from).chain([table.into()]).collect())
}

/// The wallet of this name or id alone.
async fn named(
    visit: &Visit,
    reference: &Reference,
    filter: &WalletFilter,
) -> Result<ListPage<WalletRecord>, Failure> {
    let found = match visit.accounts().wallet(visit.principal(), reference).await {
        Err(AccountsError::NotFound(_wallet)) => None,
        // The other fields hold, too: a row outside of them would contradict the form above it.
        found => Some(found?).filter(|record| filter.admits(record)),
    };
    Ok(ListPage::whole(found))
}

async fn narrowing(visit: &Visit) -> Result<Filter, Failure> {
    let field = |name, label, kind| FormField::sought(name, label, kind, &visit.query);
    let states = FieldKind::none_or("All", [(ACTIVE, "Active"), (LOW, "Runs low")]);
    let mut fields = vec![
        field(NAME, "Name or id", FieldKind::Text).suggesting(wallet_names(visit).await?),
        field(BELOW, "Available below", FieldKind::Amount),
        field(STATE, "State", states),
    ];
    fields.extend(sorting::field(&visit.query));
    Ok(Filter::new(PATH, fields))
}

fn row((record, spend): &WalletRow) -> Vec<Cell> {
    let wallet = &record.wallet;
    vec![
        Cell::link(&wallet.name, format!("/wallets/{}", wallet.id)),
        Cell::money(wallet.available, wallet.currency),
        spend_cell(*spend),
        Cell::money(wallet.held, wallet.currency),
        state(record),
        Cell::moment(record.created_at),
    ]
}
