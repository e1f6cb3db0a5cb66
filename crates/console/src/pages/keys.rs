//! API keys: the list, narrowed by wallet, name or state.

use askama::Template;
use holdfast_accounts::Name;
use holdfast_domain::WalletId;
use holdfast_domain::admin::listing::{ApiKeyFilter, ApiKeyListing, ApiKeyState};
use holdfast_domain::admin::{ResourceId, UseCase};

use crate::failure::{Failure, FieldRefusal};
use crate::kit::field::{Choice, FieldKind, FormField};
use crate::kit::input::SentFields;
use crate::kit::page::Page;
use crate::kit::paging::Pages;
use crate::kit::section::{Filter, Table};
use crate::kit::visit::Visit;
use crate::pages::parts::api_key::{HEAD, issue_address, row};
use crate::pages::parts::reference::{self, Names, WALLET};

/// Texts of the page.
#[derive(Debug, Template)]
#[template(path = "pages/keys.txt")]
enum KeysText {
    #[template(block = "empty")]
    Empty { may_issue: bool },
}

const NAME: &str = "name";
const STATE: &str = "state";

/// States to choose from, as addresses and people name them.
const STATES: [(&str, &str, ApiKeyState); 4] = [
    ("in_force", "in force", ApiKeyState::InForce),
    ("suspended", "suspended", ApiKeyState::Suspended),
    ("ended", "ended", ApiKeyState::Ended),
    ("revoked", "revoked", ApiKeyState::Revoked),
];

pub(crate) async fn list(visit: Visit) -> Result<Page, Failure> {
    let (wallet, found) = match found(&visit).await {
        Ok((wallet, table)) => (wallet, Ok(vec![table.into()])),
        Err(failure) => (None, Err(failure)),
    };
    let new = wallet.map_or_else(|| "/keys/new".to_owned(), issue_address);
    Page::new("API keys").form(&visit, UseCase::ApiKeyIssue, new).narrowed(narrowing(&visit), found)
}

/// The keys, and their wallet if the query names one.
async fn found(visit: &Visit) -> Result<(Option<WalletId>, Table), Failure> {
    let name = visit.query.sought(NAME, Name::sought)?;
    let wallet = reference::wallet(visit, &visit.query).await?;
    let name = name.map(|name| name.as_str().to_owned());
    let filter = ApiKeyFilter { name, wallet, state: state_of(&visit.query)?, model: None };
    let pages = Pages::new(visit, "/keys", &visit.query);
    let listed = visit.accounts().api_keys(visit.principal(), filter, pages.request()?).await?;
    let next = pages.next(listed.next)?;
    Ok((wallet, table(visit, &listed.rows).await?.next(next)))
}

fn state_of(query: &SentFields) -> Result<Option<ApiKeyState>, Failure> {
    let Some(label) = query.get(STATE) else { return Ok(None) };
    let found = STATES.iter().find(|(known, ..)| *known == label);
    let bad = || Failure::field(STATE, FieldRefusal::NotAChoice);
    found.map(|(_, _, state)| Some(*state)).ok_or_else(bad)
}

fn narrowing(visit: &Visit) -> Filter {
    let mut states = vec![Choice::new("", "any")];
    states.extend(STATES.iter().map(|(value, label, _)| Choice::new(*value, *label)));
    let field =
        |name, label, kind| FormField::optional(name, label, kind).value(visit.query.raw(name));
    let mut fields = vec![
        field(NAME, "Name", FieldKind::Text),
        field(STATE, "State", FieldKind::Select(states)),
    ];
    if visit.principal().only_wallet().is_none() {
        fields.insert(0, field(WALLET, "Wallet", FieldKind::Text));
    }
    Filter { action: "/keys".to_owned(), fields, submit: "Narrow".to_owned() }
}

/// The rows, with the wallet of each if the user sees more than one.
async fn table(visit: &Visit, keys: &[ApiKeyListing]) -> Result<Table, Failure> {
    let now = visit.accounts().clock().await?;
    let empty = &KeysText::Empty { may_issue: visit.may(UseCase::ApiKeyIssue) }.to_string();
    if visit.principal().only_wallet().is_some() {
        let rows = keys.iter().map(|key| row(&key.api_key, now)).collect();
        return Ok(Table::new("API keys", &HEAD, rows, empty));
    }
    let wallets = keys.iter().map(|key| ResourceId::Wallet(key.api_key.wallet));
    let names = Names::read(visit, wallets).await?;
    let with_wallet = |key: &ApiKeyListing| {
        let mut cells = row(&key.api_key, now);
        cells.insert(1, names.link(ResourceId::Wallet(key.api_key.wallet)));
        cells
    };
    let [name, rest @ ..] = HEAD;
    let head: Vec<_> = [name, "Wallet"].into_iter().chain(rest).collect();
    Ok(Table::new("API keys", &head, keys.iter().map(with_wallet).collect(), empty))
}
