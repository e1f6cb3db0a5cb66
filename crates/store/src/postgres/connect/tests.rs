//! Guarantees that the driver does not give by itself, on a real server.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use sea_orm::{ConnectionTrait, TransactionTrait};
use sqlx::AssertSqlSafe;

use crate::options::{AUDIT_STATEMENT, READ_STATEMENT};
use crate::postgres::session::begin_snapshot;
use crate::schema::url::{DatabaseLocation, DatabaseUrl};

use super::*;

#[expect(clippy::disallowed_methods, reason = "tests have no configuration to read it from")]
pub(in crate::postgres) fn server() -> PgConnectOptions {
    let server = std::env::var("HOLDFAST_TEST_POSTGRES");
    let server = server.expect("HOLDFAST_TEST_POSTGRES, which `cargo xtask test store` sets");
    server.parse::<PgConnectOptions>().unwrap().database("postgres")
}

#[expect(clippy::disallowed_methods, reason = "tests have no configuration to read it from")]
fn servers() -> Servers {
    let server = std::env::var("HOLDFAST_TEST_POSTGRES");
    let server = server.expect("HOLDFAST_TEST_POSTGRES, which `cargo xtask test store` sets");
    let (address, parameters) = server.split_once('?').unwrap_or((&server, ""));
    let url = DatabaseUrl::parse(&format!("{address}/postgres?{parameters}")).unwrap();
    match url.place() {
        DatabaseLocation::Server(database) => Servers::of(database),
        #[cfg(feature = "sqlite")]
        DatabaseLocation::File(_) => panic!("a URL of PostgreSQL"),
    }
}

#[tokio::test]
async fn postgres_a_transaction_that_is_dropped_as_it_begins_takes_no_write_with_it() {
    const TRIES: u32 = 200;
    let db = connect_single(&servers(), Duration::from_secs(5)).await.unwrap();
    let table = format!("dropped_{}", std::process::id());
    db.execute_unprepared(&format!("CREATE TABLE {table} (n int)")).await.unwrap();
    for n in 0..TRIES {
        {
            let mut begin = pin!(db.begin());
            // Asked a few times, and then its caller goes away.
            for _ in 0..=n % 10 {
                let asked = poll_fn(|cx| Poll::Ready(begin.as_mut().poll(cx))).await;
                if asked.is_ready() {
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        let insert = format!("INSERT INTO {table} VALUES ({n})");
        db.execute_unprepared(&insert).await.unwrap();
    }
    db.close().await.unwrap();
    let mut other = server().connect().await.unwrap();
    let count = format!("SELECT count(*) FROM {table}");
    let kept: i64 = sqlx::query_scalar(AssertSqlSafe(count)).fetch_one(&mut other).await.unwrap();
    other.execute(AssertSqlSafe(format!("DROP TABLE {table}"))).await.unwrap();
    assert_eq!(kept, i64::from(TRIES));
}

#[tokio::test]
async fn postgres_no_connection_waits_or_stands_still_for_ever() {
    let servers = servers();
    let lock_timeout = Duration::from_millis(1_500);
    let session = Session { lock_timeout, statement_timeout: READ_STATEMENT, plans: "" };
    let mut kept = servers.connect(session).await.unwrap().connection;
    let mut audit = servers.connect(session).await.unwrap().connection;
    audit.execute(begin_snapshot(AUDIT_STATEMENT)).await.unwrap();
    let mut writer = writer(&servers, lock_timeout).await.unwrap().connection;
    let sessions = [(&mut kept, "10s"), (&mut audit, "15min"), (&mut writer, "10s")];
    for (connection, statement) in sessions {
        let mut shown = Vec::new();
        for name in ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"] {
            let sql = AssertSqlSafe(format!("SHOW {name}"));
            let value: String = sqlx::query_scalar(sql).fetch_one(&mut *connection).await.unwrap();
            shown.push(value);
        }
        assert_eq!(shown, [statement, "1500ms", "5s"]);
    }
}

#[tokio::test]
async fn postgres_prepared_statements_of_a_connection_have_an_end() {
    const KEPT: i64 = 100;
    let lock_timeout = Duration::from_secs(5);
    let mut connection = writer(&servers(), lock_timeout).await.unwrap().connection;
    for n in 0..3 * KEPT {
        // Each twice: what was prepared once is not prepared again.
        for _ in 0..2 {
            let sql = AssertSqlSafe(format!("SELECT {n} + $1::bigint"));
            sqlx::query(sql).bind(n).execute(&mut connection).await.unwrap();
        }
    }
    let count = "SELECT count(*) FROM pg_prepared_statements";
    let count: i64 = sqlx::query_scalar(count).fetch_one(&mut connection).await.unwrap();
    assert!((1..=KEPT).contains(&count), "{count}");
}
