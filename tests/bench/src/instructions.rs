//! Instructions of a request, by callgrind: what `cargo xtask bench --instructions` prints.
//!
//! ```text
//! load (1, 32 or 256 connections) ──▶ gateway under callgrind, SQLite ──▶ upstream
//!      warm-up │ ready │ zero the counters │ N/5 requests │ read the counters │ … five times
//! ```
//!
//! Connections stand before the counters are zeroed, and they end after they are read. Each row has a
//! warm-up of its own, in which caches of prices, keys and statements are filled. A part of many
//! connections has several requests of each, so that its begin and its end, where batches are small, weigh
//! little.
//!
//! The writer of SQLite is a thread whose work for a change depends on how many it commits at once, and that
//! depends on the machine. So its instructions stand apart, and the changes of a batch beside them: two
//! binaries compare by the writer only where their batches are alike. The thread that carries checkpoints is
//! among the rest.
//!
//! A gateway also works by the clock: heartbeats, the reconciler, polls. That is counted too, more of it
//! where the machine is busy and all takes longer, and it only ever adds. So the least of five parts is the
//! figure, which is the one with the least of it. The sum over the rows judges a binary beside another; a
//! single row above the limit is marked and fails nothing, as one row alone has more of that noise.
//!
//! `--low-balance` adds completions of a wallet that has a threshold, each row behind the one without. The
//! wallet stays above it: an event is rare, the look at the threshold is what every request pays.
//!
//! Beside another binary each is measured in a folder and on a database of its own, because either may have
//! migrations that the other does not know.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdfast_tests::{Account, Config, Gateway, Site, request_key};
use serde_json::Value;

use crate::callgrind::{Callgrind, Instructions, ThreadNumber};
use crate::counters::Counters;
use crate::figures::LoadResult;
use crate::load::READY;
use crate::numbers::{each, permille};
use crate::pinned::Peer;
use crate::say;
use crate::scenario::KeySharing;
use table::{SHARES, WITH_THRESHOLD, table, threshold_table, traces_table};

pub use table::RowFigures;

mod table;

/// Requests of a kind before any is counted.
const WARM_UP: u64 = 300;
/// Requests of a kind that are counted, unless others are asked for.
const REQUESTS: u64 = 500;
/// Parts in which they are counted; the least of them is the figure.
const PARTS: u64 = 5;
/// A threshold that the wallet stays above however many requests it pays.
const THRESHOLD: &str = "1.00";
/// Connections of a plain completion, beside one.
const WIDTHS: [u64; 2] = [32, 256];
/// Requests of each connection, at least, in a part and in a warm-up.
const TURNS_MIN: u64 = 4;
/// The module whose functions only the writer's thread runs once the gateway serves.
const WRITER: &str = "holdfast_store::sqlite::writer::";
/// Chunks of a streamed answer, as fast as they go.
const CHUNKS: &str = "20";
/// Longer than so many requests take; the load ends by their number.
const MILLIS_MAX: &str = "3600000";

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    /// A new key, answered as JSON.
    Plain,
    /// The same on a wallet with a threshold for `wallet.low`.
    Threshold,
    /// A finished key.
    Replay,
    /// A new key, answered as a stream.
    Streamed,
    /// A credential that nobody has.
    Refused,
}

const KINDS: [RequestKind; 4] =
    [RequestKind::Plain, RequestKind::Replay, RequestKind::Streamed, RequestKind::Refused];

impl RequestKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Plain | Self::Threshold => "plain JSON completion",
            Self::Replay => "replay of one key",
            Self::Streamed => "streamed completion",
            Self::Refused => "refused (401)",
        }
    }

    const fn status(self) -> u16 {
        match self {
            Self::Plain | Self::Threshold | Self::Replay | Self::Streamed => 200,
            Self::Refused => 401,
        }
    }
}

/// Requests of a kind on so many connections at once.
#[derive(Debug, Clone, Copy)]
struct Row {
    kind: RequestKind,
    connections: u64,
}

impl Row {
    /// Each kind on one connection, then completions on more; where a threshold is asked for, each
    /// completion once more behind itself, so that both see nearly the same book.
    fn all(plan: &Plan) -> impl Iterator<Item = Self> {
        let single = KINDS.map(|kind| Self { kind, connections: 1 });
        let wide = plan.widths.iter().map(|n| Self { kind: RequestKind::Plain, connections: *n });
        single.into_iter().chain(wide).flat_map(|row| {
            let is_repeated = plan.has_threshold && row.kind == RequestKind::Plain;
            let again = Self { kind: RequestKind::Threshold, ..row };
            [Some(row), is_repeated.then_some(again)].into_iter().flatten()
        })
    }

    fn name(self) -> String {
        let threshold = if self.kind == RequestKind::Threshold { WITH_THRESHOLD } else { "" };
        match self.connections {
            1 => format!("{}{threshold}", self.kind.name()),
            connections => format!("{}{threshold} ×{connections}", self.kind.name()),
        }
    }

    /// Requests of each connection, so that together they are at least as many as asked for.
    fn turns(self, requests: u64) -> u64 {
        match self.connections {
            1 => requests,
            connections => requests.div_ceil(connections).max(TURNS_MIN),
        }
    }
}

/// The binaries to count, and how many requests of each kind.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The program itself, which the other processes are started from.
    pub program: PathBuf,
    /// Folder in which databases are made.
    pub folder: PathBuf,
    /// Requests of each kind before any is counted.
    pub warm_up: u64,
    /// Requests of each kind that are counted; more where the connections need them.
    pub requests: u64,
    /// Connections of a plain completion, beside one.
    pub widths: Vec<u64>,
    /// Counts completions of a wallet with a threshold for `wallet.low` too.
    pub has_threshold: bool,
    /// Shares of requests with which everything is counted again, traced.
    pub shares: &'static [(&'static str, u64)],
    /// Share of requests that are traced; `None` where traces are off.
    pub share: Option<&'static str>,
    /// Another binary of the gateway, to compare with.
    pub against: Option<PathBuf>,
    /// Tells the counts as JSON, to another process of this program.
    pub is_json: bool,
}

impl Plan {
    /// The plan where nothing is asked for.
    #[must_use]
    pub fn usual(program: PathBuf) -> Self {
        let folder = env::temp_dir();
        let (warm_up, requests, widths) = (WARM_UP, REQUESTS, WIDTHS.to_vec());
        Self {
            program,
            folder,
            warm_up,
            requests,
            widths,
            has_threshold: false,
            shares: &[],
            share: None,
            against: None,
            is_json: false,
        }
    }

    /// Reads the arguments; nothing when they are wrong.
    #[must_use]
    pub fn parse(arguments: &[String]) -> Option<Self> {
        let mut plan = Self::usual(env::current_exe().ok()?);
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            match option.as_str() {
                "--json" => plan.is_json = true,
                "--low-balance" => plan.has_threshold = true,
                "--traces" => plan.shares = &SHARES,
                _ => plan.set(option, arguments.next()?)?,
            }
        }
        Some(plan)
    }

    /// Takes an option and its value; nothing when either is wrong.
    fn set(&mut self, option: &str, value: &str) -> Option<()> {
        match option {
            "--requests" => self.requests = value.parse().ok().filter(|it| *it > 0)?,
            "--folder" => self.folder = value.into(),
            "--against" => self.against = Some(value.into()),
            _ => return None,
        }
        Some(())
    }
}

/// Counts what the plan names and shows it; whether the rows together need no more than they may.
#[must_use]
pub fn run(plan: &Plan) -> bool {
    let counts = count(plan);
    if plan.is_json {
        say(&Value::from_iter(counts.iter().map(RowFigures::to_json)).to_string());
        return true;
    }
    let others = plan.against.as_deref().map(|binary| count_other(plan, binary));
    let (warm_up, requests) = (plan.warm_up, plan.requests);
    say(&format!(
        "user instructions a request: {requests} in {PARTS} parts, of which the least, after {warm_up};\n\
         on N connections (×N) at least {TURNS_MIN} of each in a part; the writer's among them, and the\n\
         changes that it committed at once"
    ));
    let (lines, is_within) = table(&counts, others.as_deref());
    lines.iter().for_each(|line| say(line));
    let (lines, is_threshold_within) = threshold_table(&counts);
    lines.iter().for_each(|line| say(line));
    let of_share = |(share, _most): &(_, _)| count(&Plan { share: Some(*share), ..plan.clone() });
    let traced = plan.shares.iter().map(of_share);
    let (lines, is_traced_within) = traces_table(&counts, &traced.collect::<Vec<_>>());
    lines.iter().for_each(|line| say(line));
    is_within && is_threshold_within && is_traced_within
}

/// The instructions of each row.
#[must_use]
pub fn count(plan: &Plan) -> Vec<RowFigures> {
    std::fs::create_dir_all(&plan.folder).expect("a folder");
    let upstream = ["upstream", "--chunks", CHUNKS].map(OsString::from);
    let (_upstream, address) = Peer::listening(Command::new(&plan.program), &upstream);
    let config = Config::at(&format!("http://{address}/v1")).set("log", "level", "\"info\"");
    let mut site = Site::unwatched_in(&plan.folder, &config);
    let _collector = plan.share.map(|share| {
        // It answers whatever is posted.
        let (collector, address) =
            Peer::listening(Command::new(&plan.program), &["upstream".into()]);
        for (name, value) in [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{address}").as_str()),
            ("OTEL_TRACES_SAMPLER", "traceidratio"),
            ("OTEL_TRACES_SAMPLER_ARG", share),
        ] {
            site.set_env(name, value);
        }
        collector
    });
    drop(site.cli(&["migrate", "up"]).ok());
    let account = site.account("bench", "USD", "1000000.00");
    let threshold_account = plan.has_threshold.then(|| {
        let account = site.account("bench-low", "USD", "1000000.00");
        drop(site.json(&["wallet", "update", &account.wallet, "--low-balance", THRESHOLD]));
        account
    });
    let dumps = site.path("callgrind.out");
    let mut command = site.command();
    let gateway = site.start(Callgrind::command(command.arg("serve"), &dumps));
    let callgrind = Callgrind::of(gateway.process(), dumps);
    let mut bed =
        CallgrindBed { plan, account, threshold_account, gateway, callgrind, writer: None };
    let counts = Row::all(plan).map(|row| bed.count(row)).collect();
    bed.gateway.stop();
    counts
}

/// A gateway under callgrind, and the account that pays for its requests.
struct CallgrindBed<'a> {
    plan: &'a Plan,
    account: Account,
    /// An account of a wallet with a threshold, where one is asked for.
    threshold_account: Option<Account>,
    gateway: Gateway,
    callgrind: Callgrind,
    /// The writer's thread, once it has been seen at work.
    writer: Option<ThreadNumber>,
}

impl CallgrindBed<'_> {
    /// The cheapest part of a row, after its warm-up.
    fn count(&mut self, row: Row) -> RowFigures {
        let threshold = self.threshold_account.as_ref();
        let account = threshold.filter(|_| row.kind == RequestKind::Threshold);
        let of_kind = load_of(row.kind, account.unwrap_or(&self.account));
        // Functions of the writer's module also run on another thread, which starts it: not from here on.
        self.callgrind.zero();
        let warm_up = self.load(row, row.turns(self.plan.warm_up), &of_kind);
        drop(answered(warm_up, row, row.turns(self.plan.warm_up)));
        // The first row is one that writes; later ones may write nothing in a part.
        let writer = *self.writer.get_or_insert_with(|| self.callgrind.thread_of(WRITER));
        let turns = row.turns(self.plan.requests.div_ceil(PARTS));
        let parts = (0..PARTS).map(|_| {
            let part = self.load(row, turns, &of_kind);
            let before = Counters::of(&self.gateway);
            self.callgrind.zero();
            let part = answered(part, row, turns);
            let counted = self.callgrind.count(writer);
            let work = Counters::of(&self.gateway) - before;
            part.finish();
            (counted, work)
        });
        let (Instructions { all, of_thread }, work) =
            parts.min_by_key(|(counted, _)| counted.all).expect("parts");
        let requests = turns * row.connections;
        RowFigures {
            row: row.name(),
            instructions: each(all, requests),
            writer: each(of_thread, requests),
            batch: permille(work.changes, work.transactions),
        }
    }

    /// A load whose connections stand, of so many requests each.
    fn load(&self, row: Row, turns: u64, of_kind: &[String]) -> Peer {
        let mut load = Command::new(&self.plan.program);
        load.args(["load", "--millis", MILLIS_MAX]);
        load.args(["--connections", &row.connections.to_string()]);
        load.args(["--to", &self.gateway.address().to_string()]);
        load.args(["--requests", &turns.to_string()]).args(of_kind);
        let mut load = Peer::start(load);
        assert_eq!(load.line(), READY);
        load
    }
}

/// Arguments of a load of such requests.
fn load_of(kind: RequestKind, account: &Account) -> Vec<String> {
    let (option, value, bearer) = match kind {
        RequestKind::Plain | RequestKind::Threshold => {
            return vec!["--bearer".to_owned(), account.key.clone()];
        }
        RequestKind::Replay => ("--key", request_key(), account.key.clone()),
        RequestKind::Streamed => {
            ("--streams", KeySharing::Own.name().to_owned(), account.key.clone())
        }
        RequestKind::Refused => ("--key", request_key(), unknown(&account.key)),
    };
    vec![option.to_owned(), value, "--bearer".to_owned(), bearer]
}

/// A credential of the same form that was never issued.
fn unknown(key: &str) -> String {
    let changed = key.chars().rev().enumerate().map(|(at, character)| match (at, character) {
        (0, 'a') => 'b',
        (0, _) => 'a',
        (_, character) => character,
    });
    let changed: String = changed.collect();
    changed.chars().rev().collect()
}

/// Lets a load begin, and waits until all its requests are answered as they should be.
fn answered(mut load: Peer, row: Row, turns: u64) -> Peer {
    load.tell();
    let seen = LoadResult::read(&load.line()).expect("a load says what it saw");
    let answers = seen.of(row.kind.status()).count;
    assert_eq!(answers, turns * row.connections, "{}: {seen:?}", row.name());
    load
}

/// The counts of another binary, from a process of this program that is told to drive that one.
fn count_other(plan: &Plan, binary: &Path) -> Vec<RowFigures> {
    let binary = binary.canonicalize().unwrap_or_else(|error| panic!("{binary:?}: {error}"));
    let mut command = Command::new(&plan.program);
    command.args(["instructions", "--json", "--requests", &plan.requests.to_string()]);
    command.arg("--folder").arg(&plan.folder).env("HOLDFAST_BIN", binary);
    if plan.has_threshold {
        command.arg("--low-balance");
    }
    let mut other = Peer::start(command);
    let counts: Value = serde_json::from_str(&other.line()).expect("JSON");
    other.finish();
    let counts = counts.as_array().and_then(|rows| rows.iter().map(RowFigures::read).collect());
    counts.expect("rows of figures")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_credential_has_the_form_of_a_known_one() {
        assert_eq!(unknown("hfk_1x"), "hfk_1a");
        assert_eq!(unknown("hfk_1a"), "hfk_1b");
    }

    #[test]
    fn many_connections_have_several_requests_each() {
        let turns =
            |connections, requests| Row { kind: RequestKind::Plain, connections }.turns(requests);
        assert_eq!([turns(1, 2), turns(1, 100), turns(32, 100)], [2, 100, TURNS_MIN]);
        assert_eq!([turns(32, 300), turns(256, 300)], [10, TURNS_MIN]);
    }

    #[test]
    fn a_completion_is_repeated_behind_itself_where_a_threshold_is_asked_for() {
        let plan = Plan { has_threshold: true, widths: vec![8], ..Plan::usual(PathBuf::new()) };
        let kinds: Vec<_> = Row::all(&plan).map(|it| (it.kind, it.connections)).collect();
        let (plain, low) = (RequestKind::Plain, RequestKind::Threshold);
        assert_eq!((kinds.len(), &kinds[..2]), (7, &[(plain, 1), (low, 1)][..]));
        assert_eq!(kinds[5..], [(plain, 8), (low, 8)]);
        let without = Plan { has_threshold: false, ..plan };
        assert_eq!(Row::all(&without).count(), KINDS.len() + 1);
    }

    #[test]
    fn a_plan_names_what_it_takes() {
        let parse = |text: &str| {
            let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            Plan::parse(&arguments)
        };
        assert_eq!(parse("").unwrap().requests, REQUESTS);
        let plan = parse("--requests 7 --against target/dist/holdfast").unwrap();
        assert_eq!((plan.requests, plan.against), (7, Some("target/dist/holdfast".into())));
        assert!(!plan.has_threshold && parse("--low-balance --requests 7").unwrap().has_threshold);
        for bad in ["--requests", "--requests 0", "--requests many", "--rounds 3"] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
