//! The ports of events: their lists, and the outbox for noticed events.

use async_trait::async_trait;

use crate::EventId;
use crate::admin::event::{EventFilter, EventRecord, NewEvent};
use crate::admin::listing::{Page, PageRequest};
use crate::ports::Unavailable;

/// Lists events. Each page is read at its own moment, and no order is promised among events of
/// transactions that ran at once.
#[async_trait]
pub trait Events: Send + Sync {
    /// Lists events.
    async fn events(
        &self,
        filter: EventFilter,
        page: PageRequest,
    ) -> Result<Page<EventRecord>, Unavailable>;

    /// Finds the event of this id.
    async fn event(&self, id: EventId) -> Result<Option<EventRecord>, Unavailable>;
}

/// Takes events that a process noticed without a change: a limit that was reached, an operation that does not
/// come to rest.
#[async_trait]
pub trait EventOutbox: Send + Sync {
    /// Writes those that may have a reader, each once: one whose id exists already was written before.
    async fn record(&self, noticed: &[NewEvent]) -> Result<(), Unavailable>;
}
