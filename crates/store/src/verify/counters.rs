//! Expected counters of API keys, by their operations' rows.
//!
//! Counters of days, months and all time are exact. Those of minutes are looked at for an hour
//! only: the next minute forgets them, and they are deleted after two days. Rows do not tell two
//! things of them: whether what was abandoned had been sent to anybody, and which limits an earlier
//! generation had. So these have bounds.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::limits::Counter;
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::{ApiKeyId, Timestamp};

use crate::judge::Window;

/// Minutes that began before this are not looked at.
const RECENT_MICROS: i64 = 3_600 * 1_000_000;

/// Ranges in which counters should stand, by window.
#[derive(Debug)]
pub(super) struct ExpectedCounters {
    recent: Timestamp,
    windows: BTreeMap<Window, CountRange>,
    /// API keys whose minutes cannot be known: a generation that held nothing left no trace.
    untold: BTreeSet<ApiKeyId>,
}

/// At least and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CountRange {
    low: i128,
    high: i128,
}

impl ExpectedCounters {
    pub(super) fn new(now: Timestamp) -> Self {
        let recent = Timestamp::from_micros(now.as_micros().saturating_sub(RECENT_MICROS));
        Self { recent, windows: BTreeMap::new(), untold: BTreeSet::new() }
    }

    /// Counts an operation, whose generations between its first and its last were admitted then.
    pub(super) fn operation(&mut self, operation: &Operation, reopened: &[Timestamp]) {
        let corrections = operation.corrections();
        let corrected = |counter: Counter| {
            let moved = corrections.iter().find(|moved| moved.counter == counter);
            moved.map_or(0, |moved| i128::from(moved.amount))
        };
        for counter in Counter::ALL.into_iter().filter(|counter| reserves(operation, *counter)) {
            let reserved = reserved(operation, counter);
            let used = reserved + corrected(counter);
            let may_be_sent = matches!(operation.phase, Phase::Abandoned { .. });
            let span = if may_be_sent && is_of_minutes(counter) {
                CountRange { low: 0, high: reserved }
            } else {
                CountRange { low: used, high: used }
            };
            self.add(operation.api_key, counter, operation.admitted_at, span);
        }
        for at in reopened {
            let perhaps = CountRange { low: 0, high: 1 };
            self.add(operation.api_key, Counter::Requests, *at, perhaps);
        }
        let between = u64::from(operation.generation).saturating_sub(2);
        if u64::try_from(reopened.len()).is_ok_and(|told| told < between) {
            self.untold.insert(operation.api_key);
        }
    }

    /// Compares a counter with its range; a sentence where it does not fit.
    pub(super) fn compare(&mut self, window: Window, used: i64) -> Option<String> {
        let (api_key, counter, start) = window;
        // Taken out: what is left when all rows were compared should be counted and is not.
        let CountRange { low, high } = self.windows.remove(&window).unwrap_or_default();
        let is_known =
            !is_of_minutes(counter) || (start >= self.recent && !self.untold.contains(&api_key));
        if !is_known || (low..=high).contains(&i128::from(used)) {
            return None;
        }
        let made = if low == high { low.to_string() } else { format!("{low} to {high}") };
        Some(format!(
            "its counter {} stands at {used}, its operations make {made}",
            counter.label()
        ))
    }

    /// Counters that should be there and are not, after all counters were compared.
    pub(super) fn missing_counters(&self) -> Vec<(ApiKeyId, String)> {
        let missing = self.windows.iter().filter(|((api_key, counter, _), span)| {
            span.low != 0 && !(is_of_minutes(*counter) && self.untold.contains(api_key))
        });
        let told = missing.map(|((api_key, counter, _), span)| {
            let label = counter.label();
            (*api_key, format!("its operations make {} of {label}, which is not counted", span.low))
        });
        told.collect()
    }

    fn add(&mut self, api_key: ApiKeyId, counter: Counter, at: Timestamp, more: CountRange) {
        let window = counter.window(at);
        if is_of_minutes(counter) && window < self.recent {
            return;
        }
        let span = self.windows.entry((api_key, counter, window)).or_default();
        span.low += more.low;
        span.high += more.high;
    }
}

const fn is_of_minutes(counter: Counter) -> bool {
    match counter {
        Counter::Requests | Counter::Tokens => true,
        Counter::Concurrency | Counter::SpendTotal | Counter::SpendDay | Counter::SpendMonth => {
            false
        }
    }
}

/// Amount that the last generation reserved of a counter.
fn reserved(operation: &Operation, counter: Counter) -> i128 {
    match counter {
        Counter::Requests | Counter::Concurrency => 1,
        Counter::Tokens => i128::from(operation.reserved.tokens()),
        Counter::SpendTotal | Counter::SpendDay | Counter::SpendMonth => {
            i128::from(operation.hold.get())
        }
    }
}

/// True where the operation took part in a counter.
fn reserves(operation: &Operation, counter: Counter) -> bool {
    let bits = operation.reserved.counters();
    let bit = Counter::ALL.iter().position(|other| *other == counter);
    bit.is_some_and(|bit| bits >> bit & 1 == 1)
}
