//! Operations as several pages show them.

use crate::failure::Failure;
use crate::kit::ask::SentFields;
use crate::kit::cell::{Cell, Tone};
use crate::kit::visit::Visit;
use crate::pages::parts::reference::short;
use holdfast_accounts::OperationRecord;
use holdfast_domain::admin::listing::OperationListing;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::{Operation, Phase, Situation, situation};
use holdfast_domain::{Micros, OperationId};

pub(crate) const MODEL: &str = "model";

/// Head of a table of operations.
pub(crate) const HEAD: [&str; 7] =
    ["Operation", "Began", "State", "Model", "Charge", "API key", "Wallet"];

/// The model that a filter names.
pub(crate) fn read_model(query: &SentFields) -> Result<Option<PublicModelId>, Failure> {
    let bad = |_bad| Failure::field(MODEL, "A model is publisher/name, like acme/large.");
    query.get(MODEL).map(PublicModelId::try_from).transpose().map_err(bad)
}

/// Row of a list.
pub(crate) fn row(listing: &OperationListing) -> Vec<Cell> {
    let operation = &listing.operation;
    let situation = situation(operation, listing.lease.as_ref(), listing.now);
    cells((operation, situation), listing.api_key_name.as_deref(), operation.phase.charge())
}

pub(crate) fn cells(
    (operation, situation): (&Operation, Situation),
    api_key: Option<&str>,
    amount: Option<Micros>,
) -> Vec<Cell> {
    let currency = operation.price.currency;
    let api_key = api_key.map_or_else(|| short(operation.api_key), str::to_owned);
    vec![
        Cell::link(short(operation.id), format!("/operations/{}", operation.id)),
        Cell::moment(operation.created_at),
        state(operation, situation),
        Cell::text(operation.model.as_str()),
        amount.map_or(Cell::Nothing, |amount| Cell::money(amount, currency)),
        Cell::link(api_key, format!("/keys/{}", operation.api_key)),
        Cell::link(short(operation.wallet), format!("/wallets/{}", operation.wallet)),
    ]
}

/// State of an operation, in one word.
pub(crate) fn state(operation: &Operation, situation: Situation) -> Cell {
    match (&operation.phase, situation) {
        (Phase::Completed { .. }, _) => Cell::badge("completed", Tone::Good),
        (Phase::Refused { .. }, _) => Cell::badge("refused", Tone::Warning),
        (Phase::Abandoned { .. }, _) => Cell::badge("abandoned", Tone::Bad),
        (Phase::Open, _) => Cell::badge("not started", Tone::Plain),
        (Phase::Recorded(_), _) | (Phase::Leased, Situation::Stale) => {
            Cell::badge("stuck", Tone::Bad)
        }
        (Phase::Leased, Situation::InProgress | Situation::NotStarted | Situation::Completed) => {
            Cell::badge("running", Tone::Plain)
        }
    }
}

/// The operation whose page or form it is.
pub(crate) async fn opened(visit: &Visit) -> Result<OperationRecord, Failure> {
    let id = OperationId::from(visit.id()?);
    Ok(visit.accounts().operation(visit.principal(), id).await?)
}
