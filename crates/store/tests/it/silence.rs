//! Servers that fall silent, become standbys or are busy elsewhere: what is kept of their connections,
//! and who waits for them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use holdfast_domain::operation::Operation;
use holdfast_domain::ports::{CommitError, HeartbeatOutcome, LeaseMode};
use holdfast_domain::{Journal, Nodes, OperationId};
use holdfast_store::{ConnectError, OpenError, Options, SchemaError, Store};
use holdfast_testkit::laws::tenant::{Tenant, finish, judged, operation_change};
use holdfast_testkit::sample;
use sqlx::Executor;
use sqlx::postgres::PgConnection;

use crate::proxy::{Cut, Proxy};
use crate::server::Server;

/// Far longer than anything here may take, and shorter than a silent connection lasts.
const WORK_TIMEOUT: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(3_600);

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(WORK_TIMEOUT, work).await.unwrap()
}

/// Until so many statements wait for a lock.
pub(crate) async fn until_waiting(raw: &mut PgConnection, count: i64) {
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    soon(async {
        loop {
            // A transaction would see what it saw first.
            raw.execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
            let found: i64 = sqlx::query_scalar(waiting).fetch_one(&mut *raw).await.unwrap();
            if found >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

async fn beat(store: &Store, tenant: &Tenant<'_>) -> Result<(), String> {
    match soon(store.heartbeat(&tenant.lease.node, LEASE, LeaseMode::Renew)).await {
        Ok(HeartbeatOutcome::Held { .. }) => Ok(()),
        other => Err(format!("{other:?}")),
    }
}

#[tokio::test]
async fn postgres_what_is_cut_off_ends_and_what_comes_next_goes_through() {
    let server = Server::open().await;
    let proxy = Proxy::of(&server.database);
    let store = Store::open(Options::new(proxy.url())).await.unwrap();
    let tenant = Tenant::new(&server, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await.id;
    let mut raw = server.database.connect().await;
    raw.execute("BEGIN; LOCK TABLE nodes, operations IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let cut_off = join(beat(&store, &tenant), soon(store.load(operation)));
    let cutting = async {
        until_waiting(&mut raw, 2).await;
        proxy.silence();
        raw.execute("ROLLBACK").await.unwrap();
    };
    let ((beaten, loaded), ()) = join(cut_off, cutting).await;
    assert!(loaded.is_err(), "{loaded:?}");
    // It is sent once more on another connection, while the lease lasts.
    beaten.unwrap();
    beat(&store, &tenant).await.unwrap();
    assert!(soon(store.load(operation)).await.unwrap().operation.is_some());
    soon(store.close()).await.unwrap();
}

#[tokio::test]
async fn postgres_connections_that_fell_silent_while_idle_keep_nobody_waiting() {
    const READERS: usize = 4;
    let server = Server::open().await;
    let proxy = Proxy::of(&server.database);
    let store = Store::open(Options::new(proxy.url())).await.unwrap();
    let nothing = OperationId::from_u128(1);
    let mut raw = server.database.connect().await;
    raw.execute("BEGIN; LOCK TABLE operations IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let loads = join_all((0..READERS).map(|_| store.load(nothing)));
    let unlocking = async {
        until_waiting(&mut raw, i64::try_from(READERS).unwrap()).await;
        raw.execute("ROLLBACK").await.unwrap();
    };
    let (loaded, ()) = join(loads, unlocking).await;
    assert!(loaded.iter().all(Result::is_ok), "{loaded:?}");
    proxy.silence();
    // Each takes a connection that is dead, and is not to fail by that.
    let loaded = soon(join_all((0..READERS - 1).map(|_| store.load(nothing)))).await;
    assert!(loaded.iter().any(Result::is_ok), "{loaded:?}");
    soon(store.close()).await.unwrap();
}

#[tokio::test]
async fn postgres_whatever_keeps_the_others_waiting_a_lease_is_renewed() {
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 1_000).await;
    let mut raw = server.database.connect().await;
    raw.execute("BEGIN; LOCK TABLE operations, results IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let loads = join_all((0..12).map(|n| server.store.load(OperationId::from_u128(n))));
    let purges = join_all((0..4).map(|_| server.store.purge(LEASE, 1)));
    let beating = async {
        // All connections but one.
        until_waiting(&mut raw, 6).await;
        beat(&server.store, &tenant).await.unwrap();
        raw.execute("ROLLBACK").await.unwrap();
    };
    join(join(loads, purges), beating).await;
}

#[tokio::test]
async fn postgres_a_server_that_became_a_standby_is_left_and_found_again() {
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 1_000).await;
    let operation = tenant.admit(&tenant.claim().build()).await.id;
    // Found before the server's own, from the next connection on.
    let mut raw = server.database.connect().await;
    let sql = format!(
        "CREATE TABLE follows AS SELECT false AS now;
         CREATE FUNCTION pg_is_in_recovery() RETURNS boolean LANGUAGE sql
         AS 'SELECT now FROM public.follows';
         ALTER DATABASE {} SET search_path = public, pg_catalog",
        server.database.name
    );
    raw.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
    let store = server.database.open().await.unwrap();
    store.load(operation).await.unwrap();
    beat(&store, &tenant).await.unwrap();
    store.commit(sample::admission(&tenant.claim().build())).await.unwrap();
    raw.execute("UPDATE follows SET now = true").await.unwrap();
    let stale = store.load(operation).await;
    assert!(stale.is_err(), "what a standby says was true a while ago: {stale:?}");
    let refused = server.database.open().await.unwrap_err();
    let is_standby = |error: &OpenError| {
        matches!(error, OpenError::Schema(SchemaError::Connect(ConnectError::Standby)))
    };
    assert!(is_standby(&refused), "{refused:?}");
    // A writer's connection that has ended leads there too.
    let end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    raw.execute(end).await.unwrap();
    let claim = tenant.claim().build();
    let refused = store.commit(sample::admission(&claim)).await;
    assert!(matches!(refused, Err(CommitError::Unavailable(_))), "{refused:?}");
    raw.execute("UPDATE follows SET now = false").await.unwrap();
    store.commit(sample::admission(&claim)).await.unwrap();
    assert!(store.load(operation).await.unwrap().operation.is_some());
    beat(&store, &tenant).await.unwrap();
    store.close().await.unwrap();
}

#[tokio::test]
async fn postgres_one_attempt_to_connect_answers_all_who_wait() {
    const CLAIMS: usize = 1_200;
    let server = Server::open().await;
    let proxy = Proxy::of(&server.database);
    let store = Store::open(Options::new(proxy.url())).await.unwrap();
    let tenant = Tenant::new(&server, 1_000_000).await;
    store.commit(sample::admission(&tenant.claim().build())).await.unwrap();
    let before = proxy.came();
    proxy.cut(Cut::Begin);
    proxy.silence_for_good();
    let claims: Vec<_> = (0..CLAIMS).map(|_| tenant.claim().build()).collect();
    let offers = claims.iter().map(|claim| store.commit(sample::admission(claim)));
    for verdict in soon(join_all(offers)).await {
        assert!(matches!(verdict, Err(CommitError::Unavailable(_))), "{verdict:?}");
    }
    // One search for all three batches, which attempts a connection each second.
    let came = proxy.came() - before;
    assert!((2..=5).contains(&came), "{came}");
    soon(store.close()).await.unwrap();
}

#[tokio::test]
async fn postgres_a_connection_without_an_answer_is_attempted_again_a_second_later() {
    let server = Server::open().await;
    let proxy = Proxy::of(&server.database);
    proxy.silence_next();
    let store = Box::pin(soon(Store::open(Options::new(proxy.url())))).await.unwrap();
    assert!(soon(store.load(OperationId::from_u128(1))).await.unwrap().operation.is_none());
    soon(store.close()).await.unwrap();
}

#[tokio::test]
async fn postgres_a_batch_is_four_packets_or_three_each_after_the_answer_to_the_one_before() {
    const BATCHES: usize = 10;
    let server = Server::open().await;
    let proxy = Proxy::of(&server.database);
    let store = Store::open(Options::new(proxy.url())).await.unwrap();
    let tenant = Tenant::new(&server, 10_000).await;
    let admit = async || {
        let change = sample::admission(&tenant.claim().build());
        let receipt = store.commit(Arc::clone(&change)).await.unwrap();
        operation_change(&change).apply(None, receipt).unwrap()
    };
    let end = async |operation: Operation| {
        let snapshot = tenant.load(operation.id).await;
        store.commit(judged(&snapshot, finish(&operation, 10, 10))).await.unwrap();
    };
    // Prepares its statements.
    end(admit().await).await;
    let (before, _) = proxy.asked();
    let mut running = Vec::new();
    for _ in 0..BATCHES {
        running.push(admit().await);
    }
    let (admitted, _) = proxy.asked();
    for operation in running {
        end(operation).await;
    }
    let (ended, hurried) = proxy.asked();
    assert_eq!((admitted - before, ended - admitted, hurried), (4 * BATCHES, 3 * BATCHES, 0));
    store.close().await.unwrap();
}

#[tokio::test]
async fn postgres_a_pooler_that_shares_sessions_is_refused() {
    let server = Server::open().await;
    let proxy = Proxy::sharing(&server.database);
    let refused = Store::open(Options::new(proxy.url())).await.unwrap_err();
    let OpenError::Schema(SchemaError::Connect(ConnectError::Shared)) = refused else {
        panic!("{refused:?}");
    };
}
