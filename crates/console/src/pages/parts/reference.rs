//! Wallets and API keys as filters and forms name them, by id or by name, and as pages show them, by name.
//!
//! Never: the beginning of an id. Ids that were made at one time begin alike. A wallet that is out of the visitor's
//! reach is one that is not there.

use std::collections::BTreeMap;

use holdfast_accounts::{AccountsError, Reference};
use holdfast_domain::admin::listing::{ApiKeyFilter, Order, PageRequest, WalletFilter};
use holdfast_domain::admin::{ResourceId, UseCase};
use holdfast_domain::{ApiKeyId, WalletId};
use uuid::Uuid;

use crate::failure::{Failure, FieldRefusal};
use crate::kit::{Cell, FieldKind, FormField, SentFields, Visit, Visitor, noun, of_thing};

pub(crate) const WALLET: &str = "wallet";
pub(crate) const API_KEY: &str = "api_key";

/// The wallet that the field names, if any.
pub(crate) async fn wallet(
    visit: &Visit,
    fields: &SentFields,
) -> Result<Option<WalletId>, Failure> {
    let Some(reference) = fields.read::<Reference>(WALLET)? else { return Ok(None) };
    match visit.accounts().wallet(visit.principal(), &reference).await {
        Ok(record) => Ok(Some(record.wallet.id)),
        Err(AccountsError::NotFound(_)) => Err(Failure::field(WALLET, FieldRefusal::UnknownWallet)),
        Err(error) => Err(error.into()),
    }
}

/// The API key that the field names, if any. Names are unique within a wallet.
pub(crate) async fn api_key(
    visit: &Visit,
    fields: &SentFields,
    wallet: Option<WalletId>,
) -> Result<Option<ApiKeyId>, Failure> {
    let Some(reference) = fields.read::<Reference>(API_KEY)? else { return Ok(None) };
    match visit.accounts().api_key(visit.principal(), &reference, wallet).await {
        Ok(record) => Ok(Some(record.api_key.id)),
        Err(AccountsError::NotFound(_)) => {
            Err(Failure::field(API_KEY, FieldRefusal::UnknownApiKey))
        }
        Err(error) => Err(error.into()),
    }
}

/// Names that a field suggests: the newest, and so few that a page stays small.
const SUGGESTED: PageRequest = PageRequest::first(Order::Newest, 20);

/// Field of a filter that names a wallet, with the newest; a user of one wallet needs none.
pub(crate) async fn wallet_field(visit: &Visit) -> Result<Option<FormField>, Failure> {
    if visit.principal().only_wallet().is_some() {
        return Ok(None);
    }
    let field = FormField::optional(WALLET, "Wallet", FieldKind::Text);
    let names = wallet_names(visit).await?;
    Ok(Some(field.value(visit.query.raw(WALLET)).suggesting(names)))
}

/// Names of the newest wallets.
pub(crate) async fn wallet_names(visit: &Visit) -> Result<Vec<String>, Failure> {
    if !visit.may(UseCase::WalletRead) {
        return Ok(Vec::new());
    }
    let filter = WalletFilter::default();
    let listed = visit.accounts().wallets(visit.principal(), filter, SUGGESTED).await?;
    Ok(listed.rows.into_iter().map(|record| record.wallet.name).collect())
}

/// Field of a filter that names an API key, with the newest.
pub(crate) async fn api_key_field(visit: &Visit) -> Result<FormField, Failure> {
    let field = FormField::optional(API_KEY, "API key", FieldKind::Text);
    let field = field.value(visit.query.raw(API_KEY));
    if !visit.may(UseCase::ApiKeyRead) {
        return Ok(field);
    }
    let filter = ApiKeyFilter::default();
    let listed = visit.accounts().api_keys(visit.principal(), filter, SUGGESTED).await?;
    Ok(field.suggesting(listed.rows.into_iter().map(|row| row.api_key.name)))
}

/// The reference to an id.
pub(crate) fn to_wallet(id: WalletId) -> Reference {
    Reference::Id(Uuid::from_bytes(id.to_bytes()))
}

/// Names of the wallets, API keys, admin keys and people on a page, looked up at once.
#[derive(Debug)]
pub(crate) struct Names<'v> {
    visitor: &'v Visitor,
    names: BTreeMap<ResourceId, String>,
}

impl<'v> Names<'v> {
    pub(crate) async fn read(
        visit: &'v Visit,
        things: impl IntoIterator<Item = ResourceId>,
    ) -> Result<Self, Failure> {
        let things = things.into_iter().collect();
        let names = visit.accounts().names(visit.principal(), things).await?;
        Ok(Self::new(&visit.visitor, names))
    }

    pub(crate) const fn new(visitor: &'v Visitor, names: BTreeMap<ResourceId, String>) -> Self {
        Self { visitor, names }
    }

    /// Adds the name that a listing has of a resource.
    pub(crate) fn insert(&mut self, thing: ResourceId, name: Option<&str>) {
        self.names.extend(name.map(|name| (thing, name.to_owned())));
    }

    pub(crate) fn get(&self, thing: ResourceId) -> Option<&str> {
        self.names.get(&thing).map(String::as_str)
    }

    /// Link with the name of a resource, or with its kind and its whole id if no name is known.
    pub(crate) fn link(&self, thing: ResourceId) -> Cell {
        let text = self.get(thing).map_or_else(|| identified(thing), str::to_owned);
        linked(text, thing, self.visitor)
    }

    /// Kind of a resource with its name, or with its whole id if no name is known.
    pub(crate) fn described(&self, thing: ResourceId) -> String {
        let named = |name: &str| format!("{} {name}", noun(thing));
        self.get(thing).map_or_else(|| identified(thing), named)
    }
}

/// Kind of a resource, and its whole id.
fn identified(thing: ResourceId) -> String {
    match thing {
        ResourceId::Unknown => noun(thing).to_owned(),
        ResourceId::Wallet(_)
        | ResourceId::ApiKey(_)
        | ResourceId::Posting(_)
        | ResourceId::Operation(_)
        | ResourceId::AdminKey(_)
        | ResourceId::Person(_)
        | ResourceId::Webhook(_)
        | ResourceId::Job(_) => format!("{} {}", noun(thing), Uuid::from_bytes(thing.id())),
    }
}

/// Link to a resource, or only its text for a visitor who may not read the resource.
pub(crate) fn linked(text: String, thing: ResourceId, visitor: &Visitor) -> Cell {
    let may_read = thing.read_use_case().is_some_and(|use_case| visitor.may(use_case));
    match of_thing(thing).filter(|_| may_read) {
        Some(href) => Cell::link(text, href),
        None => Cell::text(text),
    }
}
