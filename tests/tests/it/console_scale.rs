//! The console's pages over a million operations, on a file and on a server: the time of each and its bytes. It takes
//! minutes, and is run by `cargo xtask console --scale`; figures are in `tests/bench/notes`.
//!
//! ```text
//! fill by SQL ─▶ start ─▶ walk while nothing is summed ─▶ all is summed ─▶ walk again
//!                          every kind of page, as an owner and as the holder of half of the book
//! ```
//!
//! The time is a client's, who asks for one page after the other on connections of its own. A page that is counting
//! has to say so within the same time; what it counted is measured beside it.

pub(crate) mod book;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::Write;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use holdfast_tests::postgres::Database;
use holdfast_tests::{Answer, Config, Request, Site, database};

use self::book::{Dialect, Execute, id};
use crate::remote::Remote;

/// Operations of the book.
const OPERATIONS: i64 = 1_000_000;
/// Most time for a page, the one in the middle, and most of its HTML.
const PAGE_TIME: Duration = Duration::from_millis(300);
const PAGE_BYTES: usize = 50 << 10;
const PATIENCE: Duration = Duration::from_secs(3_000);
/// Most bytes of SQLite's log while files are written.
const LOG_BYTES: u64 = 64 << 20;
/// Looks at a page.
const LOOKS: usize = 5;
/// Words of a page a part of which is not there yet, or was not read in its time.
const COUNTING: [&str; 2] = ["being counted", "was not counted"];

fn say(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").unwrap();
}

/// Kind of the page at an address: its path without ids, what it is narrowed by, and the dimensions of a report.
fn kind(address: &str) -> String {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let parts = path.split('/').map(|part| if part.len() == 36 { "ID" } else { part });
    let pairs = query.split('&').filter(|pair| !pair.is_empty() && !pair.starts_with("key="));
    let names = pairs.map(|pair| match pair.split_once('=') {
        Some(("first" | "second" | "scope" | "state", _)) | None => pair,
        Some((name, _)) => name,
    });
    let names: BTreeSet<_> = names.collect();
    let path = parts.collect::<Vec<_>>().join("/");
    format!("{path} {}", names.into_iter().collect::<Vec<_>>().join(" ")).trim_end().to_owned()
}

/// Figures of a page.
#[derive(Debug)]
struct Figures {
    middle: Duration,
    slowest: Duration,
    bytes: usize,
    /// Time until everything on it was counted, where it said that it was counting.
    counted: Option<Duration>,
}

/// A browser that is signed in.
struct Browser {
    listener: SocketAddr,
    cookie: String,
}

impl Browser {
    fn sign_in(site: &Site, listener: SocketAddr, email: &str, role: &[&str]) -> Self {
        let told = site.json(&[&["person", "invite", email, "--role"], role].concat()).to_string();
        let link = told[told.find("/link/").unwrap()..].split('"').next().unwrap().to_owned();
        let mut browser = Self { listener, cookie: String::new() };
        let set = "password=correct+horse+battery&again=correct+horse+battery";
        assert_eq!(browser.post(&link, set).status, 303);
        let email = email.replace('@', "%40");
        let form = format!("email={email}&password=correct+horse+battery");
        let signed_in = browser.post("/sign-in", &form);
        let mut lines = signed_in.headers.iter().filter(|(name, _)| name == "set-cookie");
        let is_session = |line: &str| {
            line.split('=')
                .next()
                .is_some_and(|name| ["holdfast", "holdfast-holder"].contains(&name))
        };
        let (_, line) = lines.find(|(_, line)| is_session(line)).unwrap();
        browser.cookie = line.split(';').next().unwrap().to_owned();
        browser
    }

    fn send(&self, request: Request) -> Answer {
        let host = format!("localhost:{}", self.listener.port());
        request.host(&host).header("Cookie", &self.cookie).send(self.listener)
    }

    fn post(&self, path: &str, form: &str) -> Answer {
        let request = Request::post(path, form);
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        self.send(request.header("Sec-Fetch-Site", "same-origin"))
    }

    /// Looks at a page a few times, and then until everything on it is counted.
    fn look(&self, address: &str) -> (Answer, Figures) {
        let begun = Instant::now();
        let (mut times, mut answers) = (Vec::new(), Vec::new());
        let mut was_counting = false;
        let is_counting =
            |answer: &Answer| COUNTING.iter().any(|words| answer.text().contains(words));
        while times.len() < LOOKS || answers.last().is_some_and(is_counting) {
            assert!(begun.elapsed() < PATIENCE, "{address} is never counted");
            let asked = Instant::now();
            let answer = self.send(Request::get(address));
            times.push(asked.elapsed());
            if is_counting(&answer) {
                was_counting = true;
                // Whoever reads it takes longer to load it again.
                std::thread::sleep(Duration::from_millis(200));
            }
            answers.push(answer);
        }
        let counted = was_counting.then(|| begun.elapsed());
        times.sort_unstable();
        let answer = answers.pop().unwrap();
        let (middle, slowest) = (times[times.len() / 2], times[times.len() - 1]);
        let figures = Figures { middle, slowest, bytes: answer.body.len(), counted };
        (answer, figures)
    }

    /// Walks over each kind of page once.
    fn walk(&self, starts: Vec<String>) -> BTreeMap<String, Figures> {
        let (mut todo, mut seen) = (VecDeque::from(starts), BTreeMap::new());
        while let Some(address) = todo.pop_front() {
            let is_file = address.split('?').next().is_some_and(|path| path.ends_with(".csv"));
            let kind = kind(&address);
            if is_file || seen.contains_key(&kind) {
                continue;
            }
            let mut address = address;
            let first = self.send(Request::get(&address));
            if first.status == 303 {
                first.header("location").unwrap().clone_into(&mut address);
            }
            let (answer, figures) = self.look(&address);
            assert_eq!(answer.status, 200, "{address}: {answer:?}");
            seen.insert(kind, figures);
            for link in answer.text().split("<a ").skip(1) {
                let Some((_, rest)) = link.split_once("href=\"") else { continue };
                let link = rest.split('"').next().unwrap().replace("&#38;", "&");
                if link.starts_with('/') {
                    todo.push_back(link);
                }
            }
        }
        seen
    }
}

/// First addresses of a walk: the pages, narrowed as people narrow them.
fn starts(wallet: Option<&str>) -> Vec<String> {
    let (key, operation) = (id('k', 3), id('o', 500_000));
    let mut starts: Vec<_> = [
        "/",
        "/usage?first=hour",
        "/usage?first=month",
        "/usage?first=day&second=model",
        "/usage?first=api_key",
        "/usage?first=hour&second=model&from=2000-01-01T00:00",
        "/operations?model=acme%2Fmodel-3",
        "/operations?status=abandoned",
        "/operations?from=2026-01-01T00:00&to=2100-01-01T00:00",
        "/operations?scope=running",
        "/keys?name=key-3",
        "/keys?state=suspended",
        "/trail?from=2026-01-01T00:00",
    ]
    .map(str::to_owned)
    .to_vec();
    starts.push(format!("/operations?after={}", OPERATIONS / 2));
    starts.push(format!("/operations?api_key={key}&status=refused"));
    starts.push(format!("/usage?first=day&api_key={key}"));
    starts.extend([format!("/keys/{key}"), format!("/operations/{operation}")]);
    let own = id('w', 0);
    starts.push(format!("/wallets/{own}"));
    if let Some(wallet) = wallet {
        starts.extend([
            format!("/operations?wallet={wallet}&status=refused"),
            format!("/operations?wallet={wallet}&after={}", OPERATIONS / 2),
            format!("/usage?first=hour&second=api_key&wallet={wallet}"),
            "/usage?first=wallet".to_owned(),
            "/usage?first=route&second=model".to_owned(),
            "/wallets?available_below=1".to_owned(),
            "/wallets?state=low".to_owned(),
            "/wallets?name=wallet-7".to_owned(),
        ]);
    } else {
        // A holder has no trail.
        starts.retain(|address| !address.starts_with("/trail"));
    }
    starts
}

/// Tells the figures of a walk: those beyond a bound.
fn judge(title: &str, seen: &BTreeMap<String, Figures>) -> Vec<String> {
    say(&format!(
        "\n{title}\n\n| page | bytes | ms, in the middle | ms, at most | counted after ms |\n|---|---|---|---|---|"
    ));
    let mut beyond = Vec::new();
    for (kind, Figures { middle, slowest, bytes, counted }) in seen {
        let counted = counted.map_or(String::new(), |time| time.as_millis().to_string());
        let (middle_ms, slowest_ms) = (middle.as_millis(), slowest.as_millis());
        say(&format!("| {kind} | {bytes} | {middle_ms} | {slowest_ms} | {counted} |"));
        if *middle > PAGE_TIME || *bytes > PAGE_BYTES {
            beyond.push(format!("{title}: {kind}: {middle_ms} ms, {bytes} bytes"));
        }
    }
    beyond
}

fn every_page_is_there_at_once(
    site: &Site,
    dialect: &Dialect,
    execute: Execute<'_>,
    number: &dyn Fn(&str) -> i64,
) {
    drop(site.cli(&["migrate", "up"]).ok());
    // A first start pins the price that the rows are at.
    site.serve().stop();
    let begun = Instant::now();
    book::fill(dialect, OPERATIONS, execute);
    say(&format!("{OPERATIONS} operations made in {:?}", begun.elapsed()));
    let gateway = site.serve();
    let owner = Browser::sign_in(site, gateway.admin_address(), "ada@example.com", &["owner"]);
    let wallet = id('w', 0);
    let role = ["holder_admin", "--wallet", "wallet-0"];
    let holder = Browser::sign_in(site, gateway.console_address(), "bob@example.com", &role);
    let mut beyond = Vec::new();
    for title in ["while it is summed", "summed"] {
        if title == "summed" {
            wait_for_sums(number);
        }
        let seen = owner.walk(starts(Some(&wallet)));
        beyond.extend(judge(&format!("An owner, {title}"), &seen));
        let seen = holder.walk(starts(None));
        beyond.extend(judge(&format!("The holder of half of the book, {title}"), &seen));
    }
    beyond.extend(export_all(site, &Remote::owner(site, &gateway), &owner));
    gateway.stop();
    assert!(beyond.is_empty(), "over {PAGE_TIME:?} or {PAGE_BYTES} bytes:\n{}", beyond.join("\n"));
}

/// Writes both files of a million operations at once, looks at lists meanwhile, and deposits so that SQLite's log would
/// grow. Returns what is beyond a bound.
fn export_all(site: &Site, remote: &Remote<'_>, owner: &Browser) -> Vec<String> {
    let begun = Instant::now();
    let [ledger, statement] = [
        &["ledger", "export", "--output", "ledger.csv"][..],
        &["wallet", "ledger", "wallet-0", "--jsonl", "--output", "statement.jsonl"],
    ]
    .map(|arguments| remote.command(arguments).spawn().unwrap());
    let (mut files, mut times, mut log) = ([ledger, statement], Vec::new(), 0);
    while files.iter_mut().any(|file| file.try_wait().unwrap().is_none()) {
        for address in ["/wallets", "/operations", "/payments", "/keys"] {
            let asked = Instant::now();
            assert_eq!(owner.send(Request::get(address)).status, 200, "{address}");
            times.push(asked.elapsed());
        }
        drop(remote.json(&["wallet", "deposit", "wallet-1", "1.00"]));
        let bytes = site.database().with_extension("db-wal").metadata();
        log = bytes.map_or(log, |bytes| bytes.len().max(log));
    }
    let whole = begun.elapsed();
    for (mut file, name) in files.into_iter().zip(["ledger.csv", "statement.jsonl"]) {
        assert!(file.wait().unwrap().success(), "{name} is whole");
        let lines = std::fs::read_to_string(site.path(name)).unwrap().lines().count();
        say(&format!("{name}: {lines} lines"));
        assert!(lines > 1_000_000, "{name}");
    }
    times.sort_unstable();
    let (middle, slowest) = (times[times.len() / 2], times[times.len() - 1]);
    say(&format!(
        "both files in {whole:?}; lists {middle:?} in the middle, {slowest:?} at most; log {log} bytes"
    ));
    let mut beyond = Vec::new();
    if middle > PAGE_TIME || log > LOG_BYTES {
        beyond.push(format!("beside exports: lists {middle:?}, log {log} bytes"));
    }
    beyond
}

/// Waits until all but the last two hours are summed, which are read live.
fn wait_for_sums(number: &dyn Fn(&str) -> i64) {
    let begun = Instant::now();
    while number("SELECT operations_to FROM usage_summed") < OPERATIONS - 3_000 {
        assert!(begun.elapsed() < PATIENCE, "usage is not summed");
        // Nothing tells of it: the summing says nothing while all goes well.
        std::thread::sleep(Duration::from_secs(2));
    }
    say(&format!("\nsummed {:?} after the first walks", begun.elapsed()));
}

fn config() -> Config {
    Config::simulated().set("console", "listen", "\"127.0.0.1:0\"")
}

#[test]
#[ignore = "takes minutes: cargo xtask console --scale"]
fn console_scale_on_a_file() {
    let site = Site::empty_for(PATIENCE).with_env("HOLDFAST_CONFIG", "holdfast.toml");
    site.configure(&config());
    let file = site.database();
    let execute = |sql: &str| drop(database::execute_within(&file, sql, PATIENCE));
    let number = |sql: &str| database::execute(&file, sql)[0].parse().unwrap();
    every_page_is_there_at_once(&site, &book::FILE, &execute, &number);
}

#[test]
#[ignore = "takes minutes: cargo xtask console --scale"]
fn console_scale_on_a_server() {
    let database = Database::migrated();
    let site = Site::empty_for(PATIENCE).with_env("HOLDFAST_CONFIG", "holdfast.toml");
    site.configure(&database.configure(config()));
    let execute = |sql: &str| drop(database.execute_within(sql, PATIENCE));
    let number = |sql: &str| database.execute(sql)[0].parse().unwrap();
    every_page_is_there_at_once(&site, &book::SERVER, &execute, &number);
}
