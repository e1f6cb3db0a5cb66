//! Wallets as several pages show them.

use crate::failure::Failure;
use crate::kit::cell::{Cell, Tone};
use crate::kit::isolation::isolated;
use crate::kit::page::Page;
use crate::kit::visit::Visit;
use holdfast_accounts::Reference;
use holdfast_domain::admin::WalletRecord;

/// The wallet whose page or form it is.
pub(crate) async fn opened(visit: &Visit) -> Result<WalletRecord, Failure> {
    Ok(visit.accounts().wallet(visit.principal(), &Reference::Id(visit.id()?)).await?)
}

/// The page of a form about a wallet.
pub(crate) fn form_page(title: &str, record: &WalletRecord) -> Page {
    let wallet = &record.wallet;
    Page::new(format!("{title} {}", isolated(&wallet.name)))
        .below("Wallets", "/wallets")
        .below(&wallet.name, format!("/wallets/{}", wallet.id))
}

/// State of a wallet.
pub(crate) fn state(record: &WalletRecord) -> Cell {
    match (record.closed_at, record.wallet.suspended_at) {
        (Some(_), _) => Cell::badge("closed", Tone::Plain),
        (None, Some(_)) => Cell::badge("suspended", Tone::Bad),
        (None, None) => Cell::badge("active", Tone::Good),
    }
}
