//! Permits: how many tries are under way at once, for each webhook, each wallet and the process.
//!
//! They are taken without waiting: a deliverer leases only what it can send at once, and passes over
//! the rows of webhooks and wallets that have no permit left. Who gets the next one is decided by
//! [`DeliveryRoom`].

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_domain::WebhookId;
use holdfast_domain::admin::webhook::{DeliveryRoom, TakenPlaces, TryResult, WebhookTenant};

/// Tries of one webhook at once.
pub const ENDPOINT_TRIES_MAX: usize = 4;
/// Tries of all webhooks of one wallet at once.
pub(crate) const WALLET_TRIES_MAX: usize = 16;
/// Tries of the process at once.
pub const PROCESS_TRIES_MAX: usize = 64;
/// Webhooks that are remembered to be slow. Beyond that all are forgotten, which costs each one more
/// time-out.
const SLOW_MAX: usize = 4_096;

/// Tries under way, and webhooks whose last try timed out.
// One lock for all webhooks: the bounds of a webhook and of its wallet are judged and taken in one step.
#[derive(Debug, Clone, Default)]
pub(crate) struct Permits(Arc<Mutex<Tries>>);

/// A webhook without a try has no entry.
#[derive(Debug, Default)]
struct Tries {
    by_webhook: HashMap<WebhookId, (WebhookTenant, usize)>,
    slow: BTreeSet<WebhookId>,
}

/// Right to one try for a webhook, until it is dropped.
#[derive(Debug)]
pub struct Permit {
    permits: Permits,
    webhook: WebhookId,
}

impl Permits {
    /// Takes a permit; `None` if the webhook, its wallet or the process has none left.
    pub(crate) fn take(&self, tenant: WebhookTenant, webhook: WebhookId) -> Option<Permit> {
        let mut tries = self.tries();
        if !tries.room().take(tenant, webhook) {
            return None;
        }
        let (_, count) = tries.by_webhook.entry(webhook).or_insert((tenant, 0));
        *count = count.saturating_add(1);
        Some(Permit { permits: self.clone(), webhook })
    }

    /// Room that is left for deliveries.
    pub(crate) fn room(&self) -> DeliveryRoom {
        self.tries().room()
    }

    fn tries(&self) -> MutexGuard<'_, Tries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tries {
    fn room(&self) -> DeliveryRoom {
        let taken = self.by_webhook.iter();
        let taken: Vec<_> = taken
            .map(|(webhook, (tenant, count))| TakenPlaces {
                webhook: *webhook,
                tenant: *tenant,
                count: *count,
            })
            .collect();
        // At most so many entries as places: no sum is kept that could go wrong.
        let total = taken.iter().map(|it| it.count).sum();
        DeliveryRoom {
            free: PROCESS_TRIES_MAX.saturating_sub(total),
            per_webhook: ENDPOINT_TRIES_MAX,
            per_wallet: WALLET_TRIES_MAX,
            taken,
            slow: self.slow.clone(),
        }
    }
}

impl Permit {
    /// Notes the result of the try.
    pub(crate) fn note(&self, result: TryResult) {
        let slow = &mut self.permits.tries().slow;
        match result {
            TryResult::TimedOut => {
                if slow.len() >= SLOW_MAX {
                    slow.clear();
                }
                slow.insert(self.webhook);
            }
            TryResult::Answered(_)
            | TryResult::UrlRefused
            | TryResult::HostNotFound
            | TryResult::AddressRefused
            | TryResult::Unreached
            | TryResult::TlsFailed
            | TryResult::Broken
            | TryResult::Unsigned => {
                slow.remove(&self.webhook);
            }
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let tries = &mut self.permits.tries().by_webhook;
        if let Some((_, count)) = tries.get_mut(&self.webhook) {
            *count = count.saturating_sub(1);
            // Or the map would grow with every webhook that was ever sent to.
            if *count == 0 {
                tries.remove(&self.webhook);
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
            (0..64).map(|it| permits.take(None, webhook(it / 4)).unwrap()).collect();
        assert_eq!((permits.room().free, permits.room().full().count()), (0, 16));
        assert!(permits.take(None, webhook(99)).is_none(), "the process has none left");
        taken.truncate(62);
        assert_eq!((permits.room().free, permits.room().full().count()), (2, 15));
        assert!(permits.take(None, webhook(0)).is_none(), "the webhook has none left");
        assert!(permits.take(None, webhook(15)).is_some());
    }

    #[test]
    fn webhooks_without_a_try_are_forgotten() {
        let permits = Permits::default();
        drop(permits.take(None, webhook(1)));
        assert!(permits.tries().by_webhook.is_empty());
    }

    #[test]
    fn a_webhook_is_slow_from_a_time_out_to_its_next_other_result() {
        let permits = Permits::default();
        let permit = permits.take(None, webhook(1)).unwrap();
        permit.note(TryResult::TimedOut);
        assert!(permits.take(None, webhook(1)).is_none());
        permit.note(TryResult::Answered(500));
        assert!(permits.take(None, webhook(1)).is_some());
    }
}
