//! What a batch reads as it begins: counters, after a restart and whatever a server's clock did meanwhile, and
//! tables that cannot be read.

use futures_util::future::join_all;
use holdfast_domain::limits::{Counter, Limits, SpendLimit, SpendWindow};
use holdfast_domain::operation::Receipt;
use holdfast_domain::ports::CommitError;
use holdfast_domain::{Journal, Micros};
use holdfast_store::{Options, Store};
use holdfast_testkit::laws::tenant::Tenant;
use holdfast_testkit::sample;
use sqlx::Executor;

use crate::proxy::Proxy;
use crate::scratch::Home;
use crate::server::Server;

/// The counter whose limit an offer has met.
fn limit(offered: Result<Receipt, CommitError>) -> Option<Counter> {
    match offered {
        Err(CommitError::LimitReached(reached)) => Some(reached.counter),
        Ok(_) | Err(_) => None,
    }
}

async fn counters_hold_across_a_restart(home: &impl Home) {
    let spend = SpendLimit { micros: Micros::new(100), window: SpendWindow::Month };
    let limits = Limits { spend: Some(spend), ..Limits::default() };
    let tenant = Tenant::new(home, 1_000).await;
    tenant.admit(&tenant.claim().limits(limits).build()).await;
    let restarted = home.again().await;
    let second = tenant.claim().limits(limits).hold(1).build();
    let refused = restarted.commit(sample::admission(&second)).await;
    assert_eq!(limit(refused), Some(Counter::SpendMonth));
    restarted.close().await.unwrap();
}

#[tokio::test]
async fn postgres_counters_are_found_again_when_the_clock_was_set_back() {
    let server = Server::open().await;
    let tenant = Tenant::new(&server, 1_000).await;
    // Found before the server's own, from the next connection on.
    let mut raw = server.database.connect().await;
    let sql = "CREATE TABLE moment AS SELECT pg_catalog.clock_timestamp() AS at;
        CREATE FUNCTION clock_timestamp() RETURNS timestamptz LANGUAGE sql
        AS 'SELECT at FROM public.moment'";
    raw.execute(sql).await.unwrap();
    server.database.set("search_path = public, pg_catalog").await;
    let store = server.database.open().await.unwrap();
    let limits = Limits { requests_per_minute: Some(2), ..Limits::default() };
    let offer = async || {
        let claim = tenant.claim().limits(limits).build();
        store.commit(sample::admission(&claim)).await
    };
    offer().await.unwrap();
    offer().await.unwrap();
    raw.execute("UPDATE moment SET at = at + interval '1 hour'").await.unwrap();
    offer().await.unwrap();
    raw.execute("UPDATE moment SET at = at - interval '1 hour'").await.unwrap();
    assert_eq!(limit(offer().await), Some(Counter::Requests));
    store.close().await.unwrap();
}

#[tokio::test]
async fn postgres_a_table_that_cannot_be_read_costs_no_connection() {
    let server = Server::open().await;
    let proxy = Proxy::of(&server.database);
    let store = Store::open(Options::new(proxy.url())).await.unwrap();
    let tenant = Tenant::new(&server, 100_000).await;
    let limits = Limits { requests_per_minute: Some(9_000), ..Limits::default() };
    let offer = async |limits| {
        store.commit(sample::admission(&tenant.claim().limits(limits).build())).await
    };
    offer(limits).await.unwrap();
    let before = proxy.came();
    let mut raw = server.database.connect().await;
    raw.execute("ALTER TABLE counters RENAME TO elsewhere").await.unwrap();
    for _ in 0..3 {
        let refused = offer(limits).await;
        assert!(matches!(refused, Err(CommitError::Unavailable(_))), "{refused:?}");
        for verdict in join_all((0..40).map(|_| offer(Limits::default()))).await {
            verdict.unwrap();
        }
    }
    raw.execute("ALTER TABLE elsewhere RENAME TO counters").await.unwrap();
    offer(limits).await.unwrap();
    assert_eq!(proxy.came(), before, "the writer connected anew");
    store.close().await.unwrap();
}

crate::scratch::on_every_store! {
    counters_hold_across_a_restart,
}
