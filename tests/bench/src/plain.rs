//! An anchor on a database server: what anybody would write first. A connection for each task, a
//! transaction for each step, a statement for each row, nothing that is guarded but funds and versions.

use sqlx::postgres::{PgArguments, PgConnection, Postgres};
use sqlx::query::Query;
use sqlx::{Connection, Executor, query};
use uuid::Uuid;

use crate::pairs::{HOLD, Pairs, SEALED_LEN, Work, runtime};

const CHARGE: i64 = 400;
const FUNDS: i64 = 1_000_000_000_000;
const TABLES: &str = "
DROP SCHEMA IF EXISTS plain CASCADE; CREATE SCHEMA plain; SET search_path = plain;
CREATE TABLE wallets (id BIGINT PRIMARY KEY, available BIGINT NOT NULL CHECK (available >= 0),
    held BIGINT NOT NULL CHECK (held >= 0)) WITH (fillfactor = 50);
CREATE TABLE operations (id BYTEA PRIMARY KEY, wallet BIGINT NOT NULL REFERENCES wallets,
    request_key BYTEA, model TEXT, fingerprint BYTEA, digest BYTEA, price TEXT, hold BIGINT,
    claim BYTEA, node TEXT, admitted_at BIGINT, deadline BIGINT, phase TEXT, version BIGINT,
    input BIGINT, cached BIGINT, output BIGINT, charge BIGINT, finished_at BIGINT)
    WITH (fillfactor = 70);
CREATE TABLE transfers (operation BYTEA NOT NULL REFERENCES operations, leg BIGINT, debit TEXT,
    credit TEXT, amount BIGINT, created_at BIGINT, PRIMARY KEY (operation, leg));
CREATE TABLE results (operation BYTEA PRIMARY KEY REFERENCES operations, credential BYTEA,
    nonce BYTEA, sealed BYTEA, finished_at BIGINT);
ALTER TABLE results ALTER COLUMN sealed SET STORAGE EXTERNAL;";
const WALLETS: &str = "INSERT INTO wallets SELECT i, $1, 0 FROM generate_series(1, $2) AS i";
const TAKE: &str = "UPDATE wallets SET available = available - $2, held = held + $2
    WHERE id = $1 AND available >= $2";
const ADMIT: &str = "INSERT INTO operations (id, wallet, request_key, model, fingerprint, digest, price,
    hold, claim, node, admitted_at, deadline, phase, version) VALUES ($1, $2, $1, 'acme/large-1', $3, $3,
    'acme/large-1/USD/2026-01-01T00:00:00Z', $4, $1, 'plain', 1, 2, 'leased', 1)";
const TRANSFER: &str = "INSERT INTO transfers VALUES ($1, $2, $3, $4, $5, 1)";
const END: &str = "UPDATE operations SET phase = 'completed', version = 2, input = 60, cached = 40,
    output = 20, charge = $2, finished_at = 3 WHERE id = $1 AND version = 1";
const RESULT: &str = "INSERT INTO results VALUES ($1, $1, $1, $2, 3)";
const GIVE: &str = "UPDATE wallets SET available = available + $2, held = held - $3 WHERE id = $1";

/// Makes pairs until the time is over.
pub fn run(pairs: &Pairs) {
    runtime().block_on(async {
        let mut first = connect(&pairs.url).await;
        first.execute(TABLES).await.expect("tables");
        let wallets = query(WALLETS).bind(FUNDS).bind(pairs.wallets);
        wallets.execute(&mut first).await.expect("wallets");
        first.close().await.expect("the database");
        let mut hands = Vec::new();
        for at in 0..pairs.tasks {
            let mut connection = connect(&pairs.url).await;
            connection.execute("SET search_path = plain").await.expect("the database");
            let (wallets, step) = (pairs.wallets, pairs.tasks);
            hands.push(PlainWorker { connection, wallets, at, step, sealed: vec![7; SEALED_LEN] });
        }
        pairs.measure(hands).await;
    });
}

async fn connect(url: &str) -> PgConnection {
    PgConnection::connect(url).await.expect("the database")
}

struct PlainWorker {
    connection: PgConnection,
    wallets: i64,
    /// Wallet at which it begins, and its step each turn.
    at: usize,
    step: usize,
    sealed: Vec<u8>,
}

impl PlainWorker {
    async fn begin(&mut self) {
        self.connection.execute("BEGIN").await.expect("a transaction");
    }

    async fn commit(&mut self) {
        self.connection.execute("COMMIT").await.expect("a commit");
    }

    async fn change(&mut self, query: Query<'_, Postgres, PgArguments>) {
        let done = query.execute(&mut self.connection).await.expect("a row");
        assert_eq!(done.rows_affected(), 1);
    }
}

impl Work for PlainWorker {
    async fn pair(&mut self, turn: usize) {
        let at = i64::try_from(self.at + turn * self.step).expect("less than an age");
        let wallet = at % self.wallets + 1;
        let id = Uuid::new_v4();
        let (id, sealed) = (id.as_bytes().as_slice(), self.sealed.clone());
        let print = sealed.get(..32);
        let transfer = |leg: i64, debit: &'static str, credit: &'static str, amount: i64| {
            query(TRANSFER).bind(id).bind(leg).bind(debit).bind(credit).bind(amount)
        };
        self.begin().await;
        self.change(query(TAKE).bind(wallet).bind(HOLD)).await;
        self.change(query(ADMIT).bind(id).bind(wallet).bind(print).bind(HOLD)).await;
        self.change(transfer(4, "available", "held", HOLD)).await;
        self.commit().await;
        self.begin().await;
        self.change(query(END).bind(id).bind(CHARGE)).await;
        self.change(query(RESULT).bind(id).bind(&*sealed)).await;
        self.change(transfer(5, "held", "revenue", CHARGE)).await;
        self.change(transfer(6, "held", "available", HOLD - CHARGE)).await;
        // Last, so that the others wait for the wallet as briefly as can be.
        self.change(query(GIVE).bind(wallet).bind(HOLD - CHARGE).bind(HOLD)).await;
        self.commit().await;
    }
}
