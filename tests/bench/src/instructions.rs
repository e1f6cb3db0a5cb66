//! Instructions of a request, by callgrind: what `cargo xtask bench --instructions` prints.
//!
//! ```text
//! load (1 connection) ──▶ gateway under callgrind, SQLite ──▶ upstream
//!      warm-up │ ready │ zero the counters │ N/5 requests │ read the counters │ … five times
//! ```
//!
//! The connection stands before the counters are zeroed, and it ends after they are read. Each kind of
//! request has a warm-up of its own, in which caches of prices, keys and statements are filled.
//!
//! A gateway also works by the clock: heartbeats, the reconciler, polls. That is counted too, more of it
//! where the machine is busy and all takes longer, and it only ever adds. So the least of five parts is the
//! figure, which is the one with the least of it.
//!
//! Beside another binary each is measured in a folder and on a database of its own, because either may have
//! migrations that the other does not know.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use holdfast_tests::{Account, Config, Site, request_key};
use serde_json::{Map, Value};

use crate::callgrind::Callgrind;
use crate::figures::LoadResult;
use crate::load::READY;
use crate::numbers::{decimal, each, permille};
use crate::pinned::Peer;
use crate::say;
use crate::scenario::KeySharing;

/// Requests of a kind before any is counted.
const WARM_UP: u64 = 300;
/// Requests of a kind that are counted, unless others are asked for.
const REQUESTS: u64 = 500;
/// Parts in which they are counted; the least of them is the figure.
const PARTS: u64 = 5;
/// The most that a request may need beside the other binary's, in thousandths.
const RATIO_MAX: u64 = 1_030;
/// Chunks of a streamed answer, as fast as they go.
const CHUNKS: &str = "20";
/// Longer than so many requests take; the load ends by their number.
const MILLIS_MAX: &str = "3600000";

/// A kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequestKind {
    /// A new key, answered as JSON.
    Plain,
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
            Self::Plain => "plain JSON completion",
            Self::Replay => "replay of one key",
            Self::Streamed => "streamed completion",
            Self::Refused => "refused (401)",
        }
    }

    const fn status(self) -> u16 {
        match self {
            Self::Plain | Self::Replay | Self::Streamed => 200,
            Self::Refused => 401,
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
    /// Requests of each kind that are counted.
    pub requests: u64,
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
        let (warm_up, requests) = (WARM_UP, REQUESTS);
        Self { program, folder, warm_up, requests, against: None, is_json: false }
    }

    /// Reads the arguments; nothing when they are wrong.
    #[must_use]
    pub fn parse(arguments: &[String]) -> Option<Self> {
        let mut plan = Self::usual(env::current_exe().ok()?);
        let mut arguments = arguments.iter();
        while let Some(option) = arguments.next() {
            if option == "--json" {
                plan.is_json = true;
                continue;
            }
            let value = arguments.next()?;
            match option.as_str() {
                "--requests" => plan.requests = value.parse().ok().filter(|it| *it > 0)?,
                "--folder" => plan.folder = value.into(),
                "--against" => plan.against = Some(value.into()),
                _ => return None,
            }
        }
        Some(plan)
    }
}

/// Counts what the plan names and shows it; whether no request needs more than it may.
#[must_use]
pub fn run(plan: &Plan) -> bool {
    let counts = count(plan);
    if plan.is_json {
        let named = counts.iter().map(|(kind, n)| ((*kind).to_owned(), Value::from(*n)));
        say(&Value::Object(named.collect::<Map<_, _>>()).to_string());
        return true;
    }
    let others = plan.against.as_deref().map(|binary| count_other(plan, binary));
    let (warm_up, requests) = (plan.warm_up, plan.requests);
    say(&format!(
        "user instructions a request: {requests} in {PARTS} parts, of which the least, after {warm_up}"
    ));
    let head = if others.is_some() { "against    ratio" } else { "" };
    say(format!("{:<24}{:>12} {head:>20}", "", "this").trim_end());
    let mut is_within = true;
    for (kind, n) in counts {
        let other =
            others.as_ref().map(|it| it.get(kind).and_then(Value::as_u64).expect("a count"));
        let compared = other.map_or(String::new(), |other| {
            let ratio = permille(n, other);
            is_within &= ratio <= RATIO_MAX;
            let verdict = if ratio <= RATIO_MAX { "" } else { "  MORE THAN ALLOWED" };
            format!("{other:>12} {:>7}×{verdict}", decimal(ratio))
        });
        say(format!("{kind:<24}{n:>12}{compared}").trim_end());
    }
    is_within
}

/// The instructions of each kind of request, by its name.
#[must_use]
pub fn count(plan: &Plan) -> Vec<(&'static str, u64)> {
    std::fs::create_dir_all(&plan.folder).expect("a folder");
    let upstream = ["upstream", "--chunks", CHUNKS].map(OsString::from);
    let (_upstream, address) = Peer::listening(Command::new(&plan.program), &upstream);
    let config = Config::at(&format!("http://{address}/v1")).set("log", "level", "\"info\"");
    let site = Site::unwatched_in(&plan.folder, &config);
    drop(site.cli(&["migrate", "up"]).ok());
    let account = site.account("bench", "USD", "1000000.00");
    let dumps = site.path("callgrind.out");
    let mut command = site.command();
    let gateway = site.start(Callgrind::command(command.arg("serve"), &dumps));
    let mut callgrind = Callgrind::of(gateway.process(), dumps);
    let counted = KINDS.map(|kind| {
        let of_kind = load_of(kind, &account);
        let load = |requests: u64| {
            let mut load = Command::new(&plan.program);
            load.args(["load", "--connections", "1", "--millis", MILLIS_MAX]);
            load.args(["--to", &gateway.address().to_string()]);
            load.args(["--requests", &requests.to_string()]).args(&of_kind);
            let mut load = Peer::start(load);
            assert_eq!(load.line(), READY);
            load
        };
        drop(answered(load(plan.warm_up), kind, plan.warm_up));
        let requests = plan.requests.div_ceil(PARTS);
        let parts = (0..PARTS).map(|_| {
            let part = load(requests);
            callgrind.zero();
            let part = answered(part, kind, requests);
            let instructions = callgrind.count();
            part.finish();
            each(instructions, requests)
        });
        (kind.name(), parts.min().unwrap_or(0))
    });
    gateway.stop();
    counted.into()
}

/// Arguments of a load of such requests.
fn load_of(kind: RequestKind, account: &Account) -> Vec<String> {
    let (option, value, bearer) = match kind {
        RequestKind::Plain => return vec!["--bearer".to_owned(), account.key.clone()],
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
fn answered(mut load: Peer, kind: RequestKind, requests: u64) -> Peer {
    load.tell();
    let seen = LoadResult::read(&load.line()).expect("a load says what it saw");
    assert_eq!(seen.of(kind.status()).count, requests, "{}: {seen:?}", kind.name());
    load
}

/// The counts of another binary, from a process of this program that is told to drive that one.
fn count_other(plan: &Plan, binary: &Path) -> Value {
    let binary = binary.canonicalize().unwrap_or_else(|error| panic!("{binary:?}: {error}"));
    let mut command = Command::new(&plan.program);
    command.args(["instructions", "--json", "--requests", &plan.requests.to_string()]);
    command.arg("--folder").arg(&plan.folder).env("HOLDFAST_BIN", binary);
    let mut other = Peer::start(command);
    let counts = serde_json::from_str(&other.line()).expect("JSON");
    other.finish();
    counts
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
    fn a_plan_names_what_it_takes() {
        let parse = |text: &str| {
            let arguments: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            Plan::parse(&arguments)
        };
        assert_eq!(parse("").unwrap().requests, REQUESTS);
        let plan = parse("--requests 7 --against target/dist/holdfast").unwrap();
        assert_eq!((plan.requests, plan.against), (7, Some("target/dist/holdfast".into())));
        for bad in ["--requests", "--requests 0", "--requests many", "--rounds 3"] {
            assert!(parse(bad).is_none(), "{bad}");
        }
    }
}
