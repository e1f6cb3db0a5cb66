//! Circuit breaker of a route: opens after so many failures in a row, lets one probe through after a cool-down, and
//! closes on the first answer.
//!
//! ```text
//! Well { failures } ── BreakerRules::failures in a row, or Account, or Asked ──► Cooling { until, times }
//!        ▲                                                                       │ until is over
//!        └────────────── an answer ──────────── one probe ◄──────────────────────┘
//!                                                 └── a failure: Cooling, twice as long, at most BreakerRules::longest
//! ```
//!
//! - A `Retry-After` trips it at once, and the route is left alone: the provider has named the time of its next answer,
//!   and every call before that is one more reason to be turned away. Any other cooling route is still a last resort,
//!   because a guess of ours must not refuse a request that the provider might have taken.
//! - A failure, or an answer, of a call that was under way when it changed is outdated, recognized by the `epoch`:
//!   a hundred calls that one outage breaks open it once, and do not double the cool-down a hundred times. Only a
//!   `Retry-After` makes a cool-down longer from outside its probe, because it names a time.
//! - One probe at a time: a provider that comes back does not get all requests at once. A call that was ended here
//!   proves nothing, and gives the probe back.
//!
//! Pure: events go in, and the clock is an argument. It never decides which route a request goes to.

use std::time::Duration;

use tokio::time::Instant;

/// Longest pause of a provider that is kept. A server may send the end of a day, or nonsense: one call
/// every ten minutes finds out.
const PAUSE_MAX: Duration = Duration::from_secs(600);

/// Rules of the circuit breaker: the failures that open it, and the length of a cool-down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerRules {
    /// Failures in a row that trip the breaker.
    pub failures: u32,
    /// Length of the first cool-down; each one that follows without an answer between is doubled.
    pub first: Duration,
    /// Length of the longest cool-down. A provider's pause has a maximum of its own, ten minutes.
    pub longest: Duration,
}

/// Circuit breaker of a route: trips after `failures` in a row, lets one probe through after the
/// cool-down, and closes on the first answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CircuitBreaker {
    state: BreakerPhase,
    /// Count of changes between well and cooling. Results of calls that began in an earlier epoch are outdated, and
    /// neither trip nor close it.
    epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BreakerPhase {
    Well { failures: u32 },
    Cooling { until: Instant, reason: CoolDownReason, times: u32, is_probed: bool },
}

/// Cause of a cool-down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoolDownReason {
    /// Failures in a row reached [`BreakerRules::failures`].
    Failures,
    /// Account or route turned away by the provider: only the operator can mend it.
    Account,
    /// `Retry-After` of the provider: the route is shut until then.
    Asked,
}

/// State of the breaker as a request meets it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakerState {
    /// Route is well: take it.
    Well,
    /// Cool-down is over: take it as the only probe, whose result closes the breaker or trips it
    /// again.
    Probe,
    /// Cooling until then by a guess of ours: taken if no other route is left.
    LastResort(Instant),
    /// Cooling until then by the provider's word: do not take it.
    LeftAlone(Instant),
}

/// Token of a call under way: the epoch in which it began, and whether it is the probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallToken {
    epoch: u64,
    is_probe: bool,
}

/// Outcome of a call as far as it concerns the route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallOutcome {
    /// Answer, be it a refusal of the request: the route works.
    Answered,
    /// Failure of the route, which counts towards [`BreakerRules::failures`].
    Failed,
    /// Refusal of the account or the route, which trips the breaker at once.
    Account,
    /// `Retry-After` of this length, which trips the breaker at once unless it is zero.
    Asked(Duration),
    /// End from our side, without evidence about the route.
    Nothing,
}

/// Change of state, for logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakerChange {
    /// Start of a cool-down of this length.
    Cooling(CoolDownReason, Duration),
    /// Return to normal after an answer.
    Well,
}

impl CoolDownReason {
    /// All causes, one metric series each.
    pub(crate) const ALL: [Self; 3] = [Self::Failures, Self::Account, Self::Asked];

    /// Label of the cause in logs and metrics.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Account => "account",
            Self::Asked => "retry_after",
        }
    }
}

impl CircuitBreaker {
    /// Creates the breaker of a route that was never called: well, without failures.
    pub(crate) const fn new() -> Self {
        Self { state: BreakerPhase::Well { failures: 0 }, epoch: 0 }
    }

    pub(crate) fn state_at(&self, now: Instant) -> BreakerState {
        match self.state {
            BreakerPhase::Well { .. } => BreakerState::Well,
            BreakerPhase::Cooling { until, is_probed: false, .. } if until <= now => {
                BreakerState::Probe
            }
            BreakerPhase::Cooling { until, reason: CoolDownReason::Asked, .. } if now < until => {
                BreakerState::LeftAlone(until)
            }
            BreakerPhase::Cooling { until, .. } => BreakerState::LastResort(until),
        }
    }

    /// Begins a call, as the probe if one is due: until its outcome, other calls see a last resort.
    pub(crate) fn begin_call(&mut self, now: Instant) -> CallToken {
        let is_probe = self.state_at(now) == BreakerState::Probe;
        if let BreakerPhase::Cooling { is_probed, .. } = &mut self.state {
            *is_probed |= is_probe;
        }
        CallToken { epoch: self.epoch, is_probe }
    }

    /// Counts the outcome of a call, and returns the change of state, if it made one. A stream may have two: an
    /// answer with its first piece, and a failure later.
    pub(crate) fn on_result(
        &mut self,
        call: &mut CallToken,
        outcome: CallOutcome,
        now: Instant,
        rules: &BreakerRules,
    ) -> Option<BreakerChange> {
        let is_new = call.epoch == self.epoch;
        // Taken: a probe that answers and breaks later has served its purpose.
        let is_probe = std::mem::take(&mut call.is_probe) && is_new;
        let (is_well, times) = match &mut self.state {
            BreakerPhase::Well { .. } => (true, 1),
            BreakerPhase::Cooling { times, is_probed, .. } => {
                *is_probed &= !is_probe;
                (false, times.saturating_add(1))
            }
        };
        // While it cools, a hundred calls that one outage broke must not double it a hundred times.
        let counts = is_well || is_probe;
        let changed = match outcome {
            CallOutcome::Answered if is_new => self.on_success(),
            // `Retry-After: 0` names no time: it is a failure like any other.
            CallOutcome::Asked(time) if counts && !time.is_zero() => {
                Some(self.trip(CoolDownReason::Asked, times, now, time.min(PAUSE_MAX)))
            }
            CallOutcome::Asked(time) if !counts => {
                self.extend_cool_down(now + time.min(PAUSE_MAX));
                None
            }
            CallOutcome::Account if counts => {
                Some(self.trip(CoolDownReason::Account, times, now, rules.cool_down_time(times)))
            }
            CallOutcome::Failed | CallOutcome::Asked(_) if counts && is_new => {
                self.on_failure(times, now, rules)
            }
            CallOutcome::Answered
            | CallOutcome::Failed
            | CallOutcome::Account
            | CallOutcome::Asked(_)
            | CallOutcome::Nothing => None,
        };
        // The call that changed it may still report more of the time after, as a stream that breaks does.
        if is_new {
            call.epoch = self.epoch;
        }
        changed
    }

    fn on_success(&mut self) -> Option<BreakerChange> {
        let was_cooling = matches!(self.state, BreakerPhase::Cooling { .. });
        self.state = BreakerPhase::Well { failures: 0 };
        self.epoch = self.epoch.wrapping_add(u64::from(was_cooling));
        was_cooling.then_some(BreakerChange::Well)
    }

    fn on_failure(
        &mut self,
        times: u32,
        now: Instant,
        rules: &BreakerRules,
    ) -> Option<BreakerChange> {
        if let BreakerPhase::Well { failures } = &mut self.state {
            *failures = failures.saturating_add(1);
            if *failures < rules.failures {
                return None;
            }
        }
        Some(self.trip(CoolDownReason::Failures, times, now, rules.cool_down_time(times)))
    }

    /// Prolongs a cool-down by a `Retry-After`, and never shortens it.
    fn extend_cool_down(&mut self, at_least: Instant) {
        if let BreakerPhase::Cooling { until, reason, .. } = &mut self.state {
            *until = at_least.max(*until);
            *reason = CoolDownReason::Asked;
        }
    }

    fn trip(
        &mut self,
        reason: CoolDownReason,
        times: u32,
        now: Instant,
        time: Duration,
    ) -> BreakerChange {
        self.state = BreakerPhase::Cooling { until: now + time, reason, times, is_probed: false };
        self.epoch = self.epoch.wrapping_add(1);
        BreakerChange::Cooling(reason, time)
    }
}

impl BreakerRules {
    /// Length of the `times`th cool-down in a row: `first` doubled each time, up to `longest`.
    fn cool_down_time(&self, times: u32) -> Duration {
        let factor = 2_u32.saturating_pow(times.saturating_sub(1));
        self.first.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BreakerRules = BreakerRules {
        failures: 3,
        first: Duration::from_secs(5),
        longest: Duration::from_secs(60),
    };

    /// Breaker of one route, with a clock that does not move by itself.
    struct World {
        breaker: CircuitBreaker,
        start: Instant,
        now: Instant,
    }

    fn world() -> World {
        let start = Instant::now();
        World { breaker: CircuitBreaker::new(), start, now: start }
    }

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    impl World {
        fn at(&mut self, seconds: u64) {
            self.now = self.start + secs(seconds);
        }

        fn begin(&mut self) -> CallToken {
            self.breaker.begin_call(self.now)
        }

        fn finish(&mut self, call: &mut CallToken, outcome: CallOutcome) -> Option<BreakerChange> {
            self.breaker.on_result(call, outcome, self.now, &RULES)
        }

        /// Makes a call that begins and ends now.
        fn call(&mut self, outcome: CallOutcome) -> Option<BreakerChange> {
            let mut call = self.begin();
            self.finish(&mut call, outcome)
        }

        #[track_caller]
        fn check(&self, expected: &str) {
            let until = |until: Instant| (until - self.start).as_secs();
            let standing = match self.breaker.state_at(self.now) {
                BreakerState::Well => "well".to_owned(),
                BreakerState::Probe => "probe".to_owned(),
                BreakerState::LastResort(at) => format!("last resort {}", until(at)),
                BreakerState::LeftAlone(at) => format!("left alone {}", until(at)),
            };
            assert_eq!(standing, expected);
        }
    }

    fn cooling(reason: CoolDownReason, seconds: u64) -> Option<BreakerChange> {
        Some(BreakerChange::Cooling(reason, secs(seconds)))
    }

    #[test]
    fn a_route_cools_after_so_many_failures_in_a_row_and_no_fewer() {
        let mut world = world();
        for outcome in [
            CallOutcome::Failed,
            CallOutcome::Failed,
            CallOutcome::Answered,
            CallOutcome::Failed,
            CallOutcome::Nothing,
        ] {
            assert_eq!(world.call(outcome), None);
        }
        assert_eq!(world.call(CallOutcome::Failed), None);
        world.check("well");
        assert_eq!(world.call(CallOutcome::Failed), cooling(CoolDownReason::Failures, 5));
        world.check("last resort 5");
    }

    #[test]
    fn an_account_or_a_request_to_be_left_alone_is_enough_by_itself() {
        let mut account = world();
        assert_eq!(account.call(CallOutcome::Account), cooling(CoolDownReason::Account, 5));
        account.check("last resort 5");
        let mut asked = world();
        assert_eq!(asked.call(CallOutcome::Asked(secs(20))), cooling(CoolDownReason::Asked, 20));
        asked.check("left alone 20");
        asked.at(20);
        asked.check("probe");
        let mut long = world();
        assert_eq!(long.call(CallOutcome::Asked(secs(90))), cooling(CoolDownReason::Asked, 90));
        let mut absurd = world();
        for asked in [secs(3_600), Duration::MAX] {
            absurd.call(CallOutcome::Asked(asked));
            absurd.check("left alone 600");
        }
        let mut at_once = world();
        assert_eq!(at_once.call(CallOutcome::Asked(secs(0))), None, "a failure like any other");
        at_once.check("well");
    }

    #[test]
    fn one_call_finds_out_while_the_others_leave_it_alone() {
        let mut world = world();
        world.call(CallOutcome::Account);
        world.at(5);
        world.check("probe");
        let mut probe = world.begin();
        world.check("last resort 5");
        assert_eq!(world.finish(&mut probe, CallOutcome::Nothing), None);
        world.check("probe");
        let mut probe = world.begin();
        assert_eq!(world.finish(&mut probe, CallOutcome::Answered), Some(BreakerChange::Well));
        world.check("well");
        // It reports once more how it ended, and then that it is over.
        assert_eq!(world.finish(&mut probe, CallOutcome::Failed), None);
        assert_eq!(world.finish(&mut probe, CallOutcome::Nothing), None);
        assert_eq!(world.call(CallOutcome::Failed), None);
        assert_eq!(world.call(CallOutcome::Failed), cooling(CoolDownReason::Failures, 5));
    }

    #[test]
    fn each_time_that_it_still_fails_takes_twice_as_long_up_to_the_longest() {
        let mut world = world();
        world.call(CallOutcome::Account);
        let mut at = 0;
        for (cools, outcome, reason) in [
            (10, CallOutcome::Failed, CoolDownReason::Failures),
            (20, CallOutcome::Account, CoolDownReason::Account),
            (40, CallOutcome::Failed, CoolDownReason::Failures),
            (60, CallOutcome::Failed, CoolDownReason::Failures),
            (60, CallOutcome::Failed, CoolDownReason::Failures),
            (7, CallOutcome::Asked(secs(7)), CoolDownReason::Asked),
            (60, CallOutcome::Failed, CoolDownReason::Failures),
        ] {
            at += 60;
            world.at(at);
            assert_eq!(world.call(outcome), cooling(reason, cools), "{cools} {outcome:?}");
        }
        world.at(at + 60);
        assert_eq!(world.call(CallOutcome::Answered), Some(BreakerChange::Well));
        assert_eq!(world.call(CallOutcome::Account), cooling(CoolDownReason::Account, 5));
    }

    #[test]
    fn many_that_were_turned_away_together_make_it_no_worse() {
        let mut world = world();
        let mut calls = [0; 9].map(|_| world.begin());
        let heard: Vec<_> =
            calls.iter_mut().filter_map(|call| world.finish(call, CallOutcome::Failed)).collect();
        assert_eq!(heard, Vec::from_iter(cooling(CoolDownReason::Failures, 5)));
        for call in &mut calls {
            assert_eq!(world.finish(call, CallOutcome::Account), None);
        }
        world.check("last resort 5");
        // But its provider's Retry-After holds, and the longest one.
        for (call, pause) in calls.iter_mut().zip([30, 10]) {
            assert_eq!(world.finish(call, CallOutcome::Asked(secs(pause))), None);
        }
        world.check("left alone 30");
    }

    #[test]
    fn an_answer_to_a_call_that_began_before_proves_nothing_now() {
        let mut world = world();
        let (mut old, mut late) = (world.begin(), world.begin());
        world.call(CallOutcome::Account);
        assert_eq!(world.finish(&mut old, CallOutcome::Answered), None);
        assert_eq!(world.finish(&mut old, CallOutcome::Answered), None, "nor at a repeated pause");
        world.check("last resort 5");
        // A last resort began since.
        assert_eq!(world.call(CallOutcome::Answered), Some(BreakerChange::Well));
        world.check("well");
        for _failure in 0..RULES.failures {
            assert_eq!(world.finish(&mut late, CallOutcome::Failed), None);
        }
        world.check("well");
    }
}
