//! Wallets and API keys as filters and forms name them: by id, or by the name that people have for them.
//!
//! A wallet that is out of the visitor's reach is one that is not there.

use holdfast_accounts::{AccountsError, Reference};
use holdfast_domain::{ApiKeyId, WalletId};
use uuid::Uuid;

use crate::failure::Failure;
use crate::kit::ask::SentFields;
use crate::kit::field::{FieldKind, FormField};
use crate::kit::visit::Visit;

pub(crate) const WALLET: &str = "wallet";
pub(crate) const API_KEY: &str = "api_key";

/// The wallet that the field names, where it names one.
pub(crate) async fn wallet(
    visit: &Visit,
    fields: &SentFields,
) -> Result<Option<WalletId>, Failure> {
    let Some(reference) = fields.read::<Reference>(WALLET)? else { return Ok(None) };
    match visit.accounts().wallet(visit.principal(), &reference).await {
        Ok(record) => Ok(Some(record.wallet.id)),
        Err(AccountsError::NotFound(_)) => Err(Failure::field(WALLET, "There is no such wallet.")),
        Err(error) => Err(error.into()),
    }
}

/// The API key that the field names, where it names one. Names are unique within a wallet.
pub(crate) async fn api_key(
    visit: &Visit,
    fields: &SentFields,
    wallet: Option<WalletId>,
) -> Result<Option<ApiKeyId>, Failure> {
    let Some(reference) = fields.read::<Reference>(API_KEY)? else { return Ok(None) };
    match visit.accounts().api_key(visit.principal(), &reference, wallet).await {
        Ok(record) => Ok(Some(record.api_key.id)),
        Err(AccountsError::NotFound(_)) => {
            Err(Failure::field(API_KEY, "There is no such API key. Names need their wallet."))
        }
        Err(error) => Err(error.into()),
    }
}

/// Field of a filter that names a wallet; whoever has one wallet needs none.
pub(crate) fn wallet_field(visit: &Visit) -> Option<FormField> {
    let field =
        FormField::optional(WALLET, "Wallet", FieldKind::Text).value(visit.query.raw(WALLET));
    visit.principal().only_wallet().is_none().then_some(field)
}

/// Field of a filter that names an API key.
pub(crate) fn api_key_field(query: &SentFields) -> FormField {
    FormField::optional(API_KEY, "API key", FieldKind::Text).value(query.raw(API_KEY))
}

/// The reference to an id.
pub(crate) fn to_wallet(id: WalletId) -> Reference {
    Reference::Id(Uuid::from_bytes(id.to_bytes()))
}

/// The first characters of an id: enough to tell rows of a table apart.
pub(crate) fn short(id: impl ToString) -> String {
    id.to_string().chars().take(8).collect()
}
