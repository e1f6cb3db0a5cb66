//! `holdfast operation show` and `list`. Neither ever shows what was asked or answered.

use anyhow::{Context, anyhow};
use holdfast_accounts::{OperationRecord, Reason};
use holdfast_config::Config;
use holdfast_domain::listing::{OperationFilter, OperationListing, Order, Scope};
use holdfast_domain::operation::{Attempt, Operation, Situation, situation};
use holdfast_domain::{Directory as _, Journal, Micros, OperationId, RequestKey};
use holdfast_store::Store;
use holdfast_wire::api::{OperationView, rfc3339};

use super::key;
use super::pages;
use crate::accounts::{LocalAccounts, Undone, request};
use crate::cli::Show;
use crate::failure::CommandFailure;
use crate::output::{Output, note};

pub(super) async fn show(output: Output, store: &Store, show: Show) -> Result<(), CommandFailure> {
    let name = show.id.uuid();
    let (id, otherwise) = match &show.api_key {
        None => (
            show.id.operation(),
            format!(
                "there is no operation {name}: `holdfast operation list` shows them; if it is an \
                 Idempotency-Key, add --api-key with the API key that sent it"
            ),
        ),
        Some(api_key) => {
            let request_key: RequestKey = name.to_string().parse().map_err(|error| {
                CommandFailure::Usage(anyhow!(
                    "{name} is {error}, so no Idempotency-Key: an operation id and a completion id go \
                     without --api-key"
                ))
            })?;
            let api_key = key::find(store, api_key).await?;
            let otherwise = format!(
                "the Idempotency-Key {request_key} is bound to nothing for the API key {}: with it \
                 nothing has run and nothing was charged",
                api_key.name
            );
            (OperationId::of(api_key.id, request_key), otherwise)
        }
    };
    let snapshot = store.load(id).await.context("the operation was not read")?;
    let Some(operation) = snapshot.operation else {
        return Err(CommandFailure::Failed(anyhow!(otherwise)));
    };
    let refunded = store.refunded(id).await.context("the refunds were not read")?;
    let situation = situation(&operation, snapshot.lease.as_ref(), snapshot.now);
    let view = OperationView::of(&operation, situation).for_operator(&operation, refunded);
    output.object(&view, &fields(&operation, situation, refunded))
}

/// Asks a running operation to end, and shows it as it stands then.
pub(super) async fn cancel(
    output: Output,
    config: &Config,
    store: &Store,
    (id, reason, own): (OperationId, &Reason, crate::cli::RequestKey),
) -> Result<(), CommandFailure> {
    let LocalAccounts { accounts, principal } = LocalAccounts::to_change(config, store).await?;
    let asked = request(own.uuid, &["operation cancel", &id.to_string()], Some(reason));
    let undone = Undone { nothing: "nothing was cancelled", key: asked.key, currency: None };
    let done = accounts.cancel_operation(&principal, &asked, id).await;
    let OperationRecord { operation, situation, refunded } =
        done.map_err(|error| undone.because(error))?.thing;
    let view = OperationView::of(&operation, situation).for_operator(&operation, refunded);
    output.object(&view, &fields(&operation, situation, refunded))?;
    if operation.cancel_asked {
        note("its owner ends it: what has arrived is kept and charged");
    } else {
        note("it does not run any more: nothing was asked of it");
    }
    Ok(())
}

pub(super) async fn list(
    output: Output,
    store: &Store,
    stale: bool,
    limit: u32,
) -> Result<(), CommandFailure> {
    let scope = if stale { Scope::Stale } else { Scope::All };
    let filter = OperationFilter { scope, ..OperationFilter::default() };
    let (mut views, mut rows) = (Vec::new(), Vec::new());
    let add = |OperationListing { operation, api_key_name, refunded, lease, now }| {
        let situation = situation(&operation, lease.as_ref(), now);
        views.push(OperationView::of(&operation, situation).for_operator(&operation, refunded));
        let api_key = api_key_name.unwrap_or_else(|| operation.api_key.to_string());
        rows.push(row(&operation, situation, api_key));
    };
    let page = |request| store.operations(filter.clone(), request);
    let is_cut = pages::read(Order::Newest, limit, page, add).await;
    let is_cut = is_cut.context("operations were not listed")?;
    output.list(&views, COLUMNS, &rows)?;
    if is_cut {
        note(&format!("only the newest {limit} are shown: there are more, --limit N shows N"));
    }
    Ok(())
}

const COLUMNS: [&str; 10] = [
    "id",
    "created_at",
    "situation",
    "status",
    "api_key",
    "model",
    "currency",
    "hold",
    "charge",
    "node",
];

fn row(operation: &Operation, situation: Situation, api_key: String) -> [String; COLUMNS.len()] {
    let charge = operation.phase.charge();
    [
        operation.id.to_string(),
        rfc3339(operation.created_at),
        situation.label().to_owned(),
        operation.phase.label().to_owned(),
        api_key,
        operation.model.to_string(),
        operation.price.currency.to_string(),
        operation.hold.to_string(),
        charge.map_or_else(|| "-".to_owned(), |charge| charge.to_string()),
        operation.owner.node.name.to_string(),
    ]
}

/// Fields of one operation for people: those of [`OperationView`], as names and texts.
fn fields(
    operation: &Operation,
    situation: Situation,
    refunded: Micros,
) -> Vec<(&'static str, String)> {
    let usage = operation.phase.usage();
    let dash = || "-".to_owned();
    let currency = operation.price.currency;
    let amount = |amount: Option<Micros>| match amount {
        Some(amount) => format!("{amount} {currency}"),
        None => "-".to_owned(),
    };
    let charge = operation.phase.charge();
    let mut fields = vec![
        ("id", operation.id.to_string()),
        ("idempotency_key", operation.request_key.to_string()),
        ("api_key_id", operation.api_key.to_string()),
        ("wallet_id", operation.wallet.to_string()),
        ("situation", situation.label().to_owned()),
        ("status", operation.phase.label().to_owned()),
        ("model", operation.model.to_string()),
        ("contract", operation.binding.terms.contract.to_string()),
        ("price_version", operation.price.id.to_string()),
        ("generation", operation.generation.to_string()),
        ("hold_id", operation.id.hold(operation.generation).to_string()),
        ("usage_id", usage.map_or_else(dash, |_recorded| operation.id.usage().to_string())),
        ("hold", amount(Some(operation.hold))),
        // What the caller pays; unknown as long as it runs.
        ("charge", amount(charge)),
        ("shortfall", amount(usage.map(|usage| usage.shortfall).or(charge))),
        ("refunded", amount(Some(refunded))),
        ("provider_cost", amount(usage.and_then(|usage| usage.metered.provider_cost))),
        ("meters_source", usage.map_or_else(dash, |u| u.metered.source.label().to_owned())),
        ("node", operation.owner.node.name.to_string()),
        ("created_at", rfc3339(operation.created_at)),
        ("finished_at", operation.phase.finished_at().map_or_else(dash, rfc3339)),
    ];
    if let Some(usage) = usage {
        let counted = usage.metered.meters.iter().filter(|(_, count)| *count > 0);
        fields.extend(counted.map(|(kind, count)| (kind.label(), count.to_string())));
    }
    fields.extend(operation.attempts.iter().map(|attempt| ("attempt", spell(attempt))));
    fields
}

fn spell(attempt: &Attempt) -> String {
    let Attempt { route, class, latency, may_be_billed, reason } = attempt;
    let billed = if *may_be_billed { "may be billed" } else { "not billed" };
    let why = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{route}: {class} after {} ms, {billed}{why}", latency.as_millis())
}
