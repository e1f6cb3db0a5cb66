//! Webhooks and deliveries in answers.
//!
//! The secret is in the answers of a request that creates one, and in no other type here. The URL is whole for
//! callers who may change the webhook, and only its origin for the rest: path and query often contain the
//! receiver's own secret.
//!
//! A receiver's answer is shown by its status only, never with a body.

use holdfast_accounts::WebhookWithSecret;
use holdfast_domain::admin::webhook::{DeliveryRecord, DeliveryState, DisableReason, Origin};
use holdfast_domain::admin::{Role, UseCase, WebhookRecord};
use holdfast_domain::debug_as;
use serde::Serialize;
use utoipa::ToSchema;

use crate::value::Moment;

/// A webhook.
#[derive(Serialize, ToSchema)]
#[schema(as = Webhook)]
pub(crate) struct WebhookView {
    #[schema(format = "uuid")]
    id: String,
    /// Wallet whose events it gets; null for the operator's, which gets all events.
    #[schema(format = "uuid")]
    wallet_id: Option<String>,
    /// URL of the receiver; only its origin for roles that may not change the webhook.
    url: String,
    /// Kinds of events that it gets; null for all.
    kinds: Option<Vec<&'static str>>,
    description: Option<String>,
    state: WebhookState,
    disabled_at: Option<Moment>,
    /// Cause: a user's request, the receiver's answer 410, or ten failed deliveries in a row.
    disabled_reason: Option<DisableReasonLabel>,
    /// Number of its secret, one more at each rotation.
    secret_generation: u32,
    /// Moment of the last rotation. The secret before it signs too, for 24 hours.
    rotated_at: Option<Moment>,
    created_at: Moment,
    created_by: String,
    /// Number of edits, which `If-Match` is compared with.
    edited: u32,
}

/// State of a webhook.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum WebhookState {
    /// Events are delivered to it.
    Active,
    /// No event is delivered to it.
    Disabled,
}

/// Reason for which a webhook is disabled.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DisableReasonLabel {
    Asked,
    Gone,
    DeadInARow,
}

impl From<DisableReason> for DisableReasonLabel {
    fn from(reason: DisableReason) -> Self {
        match reason {
            DisableReason::Asked => Self::Asked,
            DisableReason::Gone => Self::Gone,
            DisableReason::DeadInARow => Self::DeadInARow,
        }
    }
}

impl WebhookView {
    /// The webhook as this role sees it.
    pub(crate) fn new(record: WebhookRecord, role: Role) -> Self {
        let url = if role.may(UseCase::WebhookUpdate) {
            record.url.0
        } else {
            // An unreadable URL is shown as empty and not in full: the fallback must not be the
            // secret.
            Origin::of_url(&record.url).map(|origin| origin.to_string()).unwrap_or_default()
        };
        let state = match record.disabled {
            Some(_) => WebhookState::Disabled,
            None => WebhookState::Active,
        };
        let (disabled_at, reason) = record.disabled.unzip();
        let kinds = |kinds: std::collections::BTreeSet<
            holdfast_domain::admin::event::EventKind,
        >| { kinds.into_iter().map(|kind| kind.label()).collect() };
        Self {
            id: record.id.to_string(),
            wallet_id: record.wallet.map(|id| id.to_string()),
            url,
            kinds: record.kinds.map(kinds),
            description: record.description,
            state,
            disabled_at: disabled_at.map(Moment),
            disabled_reason: reason.map(Into::into),
            secret_generation: record.secret.generations.current,
            rotated_at: record.secret.generations.rotated_at.map(Moment),
            created_at: Moment(record.created_at),
            created_by: record.created_by.to_string(),
            edited: record.edited,
        }
    }
}

debug_as!(WebhookView as it: "WebhookView({})", it.id);

/// A webhook with its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MadeWebhook {
    #[serde(flatten)]
    webhook: WebhookView,
    /// `whsec_…`, by which the receiver verifies a delivery, shown only in this answer; null if an earlier request
    /// created it.
    secret: Option<SecretView>,
    /// Remedy if `secret` is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    notice: Option<&'static str>,
}

/// A secret on its way to its requester.
#[derive(Serialize, ToSchema)]
#[schema(value_type = String)]
struct SecretView(String);

debug_as!(SecretView: "SecretView(…)");

const SHOWN_BEFORE: &str = "An earlier request with this Idempotency-Key made the secret, and it was told then. \
    If that answer was lost, POST /admin/v1/webhooks/{id}/rotate with a new Idempotency-Key for another \
    one.";

impl MadeWebhook {
    /// A webhook in the answer to its creator, or to the caller who rotated it.
    pub(crate) fn new(WebhookWithSecret { record, secret }: WebhookWithSecret) -> Self {
        let notice = secret.is_none().then_some(SHOWN_BEFORE);
        // A caller who may create one may change it.
        let webhook = WebhookView::new(record, Role::Owner);
        Self {
            webhook,
            secret: secret.map(|secret| SecretView(secret.expose().to_owned())),
            notice,
        }
    }
}

/// An event on its way to a webhook.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Delivery)]
pub(crate) struct DeliveryView {
    /// Id of the event: `webhook-id` of each try.
    #[schema(format = "uuid")]
    event_id: String,
    /// Kind of the event.
    kind: String,
    #[schema(format = "uuid")]
    webhook_id: String,
    state: DeliveryStateLabel,
    /// Tries that were made.
    tries: u32,
    /// Moment from which it is tried again, while it is pending; during a try the end of its lease.
    next_at: Option<Moment>,
    /// Result of the last delivery attempt, like `delivered`, `server_error`, `redirect`, `timed_out`,
    /// `address_refused`; `webhook_disabled` if the webhook was disabled before it was sent.
    last_result: Option<String>,
    /// Status of the last answer, if that attempt had one.
    last_status: Option<u16>,
    created_at: Moment,
    finished_at: Option<Moment>,
}

/// State of a delivery.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DeliveryStateLabel {
    /// An attempt is due or under way.
    Pending,
    /// The receiver has accepted it.
    Delivered,
    /// No attempt follows.
    Dead,
}

impl From<DeliveryRecord> for DeliveryView {
    fn from(record: DeliveryRecord) -> Self {
        Self {
            event_id: record.event.to_string(),
            kind: record.kind.into(),
            webhook_id: record.webhook.to_string(),
            state: match record.state {
                DeliveryState::Pending => DeliveryStateLabel::Pending,
                DeliveryState::Delivered => DeliveryStateLabel::Delivered,
                DeliveryState::Dead => DeliveryStateLabel::Dead,
            },
            tries: record.tries,
            next_at: record.next_at.map(Moment),
            last_result: record.last_result.map(Into::into),
            last_status: record.last_status,
            created_at: Moment(record.created_at),
            finished_at: record.finished_at.map(Moment),
        }
    }
}
