//! `holdfast operation show`, `list`, `held` and `cancel`, and `reconcile` of one, or over the network.
//!
//! An operation is named by its id, or by an API key and the `Idempotency-Key` that it was bound by. Lists follow
//! the cursors of the API up to `--limit`, because a page of a filter may be empty and lead on.
//!
//! None of them ever shows a prompt or an answer.

use anyhow::anyhow;
use clap::ValueEnum as _;
use holdfast_accounts::Reason;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::{Micros, RequestKey};
use holdfast_wire::api::rfc3339;
use serde_json::{Value, json};

use super::context::LocalLedger;
use super::reconcile::{self, ReconciledView};
use super::resource_view::{Paging, ResourceView, given};
use super::{CommandContext, key, wallet};
use crate::admin_client::{ChangeKey, ChangeRequest};
use crate::arguments::read::Rows;
use crate::arguments::value::OperationName;
use crate::arguments::{self, Show};
use crate::failure::{CommandFailure, Refusal, Result};
use crate::output::note;
use crate::table::{Column, Table};
use crate::view::{amount, member, some_amount, some_text, text};

const HELD: ResourceView = ResourceView {
    path: "/held",
    things: "held amounts",
    columns: &[Column::text("currency"), Column::number("held_micros")],
    more: &[],
    paging: Paging::Whole,
};

pub(super) async fn run(context: &CommandContext<'_>, command: arguments::Operation) -> Result {
    match command {
        arguments::Operation::Show(options) => show(context, options).await,
        arguments::Operation::List(filter) => list(context, *filter).await,
        arguments::Operation::Proof { operation } => prove(context, &operation).await,
        arguments::Operation::Held { columns } => {
            HELD.list(context, &[], &Rows { limit: u32::MAX, columns }).await
        }
        arguments::Operation::Cancel { operation, reason, request } => {
            let path = format!("/operations/{}/cancel", operation.operation());
            let body = json!({ "reason": Reason::as_typed(&reason) });
            cancel(context, &ChangeRequest::post(request.or_made(), path, body)).await
        }
        arguments::Operation::Reconcile { operation: None, .. } => match context.local {
            Some(LocalLedger { config, store }) => {
                reconcile::run(context.output, config, store).await
            }
            None => reconcile_all(context).await,
        },
        arguments::Operation::Reconcile { operation: Some(operation), reason, key } => {
            let path = format!("/operations/{}/reconcile", operation.operation());
            let change = ChangeRequest::post(ChangeKey::new(key), path, json!({}));
            reconcile_one(context, &change.because(reason.as_ref())).await
        }
    }
}

async fn prove(context: &CommandContext<'_>, operation: &OperationName) -> Result {
    let path = format!("/operations/{}/proof", operation.operation());
    let found = context.client.get(&path, &[]).await;
    let proof = found.map_err(|error| {
        error.because("the proof was not read; an operation has one once a root covers it")
    })?;
    let root = |name| text(member(&proof, "root"), name);
    let fields = [
        ("operation", text(member(&proof, "proof"), "operation_id")),
        ("root", root("number")),
        ("from", root("from")),
        ("to", root("to")),
        ("leaf", text(member(&proof, "proof"), "index")),
        ("leaves", root("leaves")),
    ];
    context.output.object(&proof, &fields)
}

async fn show(context: &CommandContext<'_>, options: Show) -> Result {
    let name = options.id.uuid();
    let nothing = "the operation was not read";
    let Some(api_key) = &options.api_key else {
        let found = context.client.get(&format!("/operations/{name}"), &[]).await;
        let found = found.map_err(|error| {
            if !error.is("not_found") {
                return error.because(nothing);
            }
            Refusal::failed(
                "not_found",
                format!(
                    "there is no operation {name}: `holdfast operation list` shows them; if it is an \
                     Idempotency-Key, add --api-key with the API key that sent it"
                ),
            )
        })?;
        return context.output.object(&found, &fields(&found));
    };
    let request_key: RequestKey = name.to_string().parse().map_err(|error| {
        CommandFailure::Usage(anyhow!(
            "{name} is {error}, so no Idempotency-Key: an operation id and a completion id go without \
             --api-key"
        ))
    })?;
    let api_key = key::find(context, api_key).await?;
    let (id, request_key) = (text(&api_key, "id"), request_key.to_string());
    let query = [("api_key_id", id.as_str()), ("request_key", request_key.as_str())];
    let found = context.client.get("/operations", &query).await;
    let found = found.map_err(|error| error.because(nothing))?;
    match member(&found, "data").get(0) {
        Some(found) => context.output.object(found, &fields(found)),
        None => Err(Refusal::failed(
            "not_found",
            format!(
                "the Idempotency-Key {request_key} is not bound for the API key {}: no request ran \
                or was charged under it",
                text(&api_key, "name")
            ),
        )),
    }
}

/// Requests the end of a running operation, and shows its state after that.
async fn cancel(context: &CommandContext<'_>, change: &ChangeRequest) -> Result {
    let done = context.change("nothing was cancelled", change).await?.thing;
    context.output.object(&done, &fields(&done))?;
    if *member(&done, "cancel_asked") == true {
        note("its owner ends it: the received part is kept and charged");
    } else if *member(&done, "status") == "abandoned" {
        note("it has ended without a charge: its key never runs again");
    } else {
        note("it does not run any more: no cancel was requested");
    }
    Ok(())
}

async fn list(context: &CommandContext<'_>, filter: arguments::OperationFilter) -> Result {
    let arguments::OperationFilter { stale, running, rows: Rows { limit, columns }, .. } = filter;
    let table = Table::new(context.output, &columns, &COLUMNS)?;
    let scope = if stale { Some("stale") } else { running.then_some("running") };
    let status =
        filter.status.and_then(|status| Some(status.to_possible_value()?.get_name().to_owned()));
    let micros = |amount: Option<Micros>| amount.map(|amount| amount.get().to_string());
    let Period { from, to } = filter.created.period()?;
    let query = [
        ("scope", scope.map(str::to_owned)),
        ("wallet_id", wallet::id_of(context, filter.wallet.as_ref()).await?),
        ("api_key_id", key::id_of(context, filter.key.as_ref()).await?),
        ("model", filter.model),
        ("status", status),
        ("charge_from_micros", micros(filter.charge_from)),
        ("charge_to_micros", micros(filter.charge_to)),
        ("created_from", from.map(rfc3339)),
        ("created_to", to.map(rfc3339)),
    ];
    let count = usize::try_from(limit).unwrap_or(usize::MAX);
    let listed = context.client.list("/operations", &given(&query), Some(count)).await;
    let listed = listed.map_err(|error| error.because("operations were not listed"))?;
    table.print(&listed.rows, &listed.rows, cell)?;
    if listed.is_cut {
        note(&format!("only the newest {limit} are shown: there are more, --limit N shows N"));
    }
    Ok(())
}

/// Reconciles stale operations, one by one. A server on the database does so by itself: this is for an operator who
/// cannot wait.
async fn reconcile_all(context: &CommandContext<'_>) -> Result {
    let nothing = "the operation was not reconciled";
    let listed = context.client.list("/operations", &[("scope", "stale")], None).await;
    let stale = listed.map_err(|error| error.because("operations were not listed"))?.rows;
    let mut views = Vec::with_capacity(stale.len());
    for operation in &stale {
        let path = format!("/operations/{}/reconcile", text(operation, "id"));
        // A key for each operation: they are acts of their own in the audit log, and one that fails
        // leaves the others done.
        let change = ChangeRequest::post(ChangeKey::new(None), path, json!({}));
        let done = context.change(nothing, &change).await?.thing;
        let status = text(&done, "status");
        views.push(ReconciledView {
            operation_id: text(&done, "id"),
            at_rest: !matches!(status.as_str(), "leased" | "recorded"),
            status,
        });
    }
    reconcile::print(context.output, &views)
}

/// Reconciles one operation, and shows its state after that.
async fn reconcile_one(context: &CommandContext<'_>, change: &ChangeRequest) -> Result {
    let done = context.change("the operation was not reconciled", change).await?;
    context.output.object(&done.thing, &fields(&done.thing))?;
    if matches!(member(&done.thing, "status").as_str(), Some("leased" | "recorded")) {
        note("it is not at rest: its owner may be alive, or the rules do not allow it yet");
    }
    Ok(())
}

const COLUMNS: [Column; 10] = [
    Column::id("id"),
    Column::moment("created_at").second(),
    Column::text("situation").third(),
    Column::text("status"),
    Column::text("api_key"),
    Column::text("model").second(),
    Column::text("currency").second(),
    Column::number("hold_micros").third(),
    Column::number("charge_micros"),
    Column::text("node").third(),
];

fn cell(operation: &Value, name: &'static str) -> String {
    match name {
        "api_key" => {
            some_text(operation, "api_key_name").unwrap_or_else(|| text(operation, "api_key_id"))
        }
        "hold_micros" | "charge_micros" => amount(operation, name),
        name => text(operation, name),
    }
}

/// Fields of one operation for people: the members of its view, as names and texts.
fn fields(operation: &Value) -> Vec<(&str, String)> {
    const NAMES: [&str; 21] = [
        "id",
        "idempotency_key",
        "api_key_id",
        "wallet_id",
        "situation",
        "status",
        "model",
        "contract",
        "price_version",
        "generation",
        "hold_id",
        "usage_id",
        "hold",
        // What the caller pays; unknown as long as it runs.
        "charge",
        "shortfall",
        "refunded",
        "provider_cost",
        "meters_source",
        "node",
        "created_at",
        "finished_at",
    ];
    let currency = text(operation, "currency");
    let field = |name: &'static str| {
        let amount = some_amount(operation, &format!("{name}_micros"));
        let amount = amount.map(|amount| format!("{amount} {currency}"));
        (name, amount.unwrap_or_else(|| text(operation, name)))
    };
    let mut fields: Vec<(&str, String)> = NAMES.into_iter().map(field).collect();
    let meters = member(operation, "meters").as_object().into_iter().flatten();
    let counted = meters.filter(|(_, count)| count.as_u64() != Some(0));
    fields.extend(counted.map(|(kind, count)| (kind.as_str(), count.to_string())));
    let reasons = member(operation, "usage_reasons").as_array().into_iter().flatten();
    fields.extend(reasons.filter_map(Value::as_str).map(|it| ("usage_reason", it.to_owned())));
    let lines = member(operation, "price_lines").as_array().into_iter().flatten();
    fields.extend(lines.map(|line| ("price", price_line(line, &currency))));
    let attempts = member(operation, "attempts").as_array().into_iter().flatten();
    fields.extend(attempts.map(|attempt| ("attempt", spell(attempt))));
    fields
}

/// A line of the charge, such as `20 input at 1.000000 USD for 1000000`.
fn price_line(line: &Value, currency: &str) -> String {
    let [units, kind, per] = ["units", "kind", "per_units"].map(|it| text(line, it));
    format!("{units} {kind} at {} {currency} for {per}", amount(line, "price_micros"))
}

fn spell(attempt: &Value) -> String {
    let [route, class, latency] = ["route", "class", "latency_ms"].map(|it| text(attempt, it));
    let billed =
        if *member(attempt, "may_be_billed") == true { "may be billed" } else { "not billed" };
    let why = some_text(attempt, "reason").map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{route}: {class} after {latency} ms, {billed}{why}")
}
