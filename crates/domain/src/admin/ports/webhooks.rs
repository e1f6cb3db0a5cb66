//! The ports of webhooks: their rows, the deliveries that are due, and the judgement of addresses.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::admin::WebhookRecord;
use crate::admin::listing::{Page, PageRequest};
use crate::admin::webhook::{
    DeliveryNumber, DeliveryRecord, DeliveryRoom, Endpoint, FinishedTry, FollowUp, Origin,
    TryResult,
};
use crate::operation::Node;
use crate::ports::Unavailable;
use crate::private::Private;
use crate::{EventId, Timestamp, WalletId, WebhookId};

/// Finds and lists webhooks and what was sent to them.
#[async_trait]
pub trait Webhooks: Send + Sync {
    /// Reads a webhook.
    async fn webhook(&self, id: WebhookId) -> Result<Option<WebhookRecord>, Unavailable>;

    /// Lists webhooks: those of a wallet, or all.
    async fn webhooks(
        &self,
        wallet: Option<WalletId>,
        page: PageRequest,
    ) -> Result<Page<WebhookRecord>, Unavailable>;

    /// Reads the delivery of an event to a webhook.
    async fn delivery(
        &self,
        webhook: WebhookId,
        event: EventId,
    ) -> Result<Option<DeliveryRecord>, Unavailable>;

    /// Lists the deliveries to a webhook.
    async fn deliveries(
        &self,
        webhook: WebhookId,
        page: PageRequest,
    ) -> Result<Page<DeliveryRecord>, Unavailable>;
}

/// Work that waits in the outbox. It is looked at often, so it is cheap: no row is written, and few
/// are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outbox {
    /// True if an event has not been fanned out.
    pub has_events: bool,
    /// Moment at which the next delivery is due; `None` if none is pending.
    pub next_due_at: Option<Timestamp>,
    /// The database's clock.
    pub now: Timestamp,
}

/// A delivery that was leased, with all that one try of it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueDelivery {
    /// Number of the delivery.
    pub number: DeliveryNumber,
    /// Webhook that it is for.
    pub webhook: WebhookRecord,
    /// Event to deliver.
    pub event: EventId,
    /// Name of the event's kind, which may be one that only a later version knows.
    pub kind: Box<str>,
    /// Wallet that the event is of.
    pub wallet: Option<WalletId>,
    /// Moment of the event.
    pub created_at: Timestamp,
    /// Content of the event: a JSON object.
    pub data: Private<Box<str>>,
    /// The database's clock at the lease.
    pub leased_at: Timestamp,
}

/// Keeps deliveries. Any process may do any of this at any time, and several at once: an event is
/// fanned out once to each webhook, and a delivery has one owner at a time.
#[async_trait]
pub trait Deliveries: Send + Sync {
    /// Looks for work.
    async fn outbox(&self) -> Result<Outbox, Unavailable>;

    /// Completes once a commit of this process has written an event since the last completion. Events of other
    /// processes, and those whose commit got no answer, are in the reports of heartbeats. Cancel safe.
    async fn event_written(&self);

    /// Creates the deliveries of at most so many events, and returns the number of those events.
    async fn fan_out(&self, events_max: u32) -> Result<usize, Unavailable>;

    /// Leases deliveries that are due, those that wait longest first, as far as there is room. Those
    /// of disabled webhooks are dead by this.
    async fn lease_deliveries(
        &self,
        owner: &Node,
        lease: Duration,
        room: &DeliveryRoom,
    ) -> Result<Vec<DueDelivery>, Unavailable>;

    /// Keeps the results of attempts in one transaction, each with its consequence
    /// ([`follow_up`](crate::admin::webhook::follow_up)), in their order; `None` if the delivery is not this
    /// owner's any more, and no row of it was written. Of attempts of one webhook each is judged by the state
    /// that the one before it has left.
    async fn finish_tries(
        &self,
        owner: &Node,
        finished: &[FinishedTry],
    ) -> Result<Vec<Option<FollowUp>>, Unavailable>;

    /// Gives back what this owner has leased and not finished: it is due at once.
    async fn give_back(&self, owner: &Node) -> Result<(), Unavailable>;
}

/// Judges the addresses of receivers, by the list of origins of now.
#[async_trait]
pub trait Endpoints: Send + Sync {
    /// Origins that the operator has listed.
    fn allowed(&self) -> Arc<[Origin]>;

    /// Looks an endpoint up and judges its addresses; connects to none of them.
    ///
    /// # Errors
    ///
    /// The [`TryResult`] of an attempt that would end before a connection, such as [`TryResult::HostNotFound`] and
    /// [`TryResult::AddressRefused`].
    async fn check(&self, endpoint: &Endpoint) -> Result<(), TryResult>;
}
