//! A gateway with its upstream, its folder and its account, as one scenario needs them, and the loads
//! that are put on it.
//!
//! ```text
//! load ──▶ gateway ──▶ upstream        core 0: what is measured; core 1: all else, the database server too
//! load ──▶ pass-through ──▶ upstream   the same load, for the price of HTTP alone
//! load ──▶ upstream                    direct
//! load ──▶ sidecar ──▶ upstream        where the sidecar is measured, in the gateway's place
//! ```
//!
//! Usage is read from /proc right before a load begins and right after it has ended, of the target and of
//! everything around it: what is left of the machine's busy time is other work, which a report calls a
//! disturbance. Counters of commits are the gateway's own, from its metrics.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::ops::Add;
use std::path::PathBuf;

use holdfast_tests::{Account, Config, Gateway, Request, Site, request_key};

use crate::accounts;
use crate::bulk::{self, Results};
use crate::counters::Counters;
use crate::figures::{Figures, LoadResult};
use crate::load::{self, READY};
use crate::numbers::{each, permille};
use crate::pinned::{CoreRole, Cores, Peer};
use crate::scenario::{Collector, Engine, KeySharing, Scenario, ScenarioKind, Subject};
use crate::server::{DatabaseServer, ServerWork};
use crate::usage::{Machine, ProcessUsage};

/// The file with the credentials of all wallets.
const BEARERS: &str = "bearers";

/// Setup that all stands share.
#[derive(Debug, Clone)]
pub(crate) struct BenchSetup {
    /// The program itself.
    pub(crate) program: PathBuf,
    pub(crate) cores: Cores,
    /// Folder in which others are made.
    pub(crate) folder: PathBuf,
    pub(crate) log_level: String,
    pub(crate) engine: Engine,
}

/// A load's own numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadSpec {
    pub(crate) connections: u64,
    pub(crate) millis: u64,
    pub(crate) key: Option<String>,
    pub(crate) rate: Option<u64>,
    pub(crate) streams: Option<KeySharing>,
    /// Requests have no keys.
    pub(crate) is_keyless: bool,
}

/// Everything of one scenario.
#[derive(Debug)]
pub(crate) struct TestBed {
    ground: BenchSetup,
    account: Account,
    upstream: (Peer, SocketAddr),
    passthrough: (Peer, SocketAddr),
    /// Processes of what the scenario measures.
    subjects: Vec<Gateway>,
    /// Memory that was resident before the first load, of the upstream, the pass-through and all subjects.
    idle_kib: [u64; 3],
    scenario: Scenario,
    site: Site,
    server: Option<DatabaseServer>,
    /// Collector of the subjects' spans, which ends after them.
    _collector: Option<RunningCollector>,
}

fn configuration(ground: &BenchSetup, scenario: &Scenario, upstream: SocketAddr) -> Config {
    let level = format!("\"{}\"", ground.log_level);
    let config = Config::at(&format!("http://{upstream}/v1")).set("log", "level", &level);
    if scenario.kind != ScenarioKind::Overload {
        return config;
    }
    config.set("limits", "commit_queue", "256").set("limits", "operations_per_key", "4096")
}

/// Starts the processes that the scenario measures.
fn start(
    ground: &BenchSetup,
    scenario: &Scenario,
    site: &Site,
    upstream: SocketAddr,
) -> Vec<Gateway> {
    let place = |command| ground.cores.place(CoreRole::Target, &command);
    match scenario.subject {
        Subject::Gateway | Subject::Traced(_) => {
            let serve = || {
                let mut command = site.command();
                command.arg("serve");
                place(command)
            };
            (0..scenario.nodes).map(|_node| site.start(serve())).collect()
        }
        Subject::Sidecar => {
            let command = site.sidecar_command(&format!("http://{upstream}/v1"));
            vec![site.start_sidecar(place(command))]
        }
    }
}

/// Collector of spans, and whatever keeps it as it is.
#[derive(Debug)]
struct RunningCollector {
    address: SocketAddr,
    _peer: Option<Peer>,
    _listener: Option<TcpListener>,
}

impl RunningCollector {
    fn start(ground: &BenchSetup, kind: Collector) -> Self {
        if kind == Collector::Live {
            // It answers whatever is posted.
            let command = ground.command(CoreRole::Around);
            let (peer, address) = Peer::listening(command, &["upstream".into()]);
            return Self { address, _peer: Some(peer), _listener: None };
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        Self {
            address,
            _peer: None,
            _listener: Some(listener).filter(|_| kind == Collector::Silent),
        }
    }
}

/// Target of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Direct,
    PassThrough,
    Gateway,
    Sidecar,
    /// A transaction for each step, on the same server.
    Plain,
    /// The gateway's store without the gateway, on the same server.
    Store,
}

impl Target {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::PassThrough => "pass-through",
            Self::Gateway => "gateway",
            Self::Sidecar => "sidecar",
            Self::Plain => "plain loop",
            Self::Store => "store alone",
        }
    }
}

impl BenchSetup {
    pub(crate) fn command(&self, place: CoreRole) -> std::process::Command {
        self.cores.command(place, self.program.as_os_str())
    }
}

impl TestBed {
    /// Starts everything; `stored` finished operations are there already.
    pub(crate) fn build(ground: &BenchSetup, scenario: &Scenario, stored: u64) -> Self {
        let (chunks, gap_ms) = scenario.speech().map_or((0, 0), |it| (it.chunks, it.gap_ms));
        let mut upstream: Vec<OsString> = vec!["upstream".into()];
        let pace = [("--delay-ms", scenario.delay_ms), ("--chunks", chunks), ("--gap-ms", gap_ms)];
        upstream.extend(pace.iter().flat_map(|(name, n)| [(*name).into(), n.to_string().into()]));
        let upstream = Peer::listening(ground.command(CoreRole::Around), &upstream);
        let to: OsString = upstream.1.to_string().into();
        let passthrough = Peer::listening(
            ground.command(CoreRole::Target),
            &["passthrough".into(), "--to".into(), to],
        );
        let mut config = configuration(ground, scenario, upstream.1);
        let server = match ground.engine {
            Engine::Sqlite => None,
            Engine::Postgres => Some(DatabaseServer::find(ground.cores)),
        };
        if let Some(server) = &server {
            config = server.database.configure(config);
        }
        let mut site = Site::unwatched_in(&ground.folder, &config);
        drop(site.cli(&["migrate", "up"]).ok());
        let account = site.account("bench", "USD", "1000000000.00");
        if stored > 0 {
            fill(&site, &account, scenario, stored);
        }
        if scenario.kind == ScenarioKind::Unindexed {
            bulk::drop_index_by_api_key(&site.database());
        }
        if let Some(server) = &server {
            let bearers = accounts::copy(&server.database, &account, scenario.wallets);
            site.write(BEARERS, &bearers.join("\n"));
        }
        let collector = match scenario.subject {
            Subject::Traced(collector) => Some(RunningCollector::start(ground, collector)),
            Subject::Gateway | Subject::Sidecar => None,
        };
        if let Some(collector) = &collector {
            site.set_env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{}", collector.address));
        }
        let subjects = start(ground, scenario, &site, upstream.1);
        let resident = |process: u32| ProcessUsage::of(process).resident_kib;
        let idle_kib = [
            resident(upstream.0.process()),
            resident(passthrough.0.process()),
            subjects.iter().map(|subject| resident(subject.process())).sum(),
        ];
        let (ground, scenario) = (ground.clone(), *scenario);
        Self {
            ground,
            account,
            upstream,
            passthrough,
            subjects,
            idle_kib,
            scenario,
            site,
            server,
            _collector: collector,
        }
    }

    /// Finishes a request; its key.
    pub(crate) fn finished_key(&self) -> String {
        let key = request_key();
        for gateway in &self.subjects {
            let answer = gateway.send(&completion(&self.account, &key));
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        key
    }

    /// Puts a load on one of them and looks at nothing.
    pub(crate) fn warm_up(&self, target: Target, push: &LoadSpec) {
        let mut load = self.load(target, push);
        assert_eq!(load.line(), READY);
        load.tell();
        drop(load.line());
        load.finish();
    }

    /// Puts a load on one of them and measures what it does to it.
    pub(crate) fn measure(&self, target: Target, push: &LoadSpec) -> (Figures, LoadResult) {
        let mut load = self.load(target, push);
        assert_eq!(load.line(), READY);
        let (processes, idle_kib) = self.processes(target, &load);
        let mut around = vec![self.upstream.0.process(), load.process()];
        around.retain(|process| !processes.contains(process));
        let all_cpu = || {
            let all = around.iter().chain(&processes);
            all.map(|process| ProcessUsage::of(*process).cpu_nanos).sum::<u64>() + self.served()
        };
        let counted = (target == Target::Gateway).then(|| self.counters());
        let done = self.done(target);
        let served = self.served();
        let (used, all_used, machine) =
            (ProcessUsage::of_all(&processes), all_cpu(), Machine::now());
        load.tell();
        let seen = LoadResult::read(&load.line()).expect("a load says what it saw");
        let disturbance = machine.disturbance(all_cpu().saturating_sub(all_used), seen.micros);
        let using = ProcessUsage::of_all(&processes);
        let served = self.served().saturating_sub(served);
        load.finish();
        let mut figures = Figures { disturbance, ..Figures::of(&seen) };
        let requests: u64 = seen.answers.values().map(|it| it.count).sum();
        figures.cpu_nanos = each(using.cpu_nanos - used.cpu_nanos, requests);
        figures.written = each(using.written - used.written, requests);
        figures.resident_kib = using.resident_kib;
        figures.chunk_nanos = each(using.cpu_nanos - used.cpu_nanos, seen.flow.delay.count);
        figures.grown = each(using.peak_kib.saturating_sub(idle_kib) * 1_024, push.connections);
        if let Some(before) = counted {
            let work = self.counters() - before;
            figures.transactions = permille(work.transactions, requests);
            figures.statements = permille(work.statements, requests);
            figures.rows = permille(work.rows, requests);
            figures.batch = permille(work.changes, work.transactions);
        }
        figures.server_nanos = each(served, requests);
        if let Some((before, after)) = done.zip(self.done(target)) {
            figures.logged = each(after.logged.saturating_sub(before.logged), requests);
            figures.syncs = permille(after.syncs.saturating_sub(before.syncs), requests);
        }
        (figures, seen)
    }

    /// Processes of the target, and the memory that they had resident before their first load.
    fn processes(&self, target: Target, load: &Peer) -> (Vec<u32>, u64) {
        let [direct, pass_through, subjects] = self.idle_kib;
        match target {
            Target::Direct => (vec![self.upstream.0.process()], direct),
            Target::PassThrough => (vec![self.passthrough.0.process()], pass_through),
            Target::Gateway | Target::Sidecar => {
                (self.subjects.iter().map(Gateway::process).collect(), subjects)
            }
            Target::Plain | Target::Store => (vec![load.process()], 0),
        }
    }

    /// CPU time of the server so far.
    fn served(&self) -> u64 {
        self.server.as_ref().map_or(0, DatabaseServer::cpu_nanos)
    }

    /// Work of the server by now, of which those who work on it tell.
    fn done(&self, target: Target) -> Option<ServerWork> {
        let server = self.server.as_ref()?;
        Some(server.done(|| {
            if target == Target::Gateway {
                drop(self.finished_key());
            }
        }))
    }

    /// Ends what was measured in order and checks the book.
    pub(crate) fn close(self, is_checked: bool) {
        self.subjects.into_iter().for_each(Gateway::stop);
        if is_checked {
            drop(self.site.verify());
        }
    }

    fn load(&self, target: Target, push: &LoadSpec) -> Peer {
        let to = match target {
            Target::Direct => self.upstream.1.to_string(),
            Target::PassThrough => self.passthrough.1.to_string(),
            Target::Gateway | Target::Sidecar => {
                let all = self.subjects.iter().map(|subject| subject.address().to_string());
                all.collect::<Vec<_>>().join(",")
            }
            Target::Plain => return self.pairs("plain", push),
            Target::Store => return self.pairs("store", push),
        };
        let mut command = self.ground.command(CoreRole::Around);
        command.args(["load", "--to", &to]);
        match &self.server {
            Some(_) => command.arg("--bearers").arg(self.site.path(BEARERS)),
            None => command.args(["--bearer", &self.account.key]),
        };
        command.args(["--connections", &push.connections.to_string()]);
        command.args(["--millis", &push.millis.to_string()]);
        if let Some(key) = &push.key {
            command.args(["--key", key]);
        }
        if let Some(rate) = push.rate {
            command.args(["--rate", &rate.to_string()]);
        }
        if let Some(keys) = push.streams {
            command.args(["--streams", keys.name()]);
        }
        if push.is_keyless {
            command.args(["--keys", load::NO_KEYS]);
        }
        Peer::start(command)
    }

    /// Pairs of hold and settlement without HTTP, in the gateway's place.
    fn pairs(&self, who: &str, push: &LoadSpec) -> Peer {
        let server = self.server.as_ref().expect("pairs are made on a server");
        let mut command = self.ground.command(CoreRole::Target);
        command.args([who, "--url", &server.database.url()]);
        let Scenario { wallets, nodes, .. } = self.scenario;
        let numbers = [("--tasks", push.connections), ("--wallets", wallets), ("--nodes", nodes)];
        for (name, number) in numbers.into_iter().chain([("--millis", push.millis)]) {
            command.arg(name).arg(number.to_string());
        }
        Peer::start(command)
    }

    /// Counters of all gateways together.
    fn counters(&self) -> Counters {
        self.subjects.iter().map(Counters::of).fold(Counters::default(), Counters::add)
    }
}

/// Makes this many finished operations, of one that was real.
fn fill(site: &Site, account: &Account, scenario: &Scenario, stored: u64) {
    let gateway = site.serve();
    let answer = gateway.send(&completion(account, &request_key()));
    assert_eq!(answer.status, 200, "{answer:?}");
    gateway.stop();
    let results = match scenario.kind {
        ScenarioKind::Purge => Results::AllDue,
        ScenarioKind::Fresh
        | ScenarioKind::Replay
        | ScenarioKind::Overload
        | ScenarioKind::Unindexed
        | ScenarioKind::Streams(_) => Results::Tenth,
    };
    bulk::fill(&site.database(), stored, results);
}

fn completion(account: &Account, key: &str) -> Request {
    Request::completion(&account.key, key, load::BODY)
}
