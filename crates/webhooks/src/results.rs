//! Results of tries on their way into the store: collected while a write is under way, and kept by
//! the next one together.
//!
//! ```text
//! try ends ─▶ waiting ─▶ batch ─▶ finish_tries ─▶ kept
//!                ▲                     └─ fails ─▶ OFFERS_MAX times: the lease ends, and the event is
//!                └── after BETWEEN_OFFERS ┘        sent again
//! ```
//!
//! A process has one such write on its way at a time, however many tries end at once: what else is
//! written beside the claims, heartbeats and administration among it, never stands behind a crowd.
//! The permits bound the results that wait, which count against the room of the next lease.
//!
//! A batch is removed after it was committed, and not before: a write whose future was dropped may be offered
//! again, and has no effect then.

use std::collections::VecDeque;
use std::time::Duration;

use holdfast_domain::admin::webhook::{FinishedTry, FollowUp};
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{ErrorChain, EventId};
use metrics::counter;
use tokio::time::Instant;

use crate::permits::PROCESS_TRIES_MAX;

/// Offers of one result to a store that does not answer, and the pause between two.
const OFFERS_MAX: u32 = 3;
pub(crate) const BETWEEN_OFFERS: Duration = Duration::from_secs(1);

pub(crate) const DELIVERIES: &str = "holdfast_webhook_deliveries_total";

/// Result of a try of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventTry {
    pub(crate) finished: FinishedTry,
    pub(crate) event: EventId,
}

/// Results that are not kept yet, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct TryResults {
    waiting: VecDeque<(EventTry, u32)>,
    /// Moment of the next offer, after one that failed.
    rests_until: Option<Instant>,
}

impl TryResults {
    pub(crate) fn push(&mut self, result: EventTry) {
        self.waiting.push_back((result, 0));
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The results of the next write; none while the store rests.
    pub(crate) fn batch(&self) -> Vec<FinishedTry> {
        if self.rests_until.is_some_and(|until| Instant::now() < until) {
            return Vec::new();
        }
        let oldest = self.waiting.iter().take(PROCESS_TRIES_MAX);
        oldest.map(|(result, _offers)| result.finished).collect()
    }

    /// Removes the oldest results, of which these consequences were kept.
    pub(crate) fn kept(&mut self, followed: &[Option<FollowUp>]) {
        self.rests_until = None;
        let count = followed.len().min(self.waiting.len());
        for ((result, _offers), next) in self.waiting.drain(..count).zip(followed) {
            if let Some(state) = next.and_then(ended_state) {
                counter!(DELIVERIES, "state" => state).increment(1);
            }
            if let Some(FollowUp::Disable(reason)) = next {
                let reason = reason.label();
                tracing::warn!(event.id = %result.event, reason, "a webhook was disabled");
            }
        }
    }

    /// Has the oldest results wait for another offer. Those that have had all of theirs are as good as
    /// lost answers.
    pub(crate) fn put_off(&mut self, count: usize, error: &Unavailable) {
        self.rests_until = Some(Instant::now() + BETWEEN_OFFERS);
        let count = count.min(self.waiting.len());
        // Beyond the batch: these were not offered, and keep all their offers.
        let later = self.waiting.split_off(count);
        for (result, offers) in std::mem::take(&mut self.waiting) {
            let offers = offers.saturating_add(1);
            if offers < OFFERS_MAX {
                self.waiting.push_back((result, offers));
            } else {
                let event = result.event;
                let error = ErrorChain(error);
                tracing::warn!(event.id = %event, %error, "a delivery was not noted: it is sent again");
            }
        }
        self.waiting.extend(later);
    }
}

/// State in which a delivery has ended.
const fn ended_state(next: FollowUp) -> Option<&'static str> {
    match next {
        FollowUp::Delivered => Some("delivered"),
        FollowUp::Dead | FollowUp::Disable(_) => Some("dead"),
        FollowUp::Retry(_) => None,
    }
}
