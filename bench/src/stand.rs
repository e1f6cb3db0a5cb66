//! A gateway with its upstream, its folder and its account, as one scenario needs them, and the loads
//! that are put on it.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use holdfast_tests::config::ADMIN_TOKEN;
use holdfast_tests::{Account, Config, Gateway, Request, Site, request_key};

use crate::bulk::{self, Results};
use crate::figures::{Figures, Seen};
use crate::load::READY;
use crate::numbers::{each, permille};
use crate::pinned::{Cores, Peer, Place};
use crate::scenario::{Keys, Kind, Scenario};
use crate::usage::{Machine, Usage};

/// What every stand is built with.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    /// This program.
    pub(crate) program: PathBuf,
    pub(crate) cores: Cores,
    /// Where folders are made.
    pub(crate) folder: PathBuf,
    pub(crate) log_level: String,
}

/// A load's own numbers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Push {
    pub(crate) connections: u64,
    pub(crate) millis: u64,
    pub(crate) key: Option<String>,
    pub(crate) rate: Option<u64>,
    pub(crate) streams: Option<Keys>,
}

/// Everything of one scenario.
#[derive(Debug)]
pub(crate) struct Stand {
    ground: Ground,
    account: Account,
    upstream: (Peer, SocketAddr),
    passthrough: (Peer, SocketAddr),
    gateway: Gateway,
    /// What was resident before the first load, of each target.
    idle_kib: [u64; 3],
    site: Site,
}

/// Who is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Direct,
    PassThrough,
    Gateway,
}

impl Target {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::PassThrough => "pass-through",
            Self::Gateway => "gateway",
        }
    }
}

impl Ground {
    pub(crate) fn command(&self, place: Place) -> std::process::Command {
        self.cores.command(place, self.program.as_os_str())
    }
}

impl Stand {
    /// Starts everything; `stored` finished operations are there already.
    pub(crate) fn build(ground: &Ground, scenario: &Scenario, stored: u64) -> Self {
        let (chunks, gap_ms) = scenario.speech().map_or((0, 0), |it| (it.chunks, it.gap_ms));
        let mut upstream: Vec<OsString> = vec!["upstream".into()];
        let pace = [("--delay-ms", scenario.delay_ms), ("--chunks", chunks), ("--gap-ms", gap_ms)];
        upstream.extend(pace.iter().flat_map(|(name, n)| [(*name).into(), n.to_string().into()]));
        let upstream = Peer::listening(ground.command(Place::Around), &upstream);
        let to: OsString = upstream.1.to_string().into();
        let passthrough = Peer::listening(
            ground.command(Place::Target),
            &["passthrough".into(), "--to".into(), to],
        );
        let mut config = Config::at(&format!("http://{}/v1", upstream.1)).set(
            "log",
            "level",
            &format!("\"{}\"", ground.log_level),
        );
        if scenario.kind == Kind::Overload {
            config = config.set("limits", "commit_queue", "256").set(
                "limits",
                "operations_per_key",
                "4096",
            );
        }
        let site = Site::unwatched_in(&ground.folder, &config);
        drop(site.cli(&["migrate", "up"]).ok());
        let account = site.account("bench", "USD", "1000000000.00");
        if stored > 0 {
            let gateway = site.serve();
            let answer = gateway.send(&completion(&account, &request_key()));
            assert_eq!(answer.status, 200, "{answer:?}");
            gateway.stop();
            let results = match scenario.kind {
                Kind::Purge => Results::AllDue,
                Kind::Fresh | Kind::Replay | Kind::Overload | Kind::Streams(_) => Results::Tenth,
            };
            bulk::fill(&site.database(), stored, results);
        }
        let mut command = site.command();
        command.arg("serve");
        let gateway = site.start(ground.cores.place(Place::Target, &command));
        let targets = [upstream.0.process(), passthrough.0.process(), gateway.process()];
        let idle_kib = targets.map(|process| Usage::of(process).resident_kib);
        Self { ground: ground.clone(), account, upstream, passthrough, gateway, idle_kib, site }
    }

    /// One request that is finished; its key.
    pub(crate) fn finished_key(&self) -> String {
        let key = request_key();
        let answer = self.gateway.send(&completion(&self.account, &key));
        assert_eq!(answer.status, 200, "{answer:?}");
        key
    }

    /// Puts a load on one of them and measures what it does to it.
    pub(crate) fn measure(&self, target: Target, push: &Push) -> (Figures, Seen) {
        let [direct, pass_through, gateway] = self.idle_kib;
        let (process, to, idle_kib) = match target {
            Target::Direct => (self.upstream.0.process(), self.upstream.1, direct),
            Target::PassThrough => (self.passthrough.0.process(), self.passthrough.1, pass_through),
            Target::Gateway => (self.gateway.process(), self.gateway.address(), gateway),
        };
        let mut load = self.load(to, push);
        assert_eq!(load.line(), READY);
        let processes = [self.upstream.0.process(), load.process(), process];
        let cpu = || {
            // The upstream is the target of the direct load, and counts once.
            let others = processes.iter().take(if target == Target::Direct { 2 } else { 3 });
            others.map(|process| Usage::of(*process).cpu_nanos).sum::<u64>()
        };
        let counted = (target == Target::Gateway).then(|| self.counters());
        let (used, all_used, machine) = (Usage::of(process), cpu(), Machine::now());
        load.tell();
        let seen = Seen::read(&load.line()).expect("a load says what it saw");
        let disturbance = machine.disturbance(cpu().saturating_sub(all_used), seen.micros);
        let using = Usage::of(process);
        load.finish();
        let mut figures = Figures { disturbance, ..Figures::of(&seen) };
        let requests: u64 = seen.answers.values().map(|it| it.count).sum();
        figures.cpu_nanos = each(using.cpu_nanos - used.cpu_nanos, requests);
        figures.written = each(using.written - used.written, requests);
        figures.resident_kib = using.resident_kib;
        figures.chunk_nanos = each(using.cpu_nanos - used.cpu_nanos, seen.flow.delay.count);
        figures.grown = each(using.peak_kib.saturating_sub(idle_kib) * 1_024, push.connections);
        if let Some(before) = counted {
            let after = self.counters();
            figures.transactions = permille(after.transactions - before.transactions, requests);
            figures.statements = permille(after.statements - before.statements, requests);
            figures.rows = permille(after.rows - before.rows, requests);
            figures.batch =
                permille(after.changes - before.changes, after.transactions - before.transactions);
        }
        (figures, seen)
    }

    /// Ends the gateway in order and checks its book.
    pub(crate) fn close(self, is_checked: bool) {
        self.gateway.stop();
        if is_checked {
            drop(self.site.verify());
        }
    }

    fn load(&self, to: SocketAddr, push: &Push) -> Peer {
        let mut command = self.ground.command(Place::Around);
        command.args(["load", "--to", &to.to_string(), "--bearer", &self.account.key]);
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
        Peer::start(command)
    }

    fn counters(&self) -> Counters {
        let request = Request::get("/metrics").bearer(ADMIN_TOKEN);
        let answer = request.send(self.gateway.admin_address());
        Counters::read(answer.text()).expect("the gateway counts its commits")
    }
}

fn completion(account: &Account, key: &str) -> Request {
    Request::completion(&account.key, key, crate::load::BODY)
}

/// What the gateway counts of its own commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counters {
    transactions: u64,
    changes: u64,
    statements: u64,
    rows: u64,
}

impl Counters {
    fn read(metrics: &str) -> Option<Self> {
        let number = |name: &str| {
            let lines = metrics.lines();
            let value = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).next();
            // A sum of whole numbers is a whole number, however it is spelled.
            value.map_or(Some(0), |value| value.split('.').next()?.parse().ok())
        };
        Some(Self {
            transactions: number("holdfast_commit_batch_size_count")?,
            changes: number("holdfast_commit_batch_size_sum")?,
            statements: number("holdfast_commit_statements_total")?,
            rows: number("holdfast_commit_rows_total")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_by_their_whole_names() {
        let metrics = "# TYPE holdfast_commit_rows_total counter\n\
            holdfast_commit_rows_total 12\nholdfast_commit_statements_total 9\n\
            holdfast_commit_batch_size_bucket{le=\"1\"} 1\nholdfast_commit_batch_size_sum 4.0\n\
            holdfast_commit_batch_size_count 2\n";
        let read = Counters { transactions: 2, changes: 4, statements: 9, rows: 12 };
        assert_eq!(Counters::read(metrics), Some(read));
    }
}
