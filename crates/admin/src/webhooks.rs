//! `/webhooks`: create, show, list, edit, rotate, disable, enable and test; and their deliveries.
//!
//! A secret is shown only in the answer that creates it. Path and query of a URL often contain the receiver's own
//! secret: a caller who may not change a webhook is shown only its origin.
//!
//! Handlers parse a request, call a use case and render its result. Addresses are judged by the process that
//! serves, and handlers send no delivery: a test goes through the outbox as every event does.

mod view;

use axum::extract::{FromRequestParts, RawPathParams};
use holdfast_accounts::{Edit, NewWebhook, Outcome, Principal, Reference};
use holdfast_domain::admin::event::EventKind;
use holdfast_domain::admin::{WebhookPatch, WebhookRecord};
use holdfast_domain::private::Private;
use holdfast_domain::{EventId, WalletId, WebhookId};
use http::request::Parts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

pub(crate) use self::view::WebhookView;
use self::view::{DeliveryView, MadeWebhook};
use crate::answer::{Answer, Reply};
use crate::description::{ChangeHeader, Errors, IfMatchHeader, WebhookPath};
use crate::error::{Code, Problem};
use crate::page::{List, ListPages, ListParams, NoFilters, PageQuery};
use crate::request::{Caller, Change, ChangeBody, IfMatch, ReasonBody};
use crate::value::schema::{NoteText, ReasonText};
use crate::value::{parse_some, present};

/// A webhook to be made.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookDraft {
    /// `https://`, port 443, a public address; another origin if the operator has listed it.
    #[schema(format = "uri")]
    url: String,
    /// Wallet whose events it gets. Absent: the operator's, which gets all events; a holder's own wallet.
    #[schema(format = "uuid")]
    wallet_id: Option<String>,
    /// Kinds of events, like `wallet.low`; null for all.
    #[schema(min_items = 1)]
    kinds: Option<Vec<String>>,
    /// 1 to 200 printable characters.
    #[schema(value_type = Option<NoteText>)]
    description: Option<String>,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ChangeBody for WebhookDraft {}

/// Edit of a webhook: what is absent stays as it is, and null removes.
#[derive(Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::option_option, reason = "an edit tells absent from null")]
pub(crate) struct WebhookEdit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "uri")]
    url: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>, min_items = 1)]
    kinds: Option<Option<Vec<String>>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NoteText>)]
    description: Option<Option<String>>,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ChangeBody for WebhookEdit {
    const NULLABLE: &'static [&'static str] = &["kinds", "description"];
}

/// Filters of a list of webhooks, and its page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WebhookQuery {
    /// Webhooks of this wallet.
    #[param(format = "uuid")]
    wallet_id: Option<String>,
}

/// The two ids in the path of a delivery: its webhook's and its event's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeliveryIds(WebhookId, EventId);

impl<S: Send + Sync> FromRequestParts<S> for DeliveryIds {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let missing = || Problem::new(Code::NotFound);
        let segments = RawPathParams::from_request_parts(parts, state).await.ok();
        let segments = segments.ok_or_else(missing)?;
        let id = |wanted: &str| {
            let found = segments.iter().find(|(name, _)| *name == wanted);
            found.and_then(|(_, id)| Uuid::try_parse(id).ok()).ok_or_else(missing)
        };
        Ok(Self(WebhookId::from(id("id")?), EventId::from(id("event")?)))
    }
}

#[utoipa::path(
    post, path = "/webhooks", operation_id = "create_webhook", tag = "webhooks",
    params(ChangeHeader), request_body = WebhookDraft,
    responses((status = 201, description = "The webhook.", body = MadeWebhook), Errors)
)]
/// Creates a webhook; its secret is shown only in this answer.
pub(crate) async fn create(
    caller: Caller,
    Change { request, body }: Change<WebhookDraft>,
) -> Reply<MadeWebhook> {
    let wallet: Option<Uuid> = parse_some("wallet_id", body.wallet_id.as_deref())?;
    let new = NewWebhook {
        wallet: wallet.map(Reference::Id),
        url: Private(body.url),
        kinds: body.kinds.as_deref().map(kinds).transpose()?,
        description: parse_some("description", body.description.as_deref())?,
    };
    let made = caller.accounts().create_webhook(&caller.principal, &request, &new).await?;
    let edited = made.thing.record.edited;
    Ok(Answer::made(MadeWebhook::new(made.thing), made.replayed).edited(edited))
}

#[utoipa::path(
    get, path = "/webhooks", operation_id = "list_webhooks", tag = "webhooks", params(WebhookQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<WebhookView>), Errors)
)]
/// Lists webhooks.
pub(crate) async fn list(
    caller: Caller,
    ListParams(query, page): ListParams<WebhookQuery>,
) -> Reply<List<WebhookView>> {
    let wallet: Option<WalletId> = parse_some("wallet_id", query.wallet_id.as_deref())?;
    let list = ListPages::new(&caller, "webhooks", &wallet.map(|id| id.to_string()))?;
    let page = list.request(&page)?;
    let page = caller.accounts().webhooks(&caller.principal, wallet, page).await?;
    let role = caller.principal.role;
    list.list_as(page, move |record| WebhookView::new(record, role)).await
}

#[utoipa::path(
    get, path = "/webhooks/{id}", operation_id = "show_webhook", tag = "webhooks", params(WebhookPath),
    responses((status = 200, description = "The webhook.", body = WebhookView), Errors)
)]
/// Shows a webhook.
pub(crate) async fn show(caller: Caller) -> Reply<WebhookView> {
    let record = caller.accounts().webhook(&caller.principal, caller.id()?).await?;
    let edited = record.edited;
    Ok(Answer::of(WebhookView::new(record, caller.principal.role)).edited(edited))
}

#[utoipa::path(
    patch, path = "/webhooks/{id}", operation_id = "update_webhook", tag = "webhooks",
    params(WebhookPath, ChangeHeader, IfMatchHeader), request_body = WebhookEdit,
    responses((status = 200, description = "The webhook.", body = WebhookView), Errors)
)]
/// Edits a webhook.
pub(crate) async fn update(
    caller: Caller,
    IfMatch(expected): IfMatch,
    Change { request, body }: Change<WebhookEdit>,
) -> Reply<WebhookView> {
    let kinds = body.kinds.map(|it| it.as_deref().map(kinds).transpose()).transpose()?;
    let description = body.description.map(|it| description(it.as_deref())).transpose()?;
    let patch = WebhookPatch { url: body.url.map(Private), kinds, description };
    let edit = Edit { patch, expected };
    let changed =
        caller.accounts().edit_webhook(&caller.principal, &request, caller.id()?, edit).await?;
    Ok(changed_webhook(&caller.principal, changed))
}

#[utoipa::path(
    post, path = "/webhooks/{id}/rotate", operation_id = "rotate_webhook", tag = "webhooks",
    params(WebhookPath, ChangeHeader), request_body = Option<ReasonBody>,
    responses((status = 200, description = "The webhook.", body = MadeWebhook), Errors)
)]
/// Creates another secret, which is shown only in this answer. Both sign for 24 hours.
pub(crate) async fn rotate(caller: Caller, change: Change<ReasonBody>) -> Reply<MadeWebhook> {
    let rotated =
        caller.accounts().rotate_webhook(&caller.principal, &change.request, caller.id()?).await?;
    let edited = rotated.thing.record.edited;
    Ok(Answer::changed(MadeWebhook::new(rotated.thing), rotated.replayed).edited(edited))
}

#[utoipa::path(
    post, path = "/webhooks/{id}/test", operation_id = "test_webhook", tag = "webhooks",
    params(WebhookPath, ChangeHeader), request_body = Option<ReasonBody>,
    responses((status = 200, description = "The delivery, not sent yet.", body = DeliveryView), Errors)
)]
/// Sends a `webhook.test` event, in one delivery attempt; the list of deliveries has its result. 6 a minute.
pub(crate) async fn test(caller: Caller, change: Change<ReasonBody>) -> Reply<DeliveryView> {
    let sent =
        caller.accounts().test_webhook(&caller.principal, &change.request, caller.id()?).await?;
    Ok(Answer::changed(sent.thing.into(), sent.replayed))
}

#[utoipa::path(
    get, path = "/webhooks/{id}/deliveries", operation_id = "list_deliveries", tag = "webhooks",
    params(WebhookPath, PageQuery),
    responses((status = 200, description = "A page.", body = List<DeliveryView>), Errors)
)]
/// Lists the deliveries to a webhook.
pub(crate) async fn deliveries(
    caller: Caller,
    ListParams(NoFilters {}, page): ListParams<NoFilters>,
) -> Reply<List<DeliveryView>> {
    let id: WebhookId = caller.id()?;
    let list = ListPages::new(&caller, "deliveries", &id.to_string())?;
    let page = list.request(&page)?;
    let page = caller.accounts().deliveries(&caller.principal, id, page).await?;
    list.list(page).await
}

#[utoipa::path(
    post, path = "/webhooks/{id}/deliveries/{event}/resend", operation_id = "resend_delivery",
    tag = "webhooks",
    params(WebhookPath, ("event" = String, Path, description = "Id of the event.", format = "uuid"), ChangeHeader),
    request_body = Option<ReasonBody>,
    responses((status = 200, description = "The delivery.", body = DeliveryView), Errors)
)]
/// Sends an event again that was delivered or is dead; one that waits is sent now.
pub(crate) async fn resend(
    caller: Caller,
    DeliveryIds(webhook, event): DeliveryIds,
    change: Change<ReasonBody>,
) -> Reply<DeliveryView> {
    let sent = caller
        .accounts()
        .resend_delivery(&caller.principal, &change.request, webhook, event)
        .await?;
    Ok(Answer::changed(sent.thing.into(), sent.replayed))
}

fn changed_webhook(
    principal: &Principal,
    Outcome { thing, replayed }: Outcome<WebhookRecord>,
) -> Answer<WebhookView> {
    let edited = thing.edited;
    Answer::changed(WebhookView::new(thing, principal.role), replayed).edited(edited)
}

/// Reads kinds of events. An empty list is refused, because no event would match it.
fn kinds(names: &[String]) -> Result<BTreeSet<EventKind>, Problem> {
    if names.is_empty() {
        let message = "An empty list would match no event: write kinds, or null for all of them.";
        return Err(Problem::invalid("kinds", message));
    }
    let read = |name: &String| {
        EventKind::from_label(name).ok_or_else(|| {
            let known: Vec<_> = EventKind::ALL.iter().map(|kind| kind.label()).collect();
            let message = format!("A kind of events is one of {}.", known.join(", "));
            Problem::invalid("kinds", message)
        })
    };
    names.iter().map(read).collect()
}

fn description(text: Option<&str>) -> Result<Option<String>, Problem> {
    let text: Option<holdfast_accounts::Description> = parse_some("description", text)?;
    Ok(text.map(|text| text.as_str().to_owned()))
}
