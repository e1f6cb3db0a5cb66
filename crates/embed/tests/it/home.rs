//! A database that is empty at first and ends with its test: a file, or one on the server of the tests.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use holdfast_embed::DatabaseUrl;
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};
use tempfile::TempDir;

/// The URL of a server whose role may make databases, without one.
const SERVER: &str = "HOLDFAST_TEST_POSTGRES";

pub(crate) enum Home {
    File(TempDir),
    Server(Database),
}

/// A database on the server, dropped in the end.
pub(crate) struct Database(String);

impl Home {
    pub(crate) fn file() -> Self {
        Self::File(TempDir::new().unwrap())
    }

    pub(crate) async fn server() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("embed_{}_{count}", std::process::id());
        run_on_the_server(&format!("CREATE DATABASE {name}")).await;
        Self::Server(Database(name))
    }

    /// Folder of a file.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            Self::File(folder) => Some(folder.path()),
            Self::Server(_) => None,
        }
    }

    pub(crate) fn url(&self) -> DatabaseUrl {
        let url = match self {
            Self::File(folder) => format!("sqlite://{}", folder.path().join("shop.db").display()),
            Self::Server(database) => url_of(&database.0),
        };
        DatabaseUrl::parse(&url).unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.0);
        // A runtime of its own: the test's may be gone.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(run_on_the_server(&sql));
        });
        let dropped = dropping.join();
        assert!(dropped.is_ok() || std::thread::panicking(), "{} was not dropped", self.0);
    }
}

#[expect(clippy::disallowed_methods, reason = "tests have no configuration to read it from")]
fn url_of(database: &str) -> String {
    let server = std::env::var(SERVER).unwrap();
    match server.split_once('?') {
        Some((address, parameters)) => format!("{address}/{database}?{parameters}"),
        None => format!("{server}/{database}"),
    }
}

async fn run_on_the_server(sql: &str) {
    let options: PgConnectOptions = url_of("postgres").parse().unwrap();
    let mut connection: PgConnection = options.connect().await.unwrap();
    connection.execute(AssertSqlSafe(sql.to_owned())).await.unwrap();
    connection.close().await.unwrap();
}
