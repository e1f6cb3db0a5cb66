//! Commands that only read resources which the API lists and shows.
//!
//! Each resource is a declaration ([`ResourceView`]): its path, its columns, and the members of a single one. A new
//! column is a line there; the names of columns are an interface, because scripts choose them with `--columns`.
//!
//! No value is computed here, and none is hidden: the API decides what a role sees, and `--json` prints its rows
//! unchanged.

use holdfast_domain::admin::listing::Period;
use holdfast_wire::api::rfc3339;
use serde_json::{Value, json};

use super::resource_view::{Paging, ResourceView};
use super::{CommandContext, key, verify, wallet};
use crate::arguments::Read;
use crate::arguments::read::{
    Audit, EventCommand, JobCommand, Model, NodeCommand, Posting, PostingKind, PriceCommand,
    RefusalCommand, RefusalFilter, RouteCommand,
};
use crate::failure::Result;
use crate::output::note;
use crate::table::Column;
use crate::view::{member, text};

const POSTINGS: ResourceView = ResourceView {
    path: "/deposits",
    things: "postings",
    columns: &[
        Column::id("id").third(),
        Column::moment("created_at"),
        Column::text("wallet_id"),
        Column::number("amount_micros"),
        Column::text("operation_id").third(),
        Column::text("source"),
        Column::text("external_reference"),
        Column::text("reason").second(),
        Column::text("note").second(),
        Column::text("actor").third(),
    ],
    more: &[],
    paging: Paging::Pages,
};

const EVENTS: ResourceView = ResourceView {
    path: "/events",
    things: "events",
    columns: &[
        Column::id("id").second(),
        Column::moment("created_at"),
        Column::text("kind"),
        Column::text("wallet_id"),
        Column::text("data").third(),
    ],
    more: &[],
    paging: Paging::Pages,
};

const REFUSALS: ResourceView = ResourceView {
    path: "/refusals",
    things: "refused requests",
    columns: &[
        Column::moment("refused_at"),
        Column::text("code"),
        Column::number("status").second(),
        Column::text("model").second(),
        Column::number("wanted_micros"),
        Column::number("available_micros"),
        Column::text("api_key_id").third(),
        Column::text("wallet_id").third(),
        Column::id("request_id"),
    ],
    more: &[],
    paging: Paging::Pages,
};

const REFUSAL_HOURS: ResourceView = ResourceView {
    path: "/refusals/hours",
    things: "hours of refused requests",
    columns: &[Column::moment("hour"), Column::text("code"), Column::number("count")],
    more: &[],
    paging: Paging::Whole,
};

const JOBS: ResourceView = ResourceView {
    path: "/jobs",
    things: "jobs",
    columns: &[
        Column::id("id").second(),
        Column::text("kind"),
        Column::text("state"),
        Column::number("done"),
        Column::number("of"),
        Column::text("ok"),
        Column::moment("created_at"),
        Column::moment("finished_at").second(),
        Column::text("node").third(),
    ],
    more: &[Column::text("since"), Column::moment("started_at")],
    paging: Paging::Pages,
};

/// Findings of a verification, as fields of its job.
const REPORT: ResourceView = ResourceView {
    path: "/jobs",
    things: "jobs",
    columns: &[
        Column::number("wallets"),
        Column::number("operations"),
        Column::number("transfers"),
        Column::number("unlisted"),
    ],
    more: &[],
    paging: Paging::Pages,
};

const TRAIL: ResourceView = ResourceView {
    path: "/audit",
    things: "rows of the audit log",
    columns: &[
        Column::number("seq"),
        Column::moment("at"),
        Column::text("actor"),
        Column::text("use_case"),
        Column::text("thing").second(),
        Column::text("changes").third(),
        Column::text("reason").second(),
        Column::text("head").third(),
    ],
    more: &[],
    paging: Paging::Pages,
};

const MODELS: ResourceView = ResourceView {
    path: "/models",
    things: "models",
    columns: &[
        Column::text("id"),
        Column::text("contract").third(),
        Column::number("context_tokens"),
        Column::number("max_output_tokens"),
        Column::text("routes").second(),
    ],
    more: &[],
    paging: Paging::Whole,
};

const PRICES: ResourceView = ResourceView {
    path: "/prices",
    things: "prices",
    columns: &[
        Column::id("price_version").third(),
        Column::text("model"),
        Column::text("currency"),
        Column::moment("effective_from"),
        Column::text("micros_per_million").second(),
        Column::text("micros_each").second(),
        Column::text("tiers").third(),
    ],
    more: &[],
    paging: Paging::Whole,
};

const NODES: ResourceView = ResourceView {
    path: "/nodes",
    things: "nodes",
    columns: &[
        Column::text("name"),
        Column::text("is_alive"),
        Column::moment("lease_ends_at"),
        Column::text("address").second(),
        Column::text("settings").third(),
        Column::text("settings_differ"),
        Column::text("durability"),
        Column::text("incarnation").third(),
    ],
    more: &[],
    paging: Paging::Whole,
};

const ROUTES: ResourceView = ResourceView {
    path: "/routes",
    things: "routes",
    columns: &[
        Column::text("name"),
        Column::number("attempts"),
        Column::number("failed_per_mille"),
        Column::number("p50_ms"),
        Column::number("p95_ms"),
        Column::number("first_token_p50_ms").third(),
        Column::number("first_token_p95_ms").third(),
        Column::moment("failing_since"),
        Column::text("last_error").second(),
        Column::moment("last_error_at").third(),
        Column::text("breakers").second(),
    ],
    more: &[Column::number("failed"), Column::number("refused"), Column::text("is_served")],
    paging: Paging::Whole,
};

pub(super) async fn run(context: &CommandContext<'_>, command: Read) -> Result {
    match command {
        Read::Posting(Posting::List { kind, wallet, rows }) => {
            let path = match kind {
                PostingKind::Deposit => "/deposits",
                PostingKind::Adjustment => "/adjustments",
                PostingKind::Refund => "/refunds",
            };
            let wallet = wallet::id_of(context, wallet.as_ref()).await?;
            POSTINGS.list_at(context, path, &[("wallet_id", wallet)], &rows).await.map(drop)
        }
        Read::Event(EventCommand::List { wallet, kind, rows }) => {
            let wallet = wallet::id_of(context, wallet.as_ref()).await?;
            EVENTS.list(context, &[("wallet_id", wallet), ("kind", kind)], &rows).await
        }
        Read::Event(EventCommand::Show { id }) => EVENTS.show(context, id).await,
        Read::Refusal(RefusalCommand::List { request_id, filter, rows }) => {
            let [wallet, key, code, from, to] = refusals(context, filter).await?;
            let id = ("request_id", request_id.map(|id| id.to_string()));
            REFUSALS.list(context, &[id, wallet, key, code, from, to], &rows).await
        }
        Read::Refusal(RefusalCommand::Hours { filter, rows }) => {
            REFUSAL_HOURS.list(context, &refusals(context, filter).await?, &rows).await
        }
        Read::Job(JobCommand::List { rows }) => JOBS.list(context, &[], &rows).await,
        Read::Job(JobCommand::Show { id }) => {
            let found = context.client.get(&format!("/jobs/{id}"), &[]).await;
            let job = found.map_err(|error| error.because("the job was not found"))?;
            let mut fields = JOBS.fields(&job);
            let report = member(&job, "report");
            fields.extend(REPORT.fields(report));
            fields.extend(verify::mismatches(report).map(|it| ("mismatch", it.text)));
            context.output.object(&job, &fields)
        }
        Read::Job(JobCommand::Cancel { id, why }) => {
            let change = why.post(format!("/jobs/{id}/cancel"), json!({}));
            let done = context.change("the job was not cancelled", &change).await?;
            context.output.object(&done.thing, &JOBS.fields(&done.thing))
        }
        Read::Audit(Audit::List { thing, actor, use_case, rows }) => {
            let query = [("thing", thing), ("actor", actor), ("use_case", use_case)];
            TRAIL.list(context, &query, &rows).await
        }
        Read::Model(Model::List { rows }) => {
            MODELS.list(context, &[], &rows).await?;
            if context.local.is_some() {
                note("from the configuration: a server also reports the health of its routes");
            }
            Ok(())
        }
        Read::Price(PriceCommand::List { model, currency, rows }) => {
            PRICES.list(context, &[("model", model), ("currency", currency)], &rows).await
        }
        Read::Node(NodeCommand::List { rows }) => {
            let nodes = NODES.list_at(context, NODES.path, &[], &rows).await?;
            let differ = |node: &&Value| *member(node, "settings_differ") == true;
            let names: Vec<_> = nodes.iter().filter(differ).map(|it| text(it, "name")).collect();
            if !names.is_empty() {
                note(&format!(
                    "warning: the settings of {} differ: give every node the same file, and reload it",
                    names.join(", ")
                ));
            }
            Ok(())
        }
        Read::Route(RouteCommand::List { rows }) => ROUTES.list(context, &[], &rows).await,
        Read::Route(RouteCommand::Show { name }) => show_route(context, &name).await,
    }
}

/// Query of a filter of refused requests.
async fn refusals(
    context: &CommandContext<'_>,
    RefusalFilter { wallet, key, code, period }: RefusalFilter,
) -> Result<[(&'static str, Option<String>); 5]> {
    let Period { from, to } = period.period()?;
    Ok([
        ("wallet_id", wallet::id_of(context, wallet.as_ref()).await?),
        ("api_key_id", key::id_of(context, key.as_ref()).await?),
        ("code", code),
        ("from", from.map(rfc3339)),
        ("to", to.map(rfc3339)),
    ])
}

/// Shows a route, and a line for each of its last failures.
async fn show_route(context: &CommandContext<'_>, name: &str) -> Result {
    let found = context.client.get("/routes/history", &[("route", name)]).await;
    let history = found.map_err(|error| error.because("the route was not found"))?;
    let mut fields = ROUTES.fields(member(&history, "route"));
    for failure in member(&history, "failures").as_array().into_iter().flatten() {
        let parts = ["at", "model", "class", "error"].map(|part| text(failure, part));
        fields.push(("failure", parts.join("  ")));
    }
    context.output.object(&history, &fields)
}
