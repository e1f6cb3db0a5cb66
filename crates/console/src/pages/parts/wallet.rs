//! Wallets as several pages show them.

use crate::failure::Failure;
use crate::kit::form::FormFrame;
use crate::kit::{Cell, Tone, Visit};
use holdfast_accounts::Reference;
use holdfast_domain::Micros;
use holdfast_domain::admin::WalletRecord;

/// The wallet whose page or form it is.
pub(crate) async fn opened(visit: &Visit) -> Result<WalletRecord, Failure> {
    Ok(visit.accounts().wallet(visit.principal(), &Reference::Id(visit.id()?)).await?)
}

/// A form about a wallet.
pub(crate) fn framed(form: FormFrame, record: &WalletRecord) -> FormFrame {
    let wallet = &record.wallet;
    let form = form.about(&wallet.name).below("Wallets", "/wallets");
    form.below(&wallet.name, format!("/wallets/{}", wallet.id))
}

/// State of a wallet.
pub(crate) fn state(record: &WalletRecord) -> Cell {
    match (record.closed_at, record.wallet.suspended_at) {
        (Some(_), _) => Cell::badge("closed", Tone::Plain),
        (None, Some(_)) => Cell::badge("suspended", Tone::Bad),
        (None, None) if record.wallet.available <= Micros::ZERO => Cell::badge("empty", Tone::Bad),
        (None, None) if record.runs_low() => Cell::badge("runs low", Tone::Warning),
        (None, None) => Cell::badge("active", Tone::Good),
    }
}
