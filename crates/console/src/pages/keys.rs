//! API keys: the list, narrowed by wallet, name or state, and sorted by its columns.

use holdfast_accounts::Name;
use holdfast_domain::WalletId;
use holdfast_domain::admin::listing::{ApiKeyFilter, ApiKeyListing, ApiKeyState};
use holdfast_domain::admin::report::GroupBy;
use holdfast_domain::admin::{ResourceId, UseCase};

use crate::failure::Failure;
use crate::kit::sorting::{self, SortColumn};
use crate::kit::{
    Cell, FieldKind, Filter, FormField, Page, Pages, Section, SentFields, Table, Visit,
};
use crate::pages::parts::api_key::{issue_address, row};
use crate::pages::parts::reference::{self, Names, wallet_field};
use crate::pages::parts::usage::{SPEND_OF_MONTH, Spend, spend_cell, spend_of_month};

texts! { #[template(path = "pages/keys.txt")] KeysText { Empty { may_issue: bool } = "empty" } }

const NAME: &str = "name";
const STATE: &str = "state";

/// States to choose from, as addresses and people name them.
const STATES: [(&str, &str, ApiKeyState); 4] = [
    ("in_force", "in force", ApiKeyState::InForce),
    ("suspended", "suspended", ApiKeyState::Suspended),
    ("ended", "ended", ApiKeyState::Ended),
    ("revoked", "revoked", ApiKeyState::Revoked),
];

const PATH: &str = "/keys";

/// An API key with its charges less refunds of this month.
type KeyRow = (ApiKeyListing, Option<Spend>);

/// Order by each column.
const SORTS: [SortColumn<KeyRow>; 7] = [
    SortColumn::Text("name", |(key, _)| key.api_key.name.clone()),
    SortColumn::None,
    SortColumn::None,
    SortColumn::None,
    SortColumn::Number("spend", |(_, spend)| {
        spend.map_or(i128::MIN, |(amount, _)| amount.get().into())
    }),
    SortColumn::Number("ends", |(key, _)| {
        key.api_key.grant.ends_at.map_or(-1, |at| at.as_micros().into())
    }),
    SortColumn::Number("created", |(key, _)| key.api_key.created_at.as_micros().into()),
];
const HEAD: [&str; 7] = ["Name", "Wallet", "State", "Models", SPEND_OF_MONTH, "Ends", "Created"];
/// Columns that not every role has.
const WALLET_COLUMN: usize = 1;
const SPEND: usize = 4;

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let (wallet, found) = match found(&visit).await {
        Ok((wallet, sections)) => (wallet, Ok(sections)),
        Err(failure) => (None, Err(failure)),
    };
    let new = wallet.map_or_else(|| "/keys/new".to_owned(), issue_address);
    let page = Page::new("API keys").form(&visit, UseCase::ApiKeyIssue, new);
    page.narrowed(narrowing(&visit).await?, found)
}

/// The keys, and their wallet if the query names one.
async fn found(visit: &Visit) -> Result<(Option<WalletId>, Vec<Section>), Failure> {
    let name = visit.query.sought(NAME, Name::sought)?;
    let wallet = reference::wallet(visit, &visit.query).await?;
    let name = name.map(|name| name.as_str().to_owned());
    let filter = ApiKeyFilter { name, wallet, state: state_of(&visit.query)?, model: None };
    let (spends, mut notices) = spend_of_month(visit, GroupBy::ApiKey, PATH).await?;
    let spend =
        |key: &ApiKeyListing| spends.as_ref()?.get(&ResourceId::ApiKey(key.api_key.id)).copied();
    let (filter, spend) = (&filter, &spend);
    let read = |request| async move {
        let listed = visit.accounts().api_keys(visit.principal(), filter.clone(), request).await?;
        let with_spend = |key| {
            let spend = spend(&key);
            (key, spend)
        };
        Ok(listed.map(with_spend))
    };
    let pages = Pages::new(visit, PATH, &visit.query);
    let listed = sorting::page(&SORTS, (&pages, &visit.query), read).await?;
    let rows = rows(visit, &listed.rows).await?;
    // The later column first: the place of the other one stays the same.
    let table = Table::new(
        "API keys",
        &HEAD,
        rows,
        KeysText::Empty { may_issue: visit.may(UseCase::ApiKeyIssue) },
    )
    .sorts(sorting::links(&SORTS, PATH, &visit.query))
    .column_if(spends.is_some(), SPEND)
    .column_if(visit.principal().only_wallet().is_none(), WALLET_COLUMN)
    .next(listed.next);
    notices.extend(listed.notice);
    Ok((wallet, notices.into_iter().map(Section::from).chain([table.into()]).collect()))
}

/// Rows under [`HEAD`].
async fn rows(visit: &Visit, keys: &[KeyRow]) -> Result<Vec<Vec<Cell>>, Failure> {
    let now = visit.accounts().clock().await?;
    let wallets = keys.iter().map(|(key, _)| ResourceId::Wallet(key.api_key.wallet));
    let names = Names::read(visit, wallets).await?;
    let row = |(key, spend): &KeyRow| {
        let mut cells = row(&key.api_key, now);
        cells.insert(WALLET_COLUMN, names.link(ResourceId::Wallet(key.api_key.wallet)));
        cells.insert(SPEND, spend_cell(*spend));
        cells
    };
    Ok(keys.iter().map(row).collect())
}

fn state_of(query: &SentFields) -> Result<Option<ApiKeyState>, Failure> {
    let known = |label: &str| STATES.iter().find(|(known, ..)| *known == label);
    query.choice(STATE, |label| known(label).map(|(.., state)| *state))
}

async fn narrowing(visit: &Visit) -> Result<Filter, Failure> {
    let states = FieldKind::none_or("any", STATES.map(|(value, label, _)| (value, label)));
    let mut fields: Vec<_> = wallet_field(visit).await?.into_iter().collect();
    fields.push(FormField::sought(NAME, "Name", FieldKind::Text, &visit.query));
    fields.push(FormField::sought(STATE, "State", states, &visit.query));
    fields.extend(sorting::field(&visit.query));
    Ok(Filter::new(PATH, fields))
}
