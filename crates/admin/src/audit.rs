//! `/audit`: the audit log of administration, newest first.
//!
//! Each row shows its checksum as `number:mac`. A copy that is kept outside is the starting point of a later
//! verification (`since` of `/jobs`).

use holdfast_domain::admin::listing::{TrailFilter, TrailListing};
use holdfast_domain::admin::{ActorId, FieldChange, ResourceId, UseCase};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::Reply;
use crate::description::Errors;
use crate::error::Problem;
use crate::page::{List, ListPages, ListParams, PageQuery};
use crate::request::Caller;
use crate::value::{Moment, parse_some};

/// Filters of the audit log, and its page. All filters apply.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TrailQuery {
    /// Rows about this resource: its kind and its id.
    #[param(
        example = "wallet:7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11",
        pattern = "^[a-z_]{1,32}:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
    )]
    thing: Option<String>,
    /// Rows of this actor: `local`, `anonymous`, `admin_key:<id>` or `person:<id>`.
    #[param(
        pattern = "^(local|anonymous|(admin_key|person):[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$"
    )]
    actor: Option<String>,
    /// Rows of this use case.
    #[param(example = "wallet.suspend", pattern = "^[a-z_]{1,32}[.][a-z_]{1,32}$")]
    use_case: Option<String>,
}

/// Row of the audit log: actor, action, resource, reason and changes.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TrailRow)]
pub(crate) struct TrailRowView {
    /// Number, one more than that of the row before.
    seq: u64,
    /// Checksum of the audit log at this row: its number and its MAC.
    head: String,
    at: Moment,
    actor: String,
    /// Network address of the actor, as long as it is kept.
    address: Option<String>,
    use_case: &'static str,
    thing: String,
    #[schema(format = "uuid")]
    request_key: String,
    changes: Vec<FieldChangeView>,
    reason: Option<String>,
}

/// Change of one field.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = FieldChange)]
struct FieldChangeView {
    field: String,
    /// Value before, as a text; null if there was none.
    before: Option<String>,
    after: Option<String>,
}

impl From<FieldChange> for FieldChangeView {
    fn from(FieldChange { field, before, after }: FieldChange) -> Self {
        Self { field, before, after }
    }
}

impl From<TrailListing> for TrailRowView {
    fn from(TrailListing { row, address }: TrailListing) -> Self {
        Self {
            seq: row.seq,
            head: row.head().to_string(),
            at: Moment(row.at),
            actor: row.actor.to_string(),
            address,
            use_case: row.use_case.label(),
            thing: row.thing.to_string(),
            request_key: row.request_key.to_string(),
            changes: row.changes.into_iter().map(FieldChangeView::from).collect(),
            reason: row.reason,
        }
    }
}

#[utoipa::path(
    get, path = "/audit", operation_id = "list_trail", tag = "audit", params(TrailQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<TrailRowView>), Errors)
)]
/// Lists the audit log of administration.
pub(crate) async fn list(
    caller: Caller,
    ListParams(query, page): ListParams<TrailQuery>,
) -> Reply<List<TrailRowView>> {
    let actor: Option<ActorId> = parse_some("actor", query.actor.as_deref())?;
    let thing = known("thing", query.thing.as_deref(), ResourceId::parse)?;
    let use_case = known("use_case", query.use_case.as_deref(), UseCase::from_label)?;
    // An unknown value is an error above and never an empty page: an auditor who misspells a filter
    // would read it as proof that the act did not happen.
    let list = ListPages::new(&caller, "audit", &(&query.thing, &query.actor, &query.use_case))?;
    let page = list.request(&page)?;
    let filter = TrailFilter { thing, actor, use_case };
    list.list(caller.accounts().trail(&caller.principal, filter, page).await?).await
}

/// Reads a filter that has to be one of what is known.
fn known<T>(
    param: &'static str,
    text: Option<&str>,
    read: fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let message = match param {
        "thing" => {
            "A resource is its kind and its id, like wallet:7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11."
        }
        _ => "A use case is a name like wallet.suspend.",
    };
    read(text).map(Some).ok_or_else(|| Problem::invalid(param, message))
}
