//! The whole run: its plan, its order, what it says on the way.
//!
//! ```text
//! plan ─▶ scenarios ─▶ rounds ─▶ targets: direct, pass-through, gateway (or plain loop, store, gateway)
//! ```
//!
//! All targets take turns within each round, so that a neighbour on the machine disturbs all of them alike,
//! and their ratios stay. Every scenario has a stand of its own: one must not measure what another has left
//! in the store. A run asserts that each answer was what it should be. It judges no time: goals are shown
//! with their verdicts, and missing one ends nothing.

use std::path::PathBuf;

use serde_json::Value;

use crate::figures::Figures;
use crate::measurements::{Floor, Report, ReportRow};
use crate::numbers::{decimal, each, permille};
use crate::pinned::{CoreRole, Cores, Peer, file_system};
use crate::say;
use crate::scenario::{
    Engine, MANY, SIDECAR_STREAMS, SOME, STREAMS, Scenario, ScenarioKind, Subject, USUAL,
    USUAL_ON_A_SERVER,
};
use crate::server::DatabaseServer;
use crate::stand::{BenchSetup, LoadSpec, Target, TestBed};
use crate::usage::{Machine, ProcessUsage};

/// Rows of a purge's scenario where none are asked for.
const PURGED: u64 = 200_000;
/// Long enough for one purge, of which there is one a minute.
const PURGE_MILLIS: u64 = 70_000;
/// Requests that share a commit in the hand-written loop.
const FLOORS: [u64; 3] = [1, 32, 256];

/// Plan of a run: what is measured, how often and how long.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program itself, which the other processes are started from.
    pub program: PathBuf,
    /// Folder in which databases are made.
    pub folder: PathBuf,
    /// Rounds of each scenario.
    pub rounds: u64,
    /// Milliseconds of each round.
    pub millis: u64,
    /// Names of scenarios; empty for the usual ones.
    pub only: Vec<String>,
    /// Finished operations in the store before anything is measured.
    pub stored: u64,
    /// The gateway's log, by its level.
    pub log_level: String,
    /// Streams at once, of the scenario that has the most.
    pub streams: u64,
    /// Engine that keeps the data.
    pub engine: Engine,
    /// File for the figures as JSON.
    pub json: Option<PathBuf>,
}

impl Plan {
    /// Three rounds of everything, five seconds each.
    #[must_use]
    pub fn usual(program: PathBuf) -> Self {
        Self {
            program,
            folder: std::env::temp_dir(),
            rounds: 3,
            millis: 5_000,
            only: Vec::new(),
            stored: 0,
            log_level: "info".to_owned(),
            streams: STREAMS.connections,
            engine: Engine::Sqlite,
            json: None,
        }
    }

    /// Reads the arguments; nothing when they are wrong.
    #[must_use]
    pub fn parse(arguments: &[String]) -> Option<Self> {
        let mut plan = Self::usual(std::env::current_exe().ok()?);
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            if option == "--quick" {
                (plan.rounds, plan.millis) = (1, 2_000);
                continue;
            }
            let value = arguments.next()?;
            match option.as_str() {
                "--rounds" => plan.rounds = value.parse().ok().filter(|rounds| *rounds > 0)?,
                "--seconds" => plan.millis = value.parse::<u64>().ok()?.checked_mul(1_000)?,
                "--only" => plan.only.push(Scenario::named(value)?.name.to_owned()),
                "--stored" => plan.stored = value.parse().ok()?,
                "--streams" => plan.streams = value.parse().ok().filter(|streams| *streams > 0)?,
                "--database" => plan.engine = Engine::named(value)?,
                "--log" => plan.log_level.clone_from(value),
                "--folder" => plan.folder = value.into(),
                "--json" => plan.json = Some(value.into()),
                _ => return None,
            }
        }
        let fits = |name: &String| Scenario::named(name).is_some_and(|it| it.fits(plan.engine));
        // A store is filled by SQL of SQLite's.
        let is_filled_file = plan.stored == 0 || plan.engine == Engine::Sqlite;
        (is_filled_file && plan.only.iter().all(fits)).then_some(plan)
    }

    fn scenarios(&self) -> Vec<Scenario> {
        let mut scenarios: Vec<_> = match (self.engine, self.stored) {
            _ if !self.only.is_empty() => {
                self.only.iter().filter_map(|name| Scenario::named(name)).collect()
            }
            (Engine::Sqlite, 0) => USUAL.to_vec(),
            (Engine::Sqlite, _) => vec![SOME],
            (Engine::Postgres, _) => USUAL_ON_A_SERVER.to_vec(),
        };
        let has_most = |name: &str| [STREAMS.name, SIDECAR_STREAMS.name].contains(&name);
        for scenario in scenarios.iter_mut().filter(|scenario| has_most(scenario.name)) {
            scenario.connections = self.streams;
        }
        scenarios
    }
}

/// Measures everything that the plan names, and shows it.
pub fn run(plan: &Plan) {
    let report = measure(plan);
    for line in report.text() {
        say(&line);
    }
    if let Some(file) = &plan.json {
        std::fs::write(file, format!("{:#}\n", report.to_json())).expect("a file for the figures");
    }
}

/// The figures of a run, as JSON.
#[must_use]
pub fn figures(plan: &Plan) -> Value {
    measure(plan).to_json()
}

fn measure(plan: &Plan) -> Report {
    let ground = BenchSetup {
        program: plan.program.clone(),
        cores: Cores::find(),
        folder: plan.folder.clone(),
        log_level: plan.log_level.clone(),
        engine: plan.engine,
    };
    std::fs::create_dir_all(&plan.folder).expect("a folder");
    let (folder, database) = match plan.engine {
        Engine::Sqlite => (plan.folder.clone(), "SQLite".to_owned()),
        Engine::Postgres => {
            let server = DatabaseServer::find(ground.cores);
            (server.folder(), server.describe())
        }
    };
    let floors = match plan.engine {
        Engine::Sqlite => FLOORS.iter().map(|batch| floor(&ground, plan, *batch)).collect(),
        Engine::Postgres => Vec::new(),
    };
    let mut report = Report {
        file_system: file_system(&folder).unwrap_or_else(|| "unknown".to_owned()),
        engine: plan.engine,
        database,
        cores: ground.cores,
        stored: plan.stored,
        plan: format!(
            "{} rounds of {} s, log level {}",
            plan.rounds,
            decimal(plan.millis),
            plan.log_level
        ),
        floors,
        lines: Vec::new(),
    };
    for scenario in plan.scenarios() {
        say(&format!("measuring: {} ({})", scenario.name, scenario.what));
        let stored = match scenario.kind {
            ScenarioKind::Purge => plan.stored.max(PURGED),
            ScenarioKind::Fresh
            | ScenarioKind::Replay
            | ScenarioKind::Overload
            | ScenarioKind::Unindexed
            | ScenarioKind::Streams(_) => plan.stored,
        };
        let stand = TestBed::build(&ground, &scenario, stored);
        report.lines.extend(match scenario.kind {
            ScenarioKind::Fresh | ScenarioKind::Unindexed => {
                rounds(plan, &stand, &scenario, LoadSpec::default())
            }
            ScenarioKind::Replay => {
                let key = Some(stand.finished_key());
                rounds(plan, &stand, &scenario, LoadSpec { key, ..LoadSpec::default() })
            }
            ScenarioKind::Streams(speech) => {
                let streams = Some(speech.keys);
                rounds(plan, &stand, &scenario, LoadSpec { streams, ..LoadSpec::default() })
            }
            ScenarioKind::Overload => overload(plan, &stand, &scenario),
            ScenarioKind::Purge => purge(&stand, &scenario),
        });
        // The copies of a filled store bear random ids, which the check rightly does not believe.
        stand.close(stored == 0);
    }
    report
}

/// All targets in each round, so that what disturbs one round disturbs all of them.
fn rounds(plan: &Plan, stand: &TestBed, scenario: &Scenario, push: LoadSpec) -> Vec<ReportRow> {
    let targets = match (plan.engine, scenario.kind, scenario.subject) {
        (_, _, Subject::Sidecar) => [Target::Direct, Target::PassThrough, Target::Sidecar],
        (Engine::Postgres, ScenarioKind::Fresh, _) => {
            [Target::Plain, Target::Store, Target::Gateway]
        }
        (Engine::Sqlite | Engine::Postgres, _, _) => {
            [Target::Direct, Target::PassThrough, Target::Gateway]
        }
    };
    let is_keyless = scenario.subject == Subject::Sidecar;
    let push =
        LoadSpec { connections: scenario.connections, millis: plan.millis, is_keyless, ..push };
    let warm_up = LoadSpec { millis: plan.millis / 4, ..push.clone() };
    for target in targets {
        stand.warm_up(target, &warm_up);
    }
    let mut measured = targets.map(|_target| Vec::new());
    for _ in 0..plan.rounds {
        for (target, measured) in targets.into_iter().zip(&mut measured) {
            let (figures, seen) = stand.measure(target, &push);
            assert!(figures.others == 0, "{} {}: {seen:?}", scenario.name, target.name());
            measured.push(figures);
        }
    }
    let lines = targets.into_iter().zip(measured);
    lines
        .map(|(target, measured)| ReportRow {
            scenario: scenario.name.to_owned(),
            target,
            figures: Figures::middle(&measured),
        })
        .collect()
}

/// Load of what the gateway can do, of twice as much, and again of what it can do right after that.
fn overload(plan: &Plan, stand: &TestBed, scenario: &Scenario) -> Vec<ReportRow> {
    let can =
        LoadSpec { connections: MANY.connections, millis: plan.millis, ..LoadSpec::default() };
    stand.warm_up(Target::Gateway, &LoadSpec { millis: plan.millis / 4, ..can.clone() });
    let (before, _) = stand.measure(Target::Gateway, &can);
    let rate = Some(before.rate * 2);
    let twice = LoadSpec { connections: scenario.connections, rate, ..can.clone() };
    let (during, seen) = stand.measure(Target::Gateway, &twice);
    let shed = seen.of(503);
    assert!(during.others == shed.count, "only 503 is an answer to too much: {seen:?}");
    let (after, _) = stand.measure(Target::Gateway, &can);
    say(&format!(
        "overload: {} a second were asked for, {} accepted (p99 {} ms, slowest {} ms), {} shed \
         (p99 {} ms); {} a second before, {} right after",
        before.rate * 2,
        during.rate,
        decimal(during.latencies.p99),
        decimal(during.latencies.max),
        shed.count,
        decimal(shed.p99),
        before.rate,
        after.rate,
    ));
    let line = |name: &str, figures| ReportRow {
        scenario: name.to_owned(),
        target: Target::Gateway,
        figures,
    };
    vec![line("before", before), line(scenario.name, during), line("after", after)]
}

fn purge(stand: &TestBed, scenario: &Scenario) -> Vec<ReportRow> {
    let push =
        LoadSpec { connections: scenario.connections, millis: PURGE_MILLIS, ..LoadSpec::default() };
    let (figures, _) = stand.measure(Target::Gateway, &push);
    say(&format!("purge: the longest pause was {} ms", decimal(figures.latencies.max)));
    vec![ReportRow { scenario: scenario.name.to_owned(), target: Target::Gateway, figures }]
}

/// The hand-written loop, as often and as long.
fn floor(ground: &BenchSetup, plan: &Plan, batch: u64) -> Floor {
    let mut rounds = Vec::new();
    for _ in 0..plan.rounds {
        let folder = tempfile::TempDir::with_prefix_in("holdfast-bench-", &plan.folder);
        let folder = folder.expect("a folder");
        let mut command = ground.command(CoreRole::Target);
        command.arg("journal").arg("--file").arg(folder.path().join("journal.db"));
        command.args(["--batch", &batch.to_string(), "--millis", &plan.millis.to_string()]);
        let machine = Machine::now();
        let mut journal = Peer::start(command);
        let told: Value = serde_json::from_str(&journal.line()).expect("JSON");
        let used = ProcessUsage::of(journal.process());
        journal.finish();
        let number = |name: &str| told.get(name).and_then(Value::as_u64).expect("a number");
        let (micros, requests) = (number("micros"), number("requests"));
        rounds.push(Figures {
            rate: each(requests.saturating_mul(1_000_000), micros),
            cpu_nanos: each(used.cpu_nanos, requests),
            written: each(used.written, requests),
            transactions: permille(2, batch),
            batch: batch * 1_000,
            resident_kib: used.resident_kib,
            disturbance: machine.disturbance(used.cpu_nanos, micros),
            ..Figures::default()
        });
    }
    Floor { batch, figures: Figures::middle(&rounds) }
}
