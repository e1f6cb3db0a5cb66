//! Operations as several pages show them.

use crate::failure::{Failure, FieldRefusal};
use crate::kit::cell::{Cell, Tone, grouped};
use crate::kit::input::SentFields;
use crate::kit::visit::Visit;
use crate::pages::parts::reference::Names;
use crate::pages::parts::usage::{COMPLETION, PROMPT};
use holdfast_accounts::OperationRecord;
use holdfast_domain::admin::ResourceId;
use holdfast_domain::admin::listing::OperationListing;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::{Operation, Phase, Situation, situation};
use holdfast_domain::{Micros, OperationId};

pub(crate) const MODEL: &str = "model";

/// Head of a table of operations.
pub(crate) const HEAD: [&str; 8] =
    ["Began", "Wallet", "API key", "Model", "State", "Tokens in / out", "Duration", "Charge"];

/// The model that a filter names.
pub(crate) fn read_model(query: &SentFields) -> Result<Option<PublicModelId>, Failure> {
    let bad = |_bad| Failure::field(MODEL, FieldRefusal::NotAModel);
    query.get(MODEL).map(PublicModelId::try_from).transpose().map_err(bad)
}

/// Rows of a list, with this amount of each.
pub(crate) async fn rows(
    visit: &Visit,
    listings: &[OperationListing],
    amount: fn(&Operation) -> Option<Micros>,
) -> Result<Vec<Vec<Cell>>, Failure> {
    let wallets = listings.iter().map(|it| ResourceId::Wallet(it.operation.wallet));
    let mut names = Names::read(visit, wallets).await?;
    for listing in listings {
        let api_key = ResourceId::ApiKey(listing.operation.api_key);
        names.insert(api_key, listing.api_key_name.as_deref());
    }
    let row = |OperationListing { operation, lease, now, .. }: &OperationListing| {
        let situation = situation(operation, lease.as_ref(), *now);
        row((operation, situation), amount(operation), &names)
    };
    Ok(listings.iter().map(row).collect())
}

/// Row of one operation under [`HEAD`].
pub(crate) fn row(
    (operation, situation): (&Operation, Situation),
    amount: Option<Micros>,
    names: &Names<'_>,
) -> Vec<Cell> {
    let currency = operation.price.currency;
    vec![
        Cell::moment_link(operation.created_at, format!("/operations/{}", operation.id)),
        names.link(ResourceId::Wallet(operation.wallet)),
        names.link(ResourceId::ApiKey(operation.api_key)),
        Cell::text(operation.model.as_str()),
        state(operation, situation),
        tokens(operation),
        duration(operation),
        amount.map_or(Cell::Nothing, |amount| Cell::money(amount, currency)),
    ]
}

/// Tokens of the prompt and of the completion, once they are metered.
fn tokens(operation: &Operation) -> Cell {
    let Some(usage) = operation.phase.usage() else { return Cell::Nothing };
    let meters = &usage.metered.meters;
    let [prompt, completion] = [&PROMPT[..], &COMPLETION].map(|kinds| {
        kinds.iter().fold(0_u64, |sum, kind| sum.saturating_add(meters.count(*kind))).to_string()
    });
    Cell::Number(format!("{} / {}", grouped(&prompt), grouped(&completion)))
}

/// Time from the admission of the last run to its end.
fn duration(operation: &Operation) -> Cell {
    operation.phase.finished_at().map_or(Cell::Nothing, |end| {
        let milliseconds = end.since(operation.admitted_at).as_millis().to_string();
        Cell::Number(format!("{} ms", grouped(&milliseconds)))
    })
}

/// Charge of an operation that has one.
pub(crate) const fn charge(operation: &Operation) -> Option<Micros> {
    operation.phase.charge()
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
