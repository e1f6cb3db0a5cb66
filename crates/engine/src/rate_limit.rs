//! Status of the limits by the minute for one request: read off the receipt of its claim, without another read of
//! the store.

use std::time::Duration;

use holdfast_domain::Timestamp;
use holdfast_domain::limits::{Counter, CounterReadings, Limits, ReachedLimit};
use holdfast_domain::operation::Operation;

/// A limit of so much a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimitWindow {
    /// Limit of a minute.
    pub limit: u64,
    /// Rest in the minute of the claim.
    pub remaining: u64,
    /// Time until that minute ends.
    pub resets_in: Duration,
}

/// The limits by the minute that an API key has. None of them is known for an answer without a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateLimitStatus {
    /// Runs a minute.
    pub requests: Option<RateLimitWindow>,
    /// Tokens a minute.
    pub tokens: Option<RateLimitWindow>,
}

impl RateLimitStatus {
    /// Status as a run leaves it: what it had reserved and did not use is free again.
    pub(crate) fn after(
        limits: &Limits,
        readings: CounterReadings,
        operation: &Operation,
        now: Timestamp,
    ) -> Self {
        // Computed, not read: the counters may have moved on by others since, which the next claim shows.
        let readings = readings.with_moves(&operation.corrections());
        Self::of(limits, &readings, operation.admitted_at, now)
    }

    /// Status as a refused claim found it.
    pub(crate) fn at(limits: &Limits, reached: &ReachedLimit) -> Self {
        Self::of(limits, &reached.counters, reached.at, reached.at)
    }

    fn of(
        limits: &Limits,
        readings: &CounterReadings,
        claimed_at: Timestamp,
        now: Timestamp,
    ) -> Self {
        let rate = |limit: Option<u64>, counter: Counter| {
            let (limit, used) = (limit?, readings.used(counter)?);
            let remaining = limit.saturating_sub(u64::try_from(used).unwrap_or(0));
            // Of the minute that the claim counted in, also if the run has lasted into a later one.
            let resets_in = counter.window_end(claimed_at)?.since(now);
            Some(RateLimitWindow { limit, remaining, resets_in })
        };
        Self {
            requests: rate(limits.requests_per_minute, Counter::Requests),
            tokens: rate(limits.tokens_per_minute, Counter::Tokens),
        }
    }
}
