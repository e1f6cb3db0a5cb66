//! Kills gateways under load again and again, or stops them for longer than others wait for them, at
//! moments that a seed chooses, and checks after each few that nothing was lost, taken twice or taken
//! back. One on a file, or several on one database.
//!
//! The oracle is the test's own: it adds up what callers were answered, and the upstream counts what
//! it was sent. The gateway's own audit is asked as well, and believed in nothing else.
//!
//! A seed fixes the plan (keys, what each does upstream, when to kill); the threads' timing is not
//! part of it, so a run repeats the plan and not every byte.

pub mod chain;
pub mod cuts;
mod fleet;
mod heard;
mod load;
pub mod matrix;
mod model;
pub mod racers;
mod rest;
mod server;
pub mod steps;
mod supply;
mod work;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use self::load::World;
use self::server::Blow;
use self::steps::STEPS;

/// Faults of one folder, before a new one is begun: its book is audited whole again and again.
const FAULTS_PER_WORLD: u32 = 25;
/// Faults of one load on several gateways, at most.
const FAULTS_PER_LOAD_MAX: u64 = 3;
/// How long a load runs before it is killed at random, at most.
const RANDOM_MS_MAX: u64 = 120;
/// How far the load goes on around a stopped thread.
const AROUND_MS_MAX: u64 = 25;
/// How long an armed step is waited for while the load runs.
const STEP_PATIENCE: Duration = Duration::from_secs(3);
/// How long a stopped process stays so after others may have taken over, at most.
const OVERDUE_MS_MAX: u64 = 2_000;
/// An arrival at a step that a load comes to, in most cases.
const NTH_MAX: u64 = 10;

/// What is removed of a served file.
const REMOVED: [&[&str]; 3] = [&["-wal"], &["-shm"], &["-wal", "-shm"]];

/// Where a world keeps its book, and what serves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// One process on a SQLite file.
    File,
    /// Three processes on a PostgreSQL database.
    Nodes,
    /// The same, on a database server of their own, which is what fails.
    Server,
    /// The same, where the nodes' clocks are an hour apart from each other, and the server's steps.
    Clocks,
}

/// Which faults a run is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moments {
    /// Killed at any moment.
    Random,
    /// Killed at each named step in turn.
    Steps,
    /// Stopped at any moment, past the end of the lease, and resumed.
    Frozen,
    /// Connections of the nodes cut in the middle of a COMMIT: before, within, after.
    CommitsCut,
    /// The database server killed and started again.
    ServerKilled,
    /// The database server killed, and its synchronous standby promoted.
    Promoted,
    /// The database server replaced by its synchronous standby while it lives, and killed later.
    SwitchedOver,
    /// The clock of the database server set an hour forward or back, and right again.
    ClockStepped,
    /// Log, index or both of a served file removed, and the gateway killed once it has noticed.
    FilesRemoved,
    /// All that the topology knows, in turn.
    All,
}

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Where all choices come from.
    pub seed: u64,
    /// How many faults there are.
    pub faults: u32,
    /// Which.
    pub moments: Moments,
    /// Of what.
    pub topology: Topology,
}

/// What was done.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Turns of the plan.
    pub faults: u32,
    /// Processes that were killed, all with SIGKILL.
    pub kills: u32,
    /// Those killed with a thread stopped at an armed step.
    pub at_steps: BTreeMap<&'static str, u32>,
    /// Those killed while at least one request was without its answer.
    pub cutting: u32,
    /// Processes that were stopped past the end of their lease, with SIGSTOP, and went on.
    pub frozen: u32,
    /// COMMITs that were cut in the middle.
    pub commits_cut: u32,
    /// Database servers that were killed and started again.
    pub server_kills: u32,
    /// Database servers that were killed and replaced by their standby.
    pub promotions: u32,
    /// Database servers that were replaced by their standby while they lived.
    pub switch_overs: u32,
    /// Times that the clock of a database server was set.
    pub clock_steps: u32,
    /// Times that log or index of a served file was removed.
    pub files_removed: u32,
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
    /// Requests that were turned away for now, and sent again.
    pub turned_away: u64,
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
            format!("stopped past the lease and resumed: {}", self.frozen),
            format!("log or index of the file removed: {}", self.files_removed),
            format!(
                "of the database: {} COMMITs cut, {} kills, {} promotions, {} switch-overs, {} steps of its clock",
                self.commits_cut,
                self.server_kills,
                self.promotions,
                self.switch_overs,
                self.clock_steps
            ),
            format!("stopped at a step: {at_steps} ({})", steps.join(", ")),
            format!("checks at rest: {}", self.checks),
            format!(
                "keys: {} ({} completed, {} refused, {} unknown)",
                self.keys, self.completed, self.refused, self.unknown
            ),
            format!(
                "requests: {} sent, {} of them for a stream; {} answered, {} turned away for now, {} \
                 hung up on; {} streams heard in part; {} runs upstream",
                self.sent,
                self.streams,
                self.answers,
                self.turned_away,
                self.hang_ups,
                self.begun,
                self.runs
            ),
            format!("charged: {} micros, as the wallets say", self.charged_micros),
        ]
    }
}

/// What is done to a gateway, and when.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// Killed so long after its load began.
    After(Duration),
    /// Killed so long after a thread was stopped at this arrival at this step.
    At(&'static str, u64, Duration),
    /// Stopped so long after its load began, and so long past the time that others wait.
    Frozen(Duration, Duration),
    /// Not a gateway, but the database server.
    Server(Blow),
    /// These files beside the database removed, so long after the load began.
    FilesRemoved(&'static [&'static str], Duration),
}

/// Carries a plan out; ends the test at the first thing that is wrong. `tell` hears of progress.
#[must_use]
pub fn run(plan: Plan, mut tell: impl FnMut(&Report)) -> Report {
    let mut dice = Dice(plan.seed);
    let mut report = Report::default();
    let mut done = 0;
    while done < plan.faults {
        let until = plan.faults.min(done + FAULTS_PER_WORLD);
        live(&mut dice, done..until, plan, &mut report);
        done = until;
        tell(&report);
    }
    report
}

/// One folder from its first deposit to its last check.
fn live(dice: &mut Dice, faults: Range<u32>, plan: Plan, report: &mut Report) {
    let mut world = World::new(plan.topology);
    let mut next = faults.start;
    while next < faults.end {
        let at_once = match plan.topology {
            Topology::File => 1,
            Topology::Nodes | Topology::Server | Topology::Clocks => {
                1 + u32::try_from(dice.below(FAULTS_PER_LOAD_MAX)).expect("few")
            }
        };
        let until = faults.end.min(next + at_once);
        let moments: Vec<_> = (next..until).map(|turn| moment(dice, plan, turn)).collect();
        world.load(dice, &moments, report);
        report.faults += until - next;
        next = until;
        // Now and then the next load finds what the one before has left, and is killed over it.
        if next == faults.end || dice.one_in(2) {
            world.rest(dice, report);
        }
    }
    world.count(report);
}

/// What a turn brings.
fn moment(dice: &mut Dice, plan: Plan, turn: u32) -> Moment {
    let kinds: &[Moments] = match (plan.moments, plan.topology) {
        (Moments::All, Topology::File) => &[Moments::Random, Moments::Steps, Moments::FilesRemoved],
        (Moments::All, Topology::Nodes) => &[Moments::Random, Moments::Steps, Moments::Frozen],
        (Moments::All, Topology::Server) => {
            &[Moments::CommitsCut, Moments::ServerKilled, Moments::Promoted, Moments::SwitchedOver]
        }
        (Moments::All, Topology::Clocks) => &[Moments::Random, Moments::ClockStepped],
        (one, Topology::File | Topology::Nodes | Topology::Server | Topology::Clocks) => &[one],
    };
    let turn = usize::try_from(turn).expect("few");
    let random = Duration::from_millis(dice.below(RANDOM_MS_MAX));
    match kinds[turn % kinds.len()] {
        Moments::Steps => {
            let step = STEPS[turn / kinds.len() % STEPS.len()];
            let around = Duration::from_millis(dice.below(AROUND_MS_MAX));
            Moment::At(step, 1 + dice.below(NTH_MAX), around)
        }
        Moments::Frozen => {
            Moment::Frozen(random, Duration::from_millis(dice.below(OVERDUE_MS_MAX)))
        }
        Moments::CommitsCut => Moment::Server(Blow::CommitsCut),
        Moments::ServerKilled => Moment::Server(Blow::Killed),
        Moments::ClockStepped => Moment::Server(Blow::ClockStepped),
        Moments::Promoted => Moment::Server(Blow::Promoted),
        Moments::SwitchedOver => Moment::Server(Blow::SwitchedOver),
        Moments::FilesRemoved => Moment::FilesRemoved(REMOVED[dice.index(REMOVED.len())], random),
        Moments::Random | Moments::All => Moment::After(random),
    }
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
