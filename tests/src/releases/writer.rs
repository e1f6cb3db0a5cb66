//! Writes the ledger of a release: drives its binary, ends it in the middle of what it does, and keeps the database.
//!
//! ```text
//! migrate up ─▶ administration ─▶ operations that end ─▶ every request again, answers kept
//!            ─▶ operations that do not end ─▶ SIGKILL ─▶ dump
//! ```
//!
//! The wallet's row is broken by hand for the recorded operation, whose result cannot be settled then, and mended after
//! the process has ended: that is the one statement here that the release does not write itself.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::administration::{Owner, until};
use super::exchange::{Exchange, KeptAnswer, Listener};
use super::operations::{cancelled, ended, held, open, upstream};
use super::{
    CONFIG, DATABASE_URL, EXCHANGES, KeptOperation, Kind, POSTGRES_DUMP, SQLITE_FILE,
    SQLITE_SECRET, UPSTREAM_URL, run,
};
use crate::config::SIM;
use crate::database::PLAIN;
use crate::postgres::Database;
use crate::{Account, Config, Gate, Gateway, Reply, Site, Upstream, database};

/// Funds of each wallet of callers.
const FUNDS: i64 = 20_000_000;
/// Grace of a rotated secret. As long as a result is kept.
const TEN_YEARS_S: i64 = 315_360_000;
const COPY: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=10)
db.execute('PRAGMA page_size = 512')
db.execute('VACUUM INTO ?', (sys.argv[2],))
";

/// Writes a ledger by the binary of a release, which the environment names, into a folder that is not there yet.
///
/// # Panics
///
/// If anything is not as it is meant here.
pub fn write(kind: Kind, folder: &Path) {
    fs::create_dir_all(folder).expect("a folder");
    let gate = Gate::new();
    let upstream = upstream(&gate);
    let database = (kind == Kind::Postgres).then(Database::make);
    let receivers = [204, 410].map(receiver);
    let (config, kept) = configs(&upstream, database.as_ref(), &receivers);
    let site = Site::empty_for(Duration::from_secs(300)).with_config(&config);
    drop(site.cli(&["migrate", "up"]).ok());
    let gateway = site.serve();
    let mut owner = Owner::of(&site, &gateway);
    let mut exchanges = settled(&upstream, &mut owner, &receivers);
    exchanges["people"] = owner
        .people
        .iter()
        .map(|(email, password)| json!({ "email": email, "password": password }))
        .collect();
    let writer = Writer { site, upstream, gate, database };
    let unsettled = writer.end_in_the_middle(gateway);
    let operations = exchanges["operations"].as_array_mut().expect("a list");
    operations.extend(unsettled.iter().map(KeptOperation::to_json));
    fs::write(folder.join(EXCHANGES), lines(&exchanges)).expect("a file");
    fs::write(folder.join(CONFIG), kept).expect("a file");
    writer.keep(folder);
}

/// JSON with a line for each entry of its lists.
fn lines(exchanges: &Value) -> String {
    let lists = exchanges.as_object().expect("lists").iter().map(|(name, list)| {
        let entries = list.as_array().expect("a list").iter().map(Value::to_string);
        format!("{}: [\n{}\n]", json!(name), entries.collect::<Vec<_>>().join(",\n"))
    });
    format!("{{{}}}\n", lists.collect::<Vec<_>>().join(",\n"))
}

/// The configuration, and the text of it that is kept: with no address of this run.
fn configs(
    upstream: &Upstream,
    database: Option<&Database>,
    receivers: &[String; 2],
) -> (Config, String) {
    let allow = format!("[{}]", receivers.each_ref().map(|it| format!("\"{it}\"")).join(", "));
    let short = [("lease", "6s"), ("heartbeat", "1s"), ("orphan_grace", "1s")];
    let config = Config::upstream(upstream)
        .set("providers.sim", "kind", "\"simulated\"")
        .model(SIM, "sim", "sim-1", "input = 2_000_000, output = 4_000_000")
        // As long as may be: answers are compared for as long as there is this version.
        .set("retention", "results", "\"87600h\"")
        .set("retention", "events", "\"87600h\"");
    let config = short
        .iter()
        .fold(config, |it, (key, span)| it.set("operations", key, &format!("\"{span}\"")));
    let config = match database {
        Some(database) => database.configure(config),
        None => config,
    };
    let mut kept = config.render().replace(&upstream.base_url(), UPSTREAM_URL);
    if let Some(database) = database {
        kept = kept.replace(&database.url(), DATABASE_URL);
    }
    // Not kept: no request is sent to an address that belongs to another program by then.
    (config.set("webhooks", "allow", &allow), kept)
}

/// Changes and operations that have come to an end, and the answers to their repetitions.
fn settled(upstream: &Upstream, owner: &mut Owner<'_>, receivers: &[String; 2]) -> Value {
    let gateway = owner.gateway;
    let wallet = owner.wallet("callers", "USD", FUNDS);
    let (id, first) = owner.limited_key(&wallet, "callers");
    let mut operations: Vec<_> =
        ended().iter().map(|prompt| prompt.bring_about(gateway, &first)).collect();
    operations.extend(cancelled(gateway, upstream, &first));
    let ids: Vec<String> = operations
        .iter()
        .map(|it| {
            let read = it.read(&first).send(gateway.address()).json();
            read["id"].as_str().unwrap_or_else(|| panic!("no id: {read}")).to_owned()
        })
        .collect();
    owner.postings(&wallet, &ids[0]);
    owner.act("operations", &ids[0], "cancel");
    owner.keys(&wallet, &id);
    let second = owner.rotate(&id, TEN_YEARS_S);
    let (leaked, gone) = owner.limited_key(&wallet, "leaked");
    drop(owner.rotate(&leaked, 0));
    owner.admin_keys(&wallet);
    owner.people(&wallet);
    owner.webhooks(&wallet, receivers.each_ref().map(String::as_str));
    owner.verify();
    // What was sealed for one secret is not opened by the next, and that is an answer, too.
    let sealed = operations[0].asked.clone().map(|asked| asked.by(&second));
    operations.push(KeptOperation { state: operations[0].state.clone(), asked: sealed });
    for asked in operations.iter_mut().flat_map(|operation| &mut operation.asked) {
        asked.keep(gateway);
    }
    let mut reads: Vec<_> = operations.iter().map(|it| it.read(&first)).collect();
    reads.push(Exchange::get(Listener::Public, "/v1/wallet", &gone));
    // The secret that was rotated away is refused once the gateway has read its end.
    until("the end of a secret is known", || {
        let read = Exchange::get(Listener::Public, "/v1/wallet", &gone);
        read.send(gateway.address()).status == 401
    });
    reads.iter_mut().for_each(|read| read.keep(gateway));
    owner.changes.iter_mut().for_each(|change| change.keep(gateway));
    json!({
        "administration": owner.changes.iter().map(Exchange::to_json).collect::<Vec<_>>(),
        "operations": operations.iter().map(KeptOperation::to_json).collect::<Vec<_>>(),
        "reads": reads.iter().map(Exchange::to_json).collect::<Vec<_>>(),
    })
}

impl Exchange {
    /// Sends it and keeps the answer.
    #[track_caller]
    fn keep(&mut self, gateway: &Gateway) {
        let at = match self.to {
            Listener::Public => gateway.address(),
            Listener::Admin => gateway.admin_address(),
        };
        let answer: KeptAnswer = self.send(at);
        assert!(answer.status < 503, "{}: {answer:?}", self.name());
        self.answer = Some(answer);
    }
}

impl KeptOperation {
    fn to_json(&self) -> Value {
        let [whole, stream] = self.asked.each_ref().map(Exchange::to_json);
        json!({ "state": self.state, "whole": whole, "stream": stream })
    }
}

/// Folder of a release at work, and what it works with.
struct Writer {
    site: Site,
    upstream: Upstream,
    gate: Gate,
    database: Option<Database>,
}

impl Writer {
    /// Leaves an operation leased, one recorded and one open behind, each of a wallet of its own.
    fn end_in_the_middle(&self, gateway: Gateway) -> Vec<KeptOperation> {
        let account = |name: &str| self.site.account(name, "USD", "5.00");
        let [of_leased, of_recorded, of_open] = ["leased", "recorded", "open"].map(account);
        let begin = |state: &'static str, account: &Account| {
            let runs = self.upstream.runs();
            let operation = held(state).operation(&account.key);
            let waiting = operation.asked[0].begin(gateway.address());
            self.upstream.wait_for(runs + 1);
            (operation, waiting)
        };
        let (recorded, waiting) = begin("recorded", &of_recorded);
        let held_micros = self.site.balance(&of_recorded).1;
        assert!(held_micros > 0, "it is held for");
        self.set_held(0);
        self.gate.open();
        assert_eq!(waiting.answer().status, 503, "its result cannot be settled");
        self.upstream.otherwise(Reply::Silence);
        let (leased, waiting) = begin("leased", &of_leased);
        self.upstream.next(Reply::json(429, &crate::upstream::error("slow_down")));
        let open = open().bring_about(&gateway, &of_open.key);
        gateway.kill();
        assert_eq!(waiting.try_answer(), None);
        self.set_held(held_micros);
        vec![leased, recorded, open]
    }

    /// Changes the row of the wallet whose operation is recorded.
    fn set_held(&self, micros: i64) {
        let sql = format!("UPDATE wallets SET held = {micros} WHERE name = 'recorded'");
        drop(match &self.database {
            Some(database) => database.execute(&sql),
            None => database::execute(&self.site.database(), &sql),
        });
    }

    /// Keeps the database in a folder.
    fn keep(&self, folder: &Path) {
        let Some(database) = &self.database else {
            let mut python = Command::new("python3");
            python
                .args(PLAIN)
                .args(["-c", COPY])
                .arg(self.site.database())
                .arg(folder.join(SQLITE_FILE));
            drop(run(&mut python));
            let secret = self.site.path("holdfast-data/server.secret");
            fs::copy(secret, folder.join(SQLITE_SECRET)).expect("a copy of the secret");
            return;
        };
        fs::write(folder.join(POSTGRES_DUMP), database.dump()).expect("a file");
    }
}

/// A receiver of webhooks that answers everything with this status: its origin. It ends with the process.
fn receiver(status: u16) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let origin = format!("http://{}", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(&stream);
            let mut length = 0;
            for line in reader.by_ref().lines().map_while(Result::ok) {
                if line.is_empty() {
                    break;
                }
                let named = line.to_ascii_lowercase();
                length = named
                    .strip_prefix("content-length: ")
                    .map_or(length, |it| it.parse().expect("a length"));
            }
            drop(reader.read_exact(&mut vec![0; length]));
            let answer = format!(
                "HTTP/1.1 {status} Status\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            drop((&stream).write_all(answer.as_bytes()));
        }
    });
    origin
}
