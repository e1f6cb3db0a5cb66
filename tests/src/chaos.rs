//! Kills gateways under load again and again, or stops them for longer than others wait for them, at moments that a
//! seed chooses, and checks after each few that no answer or amount was lost, taken twice or taken back. One on a
//! file, or several on one database.
//!
//! The oracle is the test's own: it adds up the answers of callers, and the upstream counts its requests. The
//! gateway's own audit has to agree, and is no evidence by itself.
//!
//! A seed fixes the plan (keys, the upstream's reaction to each, the moments of kills); the threads' timing is not
//! part of it, so a run repeats the plan and not every byte.

pub mod chain;
pub mod cuts;
mod failovers;
mod fleet;
mod heard;
pub mod histories;
mod load;
pub mod matrix;
mod model;
pub mod patroni;
pub mod racers;
mod rest;
mod server;
pub mod steps;
mod supply;
mod update;
mod work;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use self::load::World;
use self::patroni::{Companions, Outage, ServerFault};
use self::server::Blow;
use self::steps::STEPS;

/// Faults of one folder, before a new one is begun: its book is audited whole again and again.
const FAULTS_PER_WORLD: u32 = 25;
/// The same of an update: each of its nodes is likely to be replaced by then.
const FAULTS_PER_UPDATE: u32 = 6;
/// Faults of one load on several gateways, at most.
const FAULTS_PER_LOAD_MAX: u64 = 3;
/// Longest run of a load before it is killed at random.
const RANDOM_MS_MAX: u64 = 120;
/// Longest run of the load around a stopped thread.
const AROUND_MS_MAX: u64 = 25;
/// Time in which an armed step has to be reached while the load runs.
const STEP_PATIENCE: Duration = Duration::from_secs(3);
/// Longest stop of a process after others may have taken over.
const OVERDUE_MS_MAX: u64 = 2_000;
/// An arrival at a step that a load comes to, in most cases.
const NTH_MAX: u64 = 10;

/// Files that are removed while the database is served.
const REMOVED: [&[&str]; 3] = [&["-wal"], &["-shm"], &["-wal", "-shm"]];

/// Database of a world, and the processes on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topology {
    /// One process on a SQLite file.
    File,
    /// Three processes on a PostgreSQL database.
    Nodes,
    /// The same, on a database server of their own, which is what fails.
    Server,
    /// The same, with nodes whose clocks are an hour apart, and steps of the server's clock.
    Clocks,
    /// Three processes on a PostgreSQL database, which are updated from the release before.
    Update,
    /// Four processes on three database servers that Patroni runs: two whose URL names all of them, and two behind
    /// HAProxy.
    Patroni,
}

/// Kinds of faults of a run.
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
    /// Servers that Patroni runs killed, stopped or replaced, with gateways killed at the same moment in every other
    /// case.
    FailedOver,
    /// All that the topology knows, in turn.
    All,
}

/// Plan of a run.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Seed of all choices.
    pub seed: u64,
    /// Number of faults.
    pub faults: u32,
    /// Kinds of faults.
    pub moments: Moments,
    /// Database and processes.
    pub topology: Topology,
}

/// Results of a run.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Turns of the plan.
    pub faults: u32,
    /// Processes that were killed, all with SIGKILL.
    pub kills: u32,
    /// Processes that were killed with a thread stopped at an armed step.
    pub at_steps: BTreeMap<&'static str, u32>,
    /// Processes that were killed while at least one request was without its answer.
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
    /// Nodes of the release before that were replaced by this version.
    pub updated: u32,
    /// Deposits that were made, and repeated under their request keys on every node.
    pub deposits: u32,
    /// Faults of the servers that Patroni runs, in their order.
    pub outages: Vec<Outage>,
    /// Times that everything was brought to rest and checked.
    pub checks: u32,
    /// Logical requests, each with a key of its own.
    pub keys: u64,
    /// Requests that were sent, retries and replays with them.
    pub sent: u64,
    /// Requests for a stream.
    pub streams: u64,
    /// Requests whose client hung up.
    pub hang_ups: u64,
    /// Streams that were received in part.
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
    /// Sum of the charges of callers.
    pub charged_micros: i64,
}

impl Report {
    /// The results, a line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let outages = patroni::table(&self.outages);
        let steps: Vec<_> = self.at_steps.iter().map(|(step, n)| format!("{step} {n}")).collect();
        let at_steps: u32 = self.at_steps.values().sum();
        let lines = vec![
            format!("kills: {}, {} of them cut requests off", self.kills, self.cutting),
            format!("stopped past the lease and resumed: {}", self.frozen),
            format!("log or index of the file removed: {}", self.files_removed),
            format!(
                "nodes of the release before replaced: {}; deposits repeated on every node: {}",
                self.updated, self.deposits
            ),
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
        ];
        [lines, outages].concat()
    }
}

/// Fault of a gateway, and its moment.
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
    /// These files of the database removed, so long after the load began.
    FilesRemoved(&'static [&'static str], Duration),
    /// A server that Patroni runs, and perhaps gateways with it.
    Failover(ServerFault, Companions),
}

/// Carries a plan out; ends the test at the first failure. `tell` receives the progress.
#[must_use]
pub fn run(plan: Plan, mut tell: impl FnMut(&Report)) -> Report {
    let mut dice = Dice(plan.seed);
    let mut report = Report::default();
    let mut done = 0;
    let faults_per_world = match plan.topology {
        Topology::File
        | Topology::Nodes
        | Topology::Server
        | Topology::Clocks
        | Topology::Patroni => FAULTS_PER_WORLD,
        Topology::Update => FAULTS_PER_UPDATE,
    };
    while done < plan.faults {
        let until = plan.faults.min(done + faults_per_world);
        live(&mut dice, done..until, plan, &mut report, &mut tell);
        done = until;
        tell(&report);
    }
    report
}

/// One folder from its first deposit to its last check.
fn live(
    dice: &mut Dice,
    faults: Range<u32>,
    plan: Plan,
    report: &mut Report,
    tell: &mut impl FnMut(&Report),
) {
    let mut world = World::new(plan.topology);
    let mut next = faults.start;
    while next < faults.end {
        let at_once = match plan.topology {
            Topology::File | Topology::Patroni => 1,
            Topology::Nodes | Topology::Server | Topology::Clocks | Topology::Update => {
                1 + u32::try_from(dice.below(FAULTS_PER_LOAD_MAX)).expect("few")
            }
        };
        let until = faults.end.min(next + at_once);
        let moments: Vec<_> = (next..until).map(|turn| moment(dice, plan, turn)).collect();
        world.load(dice, &moments, report);
        report.faults += until - next;
        next = until;
        if plan.topology == Topology::Patroni {
            // A fault takes up to a minute, and the end repeats every key at every gateway.
            tell(report);
            continue;
        }
        // Now and then the next load finds what the one before has left, and is killed over it.
        if next == faults.end || dice.one_in(2) {
            world.rest(dice, report);
        }
    }
    if plan.topology == Topology::Patroni {
        world.rest(dice, report);
    }
    world.count(report);
}

/// Fault of a turn.
fn moment(dice: &mut Dice, plan: Plan, turn: u32) -> Moment {
    let kinds: &[Moments] = match (plan.moments, plan.topology) {
        (Moments::All, Topology::File) => &[Moments::Random, Moments::Steps, Moments::FilesRemoved],
        (Moments::All, Topology::Nodes) => &[Moments::Random, Moments::Steps, Moments::Frozen],
        (Moments::All, Topology::Server) => {
            &[Moments::CommitsCut, Moments::ServerKilled, Moments::Promoted, Moments::SwitchedOver]
        }
        (Moments::All, Topology::Clocks) => &[Moments::Random, Moments::ClockStepped],
        (Moments::All, Topology::Update) => &[Moments::Random, Moments::Random, Moments::Frozen],
        (Moments::All, Topology::Patroni) => &[Moments::FailedOver],
        (
            one,
            Topology::File
            | Topology::Nodes
            | Topology::Server
            | Topology::Clocks
            | Topology::Update
            | Topology::Patroni,
        ) => &[one],
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
        Moments::FailedOver => {
            let fault = ServerFault::ALL[turn % ServerFault::ALL.len()];
            // Each fault with them and without them by turns.
            let is_alone = (turn + turn / ServerFault::ALL.len()) % 2 == 1;
            let companions = if is_alone { Companions::None } else { Companions::any(dice) };
            Moment::Failover(fault, companions)
        }
        Moments::FilesRemoved => Moment::FilesRemoved(REMOVED[dice.index(REMOVED.len())], random),
        Moments::Random | Moments::All => Moment::After(random),
    }
}

/// Waits until the condition is true, at most so long.
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
