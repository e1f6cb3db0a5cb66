//! Operations as several pages show them.

use crate::failure::{Failure, FieldRefusal};
use crate::kit::{
    Cell, FieldKind, FormField, Link, SentFields, Table, Tone, Visit, grouped, with_query,
};
use crate::pages::parts::reference::Names;
use crate::pages::parts::usage::{COMPLETION, PROMPT};
use holdfast_accounts::OperationRecord;
use holdfast_domain::admin::listing::{OperationFilter, OperationListing, Order, PageRequest};
use holdfast_domain::admin::{ResourceId, UseCase};
use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::{Operation, OperationStatus, Phase, Situation, situation};
use holdfast_domain::{Micros, OperationId, WalletId};

pub(crate) const MODEL: &str = "model";
pub(crate) const ROUTE: &str = "route";

/// Rows of the newest requests on other pages.
const LATEST: PageRequest = PageRequest::first(Order::Newest, 10);

/// Head of a table of operations.
pub(crate) const HEAD: [&str; 8] =
    ["Began", "Wallet", "API key", "Model", "State", "Tokens in / out", "Duration", "Charge"];

/// Column of the wallet.
const WALLET: usize = 1;

/// Field of a filter that names a model, with those that are served now.
pub(crate) fn model_field(visit: &Visit) -> Result<FormField, Failure> {
    let field = FormField::sought(MODEL, "Model", FieldKind::Text, &visit.query);
    if !visit.may(UseCase::ModelRead) {
        return Ok(field);
    }
    let offered = visit.accounts().models(visit.principal())?;
    Ok(field.suggesting(offered.models.iter().map(|it| it.contract.model.to_string())))
}

/// Field of a filter that names a route, with those that are served now.
pub(crate) fn route_field(visit: &Visit) -> Result<FormField, Failure> {
    let field = FormField::sought(ROUTE, "Route", FieldKind::Text, &visit.query);
    let offered = visit.accounts().models(visit.principal())?;
    let routes = offered.models.iter().flat_map(|it| &it.routes);
    Ok(field.suggesting(routes.map(|route| route.name.clone())))
}

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

/// Newest requests of a wallet, or of the only one within reach, without a column for it.
pub(crate) async fn latest(
    visit: &Visit,
    wallet: Option<WalletId>,
    empty: &str,
) -> Result<Table, Failure> {
    let filter = OperationFilter { wallet, ..OperationFilter::default() };
    let page = visit.accounts().operations(visit.principal(), filter, LATEST).await?;
    let rows = rows(visit, &page.rows, charge).await?;
    let wallet = wallet.map(|id| id.to_string());
    let all = with_query("/operations", &[("wallet", wallet.as_deref())]);
    let table = Table::new("Latest requests", &HEAD, rows, empty).column_if(false, WALLET);
    let table = table.keep(&["API key", "State"]);
    Ok(table.link(Link::new("All requests", all)))
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
    let text = |milliseconds: i128| format!("{} ms", grouped(&milliseconds.to_string()));
    milliseconds(operation).map_or(Cell::Nothing, |it| Cell::Number(text(it)))
}

/// Milliseconds of that time.
pub(crate) fn milliseconds(operation: &Operation) -> Option<i128> {
    let end = operation.phase.finished_at()?;
    i128::try_from(end.since(operation.admitted_at).as_millis()).ok()
}

/// Charge of an operation that has one.
pub(crate) const fn charge(operation: &Operation) -> Option<Micros> {
    operation.phase.charge()
}

/// Word for a status. The column *State* calls a recorded operation and a leased one without a live owner *stuck*, which
/// is a scope of the list and not a status.
pub(crate) const fn status_word(status: OperationStatus) -> &'static str {
    match status {
        OperationStatus::Leased => "running",
        OperationStatus::Recorded => "charge pending",
        OperationStatus::Open => "not started",
        OperationStatus::Completed => "completed",
        OperationStatus::Refused => "refused",
        OperationStatus::Abandoned => "outcome unknown",
    }
}

/// State of an operation, in one word.
pub(crate) fn state(operation: &Operation, situation: Situation) -> Cell {
    match (&operation.phase, situation) {
        (Phase::Completed { .. }, _) => Cell::badge("completed", Tone::Good),
        (Phase::Refused { .. }, _) => Cell::badge("refused", Tone::Warning),
        (Phase::Abandoned { .. }, _) => Cell::badge("outcome unknown", Tone::Bad),
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
