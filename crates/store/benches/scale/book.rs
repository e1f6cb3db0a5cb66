//! The book: 100 wallets with ten API keys each, five models, two routes, 30 days. The first wallet has every second
//! operation. All are completed, one of a hundred has a refund, and each key has a counter for each day. Beside them
//! stands a wallet of administration with deposits, each of which has a row of the audit log.

use std::time::Instant;

use holdfast_domain::admin::Administration as _;
use holdfast_domain::admin::{
    AccountAction, AccountCommand, ActorId, NewPosting, PostingDetails, RequestBinding,
    WalletAction, WalletBounds, WalletRecord,
};
use holdfast_domain::ledger::{Posting, PostingKind};
use holdfast_domain::model::PublicModelId;
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeyId, Micros, OperationId, Prices as _, Timestamp, WalletId};
use holdfast_store::{DatabaseUrl, Options, Store, migrate};
use holdfast_testkit::sample;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Executor as _};
use tempfile::TempDir;

use crate::say;

pub(crate) const OPERATIONS: i64 = 1_000_000;
pub(crate) const DAY: i64 = 86_400_000_000;
/// 2026-10-01.
pub(crate) const BEGIN: i64 = 20_727 * DAY;
const SPAN: i64 = 30 * DAY;
/// Deposits that administration makes, each with its row of the audit log.
const DEPOSITS: u32 = 10_000;
/// Ids that are written by one statement.
const IDS: i64 = 2_000;
const EFFECTIVE_FROM: &str = "2026-01-01T00:00:00Z";

/// Somebody at the SQL prompt of the book's database.
enum Raw {
    File(SqliteConnection),
    Server(PgConnection),
}

pub(crate) struct Book {
    pub(crate) store: Store,
    raw: Raw,
    /// The folder of a file.
    _folder: Option<TempDir>,
    /// The database of a server.
    database: Option<String>,
}

/// Sixteen bytes: a letter and a number.
pub(crate) fn id(letter: char, number: i64) -> [u8; 16] {
    format!("{letter}{number:015}").as_bytes().try_into().unwrap()
}

/// Wallet and API key of an operation.
fn owner(i: i64) -> (i64, i64) {
    let wallet = if i % 2 == 0 { 0 } else { (i / 2) % 99 + 1 };
    (wallet, wallet * 10 + (i / 7) % 10)
}

fn secret() -> ServerSecret {
    ServerSecret::new(b"the secret of this benchmark").unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a benchmark has no configuration")]
fn server_url(database: &str) -> String {
    let server = std::env::var("HOLDFAST_TEST_POSTGRES").unwrap();
    match server.split_once('?') {
        Some((address, parameters)) => format!("{address}/{database}?{parameters}"),
        None => format!("{server}/{database}"),
    }
}

async fn connect(database: &str) -> PgConnection {
    let options: PgConnectOptions = server_url(database).parse().unwrap();
    options.connect().await.unwrap()
}

impl Book {
    pub(crate) async fn on_a_file() -> Self {
        let folder = TempDir::new().unwrap();
        let file = folder.path().join("scale.db");
        let url = DatabaseUrl::parse(&format!("sqlite://{}", file.display())).unwrap();
        migrate::up(&url).await.unwrap();
        let store = Store::open(Options::new(url)).await.unwrap();
        let raw = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
        Self { store, raw: Raw::File(raw), _folder: Some(folder), database: None }
    }

    pub(crate) async fn on_a_server() -> Self {
        let name = format!("scale_{}", std::process::id());
        let mut server = connect("postgres").await;
        server.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
        let url = DatabaseUrl::parse(&server_url(&name)).unwrap();
        migrate::up(&url).await.unwrap();
        let store = Store::open(Options::new(url)).await.unwrap();
        let raw = Raw::Server(connect(&name).await);
        Self { store, raw, _folder: None, database: Some(name) }
    }

    pub(crate) async fn end(self) {
        let Self { store, raw, _folder, database } = self;
        store.close().await.unwrap();
        drop(raw);
        if let Some(name) = database {
            let sql = format!("DROP DATABASE {name} WITH (FORCE)");
            connect("postgres").await.execute(AssertSqlSafe(sql)).await.unwrap();
        }
    }

    async fn run(&mut self, sql: String) {
        let sql = AssertSqlSafe(sql);
        match &mut self.raw {
            Raw::File(file) => file.execute(sql).await.map(drop).unwrap(),
            Raw::Server(server) => server.execute(sql).await.map(drop).unwrap(),
        }
    }

    pub(crate) async fn number(&mut self, sql: &'static str) -> i64 {
        match &mut self.raw {
            Raw::File(file) => sqlx::query_scalar(sql).fetch_one(file).await.unwrap(),
            Raw::Server(server) => sqlx::query_scalar(sql).fetch_one(server).await.unwrap(),
        }
    }

    fn blob(&self, bytes: [u8; 16]) -> String {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match self.raw {
            Raw::File(_) => format!("x'{hex}'"),
            Raw::Server(_) => format!("'\\x{hex}'::bytea"),
        }
    }

    /// Zeros, in so many bytes.
    fn zeros(&self, length: usize) -> String {
        match self.raw {
            Raw::File(_) => format!("zeroblob({length})"),
            Raw::Server(_) => format!("decode('{}', 'hex')", "00".repeat(length)),
        }
    }

    pub(crate) async fn fill(&mut self) {
        let begun = Instant::now();
        for number in 0..5 {
            let model = PublicModelId::try_from(&*format!("acme/model-{number}")).unwrap();
            let id = PriceVersionId::new(&model, sample::usd(), EFFECTIVE_FROM);
            self.store.pin(&[PriceVersion { id, ..sample::price() }]).await.unwrap();
        }
        self.insert_owners().await;
        self.insert_ids().await;
        self.insert_operations().await;
        self.insert_money().await;
        self.deposit().await;
        if let Raw::Server(_) = self.raw {
            // The numbers that were written here are taken.
            for table in ["operations", "wallets", "api_keys", "postings"] {
                self.run(format!(
                    "SELECT setval(pg_get_serial_sequence('{table}', 'seq'), max(seq)) FROM {table}"
                ))
                .await;
            }
            self.run("ANALYZE".to_owned()).await;
        }
        say(&format!("{OPERATIONS} operations made in {:.0?}", begun.elapsed()));
    }

    async fn insert_owners(&mut self) {
        let wallet =
            |number| format!("({}, 'wallet-{number}', 'USD', 0, 0, 0)", self.blob(id('w', number)));
        let wallets: Vec<_> = (0..100).map(wallet).collect();
        let key = |number| {
            let [key, wallet] = [id('k', number), id('w', number / 10)].map(|id| self.blob(id));
            format!("({key}, {wallet}, 'key-{number}', 'shown', 0)")
        };
        let keys: Vec<_> = (0..1_000).map(key).collect();
        self.run(format!(
            "INSERT INTO wallets (id, name, currency, available, held, created_at) VALUES {}",
            wallets.join(", ")
        ))
        .await;
        self.run(format!(
            "INSERT INTO api_keys (id, wallet_id, name, balance, created_at) VALUES {}",
            keys.join(", ")
        ))
        .await;
    }

    /// Ids follow from the keys, which no SQL computes.
    async fn insert_ids(&mut self) {
        let blob = if matches!(self.raw, Raw::File(_)) { "BLOB" } else { "BYTEA" };
        self.run(format!(
            "CREATE TEMP TABLE ids (i BIGINT PRIMARY KEY, id {blob}, request_key {blob}, \
             wallet_id {blob}, api_key_id {blob})"
        ))
        .await;
        for first in (0..OPERATIONS).step_by(usize::try_from(IDS).unwrap()) {
            let row = |i| {
                let (wallet, key) = owner(i);
                let (key, request_key) = (id('k', key), sample::fresh_request_key());
                let operation = OperationId::of(ApiKeyId::from_bytes(key), request_key);
                let ids = [operation.to_bytes(), request_key.to_bytes(), id('w', wallet), key];
                format!("({i}, {})", ids.map(|id| self.blob(id)).join(", "))
            };
            let rows: Vec<_> = (first..first + IDS).map(row).collect();
            self.run(format!("INSERT INTO ids VALUES {}", rows.join(", "))).await;
        }
    }

    async fn insert_operations(&mut self) {
        let [secret, digest, incarnation] = [8, 32, 16].map(|length| self.zeros(length));
        let created = format!("{BEGIN} + i * {}", SPAN / OPERATIONS);
        self.run(format!(
            "INSERT INTO operations (seq, id, api_key_id, request_key, wallet_id, model,
             server_secret, fingerprint_version, contract, fingerprint, body_digest, created_at,
             generation, price_version, hold, reserved_counters, reserved_tokens, claim, node,
             incarnation, admitted_at, deadline, phase, version, cancel_asked, attempts, input,
             cached_input, cache_write, audio_input, output, reasoning, audio_output, request, image,
             meters_source, charge, shortfall, finished_at, provider_cost)
             SELECT i + 1, id, api_key_id, request_key, wallet_id, 'acme/model-' || (i % 5), {secret},
             1, 1, {digest}, {digest}, {created}, 1,
             'acme/model-' || (i % 5) || '/USD/{EFFECTIVE_FROM}', 5000, 16, 0, id, 'node',
             {incarnation}, {created}, {created}, 'completed', 2, 0,
             '[[\"route-' || (i % 2) || '\",\"ok\",1500000,false]]', 100 + i % 900, 0, 0, 0,
             50 + i % 70, 0, 0, 1, 0, 'reported', 150 + i % 900 + i % 70, 0, {created} + 2000000,
             CASE i % 3 WHEN 0 THEN NULL ELSE i % 3000 END FROM ids ORDER BY i"
        ))
        .await;
    }

    async fn insert_money(&mut self) {
        let refunds: Vec<_> =
            (0..OPERATIONS / 100).map(|i| format!("({i}, {})", self.blob(id('r', i)))).collect();
        let deposits: Vec<_> = (0..100).map(|i| self.blob(id('d', i))).collect();
        self.run(
            "INSERT INTO transfers (op_seq, leg, amount, created_at) SELECT * FROM (
                SELECT seq, 8, hold, admitted_at FROM operations
                UNION ALL SELECT seq, 9, charge, finished_at FROM operations
                UNION ALL SELECT seq, 10, hold - charge, finished_at FROM operations) AS t
             ORDER BY 1, 2"
                .to_owned(),
        )
        .await;
        self.run(format!(
            "INSERT INTO counters SELECT api_key_id, 4, created_at - created_at % {DAY}, sum(charge)
             FROM operations GROUP BY 1, 3"
        ))
        .await;
        for (number, deposit) in (0_i64..).zip(deposits) {
            let wallet = self.blob(id('w', number));
            self.run(format!(
                "INSERT INTO postings (id, wallet_id, kind, amount, created_at)
                 VALUES ({deposit}, {wallet}, 'deposit', 1000000000000, 0)"
            ))
            .await;
        }
        for rows in refunds.chunks(1_000) {
            self.run(format!(
                "WITH r (i, id) AS (VALUES {})
                 INSERT INTO postings (id, wallet_id, kind, operation_id, amount, created_at)
                 SELECT r.id, o.wallet_id, 'refund', o.id, 1, {BEGIN} + r.i
                 FROM r JOIN operations AS o ON o.seq = r.i * 100 + 8 ORDER BY r.i",
                rows.join(", ")
            ))
            .await;
        }
        self.run(
            "UPDATE wallets SET available = 1000000000000
             - (SELECT sum(charge) FROM operations AS o WHERE o.wallet_id = wallets.id)
             + (SELECT coalesce(sum(amount), 0) FROM postings AS t
                WHERE t.wallet_id = wallets.id AND t.kind = 'refund')"
                .to_owned(),
        )
        .await;
    }

    /// One more wallet with one API key, which has as many operations as all others together. Of a thousand one
    /// is open.
    pub(crate) async fn insert_key_of_all(&mut self, wallet: i64, key: i64) {
        let [wallet, key] = [id('w', wallet), id('k', key)].map(|id| self.blob(id));
        let fresh = match self.raw {
            Raw::File(_) => "randomblob(16)",
            Raw::Server(_) => "decode(md5('of one key ' || seq), 'hex')",
        };
        self.run(format!(
            "INSERT INTO wallets (id, name, currency, available, held, created_at)
             VALUES ({wallet}, 'of one key', 'USD', 0, 0, 0)"
        ))
        .await;
        self.run(format!(
            "INSERT INTO api_keys (id, wallet_id, name, balance, created_at)
             VALUES ({key}, {wallet}, 'of all', 'shown', 0)"
        ))
        .await;
        let unless_open = |column: &str| format!("CASE WHEN seq % 1000 > 0 THEN {column} END");
        let metered = [
            "input",
            "cached_input",
            "cache_write",
            "audio_input",
            "output",
            "reasoning",
            "audio_output",
            "request",
            "image",
            "meters_source",
            "charge",
            "shortfall",
            "finished_at",
        ];
        self.run(format!(
            "INSERT INTO operations (seq, id, api_key_id, request_key, wallet_id, model,
             server_secret, fingerprint_version, contract, fingerprint, body_digest, created_at,
             generation, price_version, hold, reserved_counters, reserved_tokens, claim, node,
             incarnation, admitted_at, deadline, phase, version, cancel_asked, attempts, {})
             SELECT seq + {OPERATIONS}, {fresh}, {key}, request_key, {wallet}, model, server_secret,
             fingerprint_version, contract, fingerprint, body_digest, created_at, generation,
             price_version, hold, 0, reserved_tokens, claim, node, incarnation, admitted_at, deadline,
             CASE WHEN seq % 1000 > 0 THEN phase ELSE 'open' END, version, cancel_asked, attempts, {}
             FROM operations WHERE seq <= {OPERATIONS}",
            metered.join(", "),
            metered.map(unless_open).join(", ")
        ))
        .await;
        if let Raw::Server(_) = self.raw {
            self.run("SELECT setval('operations_seq', max(seq)) FROM operations".to_owned()).await;
        }
    }

    pub(crate) async fn administer(&self, action: AccountAction) {
        let command = AccountCommand {
            is_after_restore: false,
            bounds: WalletBounds::DEFAULT,
            actor: ActorId::Local,
            address: None,
            request: RequestBinding { key: sample::fresh(), digest: [0; 32], canonical: None },
            reason: None,
            action,
        };
        self.store.administer(&command, &secret()).await.unwrap();
    }

    /// Deposits as people make them.
    async fn deposit(&self) {
        let id: WalletId = sample::fresh();
        let wallet = Wallet {
            id,
            name: "of administration".to_owned(),
            currency: sample::usd(),
            available: Micros::ZERO,
            held: Micros::ZERO,
            suspended_at: None,
        };
        let record = WalletRecord {
            wallet,
            external_id: None,
            low_balance: None,
            key_spend: None,
            closed_at: None,
            created_at: Timestamp::from_micros(0),
            edited: 0,
        };
        self.administer(AccountAction::Wallet(WalletAction::Create(record))).await;
        for _ in 0..DEPOSITS {
            let posting = Posting::new(sample::fresh(), id, PostingKind::Deposit, Micros::new(7));
            let (posting, details) = (posting.unwrap(), PostingDetails::default());
            let new = NewPosting { posting, details, allowance: None, currency: None };
            self.administer(AccountAction::Post(new)).await;
        }
    }
}
