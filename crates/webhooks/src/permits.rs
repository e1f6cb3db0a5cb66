//! Permits: how many tries are under way at once, for each webhook and for the process.
//!
//! They are taken without waiting: a deliverer leases only what it can send at once, and passes
//! over the rows of webhooks that have no permit left. One slow receiver then keeps four places,
//! never all of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_domain::WebhookId;
use holdfast_domain::webhook::DeliveryRoom;

/// Tries of one webhook at once.
pub const ENDPOINT_TRIES_MAX: usize = 4;
/// Tries of the process at once.
pub const PROCESS_TRIES_MAX: usize = 64;

/// Tries under way by webhook. A webhook without one has no entry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Permits(Arc<Mutex<HashMap<WebhookId, usize>>>);

/// Right to one try for a webhook, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    permits: Permits,
    webhook: WebhookId,
}

impl Permits {
    /// Takes a permit; `None` where the webhook or the process has none left.
    pub(crate) fn take(&self, webhook: WebhookId) -> Option<Permit> {
        let mut counts = self.counts();
        if total(&counts) >= PROCESS_TRIES_MAX {
            return None;
        }
        let count = counts.entry(webhook).or_default();
        if *count >= ENDPOINT_TRIES_MAX {
            return None;
        }
        *count = count.saturating_add(1);
        Some(Permit { permits: self.clone(), webhook })
    }

    /// Permits that the process has left.
    pub(crate) fn free(&self) -> usize {
        PROCESS_TRIES_MAX.saturating_sub(total(&self.counts()))
    }

    /// Room that is left for deliveries.
    pub(crate) fn room(&self) -> DeliveryRoom {
        let counts = self.counts();
        DeliveryRoom {
            free: PROCESS_TRIES_MAX.saturating_sub(total(&counts)),
            per_webhook: ENDPOINT_TRIES_MAX,
            taken: counts.iter().map(|(webhook, count)| (*webhook, *count)).collect(),
        }
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<WebhookId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// At most [`PROCESS_TRIES_MAX`] entries: no sum is kept that could go wrong.
fn total(counts: &HashMap<WebhookId, usize>) -> usize {
    counts.values().sum()
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.permits.counts().entry(self.webhook) {
            *count.get_mut() = count.get().saturating_sub(1);
            // Or the map would grow with every webhook that was ever sent to.
            if *count.get() == 0 {
                count.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook(number: usize) -> WebhookId {
        WebhookId::from_u128(u128::try_from(number).unwrap())
    }

    #[test]
    fn a_webhook_has_four_permits_and_the_process_sixty_four() {
        let permits = Permits::default();
        let mut taken: Vec<Permit> =
            (0..64).map(|it| permits.take(webhook(it / 4)).unwrap()).collect();
        assert_eq!((permits.free(), permits.room().full().count()), (0, 16));
        assert!(permits.take(webhook(99)).is_none(), "the process has none left");
        taken.truncate(62);
        assert_eq!((permits.free(), permits.room().full().count()), (2, 15));
        assert!(permits.take(webhook(0)).is_none(), "the webhook has none left");
        assert!(permits.take(webhook(15)).is_some());
    }

    #[test]
    fn webhooks_without_a_try_are_forgotten() {
        let permits = Permits::default();
        drop(permits.take(webhook(1)));
        assert!(permits.counts().is_empty());
    }
}
