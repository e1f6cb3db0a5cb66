//! An anchor: what two durable commits a request cost at least on this disk, written by hand. One
//! thread, prepared single-row statements, the rows of a request and nothing that guards them.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use rusqlite::{CachedStatement, Connection, Statement, params};
use serde_json::json;
use uuid::Uuid;

use crate::say;

const SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
PRAGMA wal_autocheckpoint = 16000; PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY;";
const TABLES: &str = "
CREATE TABLE wallets (id INTEGER PRIMARY KEY, available INTEGER, held INTEGER);
INSERT INTO wallets VALUES (1, 1000000000000, 0);
CREATE TABLE operations (seq INTEGER PRIMARY KEY, id BLOB UNIQUE, api_key BLOB, request_key BLOB,
    wallet INTEGER, model TEXT, fingerprint BLOB, digest BLOB, price TEXT, hold INTEGER, claim BLOB,
    node TEXT, incarnation BLOB, admitted_at INTEGER, deadline INTEGER, phase TEXT, version INTEGER,
    input INTEGER, cached INTEGER, output INTEGER, charge INTEGER, finished_at INTEGER);
CREATE TABLE transfers (op INTEGER, leg INTEGER, amount INTEGER, created_at INTEGER,
    PRIMARY KEY (op, leg)) WITHOUT ROWID;
CREATE TABLE results (op INTEGER PRIMARY KEY, credential BLOB, nonce BLOB, sealed BLOB,
    finished_at INTEGER);";
const ADMIT: &str = "INSERT INTO operations VALUES (?1, ?2, ?3, ?4, 1, 'acme/large-1', ?5, ?5,
    'acme/large-1/USD/2026-01-01T00:00:00Z', 5000, ?4, 'embedded', ?4, 1, 2, 'leased', 1,
    NULL, NULL, NULL, NULL, NULL)";
const END: &str = "UPDATE operations SET phase = 'completed', version = 2, input = 60, cached = 40,
    output = 20, charge = 400, finished_at = 3 WHERE seq = ?1 AND version = 1";
const TRANSFER: &str = "INSERT INTO transfers VALUES (?1, ?2, ?3, 1)";
const RESULT: &str = "INSERT INTO results VALUES (?1, ?2, ?3, ?4, 1)";
const MOVE: &str = "UPDATE wallets SET available = available + ?1, held = held + ?2 WHERE id = 1";

/// Plan of the hand-written loop: what is written where, and for how long.
#[derive(Debug, Clone)]
pub struct Journal {
    file: PathBuf,
    /// Requests that share a commit.
    batch: i64,
    time: Duration,
}

impl Journal {
    /// Reads the arguments; nothing when they are wrong.
    #[must_use]
    pub fn parse(arguments: &[String]) -> Option<Self> {
        let [file_is, file, batch_is, batch, millis_are, millis] = arguments else { return None };
        let names = [file_is.as_str(), batch_is.as_str(), millis_are.as_str()];
        (names == ["--file", "--batch", "--millis"]).then_some(())?;
        let time = Duration::from_millis(millis.parse().ok()?);
        Some(Self { file: file.into(), batch: batch.parse().ok()?, time })
    }
}

/// Writes until the time is over, says how much, and waits until it may end.
pub fn run(journal: &Journal) {
    let connection = Connection::open(&journal.file).expect("a file");
    connection.execute_batch(SETTINGS).expect("settings");
    connection.execute_batch(TABLES).expect("tables");
    let mut writer = JournalWriter::of(&connection);
    let started = Instant::now();
    let mut seq = 0;
    while started.elapsed() < journal.time {
        writer.claim(seq..seq + journal.batch);
        writer.finish(seq..seq + journal.batch);
        seq += journal.batch;
    }
    let micros = u64::try_from(started.elapsed().as_micros()).expect("less than an age");
    say(&json!({ "micros": micros, "requests": seq }).to_string());
    std::io::stdin().read_line(&mut String::new()).expect("a line, or the end");
}

struct JournalWriter<'c> {
    begin: Statement<'c>,
    commit: Statement<'c>,
    admit: Statement<'c>,
    end: Statement<'c>,
    transfer: Statement<'c>,
    result: Statement<'c>,
    moves: CachedStatement<'c>,
    sealed: Vec<u8>,
}

impl<'c> JournalWriter<'c> {
    fn of(connection: &'c Connection) -> Self {
        let prepare = |sql| connection.prepare(sql).expect("a statement");
        Self {
            begin: prepare("BEGIN IMMEDIATE"),
            commit: prepare("COMMIT"),
            admit: prepare(ADMIT),
            end: prepare(END),
            transfer: prepare(TRANSFER),
            result: prepare(RESULT),
            moves: connection.prepare_cached(MOVE).expect("a statement"),
            sealed: vec![7; 600],
        }
    }

    fn claim(&mut self, seqs: std::ops::Range<i64>) {
        self.begin.execute([]).expect("a transaction");
        for seq in seqs {
            let (id, key) = (Uuid::new_v4(), Uuid::new_v4());
            let (id, key) = (id.as_bytes().as_slice(), key.as_bytes().as_slice());
            let print = self.sealed.get(..32);
            self.admit.execute(params![seq, id, id, key, print]).expect("a row");
            self.transfer.execute([seq, 4, 5_000]).expect("a row");
            self.moves.execute([-5_000, 5_000]).expect("a row");
        }
        self.commit.execute([]).expect("a commit");
    }

    fn finish(&mut self, seqs: std::ops::Range<i64>) {
        self.begin.execute([]).expect("a transaction");
        for seq in seqs {
            self.end.execute([seq]).expect("a row");
            let (credential, nonce) = (self.sealed.get(..16), self.sealed.get(..12));
            self.result.execute(params![seq, credential, nonce, self.sealed]).expect("a row");
            self.transfer.execute([seq, 5, 400]).expect("a row");
            self.transfer.execute([seq, 6, 4_600]).expect("a row");
            self.moves.execute([4_600, -5_000]).expect("a row");
        }
        self.commit.execute([]).expect("a commit");
    }
}
