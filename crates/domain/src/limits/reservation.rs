//! Reservation of an operation, and the corrections that each ending makes of it: the table in [`super`].

use super::{Counter, CounterMove, Limits, Unit, amount};
use crate::Micros;

/// Counters that an operation reserved, and the amounts that do not follow from the hold. The row keeps it, so
/// that an ending corrects exactly the reservation, even if the key's limits have changed by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reservation {
    /// Bits of the reserved ones, in the order of [`Counter::ALL`], the first the lowest; and
    /// [`Self::CANCELLED_OPEN`].
    counters: u8,
    /// Tokens reserved of the minute's.
    tokens: u64,
}

impl Reservation {
    /// Bit of the reservation of an operation that was cancelled while it was open: T3 had returned what it reserved,
    /// which its phase no longer shows. Of no counter.
    pub const CANCELLED_OPEN: u8 = {
        assert!(Counter::ALL.len() <= 7, "the eighth bit of a reservation is no counter's");
        1 << 7
    };

    /// Reservation that these limits make of an operation of so many tokens.
    #[must_use]
    pub fn for_limits(limits: &Limits, tokens: u64) -> Self {
        let counters = limits
            // Only which counters they are: how much is reserved of each is in the row.
            .reservations(Micros::ZERO, tokens)
            .iter()
            .fold(0, |bits, reserved| bits | Self::bit(reserved.counter));
        // Tokens alone need a number of their own: spend is the hold, the other two are 1. Kept without a
        // limit as well: one that is set while the operation runs counts them.
        Self { counters, tokens }
    }

    /// Reservation that a row holds.
    #[must_use]
    pub const fn from_stored(counters: u8, tokens: u64) -> Self {
        Self { counters, tokens }
    }

    /// The bits that a row holds.
    #[must_use]
    pub const fn counters(&self) -> u8 {
        self.counters
    }

    /// Number of the reserved counters.
    #[must_use]
    pub const fn counters_reserved(&self) -> u32 {
        (self.counters & !Self::CANCELLED_OPEN).count_ones()
    }

    /// Copy of the reservation with the mark that T3 gave it back before its operation ended.
    #[must_use]
    pub const fn as_cancelled_open(self) -> Self {
        Self { counters: self.counters | Self::CANCELLED_OPEN, ..self }
    }

    /// True for a reservation that T3 gave back before its operation ended.
    #[must_use]
    pub const fn is_cancelled_open(&self) -> bool {
        self.counters & Self::CANCELLED_OPEN != 0
    }

    /// The tokens that a row holds.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The reservation with one more counter.
    #[must_use]
    pub fn with(self, counter: Counter) -> Self {
        Self { counters: self.counters | Self::bit(counter), ..self }
    }

    pub(super) fn bit(counter: Counter) -> u8 {
        1_u8.wrapping_shl(counter.index().into())
    }

    /// T3: there was no run, and all goes back but the request of a generation after the first.
    #[must_use]
    pub fn not_run_moves(&self, hold: Micros, generation: u32) -> Vec<CounterMove> {
        self.moves(|unit| match unit {
            // Given back once for an operation: each reopening writes rows that stay for ever.
            Unit::Requests if generation > 1 => 0,
            Unit::Requests | Unit::Running => -1,
            Unit::Tokens => amount(self.tokens).saturating_neg(),
            Unit::Micros => hold.negated().get(),
        })
    }

    /// T4 to T6: the run may have happened and is not charged. The request and the bound of its
    /// tokens stay counted.
    #[must_use]
    pub fn release_moves(&self, hold: Micros) -> Vec<CounterMove> {
        self.moves(|unit| match unit {
            Unit::Requests | Unit::Tokens => 0,
            Unit::Running => -1,
            Unit::Micros => hold.negated().get(),
        })
    }

    /// Corrects the reservation to what was used: the request counts, the rest shrinks to the truth.
    #[must_use]
    pub fn settlement_moves(&self, hold: Micros, charge: Micros, tokens: u64) -> Vec<CounterMove> {
        self.moves(|unit| match unit {
            Unit::Requests => 0,
            Unit::Running => -1,
            // Of either sign: a model that thought beyond its bound counts for what it used.
            Unit::Tokens => amount(tokens).saturating_sub(amount(self.tokens)),
            Unit::Micros => charge.get().saturating_sub(hold.get()),
        })
    }

    fn moves(&self, by: impl Fn(Unit) -> i64) -> Vec<CounterMove> {
        Counter::ALL
            .into_iter()
            .filter(|counter| self.counters & Self::bit(*counter) != 0)
            .map(|counter| CounterMove { counter, amount: by(counter.unit()), bound: None })
            // Nothing to correct is nothing to write.
            .filter(|moved| moved.amount != 0)
            .collect()
    }
}
