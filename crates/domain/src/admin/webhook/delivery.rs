//! Deliveries as their rows have them: one event on its way to one webhook.
//!
//! ```text
//!            lease               2xx
//! pending ──────────▶ (a try) ─────────▶ delivered
//!    ▲                   │ no try left, 410, or the webhook is disabled when its time comes
//!    │  pause            ├─────────▶ dead
//!    ╰───────────────────╯
//!    ╰──────────── send again, from either end
//! ```
//!
//! A delivery has one moment, `next_at`: the end of its pause, or of its sender's lease. Once that has passed
//! any process may lease it. So a process that dies during an attempt delays a delivery for at most its lease,
//! and its receiver may get the event twice.

use super::TryResult;
use crate::{EventId, Timestamp, WebhookId};

/// Number of a delivery in its table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeliveryNumber(pub i64);

/// State of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryState {
    /// A try is to come, or under way.
    Pending,
    /// The receiver has it.
    Delivered,
    /// No more is sent, unless a person requests it.
    Dead,
}

impl DeliveryState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delivered, Self::Dead];

    /// The name in rows and answers.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }
}

/// A delivery as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRecord {
    /// Event to deliver.
    pub event: EventId,
    /// Name of the event's kind, which may be one that only a later version knows.
    pub kind: Box<str>,
    /// Webhook that it is for.
    pub webhook: WebhookId,
    /// State of the delivery.
    pub state: DeliveryState,
    /// Tries that were made.
    pub tries: u32,
    /// Moment from which it is tried, while it is pending.
    pub next_at: Option<Timestamp>,
    /// Name of the last try's result ([`TryResult::label`]), or `webhook_disabled`.
    pub last_result: Option<Box<str>>,
    /// Status of the last answer, if that attempt had one.
    pub last_status: Option<u16>,
    /// Moment of the fan-out.
    pub created_at: Timestamp,
    /// Moment at which it was delivered or dead.
    pub finished_at: Option<Timestamp>,
}

/// Name of the result of a delivery whose time came while its webhook was disabled: no request was sent.
pub const WEBHOOK_DISABLED: &str = "webhook_disabled";

/// Result of a try on its way to its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedTry {
    /// The delivery.
    pub delivery: DeliveryNumber,
    /// Result of the try.
    pub result: TryResult,
    /// Any 32 bits, which spread the pause.
    pub random: u32,
    /// Id of the event about a disabled webhook, if this attempt disables it.
    pub event: EventId,
}
