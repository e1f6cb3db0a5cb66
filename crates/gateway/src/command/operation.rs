//! `holdfast operation show` and `list`. Neither ever shows what was asked or answered.

use anyhow::{Context, anyhow};
use holdfast_domain::operation::{Attempt, Operation, Situation, situation};
use holdfast_domain::{Journal, OperationId, RequestKey};
use holdfast_store::Store;
use holdfast_store::report::{Filter, Scope};
use holdfast_wire::api::{OperationView, rfc3339};

use super::key;
use crate::cli::Show;
use crate::failure::Failure;
use crate::output::Output;

pub(super) async fn show(output: Output, store: &Store, show: Show) -> Result<(), Failure> {
    let id = match &show.api_key {
        None => show.id.operation(),
        Some(api_key) => {
            let request_key: RequestKey = show.id.uuid().to_string().parse().map_err(|error| {
                Failure::Usage(anyhow!("{} is {error}, so no Idempotency-Key", show.id.uuid()))
            })?;
            OperationId::of(key::find(store, api_key).await?.id, request_key)
        }
    };
    let snapshot = store.load(id).await.context("the operation was not read")?;
    let Some(operation) = snapshot.operation else {
        return Err(Failure::Failed(anyhow!("there is no operation {id}")));
    };
    let situation = situation(&operation, snapshot.lease.as_ref(), snapshot.now);
    let view = OperationView::of(&operation, situation).for_operator(&operation);
    output.object(&view, &fields(&operation, situation))
}

pub(super) async fn list(
    output: Output,
    store: &Store,
    stale: bool,
    limit: u32,
) -> Result<(), Failure> {
    let scope = if stale { Scope::Stale } else { Scope::All };
    let filter = Filter { scope, limit };
    let listed = store.operations(&filter).await.context("operations were not listed")?;
    let situated: Vec<_> = listed
        .iter()
        .map(|listed| {
            let situation = situation(&listed.operation, listed.lease.as_ref(), listed.now);
            (&listed.operation, situation)
        })
        .collect();
    let views: Vec<_> = situated
        .iter()
        .map(|(operation, situation)| {
            OperationView::of(operation, *situation).for_operator(operation)
        })
        .collect();
    let rows: Vec<_> =
        situated.iter().map(|(operation, situation)| row(operation, *situation)).collect();
    let head = ["id", "created_at", "situation", "status", "model", "hold", "charge", "node"];
    output.list(&views, head, &rows)
}

fn row(operation: &Operation, situation: Situation) -> [String; 8] {
    [
        operation.id.to_string(),
        rfc3339(operation.created_at),
        situation.label().to_owned(),
        operation.phase.label().to_owned(),
        operation.model.to_string(),
        operation.hold.to_string(),
        charge(operation),
        operation.owner.node.name.to_string(),
    ]
}

fn fields(operation: &Operation, situation: Situation) -> Vec<(&'static str, String)> {
    let usage = operation.phase.usage();
    let dash = || "-".to_owned();
    let mut fields = vec![
        ("id", operation.id.to_string()),
        ("idempotency_key", operation.request_key.to_string()),
        ("api_key_id", operation.api_key.to_string()),
        ("wallet_id", operation.wallet.to_string()),
        ("situation", situation.label().to_owned()),
        ("status", operation.phase.label().to_owned()),
        ("model", operation.model.to_string()),
        ("price_version", operation.price.id.to_string()),
        ("generation", operation.generation.to_string()),
        ("hold", format!("{} {}", operation.hold, operation.price.currency)),
        ("charge", charge(operation)),
        ("shortfall", usage.map_or_else(dash, |usage| usage.shortfall.to_string())),
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

/// What the caller pays; unknown as long as it runs.
fn charge(operation: &Operation) -> String {
    operation.phase.charge().map_or_else(|| "-".to_owned(), |charge| charge.to_string())
}

fn spell(attempt: &Attempt) -> String {
    let Attempt { route, class, latency, may_be_billed } = attempt;
    let billed = if *may_be_billed { "may be billed" } else { "not billed" };
    format!("{route}: {class} after {} ms, {billed}", latency.as_millis())
}
