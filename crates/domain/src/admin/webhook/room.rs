//! Places for tries of webhooks, and who gets the next one.
//!
//! Tenants take turns: the next place goes to the tenant that has the fewest, so that one whose receiver hangs
//! delays no other for longer than an attempt. A webhook, and a wallet over all its webhooks, have a bound of
//! their own; a webhook whose last attempt timed out has one place.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter;

use crate::{WalletId, WebhookId};

/// Tenant that a webhook is of: a wallet, or `None` for the operator.
pub type WebhookTenant = Option<WalletId>;

/// Places for deliveries that a process can send at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryRoom {
    /// Places that are left, over all webhooks.
    pub free: usize,
    /// Places that each webhook has.
    pub per_webhook: usize,
    /// Places that each wallet has, over all its webhooks. The operator's webhooks have no such bound.
    pub per_wallet: usize,
    /// Places that are taken; a webhook without one stands not in here.
    pub taken: Vec<TakenPlaces>,
    /// Webhooks whose last try timed out: each has one place.
    pub slow: BTreeSet<WebhookId>,
}

/// Places of one webhook that are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenPlaces {
    /// The webhook.
    pub webhook: WebhookId,
    /// Tenant that it is of.
    pub tenant: WebhookTenant,
    /// Count of these places.
    pub count: usize,
}

impl DeliveryRoom {
    /// Webhooks that have no place left.
    pub fn full(&self) -> impl Iterator<Item = WebhookId> {
        let full = self.taken.iter().filter(|it| it.count >= self.bound(it.webhook));
        full.map(|it| it.webhook)
    }

    /// Wallets that have no place left.
    #[must_use]
    pub fn full_wallets(&self) -> BTreeSet<WalletId> {
        let wallets = self.taken.iter().filter_map(|it| it.tenant);
        wallets.filter(|wallet| self.is_full(Some(*wallet))).collect()
    }

    /// Takes places for deliveries, the longest due of each tenant first, and returns those that got
    /// one.
    pub fn assign<T>(
        &mut self,
        due: Vec<T>,
        of: impl Fn(&T) -> (WebhookTenant, WebhookId),
    ) -> Vec<T> {
        let mut waiting: BTreeMap<WebhookTenant, VecDeque<T>> = BTreeMap::new();
        for delivery in due {
            waiting.entry(of(&delivery).0).or_default().push_back(delivery);
        }
        let mut assigned = Vec::new();
        loop {
            let next = waiting.keys().copied().min_by_key(|tenant| self.taken_by(*tenant));
            let Some(tenant) = next.filter(|_| self.free > 0) else { return assigned };
            let Some(mut queue) = waiting.remove(&tenant) else { return assigned };
            let placed = iter::from_fn(|| queue.pop_front())
                .find(|delivery| self.take(tenant, of(delivery).1));
            // A tenant without a place for any of its deliveries leaves the round: its bounds stay
            // full until an attempt ends.
            if let Some(delivery) = placed {
                assigned.push(delivery);
                waiting.insert(tenant, queue);
            }
        }
    }

    fn bound(&self, webhook: WebhookId) -> usize {
        if self.slow.contains(&webhook) { self.per_webhook.min(1) } else { self.per_webhook }
    }

    fn taken_by(&self, tenant: WebhookTenant) -> usize {
        self.taken.iter().filter(|it| it.tenant == tenant).map(|it| it.count).sum()
    }

    fn is_full(&self, tenant: WebhookTenant) -> bool {
        tenant.is_some() && self.taken_by(tenant) >= self.per_wallet
    }

    /// Takes a place of this webhook, if it has one.
    pub fn take(&mut self, tenant: WebhookTenant, webhook: WebhookId) -> bool {
        if self.free == 0 || self.is_full(tenant) {
            return false;
        }
        let bound = self.bound(webhook);
        let known = self.taken.iter_mut().find(|it| it.webhook == webhook);
        match known {
            Some(known) if known.count >= bound => return false,
            Some(known) => known.count = known.count.saturating_add(1),
            None => self.taken.push(TakenPlaces { webhook, tenant, count: 1 }),
        }
        self.free = self.free.saturating_sub(1);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    fn room(free: usize) -> DeliveryRoom {
        let (taken, slow) = (Vec::new(), BTreeSet::new());
        DeliveryRoom { free, per_webhook: 4, per_wallet: 16, taken, slow }
    }

    /// Deliveries of so many webhooks of a tenant, each with `n` that are due.
    fn due(
        tenant: WebhookTenant,
        webhooks: Range<u128>,
        n: usize,
    ) -> Vec<(WebhookTenant, WebhookId)> {
        let webhooks = webhooks.map(WebhookId::from_u128);
        webhooks.flat_map(|webhook| iter::repeat_n((tenant, webhook), n)).collect()
    }

    fn count(assigned: &[(WebhookTenant, WebhookId)], tenant: WebhookTenant) -> usize {
        assigned.iter().filter(|it| it.0 == tenant).count()
    }

    #[test]
    fn a_webhook_takes_its_places_and_no_more_than_there_are() {
        let [one, other, third] = [1, 2, 3].map(WebhookId::from_u128);
        let taken = vec![TakenPlaces { webhook: one, tenant: None, count: 1 }];
        let mut room = DeliveryRoom { per_webhook: 2, taken, ..room(4) };
        let took = [one, one, other, other, other].map(|webhook| room.take(None, webhook));
        assert_eq!(took, [true, false, true, true, false]);
        assert_eq!(room.full().collect::<Vec<_>>(), [one, other]);
        assert!(room.take(None, third) && !room.take(None, third), "no place is left for anybody");
    }

    #[test]
    fn a_wallet_has_sixteen_places_and_the_operator_all() {
        let [wallet, other] = [1, 2].map(|id| Some(WalletId::from_u128(id)));
        let mut room = room(64);
        let assigned = room.assign(due(wallet, 0..16, 40), |it| *it);
        assert_eq!(assigned.len(), 16);
        assert_eq!(room.full_wallets(), BTreeSet::from_iter(wallet));
        // It waits behind what has been due for longer, and gets its place at once.
        let all = [due(wallet, 0..16, 40), due(other, 20..21, 1), due(None, 30..50, 4)].concat();
        let assigned = room.assign(all, |it| *it);
        assert_eq!((count(&assigned, wallet), count(&assigned, other)), (0, 1));
        assert_eq!((count(&assigned, None), room.free), (47, 0));
    }

    #[test]
    fn tenants_take_turns_over_places_that_become_free() {
        let tenants = [1, 2, 3, 4].map(|id| Some(WalletId::from_u128(id)));
        let mut room = room(64);
        let webhooks = |at: u128| at * 16..(at + 1) * 16;
        let flood = (0..).zip(tenants).flat_map(|(at, tenant)| due(tenant, webhooks(at), 40));
        let flood: Vec<_> = flood.collect();
        assert_eq!(room.assign(flood.clone(), |it| *it).len(), 64);
        room.free = 1;
        room.taken[0].count -= 1;
        let late = Some(WalletId::from_u128(9));
        let all = [flood, due(late, 99..100, 1)].concat();
        assert_eq!(count(&room.assign(all, |it| *it), late), 1);
    }

    #[test]
    fn a_webhook_whose_tries_time_out_has_one_place() {
        let slow = WebhookId::from_u128(0);
        let mut room = DeliveryRoom { slow: BTreeSet::from([slow]), ..room(64) };
        let assigned = room.assign(due(None, 0..2, 9), |it| *it);
        assert_eq!((assigned.len(), room.full().count()), (5, 2));
    }
}
