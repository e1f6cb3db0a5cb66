//! What only a store on a server can get wrong: several processes on one database, connections that
//! break, other settings than it relies on.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use holdfast_domain::admin::Directory as _;
use holdfast_domain::admin::listing::{Order, PageRequest};
use holdfast_domain::limits::Limits;
use holdfast_domain::ports::CommitError;
use holdfast_domain::{ErrorChain, Event, Journal, OperationId};
use holdfast_store::{Options, SchemaError, Store, migrate};
use holdfast_testkit::laws::tenant::{Tenant, finish, judged, not_run};
use holdfast_testkit::sample;
use sqlx::Executor;

use crate::proxy::{Cut, Proxy};
use crate::server::{Database, Server};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_two_processes_share_a_wallet_to_its_last_micro() {
    let server = Server::open().await;
    let other = server.database.open().await.unwrap();
    let tenant = Tenant::new(&server, 100_000).await;
    let claims: Vec<_> = (0..200).map(|_| tenant.claim().hold(1_000).build()).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for (n, claim) in claims.iter().enumerate() {
        let store = if n % 2 == 0 { server.store.clone() } else { other.clone() };
        let change = sample::admission(claim);
        tasks.spawn(async move { store.commit(change).await });
    }
    let verdicts = tasks.join_all().await;
    assert_eq!(verdicts.iter().filter(|verdict| verdict.is_ok()).count(), 100);
    for verdict in verdicts.into_iter().filter_map(Result::err) {
        assert!(matches!(verdict, CommitError::FundsHeld { .. }), "{verdict:?}");
    }
    assert_eq!(tenant.balances().await, (0, 100_000));
    assert_eq!(other.verify().await.unwrap().mismatches, []);
    other.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_one_of_two_processes_has_the_last_word_on_an_operation() {
    let server = Server::open().await;
    let other = server.database.open().await.unwrap();
    let tenant = Tenant::new(&server, 10_000).await;
    for _ in 0..20 {
        let operation = tenant.admit(&tenant.claim().build()).await;
        let change = judged(&tenant.load(operation.id).await, finish(&operation, 10, 10));
        let offers = [&server.store, &other].map(|store| store.commit(Arc::clone(&change)));
        let verdicts = join_all(offers).await;
        assert_eq!(verdicts.iter().filter(|verdict| verdict.is_ok()).count(), 1, "{verdicts:?}");
        let lost = verdicts.into_iter().find_map(Result::err);
        assert!(matches!(lost, Some(CommitError::Conflict)), "{lost:?}");
    }
    assert_eq!(other.verify().await.unwrap().mismatches, []);
    other.close().await.unwrap();
}

#[tokio::test]
async fn postgres_settings_of_the_server_are_not_relied_on() {
    let database = Database::new().await;
    for setting in [
        "default_transaction_isolation = 'serializable'",
        "default_transaction_read_only = on",
        "synchronous_commit = off",
        "plan_cache_mode = force_custom_plan",
        "bytea_output = escape",
        "standard_conforming_strings = off",
    ] {
        database.set(setting).await;
    }
    migrate::up(&database.url()).await.unwrap();
    let server = Server { store: database.open().await.unwrap(), database };
    let other = server.database.open().await.unwrap();
    let tenant = Tenant::new(&server, 10_000).await;
    let limits = Limits { requests_per_minute: Some(60), ..Limits::default() };
    let claims: Vec<_> = (0..60).map(|_| tenant.claim().hold(100).limits(limits).build()).collect();
    let offers = claims.iter().enumerate().map(|(n, claim)| {
        let store = if n % 2 == 0 { &server.store } else { &other };
        store.commit(sample::admission(claim))
    });
    for verdict in join_all(offers).await {
        verdict.unwrap();
    }
    assert_eq!(tenant.balances().await, (4_000, 6_000));
    assert_eq!(other.verify().await.unwrap().mismatches, []);
    other.close().await.unwrap();
}

#[tokio::test]
async fn postgres_a_locked_wallet_is_unavailable_until_it_is_free() {
    let server = Server::with(|options| options.busy_timeout = Duration::from_millis(50)).await;
    let tenant = Tenant::new(&server, 1_000).await;
    let mut raw = server.database.connect().await;
    raw.execute("BEGIN; SELECT 1 FROM wallets FOR UPDATE").await.unwrap();
    let claim = tenant.claim().build();
    for _ in 0..2 {
        let refused = tenant.offer(&claim).await;
        assert!(matches!(refused, Err(CommitError::Unavailable(_))), "{refused:?}");
    }
    raw.execute("ROLLBACK").await.unwrap();
    tenant.admit(&claim).await;
    assert_eq!(tenant.balances().await, (900, 100));
}

#[tokio::test]
async fn postgres_nobody_waits_with_those_whose_wallet_is_locked() {
    let server = Server::with(|options| options.busy_timeout = Duration::from_secs(60)).await;
    let locked = Tenant::new(&server, 10_000).await;
    let free = Tenant::new(&server, 10_000).await;
    let mut raw = server.database.connect().await;
    raw.execute("BEGIN; SELECT 1 FROM wallets WHERE seq = 1 FOR UPDATE").await.unwrap();
    let mut waiting = tokio::task::JoinSet::new();
    for _ in 0..3 {
        // In one batch with the others, and then while it is known that they wait.
        for _ in 0..10 {
            let (store, change) =
                (server.store.clone(), sample::admission(&locked.claim().build()));
            waiting.spawn(async move { store.commit(change).await });
        }
        tokio::task::yield_now().await;
        let claims: Vec<_> = (0..10).map(|_| free.claim().build()).collect();
        for verdict in join_all(claims.iter().map(|claim| free.offer(claim))).await {
            verdict.unwrap();
        }
    }
    assert!(waiting.try_join_next().is_none(), "they wait");
    assert_eq!(free.balances().await, (7_000, 3_000));
    raw.execute("ROLLBACK").await.unwrap();
    for verdict in waiting.join_all().await {
        verdict.unwrap();
    }
    assert_eq!(locked.balances().await, (7_000, 3_000));
}

#[tokio::test]
async fn postgres_a_row_that_is_locked_fails_its_own_change_alone() {
    let server = Server::with(|options| options.busy_timeout = Duration::from_millis(500)).await;
    let locked = Tenant::new(&server, 10_000).await;
    let free = Tenant::new(&server, 10_000).await;
    let operation = locked.admit(&locked.claim().build()).await;
    let ending = judged(&locked.load(operation.id).await, finish(&operation, 10, 10));
    let mut raw = server.database.connect().await;
    raw.execute("BEGIN; SELECT 1 FROM operations FOR UPDATE").await.unwrap();
    let claims: Vec<_> = (0..20).map(|_| free.claim().build()).collect();
    let offers = join_all(claims.iter().map(|claim| free.offer(claim)));
    let (offers, ended) = join(offers, server.store.commit(Arc::clone(&ending))).await;
    for verdict in offers {
        verdict.unwrap();
    }
    assert!(matches!(ended, Err(CommitError::Unavailable(_))), "{ended:?}");
    raw.execute("ROLLBACK").await.unwrap();
    server.store.commit(ending).await.unwrap();
    assert_eq!(server.store.verify().await.unwrap().mismatches, []);
}

#[tokio::test]
async fn postgres_a_table_that_is_locked_keeps_nobody_for_long() {
    let server = Server::with(|options| options.busy_timeout = Duration::from_millis(500)).await;
    let tenants = [
        Tenant::new(&server, 100_000).await,
        Tenant::new(&server, 100_000).await,
        Tenant::new(&server, 100_000).await,
    ];
    let mut raw = server.database.connect().await;
    raw.execute("BEGIN; LOCK TABLE operations IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let claims: Vec<_> = (0..300).map(|n| tenants[n % 3].claim().build()).collect();
    let offers = || join_all(claims.iter().map(|claim| tenants[0].offer(claim)));
    // Far less than one try of the lock for each would take.
    let refused = tokio::time::timeout(Duration::from_secs(60), offers()).await.unwrap();
    for verdict in refused {
        assert!(matches!(verdict, Err(CommitError::Unavailable(_))), "{verdict:?}");
    }
    raw.execute("ROLLBACK").await.unwrap();
    for verdict in offers().await {
        verdict.unwrap();
    }
}

#[tokio::test]
async fn postgres_a_broken_connection_is_replaced() {
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 1_000).await;
    let mut raw = server.database.connect().await;
    let others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    raw.execute(others).await.unwrap();
    let claim = tenant.claim().build();
    let admitted = tenant.offer(&claim).await;
    assert!(admitted.is_ok(), "nobody is told of a connection that ended idle: {admitted:?}");
    raw.execute(others).await.unwrap();
    assert_eq!(tenant.balances().await, (900, 100), "the pool looks before it gives one out");
}

#[tokio::test]
async fn postgres_a_change_that_a_table_refuses_fails_alone() {
    let server = Server::open().await;
    let good = Tenant::new(&server, 10_000).await;
    let bad = Tenant::new(&server, 10_000).await;
    let mut raw = server.database.connect().await;
    let sql = "ALTER TABLE operations ADD CONSTRAINT none CHECK (hold <> 77)";
    raw.execute(sql).await.unwrap();
    let mut claims: Vec<_> = (0..40).map(|_| good.claim().build()).collect();
    claims.insert(17, bad.claim().hold(77).build());
    let offers = claims.iter().map(|claim| server.store.commit(sample::admission(claim)));
    for (n, verdict) in join_all(offers).await.into_iter().enumerate() {
        match verdict {
            Ok(_) => assert_ne!(n, 17),
            Err(error) => {
                assert!(n == 17 && matches!(error, CommitError::Collision), "{n}: {error:?}");
            }
        }
    }
    assert_eq!((good.balances().await, bad.balances().await), ((6_000, 4_000), (10_000, 0)));
}

#[tokio::test]
async fn postgres_a_row_left_among_those_that_run_refuses_nothing() {
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 10_000).await;
    let claim = tenant.claim();
    let first = tenant.admit(&claim.clone().build()).await;
    tenant.step(first.id, not_run(&first)).await;
    let mut raw = server.database.connect().await;
    raw.execute("INSERT INTO running SELECT seq FROM operations").await.unwrap();
    let again = claim.claim_id(sample::fresh()).build();
    let second = tenant.step(first.id, Event::Claim(Box::new(again))).await;
    assert!(second.phase.holds());
    assert_eq!(server.store.verify().await.unwrap().mismatches, []);
}

#[tokio::test]
async fn postgres_what_runs_end_with_fits_the_pages_of_their_beginning() {
    const RUNS: usize = 256;
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 100_000).await;
    let claims: Vec<_> = (0..RUNS).map(|_| tenant.claim().build()).collect();
    let offers = claims.iter().map(|claim| server.store.commit(sample::admission(claim)));
    for verdict in join_all(offers).await {
        verdict.unwrap();
    }
    let ends = claims.iter().map(async |claim| {
        let running = tenant.load(OperationId::of(claim.api_key, claim.request_key)).await;
        let event = finish(running.operation.as_ref().unwrap(), 10, 10);
        server.store.commit(judged(&running, event)).await.unwrap();
    });
    join_all(ends).await;
    server.store.clone().close().await.unwrap();
    let mut raw = server.database.connect().await;
    // A connection tells what it has counted as it ends, which is waited for.
    let ended = "SELECT count(pg_terminate_backend(pid, 60000)) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()";
    raw.execute(ended).await.unwrap();
    let counted = "SELECT n_tup_upd, n_tup_upd - n_tup_hot_upd FROM pg_stat_user_tables
        WHERE relname = 'operations'";
    let (ends, elsewhere): (i64, i64) = sqlx::query_as(counted).fetch_one(&mut raw).await.unwrap();
    assert!(ends >= i64::try_from(RUNS).unwrap(), "{ends}");
    assert_eq!(elsewhere, 0, "an index was told of an end");
}

#[tokio::test]
async fn postgres_schemas_are_told_apart() {
    let database = Database::new().await;
    let url = database.url();
    let older = database.open().await;
    assert!(older.unwrap_err().to_string().contains("schema 0"));
    let steps = migrate::up(&url).await.unwrap();
    assert_eq!(steps.first().map(|step| step.version), Some(1));
    assert_eq!(migrate::up(&url).await.unwrap(), []);
    let store = database.open().await.unwrap();
    store.close().await.unwrap();
    for step in steps.iter().rev() {
        let down = migrate::down(&url, migrate::IfFilled::Refuse).await.unwrap();
        assert_eq!((down.version, down.applied_at), (step.version, None));
    }
    let mut raw = database.connect().await;
    raw.execute("CREATE TABLE theirs (a int)").await.unwrap();
    let foreign = migrate::up(&url).await;
    assert!(matches!(foreign, Err(SchemaError::Foreign(_))), "{foreign:?}");
    let nowhere = url.to_string();
    drop(database);
    let gone = migrate::up(&url).await.unwrap_err();
    assert!(matches!(gone, SchemaError::NotMade(_)), "{gone:?}");
    assert!(gone.to_string().contains(&nowhere), "{gone}");
}

#[tokio::test]
async fn postgres_another_schema_than_ours_is_refused() {
    for (sql, words) in [
        ("DELETE FROM holdfast_migrations", "holdfast migrate up"),
        (
            "INSERT INTO holdfast_migrations SELECT 999, 'later', digest, 0 FROM holdfast_migrations
             WHERE version = 1",
            "at schema 999, which this program does not know",
        ),
        (
            "UPDATE holdfast_migrations SET digest = sha256('')",
            "migration 1 of the database is not this program's",
        ),
    ] {
        let server = Server::open().await;
        server.database.connect().await.execute(sql).await.unwrap();
        let refused = server.database.open().await.unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

#[tokio::test]
async fn postgres_what_runs_goes_on_beside_a_migration_that_adds_columns() {
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 1_000).await;
    let mut raw = server.database.connect().await;
    let live = async || {
        let operation = tenant.admit(&tenant.claim().build()).await;
        tenant.step(operation.id, finish(&operation, 10, 10)).await;
        assert_eq!(server.store.verify().await.unwrap().mismatches, []);
    };
    live().await;
    for table in ["operations", "prices", "wallets", "results", "counters", "nodes"] {
        let sql = format!("ALTER TABLE {table} ADD COLUMN later TEXT NOT NULL DEFAULT ''");
        raw.execute(sqlx::AssertSqlSafe(sql)).await.unwrap();
    }
    live().await;
}

#[tokio::test]
async fn postgres_nothing_is_taken_back_while_a_node_is_alive() {
    let server = Server::open().await;
    // A tenant's lease is live.
    let tenant = Tenant::new(&server, 1_000).await;
    let url = server.database.url();
    let refused = migrate::down(&url, migrate::IfFilled::Delete).await;
    let name = tenant.lease.node.name.to_string();
    assert!(matches!(&refused, Err(SchemaError::InUse(node)) if *node == name), "{refused:?}");
}

#[tokio::test]
async fn postgres_what_is_certain_of_a_lost_connection_is_said_and_offering_again_finds_out() {
    let server = Server::open().await;
    let proxy = Proxy::of(&server.database);
    let store = Store::open(Options::new(proxy.url())).await.unwrap();
    let tenant = Tenant::new(&server, 1_000).await;
    let claim = tenant.claim().build();
    proxy.cut(Cut::Begin);
    let admitted = store.commit(sample::admission(&claim)).await;
    assert!(proxy.has_cut());
    assert!(admitted.is_ok(), "nothing was sent but BEGIN, so it goes again: {admitted:?}");
    for (at, happened) in [(Cut::Commit, false), (Cut::Answer, true)] {
        let before = tenant.balances().await;
        let claim = tenant.claim().build();
        proxy.cut(at);
        let lost = store.commit(sample::admission(&claim)).await.unwrap_err();
        assert!(proxy.has_cut(), "{at:?}");
        assert!(matches!(lost, CommitError::Uncertain(_)), "{at:?}: {lost:?}");
        let again = store.commit(sample::admission(&claim)).await;
        if happened {
            assert!(matches!(again, Err(CommitError::Conflict)), "{at:?}: {again:?}");
        } else {
            again.unwrap();
        }
        let id = OperationId::of(claim.api_key, claim.request_key);
        assert_eq!(tenant.load(id).await.operation.map(|row| row.owner), Some(claim.owner));
        assert_eq!(tenant.balances().await, (before.0 - 100, before.1 + 100), "{at:?}: once");
    }
    store.close().await.unwrap();
    assert_eq!(server.store.verify().await.unwrap().mismatches, []);
}

#[tokio::test]
async fn postgres_a_list_that_takes_too_long_is_ended_by_the_server() {
    let server = Server::open().await;
    let mut raw = server.database.connect().await;
    let slow = "INSERT INTO admin_keys (id, name, role, created_at, created_by)
            VALUES (decode(repeat('07', 16), 'hex'), 'one', 'owner', 7, 'local');
        ALTER TABLE admin_keys RENAME TO kept_admin_keys;
        CREATE VIEW admin_keys AS SELECT k.* FROM kept_admin_keys AS k, pg_sleep(300)";
    raw.execute(slow).await.unwrap();
    let listed = server.store.admin_keys(None, PageRequest::first(Order::Newest, 9)).await;
    let told = ErrorChain(&listed.unwrap_err()).to_string();
    assert!(told.contains("statement timeout"), "{told}");
}
