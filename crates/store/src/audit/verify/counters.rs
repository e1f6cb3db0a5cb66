//! Expected counters of API keys, by sums over their operations' rows.
//!
//! Counters of spend and of running operations are exact. Counters of requests and tokens are compared only in the
//! windows of the last hour: the next window drops them, and those of minutes are deleted after two days. Rows lack
//! two facts about them: whether an abandoned request had been sent, and the limits of an earlier generation. So
//! these counters have bounds.
//!
//! An operation that did not reserve of a counter is in it if a limit was set after it had ended: a counter holds
//! at least the reservations, at most the sum of all rows.
//!
//! The reservation that remains after an ending is written down here once more, for sums of many operations: the
//! domain defines it for one.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::limits::{Counter, Reservation, Unit};
use holdfast_domain::{ApiKeyId, Timestamp};

use crate::batch::judge::Window;

/// Windows of requests and tokens that ended before this are not looked at.
const RECENT_MICROS: i64 = 3_600 * 1_000_000;

/// Ranges in which counters should stand, by window.
#[derive(Debug)]
pub(crate) struct ExpectedCounters {
    hour_ago: Timestamp,
    windows: BTreeMap<Window, CountRange>,
    /// API keys whose requests and tokens cannot be known: a generation that held no amount left no trace.
    untold: BTreeSet<ApiKeyId>,
}

/// At least and at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct CountRange {
    low: i128,
    high: i128,
}

/// Sums over operations of one API key that reserved the same counters at one time and ended in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OperationSums {
    pub(crate) api_key: ApiKeyId,
    /// Begin of the minute of their admission, or of the day if that minute is not compared.
    pub(crate) admitted: Timestamp,
    /// Bits of the reserved counters, in the order of [`Counter::ALL`], the first the lowest.
    pub(crate) counters: u8,
    pub(crate) end: CountedEnding,
    pub(crate) count: i128,
    pub(crate) hold: i128,
    pub(crate) charge: i128,
    pub(crate) reserved_tokens: i128,
    pub(crate) used_tokens: i128,
}

/// Ending of an operation, as far as counters go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedEnding {
    Running,
    Completed,
    /// Not run, in its first generation or in a later one, whose request stays counted.
    Open {
        is_first: bool,
    },
    Refused,
    Abandoned,
}

impl CountedEnding {
    /// The ending that a row shows, by its phase and the bits of its reserved counters; none if no phase has this
    /// label.
    pub(crate) fn of(phase: &str, counters: u8, is_first: bool) -> Option<Self> {
        match phase {
            "leased" | "recorded" => Some(Self::Running),
            "completed" => Some(Self::Completed),
            "open" => Some(Self::Open { is_first }),
            "refused" => Some(Self::Refused),
            "abandoned" if counters & Reservation::CANCELLED_OPEN != 0 => {
                Some(Self::Open { is_first })
            }
            "abandoned" => Some(Self::Abandoned),
            _ => None,
        }
    }
}

impl ExpectedCounters {
    pub(crate) fn new(now: Timestamp) -> Self {
        let hour_ago = Timestamp::from_micros(now.as_micros().saturating_sub(RECENT_MICROS));
        Self { hour_ago, windows: BTreeMap::new(), untold: BTreeSet::new() }
    }

    /// Begin of the first minute that is looked at.
    pub(crate) fn recent(&self) -> Timestamp {
        Counter::Requests.window(self.hour_ago)
    }

    /// Begin of the first window of a counter that is looked at; `None` if all are.
    pub(crate) fn since(&self, counter: Counter) -> Option<Timestamp> {
        // A whole window: half of one could not be compared.
        is_of_runs(counter).then(|| counter.window(self.hour_ago))
    }

    /// Begin of the first window of requests that is looked at, of all counters of requests.
    pub(crate) fn reopened_since(&self) -> Timestamp {
        let counters = Counter::ALL.into_iter().filter(|counter| counter.unit() == Unit::Requests);
        let first = counters.map(|counter| counter.window(self.hour_ago)).min();
        first.unwrap_or(self.hour_ago)
    }

    pub(crate) fn operations(&mut self, sums: &OperationSums) {
        for counter in Counter::ALL {
            let range = sums.range(counter);
            // An operation without a reservation is counted if a limit was set after it had ended: the edit sums
            // all rows.
            let low = if sums.has_reserved(counter) { range.low } else { 0 };
            self.add(sums.api_key, counter, sums.admitted, CountRange { low, ..range });
        }
    }

    /// Counts so many generations, between the first and the last of their operations, that were
    /// admitted in this minute.
    pub(crate) fn reopened(&mut self, api_key: ApiKeyId, minute: Timestamp, count: i128) {
        let counters = Counter::ALL.into_iter().filter(|counter| counter.unit() == Unit::Requests);
        for counter in counters {
            self.add(api_key, counter, minute, CountRange { low: 0, high: count });
        }
    }

    /// Notes an API key whose requests and tokens cannot be known.
    pub(crate) fn untold(&mut self, api_key: ApiKeyId) {
        self.untold.insert(api_key);
    }

    /// Compares a counter with its range; a sentence if it does not fit.
    pub(crate) fn compare(&mut self, window: Window, used: i64) -> Option<String> {
        let (api_key, counter, start) = window;
        // Taken out: what is left when all rows were compared should be counted and is not.
        let CountRange { low, high } = self.windows.remove(&window).unwrap_or_default();
        let is_known = !is_of_runs(counter)
            || (!self.is_forgotten(counter, start) && !self.untold.contains(&api_key));
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
    pub(crate) fn missing_counters(&self) -> impl Iterator<Item = (ApiKeyId, String)> + '_ {
        let missing = self.windows.iter().filter(|((api_key, counter, _), span)| {
            span.low != 0 && !(is_of_runs(*counter) && self.untold.contains(api_key))
        });
        missing.map(|((api_key, counter, _), span)| {
            let label = counter.label();
            (*api_key, format!("its operations make {} of {label}, which is not counted", span.low))
        })
    }

    fn add(&mut self, api_key: ApiKeyId, counter: Counter, at: Timestamp, more: CountRange) {
        let window = counter.window(at);
        if self.is_forgotten(counter, window) || more == CountRange::default() {
            return;
        }
        let span = self.windows.entry((api_key, counter, window)).or_default();
        span.low += more.low;
        span.high += more.high;
    }

    /// True for a window that is not looked at.
    fn is_forgotten(&self, counter: Counter, start: Timestamp) -> bool {
        self.since(counter).is_some_and(|first| start < first)
    }
}

impl OperationSums {
    fn has_reserved(&self, counter: Counter) -> bool {
        self.counters.checked_shr(counter.index().into()).unwrap_or(0) & 1 == 1
    }

    /// Range in which these operations leave a counter.
    fn range(&self, counter: Counter) -> CountRange {
        let reserved = self.reserved(counter);
        let used = match (self.end, counter.unit()) {
            (CountedEnding::Running, _) => reserved,
            (_, Unit::Running) | (CountedEnding::Open { .. }, Unit::Tokens) => 0,
            (CountedEnding::Open { is_first: true }, Unit::Requests) => 0,
            (CountedEnding::Completed, Unit::Tokens) => self.used_tokens,
            (CountedEnding::Completed, Unit::Micros) => self.charge,
            (_, Unit::Micros) => 0,
            (_, Unit::Requests | Unit::Tokens) => reserved,
        };
        // An abandoned operation may have been proven not to have run: a row does not record it.
        let may_be_sent = self.end == CountedEnding::Abandoned && is_of_runs(counter);
        CountRange { low: if may_be_sent { 0 } else { used }, high: used }
    }

    /// Sum of what they reserved of a counter.
    const fn reserved(&self, counter: Counter) -> i128 {
        match counter.unit() {
            Unit::Requests | Unit::Running => self.count,
            Unit::Tokens => self.reserved_tokens,
            Unit::Micros => self.hold,
        }
    }
}

/// True for counters of requests and tokens, which count runs whatever their end.
const fn is_of_runs(counter: Counter) -> bool {
    match counter.unit() {
        Unit::Requests | Unit::Tokens => true,
        Unit::Running | Unit::Micros => false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use holdfast_domain::limits::{CounterReadings, Limits, SpendLimit, SpendWindow};
    use holdfast_domain::operation::{Receipt, Version};
    use holdfast_domain::{Event, Micros, Operation, Snapshot, decide};
    use holdfast_testkit::laws::tenant;
    use holdfast_testkit::sample::{self, NOW};

    use super::*;

    /// The operation after these events, under limits of every kind.
    fn ended(events: &[&dyn Fn(&Operation) -> Event], window: SpendWindow) -> Operation {
        let limits = Limits {
            requests_per_minute: Some(9),
            tokens_per_minute: Some(9_000),
            concurrency: Some(9),
            spend: Some(SpendLimit { micros: Micros::new(9_000), window }),
        };
        let receipt =
            Receipt { version: Version::FIRST, at: NOW, counters: CounterReadings::default() };
        let admission = sample::admission(&sample::claim().limits(limits).build());
        let transition = &*admission;
        let claimed = transition.apply(None, receipt).unwrap();
        events.iter().fold(claimed, |operation, event| {
            let event = event(&operation);
            let before = Arc::new(operation);
            let snapshot = Snapshot { operation: Some((*before).clone()), ..Snapshot::vacant(NOW) };
            decide(&snapshot, event).unwrap().apply(Some(&before), receipt).unwrap()
        })
    }

    fn sums(operation: &Operation) -> OperationSums {
        let usage = operation.phase.usage();
        let is_first = operation.generation == 1;
        OperationSums {
            api_key: operation.api_key,
            admitted: Counter::Requests.window(operation.admitted_at),
            counters: operation.reserved.counters(),
            end: CountedEnding::of(
                operation.phase.label(),
                operation.reserved.counters(),
                is_first,
            )
            .unwrap(),
            count: 1,
            hold: i128::from(operation.hold.get()),
            charge: usage.map_or(0, |usage| i128::from(usage.charge.get())),
            reserved_tokens: i128::from(operation.reserved.tokens()),
            used_tokens: usage.map_or(0, |usage| {
                let meters = &usage.metered.meters;
                i128::from(meters.prompt_tokens() + meters.completion_tokens())
            }),
        }
    }

    #[test]
    fn sums_leave_counters_where_the_domain_leaves_them() {
        type EventOf<'e> = &'e dyn Fn(&Operation) -> Event;
        let histories: [&[EventOf<'_>]; 7] = [
            &[],
            &[&|o| tenant::record(o, 20, 10)],
            &[&|o| tenant::finish(o, 20, 10)],
            &[&tenant::refuse],
            &[&tenant::not_run],
            &[&tenant::not_run, &|_open| Event::AskCancel],
            &[&tenant::give_up],
        ];
        for (events, window) in
            histories.into_iter().flat_map(|them| SpendWindow::ALL.map(|window| (them, window)))
        {
            let operation = ended(events, window);
            let corrections = operation.corrections();
            let sums = sums(&operation);
            // Corrections are of what was reserved, and so are sums.
            let reserved = Counter::ALL.into_iter().filter(|counter| sums.has_reserved(*counter));
            for counter in reserved {
                let moved = corrections.iter().find(|moved| moved.counter == counter);
                let moved = moved.map_or(0, |moved| i128::from(moved.amount));
                let range = sums.range(counter);
                let label = (operation.phase.label(), counter.label());
                assert_eq!(range.high, sums.reserved(counter) + moved, "{label:?}");
                let is_bounded = sums.end == CountedEnding::Abandoned && is_of_runs(counter);
                assert_eq!(range.low, if is_bounded { 0 } else { range.high }, "{label:?}");
            }
        }
    }
}
