//! Kills a gateway under load again and again, at moments that a seed chooses, and checks after each
//! few kills that nothing was lost, taken twice or taken back.
//!
//! The oracle is the test's own: it adds up what callers were answered, and the upstream counts what
//! it was sent. The gateway's own audit is asked as well, and believed in nothing else.
//!
//! A seed fixes the plan (keys, what each does upstream, when to kill); the threads' timing is not
//! part of it, so a run repeats the plan and not every byte.

mod heard;
mod load;
mod model;
mod rest;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use self::load::World;

/// Kills of one folder, before a new one is begun: its book is audited whole again and again.
const KILLS_PER_WORLD: u32 = 25;
/// How long a load runs before it is killed at random, at most.
const RANDOM_MS_MAX: u64 = 120;
/// How far the load goes on around a stopped thread.
const AROUND_MS_MAX: u64 = 25;
/// How long an armed step is waited for while the load runs.
const STEP_PATIENCE: Duration = Duration::from_secs(3);
/// An arrival at a step that a load comes to, in most cases.
const NTH_MAX: u64 = 10;

/// The names of the steps at which a gateway can be stopped.
pub const STEPS: [&str; 9] = [
    "claim_offered",
    "claim_committed",
    "sending",
    "answered",
    "settlement_offered",
    "settlement_committed",
    "batch_begun",
    "batch_written",
    "batch_committed",
];

/// Which kills a run is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moments {
    /// At any moment.
    Random,
    /// At each named step in turn.
    Steps,
    /// Both, in turn.
    All,
}

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Where all choices come from.
    pub seed: u64,
    /// How often the gateway is killed.
    pub kills: u32,
    /// When.
    pub moments: Moments,
}

/// What was done.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Processes that were killed, all with SIGKILL.
    pub kills: u32,
    /// Those killed with a thread stopped at an armed step.
    pub at_steps: BTreeMap<&'static str, u32>,
    /// Those killed while at least one request was without its answer.
    pub cutting: u32,
    /// Times that everything was brought to rest and checked.
    pub checks: u32,
    /// Logical requests, each with a key of its own.
    pub keys: u64,
    /// Requests that were sent, retries and replays with them.
    pub sent: u64,
    /// Those that asked for a stream.
    pub streams: u64,
    /// Those that were hung up on.
    pub hang_ups: u64,
    /// Streams of which something was heard, and not the whole.
    pub begun: u64,
    /// Whole answers that came back.
    pub answers: u64,
    /// Requests that arrived at the upstream.
    pub runs: u64,
    /// Keys that ended with an answer that was charged.
    pub completed: u64,
    /// Keys that ended with the provider's refusal.
    pub refused: u64,
    /// Keys that ended unknown, uncharged.
    pub unknown: u64,
    /// What callers paid.
    pub charged_micros: i64,
}

impl Report {
    /// What was done, a line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let steps: Vec<_> = self.at_steps.iter().map(|(step, n)| format!("{step} {n}")).collect();
        let at_steps: u32 = self.at_steps.values().sum();
        vec![
            format!("kills: {}, {} of them cut requests off", self.kills, self.cutting),
            format!("stopped at a step: {at_steps} ({})", steps.join(", ")),
            format!("checks at rest: {}", self.checks),
            format!(
                "keys: {} ({} completed, {} refused, {} unknown)",
                self.keys, self.completed, self.refused, self.unknown
            ),
            format!(
                "requests: {} sent, {} of them for a stream; {} answered, {} hung up on; {} streams \
                 heard in part; {} runs upstream",
                self.sent, self.streams, self.answers, self.hang_ups, self.begun, self.runs
            ),
            format!("charged: {} micros, as the wallets say", self.charged_micros),
        ]
    }
}

/// When a gateway is killed.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// So long after its load began.
    After(Duration),
    /// So long after a thread was stopped at this arrival at this step.
    At(&'static str, u64, Duration),
}

/// Carries a plan out; ends the test at the first thing that is wrong. `tell` hears of progress.
#[must_use]
pub fn run(plan: Plan, mut tell: impl FnMut(&Report)) -> Report {
    let mut dice = Dice(plan.seed);
    let mut report = Report::default();
    while report.kills < plan.kills {
        let kills = KILLS_PER_WORLD.min(plan.kills - report.kills);
        live(&mut dice, kills, plan.moments, &mut report);
        tell(&report);
    }
    report
}

/// One folder from its first deposit to its last check.
fn live(dice: &mut Dice, kills: u32, moments: Moments, report: &mut Report) {
    let mut world = World::new();
    for kill in 1..=kills {
        let moment = moment(dice, moments, report.kills);
        world.load_and_kill(dice, moment, report);
        report.kills += 1;
        // Now and then the next load finds what the one before has left, and is killed over it.
        if kill == kills || dice.one_in(2) {
            world.rest(dice, report);
        }
    }
    world.count(report);
}

fn moment(dice: &mut Dice, moments: Moments, kills: u32) -> Moment {
    let at_step = match moments {
        Moments::Random => false,
        Moments::Steps => true,
        Moments::All => kills % 2 == 1,
    };
    if !at_step {
        return Moment::After(Duration::from_millis(dice.below(RANDOM_MS_MAX)));
    }
    let turn = if moments == Moments::All { kills / 2 } else { kills };
    let step = STEPS[usize::try_from(turn).expect("few") % STEPS.len()];
    let around = Duration::from_millis(dice.below(AROUND_MS_MAX));
    Moment::At(step, 1 + dice.below(NTH_MAX), around)
}

/// Waits until something is so, at most so long.
fn wait_until(patience: Duration, is_so: impl Fn() -> bool) -> bool {
    let until = Instant::now() + patience;
    loop {
        if is_so() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
}

/// Choices that a seed repeats (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From zero to one below the bound.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    fn index(&mut self, length: usize) -> usize {
        let length = u64::try_from(length).expect("a length");
        usize::try_from(self.below(length)).expect("below a length")
    }

    fn key(&mut self) -> String {
        let random = (u128::from(self.next()) << 64) | u128::from(self.next());
        uuid::Builder::from_random_bytes(random.to_be_bytes()).into_uuid().to_string()
    }
}
