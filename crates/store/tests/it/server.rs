//! A database of its own on a PostgreSQL server, dropped afterwards.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use holdfast_domain::admin::RefusedRequests;
use holdfast_domain::credential::ApiKey;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{ApiKeys, Journal, Nodes, Prices, Restores, Statistics, Wallets};
use holdfast_store::{DatabaseUrl, OpenError, Options, Store, migrate};
use holdfast_testkit::laws::{Commands, Lists, Stores};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use crate::list;
use crate::raw::Raw;
use crate::scratch::Home;

/// The URL of a server whose role may make databases, without one: `postgres://USER@HOST:PORT`, and
/// what stands behind a `?`.
const SERVER: &str = "HOLDFAST_TEST_POSTGRES";

/// A database that is empty at first.
pub(crate) struct Database {
    pub(crate) name: String,
}

impl Database {
    pub(crate) async fn new() -> Self {
        Self::like("template1").await
    }

    /// A database that is migrated: a copy of the one that the first test of this program migrates.
    pub(crate) async fn migrated() -> Self {
        Self::like(&template().await).await
    }

    async fn like(template: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("it_{}_{count}", std::process::id());
        run_on(
            "postgres",
            &format!("CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY"),
        )
        .await;
        Self { name }
    }

    pub(crate) fn url(&self) -> DatabaseUrl {
        DatabaseUrl::parse(&self.url_text()).unwrap()
    }

    pub(crate) fn url_text(&self) -> String {
        url_of(&self.name)
    }

    pub(crate) async fn open(&self) -> Result<Store, OpenError> {
        Store::open(Options::new(self.url())).await
    }

    /// What sessions begin with from now on.
    pub(crate) async fn set(&self, setting: &str) {
        run_on("postgres", &format!("ALTER DATABASE {} SET {setting}", self.name)).await;
    }

    /// A connection that knows nothing of the store.
    pub(crate) async fn connect(&self) -> PgConnection {
        connect(&self.name).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        // A runtime of its own: the test's may be gone, or is in the middle of a drop.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(run_on("postgres", &sql));
        });
        let dropped = dropping.join();
        assert!(dropped.is_ok() || std::thread::panicking(), "{} was not dropped", self.name);
    }
}

/// Name of the database that this program has migrated on the server, whichever of its processes was first. It
/// stays there: a program that is built anew has another, because its migrations may be others.
async fn template() -> String {
    let program = std::fs::metadata(std::env::current_exe().unwrap()).unwrap();
    let built = program.modified().unwrap().duration_since(UNIX_EPOCH).unwrap();
    let name = format!("it_template_{}_{}", program.len(), built.as_nanos());
    let mut server = connect("postgres").await;
    // Until this connection ends.
    server.execute("SELECT pg_advisory_lock(4711)").await.unwrap();
    let exists = sqlx::query("SELECT 1 FROM pg_database WHERE datname = $1").bind(&name);
    if exists.fetch_optional(&mut server).await.unwrap().is_none() {
        // Under another name until it is whole, in case this process is ended.
        let half = format!("half_{name}");
        run_on("postgres", &format!("DROP DATABASE IF EXISTS {half} WITH (FORCE)")).await;
        run_on("postgres", &format!("CREATE DATABASE {half}")).await;
        migrate::up(&DatabaseUrl::parse(&url_of(&half)).unwrap()).await.unwrap();
        run_on("postgres", &format!("ALTER DATABASE {half} RENAME TO {name}")).await;
    }
    server.close().await.unwrap();
    name
}

/// A database that is migrated and open.
pub(crate) struct Server {
    pub(crate) store: Store,
    pub(crate) database: Database,
}

impl Server {
    pub(crate) async fn open() -> Self {
        Self::with(|_options| {}).await
    }

    /// One whose sessions are as isolated as may be, unless they say otherwise.
    pub(crate) async fn serializable() -> Self {
        let database = Database::migrated().await;
        database.set("default_transaction_isolation = 'serializable'").await;
        let store = database.open().await.unwrap();
        Self { store, database }
    }

    pub(crate) async fn with(set: impl FnOnce(&mut Options)) -> Self {
        let database = Database::migrated().await;
        let mut options = Options::new(database.url());
        set(&mut options);
        let store = Store::open(options).await.unwrap();
        Self { store, database }
    }
}

impl Home for Server {
    fn make() -> impl Future<Output = Self> {
        Self::open()
    }

    fn store(&self) -> &Store {
        &self.store
    }

    async fn again(&self) -> Store {
        self.database.open().await.unwrap()
    }

    fn raw(&self) -> impl Future<Output = Raw> {
        Raw::of_server(self)
    }
}

impl Stores for Server {
    fn journal(&self) -> &dyn Journal {
        &self.store
    }

    fn nodes(&self) -> &dyn Nodes {
        &self.store
    }

    fn wallets(&self) -> &dyn Wallets {
        &self.store
    }

    fn keys(&self) -> Option<&dyn ApiKeys> {
        Some(&self.store)
    }

    fn prices(&self) -> Option<&dyn Prices> {
        Some(&self.store)
    }

    fn lists(&self) -> Option<&dyn Lists> {
        Some(self)
    }

    fn statistics(&self) -> Option<&dyn Statistics> {
        Some(&self.store)
    }

    fn refused_requests(&self) -> Option<&dyn RefusedRequests> {
        Some(&self.store)
    }

    fn restores(&self) -> Option<&dyn Restores> {
        Some(&self.store)
    }

    fn commands(&self) -> &dyn Commands {
        &self.store
    }
}

#[async_trait]
impl Lists for Server {
    async fn all_api_keys(&self) -> Vec<ApiKey> {
        list::all_api_keys(&self.store).await
    }

    async fn all_wallets(&self) -> Vec<Wallet> {
        list::all_wallets(&self.store).await
    }
}

#[expect(clippy::disallowed_methods, reason = "tests have no configuration to read it from")]
#[expect(clippy::expect_used, reason = "it says how to get one")]
fn url_of(database: &str) -> String {
    let server =
        std::env::var(SERVER).expect("HOLDFAST_TEST_POSTGRES, which `cargo xtask test store` sets");
    match server.split_once('?') {
        Some((address, parameters)) => format!("{address}/{database}?{parameters}"),
        None => format!("{server}/{database}"),
    }
}

async fn connect(database: &str) -> PgConnection {
    let options: PgConnectOptions = url_of(database).parse().unwrap();
    options.connect().await.unwrap()
}

async fn run_on(database: &str, sql: &str) {
    let mut connection = connect(database).await;
    connection.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
    connection.close().await.unwrap();
}
