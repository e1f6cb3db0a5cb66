//! How a route fares: whether it takes requests, as its last calls tell. Pure: what happens goes in, and
//! the clock is an argument. Not which route a request goes to.

use std::time::Duration;

use tokio::time::Instant;

/// When a route is left alone, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoolDown {
    /// After so many failures in a row.
    pub failures: u32,
    /// The first time; each time that follows without an answer between is twice as long.
    pub first: Duration,
    /// The longest, also where a provider asks for more.
    pub longest: Duration,
}

/// How one route fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Health {
    state: State,
    /// One more at every change between well and cooling. What a call tells that began before the last
    /// change is old news.
    epoch: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Well { failures: u32 },
    Cooling { until: Instant, reason: Reason, times: u32, is_probed: bool },
}

/// Why a route is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It failed too often in a row.
    Failures,
    /// Its account or route is wrong.
    Account,
    /// Its provider asked for it.
    Asked,
}

/// What a request may do with a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Take it.
    Open,
    /// Take it, as the only one: it has cooled down, and this call tells whether it is well.
    Probe,
    /// Take it where nothing else is left. It cools until then.
    Resort(Instant),
    /// Leave it alone until then.
    Closed(Instant),
}

/// A call under way, as the health of its route knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Begun {
    epoch: u64,
    is_probe: bool,
}

/// What a call told of its route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    /// It answered, be it with a refusal of the request.
    Answered,
    /// It failed.
    Failed,
    /// It turned its account or route away.
    Account,
    /// It wants to be left alone for so long.
    Asked(Duration),
    /// The call was ended here.
    Nothing,
}

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    /// It is left alone for so long.
    Cooling(Reason, Duration),
    /// It takes requests again.
    Well,
}

impl Reason {
    /// Every one of them.
    pub(crate) const ALL: [Self; 3] = [Self::Failures, Self::Account, Self::Asked];

    /// For logs and metrics.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Failures => "failures",
            Self::Account => "account",
            Self::Asked => "retry_after",
        }
    }
}

impl Health {
    /// That of a route which was never called.
    pub(crate) const fn new() -> Self {
        Self { state: State::Well { failures: 0 }, epoch: 0 }
    }

    pub(crate) fn standing(&self, now: Instant) -> Standing {
        match self.state {
            State::Well { .. } => Standing::Open,
            State::Cooling { until, is_probed: false, .. } if until <= now => Standing::Probe,
            State::Cooling { until, reason: Reason::Asked, .. } if now < until => {
                Standing::Closed(until)
            }
            State::Cooling { until, .. } => Standing::Resort(until),
        }
    }

    /// A call begins.
    pub(crate) fn begin(&mut self, now: Instant) -> Begun {
        let is_probe = self.standing(now) == Standing::Probe;
        if let State::Cooling { is_probed, .. } = &mut self.state {
            *is_probed |= is_probe;
        }
        Begun { epoch: self.epoch, is_probe }
    }

    /// A call has told something. The same call may tell more later.
    pub(crate) fn hear(
        &mut self,
        call: &mut Begun,
        told: Told,
        now: Instant,
        rules: &CoolDown,
    ) -> Option<Changed> {
        let is_new = call.epoch == self.epoch;
        let is_probe = std::mem::take(&mut call.is_probe) && is_new;
        let (is_well, times) = match &mut self.state {
            State::Well { .. } => (true, 1),
            State::Cooling { times, is_probed, .. } => {
                *is_probed &= !is_probe;
                (false, times.saturating_add(1))
            }
        };
        // While it cools, many that were turned away together make it no worse.
        let counts = is_well || is_probe;
        let changed = match told {
            Told::Answered if is_new => self.answered(),
            Told::Asked(time) if counts && !time.is_zero() => {
                Some(self.cool(Reason::Asked, times, now, time.min(rules.longest)))
            }
            Told::Asked(time) if !counts => {
                self.wait(now + time.min(rules.longest));
                None
            }
            Told::Account if counts => {
                Some(self.cool(Reason::Account, times, now, rules.nth(times)))
            }
            Told::Failed | Told::Asked(_) if counts && is_new => self.failed(times, now, rules),
            Told::Answered | Told::Failed | Told::Account | Told::Asked(_) | Told::Nothing => None,
        };
        if is_new {
            call.epoch = self.epoch;
        }
        changed
    }

    fn answered(&mut self) -> Option<Changed> {
        let was_cooling = matches!(self.state, State::Cooling { .. });
        self.state = State::Well { failures: 0 };
        self.epoch = self.epoch.wrapping_add(u64::from(was_cooling));
        was_cooling.then_some(Changed::Well)
    }

    fn failed(&mut self, times: u32, now: Instant, rules: &CoolDown) -> Option<Changed> {
        if let State::Well { failures } = &mut self.state {
            *failures = failures.saturating_add(1);
            if *failures < rules.failures {
                return None;
            }
        }
        Some(self.cool(Reason::Failures, times, now, rules.nth(times)))
    }

    /// It cools already, and its provider wants more.
    fn wait(&mut self, at_least: Instant) {
        if let State::Cooling { until, reason, .. } = &mut self.state {
            *until = at_least.max(*until);
            *reason = Reason::Asked;
        }
    }

    fn cool(&mut self, reason: Reason, times: u32, now: Instant, time: Duration) -> Changed {
        self.state = State::Cooling { until: now + time, reason, times, is_probed: false };
        self.epoch = self.epoch.wrapping_add(1);
        Changed::Cooling(reason, time)
    }
}

impl CoolDown {
    /// How long the `times`th in a row takes.
    fn nth(&self, times: u32) -> Duration {
        let factor = 2_u32.saturating_pow(times.saturating_sub(1));
        self.first.saturating_mul(factor).min(self.longest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: CoolDown =
        CoolDown { failures: 3, first: Duration::from_secs(5), longest: Duration::from_secs(60) };

    /// A route whose clock stands still unless it is moved.
    struct World {
        health: Health,
        start: Instant,
        now: Instant,
    }

    fn world() -> World {
        let start = Instant::now();
        World { health: Health::new(), start, now: start }
    }

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    impl World {
        fn at(&mut self, seconds: u64) {
            self.now = self.start + secs(seconds);
        }

        fn begin(&mut self) -> Begun {
            self.health.begin(self.now)
        }

        fn hear(&mut self, call: &mut Begun, told: Told) -> Option<Changed> {
            self.health.hear(call, told, self.now, &RULES)
        }

        /// A call that begins and ends now.
        fn call(&mut self, told: Told) -> Option<Changed> {
            let mut call = self.begin();
            self.hear(&mut call, told)
        }

        #[track_caller]
        fn check(&self, expected: &str) {
            let until = |until: Instant| (until - self.start).as_secs();
            let standing = match self.health.standing(self.now) {
                Standing::Open => "open".to_owned(),
                Standing::Probe => "probe".to_owned(),
                Standing::Resort(at) => format!("resort {}", until(at)),
                Standing::Closed(at) => format!("closed {}", until(at)),
            };
            assert_eq!(standing, expected);
        }
    }

    fn cooling(reason: Reason, seconds: u64) -> Option<Changed> {
        Some(Changed::Cooling(reason, secs(seconds)))
    }

    #[test]
    fn a_route_cools_after_so_many_failures_in_a_row_and_no_fewer() {
        let mut world = world();
        for told in [Told::Failed, Told::Failed, Told::Answered, Told::Failed, Told::Nothing] {
            assert_eq!(world.call(told), None);
        }
        assert_eq!(world.call(Told::Failed), None);
        world.check("open");
        assert_eq!(world.call(Told::Failed), cooling(Reason::Failures, 5));
        world.check("resort 5");
    }

    #[test]
    fn an_account_or_a_request_to_be_left_alone_is_enough_by_itself() {
        let mut account = world();
        assert_eq!(account.call(Told::Account), cooling(Reason::Account, 5));
        account.check("resort 5");
        let mut asked = world();
        assert_eq!(asked.call(Told::Asked(secs(20))), cooling(Reason::Asked, 20));
        asked.check("closed 20");
        asked.at(20);
        asked.check("probe");
        let mut long = world();
        assert_eq!(long.call(Told::Asked(secs(3_600))), cooling(Reason::Asked, 60));
        long.check("closed 60");
        let mut at_once = world();
        assert_eq!(at_once.call(Told::Asked(secs(0))), None, "a failure like any other");
        at_once.check("open");
    }

    #[test]
    fn one_call_finds_out_while_the_others_leave_it_alone() {
        let mut world = world();
        world.call(Told::Account);
        world.at(5);
        world.check("probe");
        let mut probe = world.begin();
        world.check("resort 5");
        assert_eq!(world.hear(&mut probe, Told::Nothing), None);
        world.check("probe");
        let mut probe = world.begin();
        assert_eq!(world.hear(&mut probe, Told::Answered), Some(Changed::Well));
        world.check("open");
        // It says once more how it ended, and then that it is over.
        assert_eq!(world.hear(&mut probe, Told::Failed), None);
        assert_eq!(world.hear(&mut probe, Told::Nothing), None);
        assert_eq!(world.call(Told::Failed), None);
        assert_eq!(world.call(Told::Failed), cooling(Reason::Failures, 5));
    }

    #[test]
    fn each_time_that_it_still_fails_takes_twice_as_long_up_to_the_longest() {
        let mut world = world();
        world.call(Told::Account);
        let mut at = 0;
        for (cools, told, reason) in [
            (10, Told::Failed, Reason::Failures),
            (20, Told::Account, Reason::Account),
            (40, Told::Failed, Reason::Failures),
            (60, Told::Failed, Reason::Failures),
            (60, Told::Failed, Reason::Failures),
            (7, Told::Asked(secs(7)), Reason::Asked),
            (60, Told::Failed, Reason::Failures),
        ] {
            at += 60;
            world.at(at);
            assert_eq!(world.call(told), cooling(reason, cools), "{cools} {told:?}");
        }
        world.at(at + 60);
        assert_eq!(world.call(Told::Answered), Some(Changed::Well));
        assert_eq!(world.call(Told::Account), cooling(Reason::Account, 5));
    }

    #[test]
    fn many_that_were_turned_away_together_make_it_no_worse() {
        let mut world = world();
        let mut calls = [0; 9].map(|_| world.begin());
        let heard: Vec<_> =
            calls.iter_mut().filter_map(|call| world.hear(call, Told::Failed)).collect();
        assert_eq!(heard, Vec::from_iter(cooling(Reason::Failures, 5)));
        for call in &mut calls {
            assert_eq!(world.hear(call, Told::Account), None);
        }
        world.check("resort 5");
        // But what its provider wants holds, and the most of it.
        for (call, wants) in calls.iter_mut().zip([30, 10]) {
            assert_eq!(world.hear(call, Told::Asked(secs(wants))), None);
        }
        world.check("closed 30");
    }

    #[test]
    fn an_answer_to_a_call_that_began_before_proves_nothing_now() {
        let mut world = world();
        let (mut old, mut late) = (world.begin(), world.begin());
        world.call(Told::Account);
        assert_eq!(world.hear(&mut old, Told::Answered), None);
        assert_eq!(world.hear(&mut old, Told::Answered), None, "nor when it says it again");
        world.check("resort 5");
        // A last resort began since.
        assert_eq!(world.call(Told::Answered), Some(Changed::Well));
        world.check("open");
        for _failure in 0..RULES.failures {
            assert_eq!(world.hear(&mut late, Told::Failed), None);
        }
        world.check("open");
    }
}
