//! `/events`: recorded events, newest first. An event contains no cost, route or node, so that every reader of an
//! event may see all of it.

use holdfast_domain::WalletId;
use holdfast_domain::admin::event::{EventFilter, EventKind, EventRecord};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Reply};
use crate::description::{Errors, EventPath};
use crate::error::Problem;
use crate::page::{List, ListPages, ListParams, PageQuery};
use crate::request::Caller;
use crate::value::{Moment, parse_some};

/// Filters of a list of events, and its page. Both filters apply.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct EventQuery {
    /// Events of this wallet.
    #[param(format = "uuid")]
    wallet_id: Option<String>,
    /// Events of this kind, like `wallet.low`.
    #[param(pattern = "^[a-z_]{1,32}[.][a-z_]{1,32}$")]
    kind: Option<String>,
}

/// A recorded event.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Event)]
pub(crate) struct EventView {
    /// Id, which a webhook repeats as `webhook-id`.
    #[schema(format = "uuid")]
    id: String,
    /// Kind, like `wallet.low`.
    kind: &'static str,
    /// Wallet whose holder may read it; null if only the operator may.
    #[schema(format = "uuid")]
    wallet_id: Option<String>,
    created_at: Moment,
    /// Data of the event, with the members of its kind.
    #[schema(value_type = Object)]
    data: Box<RawValue>,
}

impl From<EventRecord> for EventView {
    fn from(event: EventRecord) -> Self {
        Self {
            id: event.id.to_string(),
            kind: event.kind.label(),
            wallet_id: event.wallet.map(|wallet| wallet.to_string()),
            created_at: Moment(event.created_at),
            // The text as it was written, and as a webhook gets it. Data that is not JSON was written by another
            // program, and is shown as null: one bad row must not fail the page.
            data: RawValue::from_string(event.data.into_string()).unwrap_or_else(|_bad| {
                tracing::error!(event.id = %event.id, "the data of an event cannot be read");
                RawValue::NULL.to_owned()
            }),
        }
    }
}

#[utoipa::path(
    get, path = "/events", operation_id = "list_events", tag = "events", params(EventQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<EventView>), Errors)
)]
/// Lists events.
pub(crate) async fn list(
    caller: Caller,
    ListParams(query, page): ListParams<EventQuery>,
) -> Reply<List<EventView>> {
    let wallet: Option<WalletId> = parse_some("wallet_id", query.wallet_id.as_deref())?;
    let kind = query.kind.as_deref().map(kind).transpose()?;
    let filters = (wallet.map(|id| id.to_string()), kind.map(EventKind::label));
    let list = ListPages::new(&caller, "events", &filters)?;
    let page = list.request(&page)?;
    let page =
        caller.accounts().events(&caller.principal, EventFilter { wallet, kind }, page).await?;
    list.list(page).await
}

fn kind(label: &str) -> Result<EventKind, Problem> {
    EventKind::from_label(label).ok_or_else(|| {
        let kinds: Vec<_> = EventKind::ALL.iter().map(|kind| kind.label()).collect();
        Problem::invalid(
            "kind",
            format!("There is no such kind: send one of {}.", kinds.join(", ")),
        )
    })
}

#[utoipa::path(
    get, path = "/events/{id}", operation_id = "show_event", tag = "events", params(EventPath),
    responses((status = 200, description = "The event.", body = EventView), Errors)
)]
/// Shows an event.
pub(crate) async fn show(caller: Caller) -> Reply<EventView> {
    Ok(Answer::of(caller.accounts().event(&caller.principal, caller.id()?).await?.into()))
}
