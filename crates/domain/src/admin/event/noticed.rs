//! Events of what operations do to wallets and keys, and of what they do not: they come from batches of
//! the writer, from claims that were refused, and from the reconciler.
//!
//! A batch knows a wallet by its balance alone. So the events that it writes leave the currency out,
//! which comes last among their members: the store adds it from the wallet's row as it writes.

use super::new_event::EventData;
use super::{EventKind, NewEvent};
use crate::limits::{Counter, SpendLimit, SpendWindow};
use crate::operation::{Effect, Operation, Transition};
use crate::{ApiKeyId, Currency, EventId, Micros, Timestamp, WalletId};

/// A wallet that has a threshold (`low_balance_micros`), after a change of its balance.
///
/// The amount that counts is available + held: a hold takes no money away, and held money may come back. Only
/// charges and adjustments lower that sum, and only postings raise it, so between two postings it goes below
/// the threshold once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LowBalance {
    /// The wallet.
    pub wallet: WalletId,
    /// Amount that is available after the change.
    pub available: Micros,
    /// Amount that is held after the change.
    pub held: Micros,
    /// The threshold.
    pub threshold: Micros,
}

impl LowBalance {
    /// The event, if the change from `before` took the wallet from its threshold or above to below it. `cause`
    /// is the id of the operation or the posting that changed it.
    #[must_use]
    pub fn event(&self, before: [Micros; 2], cause: [u8; 16]) -> Option<NewEvent> {
        // Only by the change that takes it below, or each further charge would be one more event.
        if !self.is_low([self.available, self.held]) || self.is_low(before) {
            return None;
        }
        let data = EventData::default()
            .text("wallet_id", self.wallet)
            .micros("available_micros", self.available)
            .micros("held_micros", self.held)
            .micros("low_balance_micros", self.threshold);
        // An operation is charged once and a posting is made once, so neither can tell it twice.
        let id = EventId::of(EventKind::WalletLow.label(), &[&self.wallet.to_bytes(), &cause]);
        let wallet = Some(self.wallet);
        Some(NewEvent { id, kind: EventKind::WalletLow, wallet, data: data.0 })
    }

    /// True if these amounts are below the threshold. No balance is below zero: a threshold of zero means
    /// *empty*.
    #[must_use]
    pub fn is_low(&self, [available, held]: [Micros; 2]) -> bool {
        let sum = available.plus(held).unwrap_or(Micros::MAX);
        sum < self.threshold.max(Micros::new(1))
    }
}

/// The event of a transition that gives its operation up; `None` for any other.
#[must_use]
pub fn abandoned(transition: &Transition) -> Option<NewEvent> {
    let Effect::Abandon { .. } = transition.effect else { return None };
    let hold = transition.funds.balance_change().available;
    let data = EventData::default()
        .text("operation_id", transition.operation)
        .text("wallet_id", transition.wallet)
        .text("api_key_id", transition.api_key)
        .micros("hold_micros", hold);
    let (kind, wallet) = (EventKind::OperationAbandoned, Some(transition.wallet));
    let id = EventId::of(kind.label(), &[&transition.operation.to_bytes()]);
    Some(NewEvent { id, kind, wallet, data: data.0 })
}

/// The event of an operation that does not come to rest; one for each of its generations.
#[must_use]
pub fn stuck(operation: &Operation) -> NewEvent {
    let data = EventData::default()
        .text("operation_id", operation.id)
        .text("wallet_id", operation.wallet)
        .text("api_key_id", operation.api_key)
        .text("status", operation.phase.label())
        .micros("hold_micros", operation.hold)
        .text("currency", operation.price.currency);
    // An operation that was opened again may be stuck again: each generation has its event.
    let generation = operation.generation.to_be_bytes();
    let id =
        EventId::of(EventKind::OperationStuck.label(), &[&operation.id.to_bytes(), &generation]);
    let wallet = Some(operation.wallet);
    NewEvent { id, kind: EventKind::OperationStuck, wallet, data: data.0 }
}

/// A claim that was refused because its API key has spent what it may. One event for each window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpendLimitReached {
    /// The key.
    pub api_key: ApiKeyId,
    /// Wallet of the key.
    pub wallet: WalletId,
    /// Currency of the wallet.
    pub currency: Currency,
    /// The bound.
    pub limit: SpendLimit,
    /// The database's clock at the refusal.
    pub at: Timestamp,
}

impl SpendLimitReached {
    /// Id of the event: the same for all refusals of a key in a window, under one bound.
    #[must_use]
    pub fn id(&self) -> EventId {
        let counter = self.limit.window.counter();
        let parts: [&[u8]; 4] = [
            &self.api_key.to_bytes(),
            counter.label().as_bytes(),
            &counter.window(self.at).as_micros().to_be_bytes(),
            &self.limit.micros.get().to_be_bytes(),
        ];
        EventId::of(EventKind::ApiKeyLimitReached.label(), &parts)
    }

    /// The event.
    #[must_use]
    pub fn event(&self) -> NewEvent {
        let data = EventData::default()
            .text("api_key_id", self.api_key)
            .text("wallet_id", self.wallet)
            .micros("spend_micros", self.limit.micros)
            .text("spend_window", self.limit.window.label())
            .text("currency", self.currency);
        let (kind, wallet) = (EventKind::ApiKeyLimitReached, Some(self.wallet));
        NewEvent { id: self.id(), kind, wallet, data: data.0 }
    }
}

/// Window of spend that a counter sums; `None` for a counter of another unit.
#[must_use]
pub fn spend_window(counter: Counter) -> Option<SpendWindow> {
    SpendWindow::ALL.into_iter().find(|window| window.counter() == counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(threshold: i64, before: [i64; 2], after: [i64; 2]) -> bool {
        let [available, held] = after.map(Micros::new);
        let wallet = WalletId::from_u128(1);
        let low = LowBalance { wallet, available, held, threshold: Micros::new(threshold) };
        low.event(before.map(Micros::new), [7; 16]).is_some()
    }

    #[test]
    fn a_wallet_is_told_low_by_the_change_that_takes_it_below() {
        for (threshold, before, after, is_told) in [
            (100, [60, 40], [59, 40], true),
            (100, [60, 40], [40, 60], false),
            (100, [60, 40], [0, 100], false),
            (100, [60, 39], [50, 39], false),
            (100, [200, 0], [100, 0], false),
            (100, [99, 0], [100, 0], false),
            (100, [100, 0], [0, 0], true),
            (0, [1, 0], [0, 0], true),
            (0, [5, 0], [1, 0], false),
            (0, [0, 5], [0, 0], true),
            (0, [0, 0], [0, 0], false),
            (i64::MAX, [i64::MAX, 1], [i64::MAX - 1, 0], true),
        ] {
            let was = told(threshold, before, after);
            assert_eq!(was, is_told, "{threshold}: {before:?} to {after:?}");
        }
    }

    #[test]
    fn only_counters_of_spend_have_a_window_of_spend() {
        let windows: Vec<_> = Counter::ALL.into_iter().filter_map(spend_window).collect();
        assert_eq!(windows, SpendWindow::ALL);
    }
}
