//! What a purge costs a server: it finds what is old through an index, passes by what another purge
//! works on, and what it leaves is used again.

use std::time::Duration;

use futures_util::future::join_all;
use holdfast_domain::Journal;
use holdfast_testkit::laws::tenant::Tenant;
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor};

use crate::server::Server;

/// Results of one day.
const DAY: i64 = 20_000;
/// As many as one purge of the engine deletes at most.
const PURGE: u32 = 256;
const AGE: Duration = Duration::from_secs(86_400);

/// A day of results, which ended so long ago; their operations are rows of the same number each day.
async fn results(raw: &mut PgConnection, day: i64, age: Duration) {
    let (from, to) = (day * DAY + 1, (day + 1) * DAY);
    let age = age.as_micros();
    let sql = format!(
        "SET session_replication_role = replica;
         INSERT INTO results (op_seq, credential_id, format, nonce, sealed, finished_at)
         SELECT n, decode(repeat('00', 16), 'hex'), 1, decode(repeat('00', 12), 'hex'),
            decode(repeat('00', 1000), 'hex'),
            CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint) - {age}
         FROM generate_series({from}, {to}) AS n;
         SET session_replication_role = origin"
    );
    raw.execute(AssertSqlSafe(sql)).await.unwrap();
}

async fn number(raw: &mut PgConnection, sql: &'static str) -> i64 {
    sqlx::query_scalar(sql).fetch_one(raw).await.unwrap()
}

#[tokio::test]
async fn postgres_a_purge_reads_no_whole_table_and_what_it_leaves_is_used_again() {
    const SIZE: &str = "SELECT pg_relation_size('results')";
    const SCANS: &str = "SELECT coalesce(sum(seq_scan), 0)::bigint FROM pg_stat_user_tables
        WHERE relname = 'results'";
    let server = Server::open().await;
    drop(Tenant::new(&server, 0).await);
    let mut raw = server.database.connect().await;
    // Planned while there is nothing, and kept.
    for _ in 0..8 {
        join_all((0..2).map(|_| server.store.purge(AGE, PURGE))).await;
    }
    results(&mut raw, 0, 3 * AGE).await;
    results(&mut raw, 1, AGE / 2).await;
    let (full, scans) = (number(&mut raw, SIZE).await, number(&mut raw, SCANS).await);
    let mut purged = 0;
    loop {
        // Two processes at once: neither waits for the other, and no row is deleted twice.
        let both = join_all((0..2).map(|_| server.store.purge(AGE, PURGE))).await;
        let both: u64 = both.into_iter().map(Result::unwrap).sum();
        purged += both;
        if both == 0 {
            break;
        }
    }
    assert_eq!(purged, u64::try_from(DAY).unwrap(), "the old day, and nothing of the young one");
    server.store.clone().close().await.unwrap();
    // Connections tell what they have counted when they end.
    raw.execute("SELECT pg_stat_clear_snapshot()").await.unwrap();
    assert_eq!(number(&mut raw, SCANS).await, scans, "the whole table was read");
    raw.execute("VACUUM results").await.unwrap();
    results(&mut raw, 2, AGE / 2).await;
    assert_eq!(number(&mut raw, SIZE).await, full, "a new day takes the place of the old one");
}
