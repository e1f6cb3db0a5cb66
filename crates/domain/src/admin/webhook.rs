//! Rules of webhooks: the addresses that one may send to, and what follows each try to deliver an
//! event.
//!
//! ```text
//! event ─▶ delivery ─▶ try 1 ─┬─ 2xx ─────────────────▶ delivered
//!   (one for each webhook)    ├─ 410 ─────────────────▶ the webhook is disabled
//!                             └─ anything else ─▶ pause ─▶ try 2 … try 10 ─▶ dead
//!                                  ten dead deliveries in a row ─▶ the webhook is disabled
//! ```
//!
//! A receiver must be prepared to get an event twice: an attempt whose answer was lost is made again. Receivers
//! distinguish events by their ids, and no order of them is promised.
//!
//! Never: an address inside the operator's network because a user who may create a webhook names it.
//! [`Endpoint`] judges the text, [`is_global`] each address that its name has; origins that the operator has
//! listed are judged by neither.
//!
//! Not here: the key that signs ([`ServerSecret::webhook_key`](crate::secret::ServerSecret)), and
//! all that waits, resolves or connects.

mod address;
mod delivery;
mod endpoint;
mod origin;
mod outcome;
mod room;
mod rotation;
mod schedule;

pub use self::address::is_global;
pub use self::delivery::{
    DeliveryNumber, DeliveryRecord, DeliveryState, FinishedTry, WEBHOOK_DISABLED,
};
pub use self::endpoint::{BadEndpoint, Endpoint};
pub use self::origin::{BadOrigin, Host, Origin, Scheme};
pub use self::outcome::{DeliveryHistory, DisableReason, FollowUp, TryResult, follow_up};
pub use self::room::{DeliveryRoom, TakenPlaces, WebhookTenant};
pub use self::rotation::SecretGenerations;
pub use self::schedule::{TRIES_MAX, pause_after};
