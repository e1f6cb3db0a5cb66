//! Webhooks as people make and change them: records, edits and writes.
//!
//! A webhook belongs to a wallet, and gets only that wallet's events, or to the operator, and gets all. Its
//! secret is derived and never stored: the record has the number of its generation, and the server secrets that
//! its two last generations are derived from.
//!
//! Never in the trail or a `Debug`: path and query of its URL, which often hold the receiver's own
//! secret. The trail has the origin, and a digest that shows that the rest has changed.

use std::collections::BTreeSet;

use super::field_change::{Fields, TrailFields};
use super::{ActorId, ResourceId};
use crate::admin::event::EventKind;
use crate::admin::webhook::{DisableReason, Origin, SecretGenerations};
use crate::private::Private;
use crate::secret::ServerSecretId;
use crate::{EventId, Timestamp, WalletId, WebhookId};

/// Webhooks in force of one wallet, and of the operator.
pub const WEBHOOKS_MAX: u32 = 16;
/// Tests of one webhook within a minute.
pub const TESTS_MAX: u32 = 6;

/// Secret of a webhook: what it is derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebhookSecret {
    /// Number of the generation, and the moment of the last rotation.
    pub generations: SecretGenerations,
    /// Server secret of the current generation.
    pub server_secret: ServerSecretId,
    /// Server secret of the generation before; `None` before the first rotation.
    pub previous: Option<ServerSecretId>,
}

impl WebhookSecret {
    /// The secret of a new webhook.
    #[must_use]
    pub const fn first(server_secret: ServerSecretId) -> Self {
        let generations = SecretGenerations { current: 1, rotated_at: None };
        Self { generations, server_secret, previous: None }
    }

    /// Generations that sign at this moment, the latest first, each with its server secret.
    pub fn signing(self, now: Timestamp) -> impl Iterator<Item = (u32, ServerSecretId)> {
        let secret_of = move |generation| {
            // The server secret may have changed between the two: each generation has its own.
            let is_current = generation == self.generations.current;
            let secret = if is_current { Some(self.server_secret) } else { self.previous };
            secret.map(|secret| (generation, secret))
        };
        self.generations.signing(now).filter_map(secret_of)
    }

    /// The secret after a rotation.
    #[must_use]
    pub const fn rotated(self, server_secret: ServerSecretId, now: Timestamp) -> Self {
        // With a rotation each second the largest number is 136 years away.
        let current = self.generations.current.saturating_add(1);
        let generations = SecretGenerations { current, rotated_at: Some(now) };
        Self { generations, server_secret, previous: Some(self.server_secret) }
    }
}

/// A webhook as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRecord {
    /// Id of the webhook.
    pub id: WebhookId,
    /// Wallet that it belongs to; `None`: the operator.
    pub wallet: Option<WalletId>,
    /// URL of its receiver, as it was written.
    pub url: Private<String>,
    /// Kinds of events that it receives; `None`: all.
    pub kinds: Option<BTreeSet<EventKind>>,
    /// Text for people.
    pub description: Option<String>,
    /// Source of its derived secret.
    pub secret: WebhookSecret,
    /// Number of edits.
    pub edited: u32,
    /// Moment of its creation.
    pub created_at: Timestamp,
    /// Actor that created it.
    pub created_by: ActorId,
    /// Moment since which it gets no deliveries, and the reason.
    pub disabled: Option<(Timestamp, DisableReason)>,
}

/// Edit of a webhook: a field that is `None` stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WebhookPatch {
    /// Another URL.
    pub url: Option<Private<String>>,
    /// Other kinds, or all.
    pub kinds: Option<Option<BTreeSet<EventKind>>>,
    /// Another description, or none.
    pub description: Option<Option<String>>,
}

/// Write of a webhook's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookWrite {
    /// A new webhook.
    Insert(WebhookRecord),
    /// All of a webhook that people set.
    Update(WebhookRecord),
    /// An event that tests a webhook, on its way to that one alone.
    InsertTest {
        /// Id of the event.
        event: EventId,
        /// The webhook.
        webhook: WebhookId,
        /// Wallet of the webhook.
        wallet: Option<WalletId>,
        /// Moment of the test.
        at: Timestamp,
    },
    /// A delivery from its first try on; one that is under way is left to that.
    Resend {
        /// Id of the event.
        event: EventId,
        /// The webhook.
        webhook: WebhookId,
        /// Moment of the first try.
        at: Timestamp,
    },
}

impl TrailFields for WebhookRecord {
    fn thing(&self) -> ResourceId {
        ResourceId::Webhook(self.id)
    }

    /// Fields with the origin and a digest of the URL, and not the URL.
    fn trail_fields(&self) -> Fields {
        let digest = blake3::hash(self.url.as_bytes()).to_hex();
        let kinds = self
            .kinds
            .as_ref()
            .map(|kinds| kinds.iter().map(|kind| kind.label()).collect::<Vec<_>>().join(","));
        let (disabled_at, reason) = self.disabled.unzip();
        vec![
            ("wallet_id", self.wallet.map(|id| id.to_string())),
            ("url_origin", Origin::of_url(&self.url).ok().map(|origin| origin.to_string())),
            ("url_digest", Some(digest.as_str().chars().take(16).collect())),
            ("kinds", kinds),
            ("description", self.description.clone()),
            ("generation", Some(self.secret.generations.current.to_string())),
            ("disabled_at", disabled_at.map(|at| at.as_micros().to_string())),
            ("disabled_reason", reason.map(|reason| reason.label().to_owned())),
        ]
    }
}
