//! Notices: events that this process finds outside its commits, for those who subscribe to them.
//!
//! ```text
//! refused claim (spend limit) ──┐
//! reconciler (stuck operation) ─┴─▶ waiting ── every pass ──▶ outbox: one transaction
//!                                      └─ told: ids that need not be written again
//! ```
//!
//! Off the path: a refused claim leaves a few bytes in memory, and its caller does not wait. Both sets have a
//! bound. Notices beyond it are dropped: the same limit is met again, and the next refusal leaves the notice. An
//! event's id is derived from its content, so of several processes with the same notice one writes it.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_domain::EventId;
use holdfast_domain::admin::event::{NewEvent, SpendLimitReached};
use holdfast_domain::admin::ports::EventOutbox;
use holdfast_domain::ports::Unavailable;

/// Notices that wait for the next pass, at most, and ids that are remembered as written.
const NOTICES_MAX: usize = 1_024;

/// Notices of this process.
#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<NoticeSets>);

#[derive(Debug, Default)]
struct NoticeSets {
    waiting: BTreeMap<EventId, NewEvent>,
    recorded: HashSet<EventId>,
}

impl Notices {
    /// Notes that a claim was refused for what its key has spent.
    pub(crate) fn note_limit(&self, reached: &SpendLimitReached) {
        let id = reached.id();
        let mut sets = self.lock();
        if sets.has_room_for(id) {
            sets.waiting.insert(id, reached.event());
        }
    }

    /// Notes an event.
    pub(crate) fn note(&self, event: NewEvent) {
        let mut sets = self.lock();
        if sets.has_room_for(event.id) {
            sets.waiting.insert(event.id, event);
        }
    }

    /// Writes the waiting notices. If that fails they wait on.
    pub(crate) async fn write_to(&self, outbox: &dyn EventOutbox) -> Result<(), Unavailable> {
        let waiting: Vec<NewEvent> = self.lock().waiting.values().cloned().collect();
        if waiting.is_empty() {
            return Ok(());
        }
        outbox.record(&waiting).await?;
        let mut sets = self.lock();
        if sets.recorded.len() >= NOTICES_MAX {
            // All at once: one that is written again is found in its row.
            sets.recorded.clear();
        }
        for event in waiting {
            sets.waiting.remove(&event.id);
            sets.recorded.insert(event.id);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, NoticeSets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NoticeSets {
    fn has_room_for(&self, id: EventId) -> bool {
        !self.recorded.contains(&id) && self.waiting.len() < NOTICES_MAX
    }
}
