//! API keys as several pages show them.

use crate::failure::Failure;
use crate::kit::form::FormFrame;
use crate::kit::{Cell, Tone, Visit};
use holdfast_accounts::Reference;
use holdfast_domain::credential::ApiKey;
use holdfast_domain::{Timestamp, WalletId};

/// Models of a key that a list names.
pub(crate) const LISTED_MODELS: usize = 8;

/// Head of a list of API keys of one wallet.
pub(crate) const HEAD: [&str; 5] = ["Name", "State", "Models", "Ends", "Created"];

/// Address of the form that issues a key of a wallet.
pub(crate) fn issue_address(wallet: WalletId) -> String {
    format!("/keys/new?wallet={wallet}")
}

/// Cells of an API key under [`HEAD`].
pub(crate) fn row(key: &ApiKey, now: Timestamp) -> Vec<Cell> {
    vec![
        Cell::link(&key.name, format!("/keys/{}", key.id)),
        state(key, now),
        models(key, LISTED_MODELS),
        Cell::some_moment(key.grant.ends_at),
        Cell::moment(key.created_at),
    ]
}

/// Models that a key may use, so many of them at most.
pub(crate) fn models(key: &ApiKey, most: usize) -> Cell {
    let Some(models) = &key.grant.models else { return Cell::text("all") };
    let names: Vec<_> = models.iter().take(most).map(|model| model.as_str()).collect();
    let names = names.join(", ");
    Cell::text(match models.len().saturating_sub(most) {
        0 => names,
        more => format!("{names}, {more} more"),
    })
}

/// State of an API key.
pub(crate) fn state(key: &ApiKey, now: Timestamp) -> Cell {
    if key.revoked_at.is_some() {
        Cell::badge("revoked", Tone::Plain)
    } else if key.has_ended(now) {
        Cell::badge("ended", Tone::Plain)
    } else if key.suspended_at.is_some() {
        Cell::badge("suspended", Tone::Bad)
    } else {
        Cell::badge("in force", Tone::Good)
    }
}

/// The key whose form it is.
pub(crate) async fn opened(visit: &Visit) -> Result<ApiKey, Failure> {
    let id = Reference::Id(visit.id()?);
    Ok(visit.accounts().api_key(visit.principal(), &id, None).await?.api_key)
}

/// A form about an API key.
pub(crate) fn framed(form: FormFrame, key: &ApiKey) -> FormFrame {
    let form = form.about(&key.name).below("API keys", "/keys");
    form.below(&key.name, format!("/keys/{}", key.id))
}
