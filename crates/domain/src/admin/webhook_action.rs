//! Webhooks as people make and change them: records and actions. They are judged where all commands are.
//!
//! A webhook belongs to a wallet, and is told that wallet's events alone, or to the operator, and is
//! told all. Its secret is derived and never stored: the record has the number of its generation, and
//! the server secrets that its two last generations are derived from.
//!
//! Never in the trail or a `Debug`: path and query of its URL, which often hold the receiver's own
//! secret. The trail has the origin, and a digest that shows that the rest has changed.

use std::collections::BTreeSet;

use super::field_change::{FieldChange, differences};
use super::{ActorId, UseCase};
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
            let is_current = generation == self.generations.current;
            let secret = if is_current { Some(self.server_secret) } else { self.previous };
            secret.map(|secret| (generation, secret))
        };
        self.generations.signing(now).filter_map(secret_of)
    }

    /// The secret after a rotation.
    #[must_use]
    pub const fn rotated(self, server_secret: ServerSecretId, now: Timestamp) -> Self {
        let current = self.generations.current.saturating_add(1);
        let generations = SecretGenerations { current, rotated_at: Some(now) };
        Self { generations, server_secret, previous: Some(self.server_secret) }
    }
}

/// A webhook as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookRecord {
    /// Its id.
    pub id: WebhookId,
    /// Wallet that it belongs to; `None`: the operator.
    pub wallet: Option<WalletId>,
    /// URL of its receiver, as it was written.
    pub url: Private<String>,
    /// Kinds of events that it is told; `None`: all.
    pub kinds: Option<BTreeSet<EventKind>>,
    /// Text for people.
    pub description: Option<String>,
    /// What its secret is derived from.
    pub secret: WebhookSecret,
    /// Number of edits.
    pub edited: u32,
    /// Moment of its creation.
    pub created_at: Timestamp,
    /// Whoever made it.
    pub created_by: ActorId,
    /// Moment since which it is told nothing, and why.
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

/// Change of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WebhookAction {
    /// Make one.
    Create(WebhookRecord),
    /// Edit one.
    Edit {
        /// The webhook.
        webhook: WebhookId,
        /// The edit.
        patch: WebhookPatch,
        /// Number of edits that the actor has seen, where that matters.
        expected: Option<u32>,
    },
    /// Begin another generation of its secret.
    Rotate {
        /// The webhook.
        webhook: WebhookId,
        /// Server secret that the generation is derived from.
        server_secret: ServerSecretId,
    },
    /// Tell it nothing more.
    Disable(WebhookId),
    /// Tell it what happens from now on.
    Enable(WebhookId),
    /// Send it an event that tells nothing.
    Test {
        /// The webhook.
        webhook: WebhookId,
        /// Id of the event.
        event: EventId,
    },
    /// Send it an event again, or now.
    Resend {
        /// The webhook.
        webhook: WebhookId,
        /// Id of the event.
        event: EventId,
    },
}

/// Facts that a change of a webhook is judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookFacts {
    /// The webhook: locked.
    pub webhook: Option<WebhookRecord>,
    /// Other webhooks in force of the same owner.
    pub others_in_force: u32,
    /// Tests of the webhook within the last minute.
    pub recent_tests: u32,
    /// True where the event of the action was ever on its way to the webhook.
    pub has_delivery: bool,
}

impl WebhookFacts {
    /// Facts where there is no webhook.
    pub const NONE: Self =
        Self { webhook: None, others_in_force: 0, recent_tests: 0, has_delivery: false };
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

impl WebhookAction {
    /// Use case that the action belongs to.
    #[must_use]
    pub const fn use_case(&self) -> UseCase {
        match self {
            Self::Create(_) => UseCase::WebhookCreate,
            Self::Edit { .. } => UseCase::WebhookUpdate,
            Self::Rotate { .. } => UseCase::WebhookRotate,
            Self::Disable(_) => UseCase::WebhookDisable,
            Self::Enable(_) => UseCase::WebhookEnable,
            Self::Test { .. } => UseCase::WebhookTest,
            Self::Resend { .. } => UseCase::WebhookResend,
        }
    }

    /// The webhook.
    #[must_use]
    pub const fn webhook(&self) -> WebhookId {
        match self {
            Self::Create(record) => record.id,
            Self::Disable(webhook)
            | Self::Enable(webhook)
            | Self::Edit { webhook, .. }
            | Self::Rotate { webhook, .. }
            | Self::Test { webhook, .. }
            | Self::Resend { webhook, .. } => *webhook,
        }
    }

    /// Webhook that the action makes.
    pub(super) const fn made(&self) -> Option<WebhookId> {
        match self {
            Self::Create(record) => Some(record.id),
            Self::Edit { .. }
            | Self::Rotate { .. }
            | Self::Disable(_)
            | Self::Enable(_)
            | Self::Test { .. }
            | Self::Resend { .. } => None,
        }
    }
}

impl WebhookRecord {
    pub(super) fn changes_from(&self, before: Option<&Self>) -> Vec<FieldChange> {
        differences(before.map(Self::trail_fields), self.trail_fields())
    }

    /// The fields that the trail tells of: of the URL its origin and a digest.
    #[must_use]
    pub fn trail_fields(&self) -> Vec<(&'static str, Option<String>)> {
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
