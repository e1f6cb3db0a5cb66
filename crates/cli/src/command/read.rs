//! Commands that only read what the API lists and shows.

use serde_json::{Value, json};

use super::sheet::{Paging, Sheet};
use super::{Desk, wallet};
use crate::arguments::Read;
use crate::arguments::read::{
    Audit, EventCommand, JobCommand, Model, Newest, NodeCommand, Posting, PostingKind, Price,
};
use crate::failure::Result;
use crate::output::note;
use crate::view::{member, text};

const POSTINGS: Sheet = Sheet {
    path: "/deposits",
    things: "postings",
    columns: &[
        "id",
        "created_at",
        "wallet_id",
        "amount_micros",
        "operation_id",
        "source",
        "external_reference",
        "reason",
        "note",
        "actor",
    ],
    more: &[],
    paging: Paging::Pages,
};

const EVENTS: Sheet = Sheet {
    path: "/events",
    things: "events",
    columns: &["id", "created_at", "kind", "wallet_id", "data"],
    more: &[],
    paging: Paging::Pages,
};

const JOBS: Sheet = Sheet {
    path: "/jobs",
    things: "jobs",
    columns: &["id", "kind", "state", "done", "of", "ok", "created_at", "finished_at", "node"],
    more: &["since", "started_at"],
    paging: Paging::Pages,
};

/// What a verification has found, as fields of its job.
const REPORT: Sheet = Sheet {
    path: "/jobs",
    things: "jobs",
    columns: &["wallets", "operations", "transfers", "mismatches", "unlisted"],
    more: &[],
    paging: Paging::Pages,
};

const TRAIL: Sheet = Sheet {
    path: "/audit",
    things: "rows of the trail",
    columns: &["seq", "at", "actor", "use_case", "thing", "changes", "reason", "head"],
    more: &[],
    paging: Paging::Pages,
};

const MODELS: Sheet = Sheet {
    path: "/models",
    things: "models",
    columns: &["id", "contract", "context_tokens", "max_output_tokens", "routes"],
    more: &[],
    paging: Paging::Whole,
};

const PRICES: Sheet = Sheet {
    path: "/prices",
    things: "prices",
    columns: &[
        "price_version",
        "model",
        "currency",
        "effective_from",
        "micros_per_million",
        "micros_each",
        "tiers",
    ],
    more: &[],
    paging: Paging::Whole,
};

const NODES: Sheet = Sheet {
    path: "/nodes",
    things: "nodes",
    columns: &[
        "name",
        "is_alive",
        "lease_ends_at",
        "address",
        "settings",
        "settings_differ",
        "incarnation",
    ],
    more: &[],
    paging: Paging::Whole,
};

pub(super) async fn run(desk: &Desk<'_>, command: Read) -> Result {
    match command {
        Read::Posting(Posting::List { kind, wallet, newest: Newest { limit } }) => {
            let path = match kind {
                PostingKind::Deposit => "/deposits",
                PostingKind::Adjustment => "/adjustments",
                PostingKind::Refund => "/refunds",
            };
            let wallet = wallet::id_of(desk, wallet.as_ref()).await?;
            POSTINGS.list_at(desk, path, &[("wallet_id", wallet)], limit).await
        }
        Read::Event(EventCommand::List { wallet, kind, newest: Newest { limit } }) => {
            let wallet = wallet::id_of(desk, wallet.as_ref()).await?;
            EVENTS.list(desk, &[("wallet_id", wallet), ("kind", kind)], limit).await
        }
        Read::Event(EventCommand::Show { id }) => EVENTS.show(desk, id).await,
        Read::Job(JobCommand::List { newest: Newest { limit } }) => {
            JOBS.list(desk, &[], limit).await
        }
        Read::Job(JobCommand::Show { id }) => {
            let found = desk.door.get(&format!("/jobs/{id}"), &[]).await;
            let job = found.map_err(|error| error.because("the job was not found"))?;
            let mut fields = JOBS.fields(&job);
            fields.extend(REPORT.fields(member(&job, "report")));
            desk.output.object(&job, &fields)
        }
        Read::Job(JobCommand::Cancel { id, why }) => {
            let change = why.post(format!("/jobs/{id}/cancel"), json!({}));
            let done = desk.change("the job was not cancelled", &change).await?;
            desk.output.object(&done.thing, &JOBS.fields(&done.thing))
        }
        Read::Audit(Audit::List { thing, actor, use_case, newest: Newest { limit } }) => {
            let query = [("thing", thing), ("actor", actor), ("use_case", use_case)];
            TRAIL.list(desk, &query, limit).await
        }
        Read::Model(Model::List { limit }) => {
            MODELS.list(desk, &[], limit).await?;
            if desk.local.is_some() {
                note("as the configuration has them: a server tells how its routes fare");
            }
            Ok(())
        }
        Read::Price(Price::List { model, currency, limit }) => {
            PRICES.list(desk, &[("model", model), ("currency", currency)], limit).await
        }
        Read::Node(NodeCommand::List { limit }) => {
            let nodes = NODES.rows(desk, NODES.path, &[], limit).await?;
            NODES.print(desk, &nodes.rows)?;
            NODES.tell_cut(&nodes, limit);
            let differ = |node: &&Value| *member(node, "settings_differ") == true;
            let names: Vec<_> =
                nodes.rows.iter().filter(differ).map(|it| text(it, "name")).collect();
            if !names.is_empty() {
                note(&format!(
                    "warning: the settings of {} differ: give every node the same file, and reload it",
                    names.join(", ")
                ));
            }
            Ok(())
        }
    }
}
