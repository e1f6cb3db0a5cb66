//! Events: notifications for people and their machines, written at their source.
//!
//! ```text
//! transaction of what happened ─▶ row of `events` ─┬─▶ list in the API
//!                                                  ├─▶ body of a webhook
//!                                                  └─▶ feed of the console
//! ```
//!
//! A row is written in the transaction of its subject, so that neither an event without a change nor a change
//! without its event exists. An event that a process notices by itself is written later, and may be lost with
//! the process: a limit that was reached, an operation that is stuck. Rows are kept for a while
//! (`retention.events`) and then deleted: an event notifies, and the ledger proves.
//!
//! An event's id is derived from its content ([`EventId`]), so that a repeated event is one row: a deposit's
//! conflict once for a reference, a limit once for a window. No change waits for an event or fails by one.
//!
//! Never in an event: a prompt, an answer, a secret. Costs, routes and nodes are the operator's, and
//! stand in none of them either, because a wallet's holder reads its events.
//!
//! ```
//! use holdfast_domain::Micros;
//! use holdfast_domain::admin::event::{EventKind, LowBalance};
//! use holdfast_testkit::sample;
//!
//! let [available, threshold] = [90, 100].map(Micros::new);
//! let low = LowBalance { wallet: sample::WALLET, available, held: Micros::ZERO, threshold };
//! // The charge that takes the sum below the threshold has an event; the next charge has none.
//! let operation = [7; 16];
//! let event = low.event([Micros::new(120), Micros::ZERO], operation).unwrap();
//! assert_eq!(event.kind, EventKind::WalletLow);
//! assert_eq!(low.event([Micros::new(95), Micros::ZERO], operation), None);
//! // Its id is derived of its cause: reported twice, it is one row.
//! assert_eq!(low.event([Micros::new(120), Micros::ZERO], operation).unwrap().id, event.id);
//! ```

mod interest;
mod new_event;
mod noticed;

use std::fmt;

pub use self::interest::{EventInterest, EventKinds, UNLISTED_KEPT};
pub(crate) use self::new_event::EventData;
pub use self::new_event::{EventValue, NewEvent};
pub use self::noticed::{LowBalance, SpendLimitReached, abandoned, spend_window, stuck};
use crate::{EventId, Timestamp, WalletId};

/// Writes the kinds with their names.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $label:literal),+ $(,)?) => {
        /// Kind of an event. Names are fixed: receivers switch on them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventKind {
            $($(#[$doc])* $name),+
        }

        impl EventKind {
            /// Every kind.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            /// The name in rows, answers and webhooks.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$name => $label),+ }
            }
        }
    };
}

kinds! {
    /// Money was added: by a deposit, or by an adjustment.
    WalletCredited = "wallet.credited",
    /// Money was taken by an adjustment.
    WalletDebited = "wallet.debited",
    /// A wallet's money went from its threshold or above to below it.
    WalletLow = "wallet.low",
    /// New runs of a wallet were stopped.
    WalletSuspended = "wallet.suspended",
    /// New runs of a wallet were let in again.
    WalletResumed = "wallet.resumed",
    /// A wallet was closed for good, and all of its API keys were revoked with it.
    WalletClosed = "wallet.closed",
    /// An external reference was sent again, for another posting.
    DepositConflict = "deposit.conflict",
    /// An API key was issued.
    ApiKeyIssued = "api_key.issued",
    /// An API key got another credential.
    ApiKeyRotated = "api_key.rotated",
    /// New runs of an API key were stopped.
    ApiKeySuspended = "api_key.suspended",
    /// New runs of an API key were let in again.
    ApiKeyResumed = "api_key.resumed",
    /// An API key was ended for good.
    ApiKeyRevoked = "api_key.revoked",
    /// An API key has spent what it may in a window.
    ApiKeyLimitReached = "api_key.limit_reached",
    /// An operation was ended without knowledge of what its run used.
    OperationAbandoned = "operation.abandoned",
    /// An operation has not come to rest for a while, although it should have.
    OperationStuck = "operation.stuck",
    /// A part of a charge was given back.
    OperationRefunded = "operation.refunded",
    /// A webhook is sent to no more.
    WebhookDisabled = "webhook.disabled",
    /// A person tests a webhook: sent only to that one, in one attempt.
    WebhookTest = "webhook.test",
}

impl EventKind {
    /// The kind of this name.
    #[must_use]
    pub fn from_label(label: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.label() == label)
    }

    /// Names of the members of its data, all of which an event of the kind has.
    #[must_use]
    pub const fn members(self) -> &'static [&'static str] {
        match self {
            Self::WalletCredited | Self::WalletDebited => &[
                "wallet_id",
                "posting_id",
                "kind",
                "amount_micros",
                "available_micros",
                "held_micros",
                "currency",
                "source",
                "external_reference",
                "reason",
            ],
            Self::WalletLow => {
                &["wallet_id", "available_micros", "held_micros", "low_balance_micros", "currency"]
            }
            Self::WalletSuspended | Self::WalletResumed | Self::WalletClosed => {
                &["wallet_id", "name", "external_id", "reason"]
            }
            Self::DepositConflict => &[
                "source",
                "external_reference",
                "deposit_id",
                "deposit_wallet_id",
                "deposit_amount_micros",
                "wallet_id",
                "amount_micros",
            ],
            Self::ApiKeyIssued
            | Self::ApiKeyRotated
            | Self::ApiKeySuspended
            | Self::ApiKeyResumed
            | Self::ApiKeyRevoked => &["api_key_id", "wallet_id", "name", "external_id", "reason"],
            Self::ApiKeyLimitReached => {
                &["api_key_id", "wallet_id", "spend_micros", "spend_window", "currency"]
            }
            Self::OperationAbandoned => {
                &["operation_id", "wallet_id", "api_key_id", "hold_micros", "currency"]
            }
            Self::OperationStuck => {
                &["operation_id", "wallet_id", "api_key_id", "status", "hold_micros", "currency"]
            }
            Self::OperationRefunded => &[
                "operation_id",
                "wallet_id",
                "posting_id",
                "amount_micros",
                "refunded_micros",
                "available_micros",
                "held_micros",
                "currency",
                "reason",
            ],
            Self::WebhookDisabled => &["webhook_id", "reason"],
            Self::WebhookTest => &["webhook_id"],
        }
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// Filter of a list of events. Both parts of it apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventFilter {
    /// Wallet of all events in the list.
    pub wallet: Option<WalletId>,
    /// Kind of all events in the list.
    pub kind: Option<EventKind>,
}

/// An event as its row has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRecord {
    /// Id of the event, which a webhook repeats as `webhook-id`.
    pub id: EventId,
    /// Kind of the event.
    pub kind: EventKind,
    /// Wallet whose holder may read it; `None` if it is only the operator's.
    pub wallet: Option<WalletId>,
    /// Moment at which it happened.
    pub created_at: Timestamp,
    /// Content: a JSON object, in the words of the API.
    pub data: Box<str>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_read_back() {
        let names: BTreeSet<_> = EventKind::ALL.iter().map(|kind| kind.label()).collect();
        assert_eq!(names.len(), EventKind::ALL.len());
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_label(kind.label()), Some(*kind));
        }
    }
}
