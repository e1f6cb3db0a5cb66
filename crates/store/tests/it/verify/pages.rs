//! Parts of an audit that have more than one page, and audits that are left and gone on with.

use std::time::Duration;

use holdfast_domain::Micros;
use holdfast_domain::limits::{Limits, SpendLimit, SpendWindow};
use holdfast_store::verify::{AuditOptions, Progress, Verification};
use holdfast_testkit::laws::tenant::{Tenant, finish};

use super::fill;
use crate::administration::{issue, make_wallet, secret};
use crate::raw::{FORGET_TRAIL, Raw};
use crate::scratch::Home;

/// More rows of each kind than a page has, made of the first ones.
const MANY: &str = "
    INSERT INTO wallets (seq, id, name, currency, available, held, created_at) WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1201)
        SELECT i, randomblob(16), 'wallet ' || i, 'USD', 1, 0, 0 FROM n;
    INSERT INTO api_keys (seq, id, wallet_id, name, balance, created_at)
        SELECT seq, randomblob(16), id, name, 'shown', 0 FROM wallets WHERE seq > 1;
    INSERT INTO postings (seq, id, wallet_id, kind, amount, created_at)
        SELECT seq + 2, randomblob(16), id, 'deposit', 1, 0 FROM wallets WHERE seq > 1;
    INSERT INTO counters SELECT id, 3, 0, 0 FROM api_keys WHERE seq > 1";

async fn every_page_of_a_part_is_checked(home: &impl Home) {
    fill(home).await;
    let mut raw = Raw::reckless(home).await;
    raw.run(MANY).await;
    let clean = home.store().verify().await.unwrap();
    assert_eq!((clean.mismatches, clean.wallets, clean.transfers), (vec![], 1_201, 24 + 1_200));
    for (sql, told) in [
        ("UPDATE wallets SET available = 2 WHERE seq IN (500, 501, 1001)", 3),
        ("UPDATE postings SET amount = -1 WHERE seq IN (1000, 1001, 1203)", 12),
        (
            "UPDATE counters SET used = 5 WHERE api_key_id IN
            (SELECT id FROM api_keys WHERE seq IN (2, 1201))",
            14,
        ),
    ] {
        raw.run(sql).await;
        let found = home.store().verify().await.unwrap().mismatches;
        assert_eq!(found.len(), told, "{sql}: {found:#?}");
    }
}

/// A second API key with more counters than are compared in one pass, and a third one.
const COUNTED: &str = "
    INSERT INTO api_keys (seq, id, wallet_id, name, balance, created_at)
        SELECT 2, zeroblob(16), id, 'second', 'shown', 0 FROM wallets;
    INSERT INTO api_keys (seq, id, wallet_id, name, balance, created_at)
        SELECT 3, randomblob(16), id, 'third', 'shown', 0 FROM wallets;
    INSERT INTO counters
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
        SELECT zeroblob(16), 4, i * 86400000000, 0 FROM n;
    INSERT INTO counters SELECT id, 3, 0, 7 FROM api_keys WHERE seq = 3;
    UPDATE counters SET used = 9 WHERE counter = 4 AND window_start = 86400000000 * 59999";

async fn counters_are_compared_in_passes(home: &impl Home) {
    fill(home).await;
    let mut raw = Raw::reckless(home).await;
    raw.run(FORGET_TRAIL).await;
    raw.run(COUNTED).await;
    let mut told = Vec::new();
    let tell = |Progress { part, done, of }: Progress| told.push((part, done, of));
    let options = AuditOptions::keeping(Duration::MAX);
    let found = home.store().verify_by(options, tell).await.unwrap();
    assert_eq!(told[3..5], [("API keys", 2, 3), ("API keys", 3, 3)]);
    let sentences: Vec<_> = found.mismatches.iter().map(|it| &*it.sentence).collect();
    let stands = [("spend_day", 9), ("spend_total", 7)].map(|(label, used)| {
        format!("its counter {label} stands at {used}, its operations make 0")
    });
    assert_eq!(sentences, stands);
}

async fn mismatches_beyond_a_thousand_are_counted(home: &impl Home) {
    fill(home).await;
    let mut raw = Raw::reckless(home).await;
    raw.run(MANY).await;
    raw.run("UPDATE wallets SET available = available + 1").await;
    let found = home.store().verify().await.unwrap();
    assert_eq!((found.mismatches.len(), found.unlisted), (1_000, 201));
    assert!(!found.is_clean());
}

async fn an_audit_goes_on_where_another_store_left_it(home: &impl Home) {
    fill(home).await;
    let mut raw = Raw::reckless(home).await;
    raw.run("UPDATE wallets SET held = held + 1").await;
    let options = AuditOptions::keeping(Duration::MAX);
    let (mut found, mut place) = (Verification::default(), None);
    let mut pages = 0;
    loop {
        // A process that knows nothing but the place.
        let store = home.again().await;
        let page = store.verify_page(options.clone(), place).await.unwrap();
        store.close().await.unwrap();
        found.add(page.found);
        pages += 1;
        let Some(next) = page.next else { break };
        place = Some(next.to_string().parse().unwrap());
    }
    assert_eq!((pages, &found), (10, &home.store().verify().await.unwrap()));
    assert_eq!(found.mismatches.len(), 2, "{found:#?}");
    let gone = "gone:1:2".parse().unwrap();
    home.store().verify_page(options.clone(), Some(gone)).await.unwrap_err();
}

async fn what_moves_between_two_pages_is_no_mismatch(home: &impl Home) {
    fill(home).await;
    let tenant = Tenant::new(home, 10_000).await;
    let options = AuditOptions::keeping(Duration::MAX);
    let (mut found, mut place) = (Verification::default(), None);
    let spend = SpendLimit { micros: Micros::new(9_000), window: SpendWindow::Day };
    let limits = Limits { concurrency: Some(9), spend: Some(spend), ..Limits::default() };
    loop {
        let running = tenant.admit(&tenant.claim().limits(limits).build()).await;
        let page = home.store().verify_page(options.clone(), place).await.unwrap();
        tenant.step(running.id, finish(&running, 20, 10)).await;
        found.add(page.found);
        match page.next {
            Some(next) => place = Some(next),
            None => break,
        }
    }
    assert_eq!(found.mismatches, []);
    assert_eq!(found.operations, 11, "those that came later are the next audit's");
}

/// Gives the open operation thousands of generations before its own, each of which held one micro.
const RETRIED: &str = "
    UPDATE transfers SET leg = leg + 64000 WHERE op_seq = 5;
    INSERT INTO transfers WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 8000)
        SELECT 5, i * 8, 1, 0, CAST(NULL AS bigint) FROM n
        UNION ALL SELECT 5, i * 8 + 3, 1, 0, NULL FROM n;
    UPDATE operations SET generation = 8001, released = 8000, version = 16002 WHERE seq = 5";

async fn a_key_that_was_retried_thousands_of_times_is_read_in_pages(home: &impl Home) {
    fill(home).await;
    let mut raw = Raw::reckless(home).await;
    raw.run(FORGET_TRAIL).await;
    raw.run(RETRIED).await;
    let options = AuditOptions::keeping(Duration::MAX);
    let mut told = Vec::new();
    let tell = |Progress { part, done, of }: Progress| told.push((part, done, of));
    let found = home.store().verify_by(options, tell).await.unwrap();
    assert_eq!((found.mismatches, found.transfers), (Vec::new(), 24 + 16_000));
    let parts = [
        ("operations", 10, 10),
        ("postings", 3, 3),
        ("wallets", 1, 1),
        ("API keys", 1, 1),
        ("admin keys", 0, 0),
        ("people", 0, 0),
        ("webhooks", 0, 0),
        ("trail", 0, 0),
        ("roots", 0, 0),
        ("usage", 10, 10),
    ];
    assert_eq!(told, parts);
    raw.run("UPDATE transfers SET amount = 2 WHERE op_seq = 5 AND leg = 40003").await;
    let found = home.store().verify().await.unwrap();
    let told: Vec<String> = found.mismatches.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|told| told.contains("its generation 5000 are")), "{told:?}");
}

/// 2,090 operations that say what the open one does, and each its own id.
const RUN_AGAIN: &str = "
    CREATE TABLE copies AS
        WITH RECURSIVE n(i) AS (SELECT 11 UNION ALL SELECT i + 1 FROM n WHERE i < 2100)
        SELECT n.i AS copied, o.* FROM operations AS o, n WHERE o.seq = 5;
    INSERT INTO transfers SELECT c.copied, t.leg, t.amount, t.created_at, NULL
        FROM copies AS c, transfers AS t WHERE t.op_seq = 5;
    UPDATE copies SET seq = copied, id = randomblob(16);
    ALTER TABLE copies DROP COLUMN copied;
    INSERT INTO operations SELECT * FROM copies;
    DROP TABLE copies";

async fn operations_of_each_page_have_their_own_transfers(home: &impl Home) {
    fill(home).await;
    let mut raw = Raw::reckless(home).await;
    raw.run(RUN_AGAIN).await;
    let all = async || {
        let found = home.store().verify().await.unwrap();
        let listed = u64::try_from(found.mismatches.len()).unwrap();
        (found.operations, found.transfers, listed + found.unlisted)
    };
    // No id follows from the keys; all else fits.
    assert_eq!(all().await, (2_100, 24 + 2 * 2_090, 2_090));
    raw.run("DELETE FROM transfers WHERE op_seq IN (11, 1000, 1001, 2000, 2001, 2100)").await;
    assert_eq!(all().await, (2_100, 24 + 2 * 2_084, 2_090 + 6));
    // Those after the last operation are looked at with the last page, and with no other.
    raw.run("INSERT INTO transfers SELECT 2101, leg, 1, 0, NULL FROM transfers WHERE op_seq = 5")
        .await;
    assert_eq!(all().await.2, 2_090 + 6 + 1);
}

async fn rows_of_the_trail_follow_one_another_across_pages(home: &impl Home) {
    let store = home.store();
    let wallet = make_wallet(store, "acme").await;
    for part in 0..11 {
        let names: Vec<String> = (0..100).map(|n| format!("key {part} {n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        issue(store, wallet, &names).await.unwrap();
    }
    let options =
        AuditOptions { secrets: [secret()].into(), ..AuditOptions::keeping(Duration::MAX) };
    let told = async || {
        let found = store.verify_by(options.clone(), |_progress| {}).await.unwrap().mismatches;
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(told().await, Vec::<String>::new());
    let mut raw = Raw::reckless(home).await;
    // The last row of a page, and the first of the next one.
    for row in [1_000, 1_001] {
        raw.run(&format!("UPDATE audit SET reason = 'another' WHERE seq = {row}")).await;
        let sentence =
            format!("the ledger: row {row} of its audit log was not written by a gateway");
        assert_eq!(told().await, [sentence]);
        raw.run(&format!("UPDATE audit SET reason = 'because' WHERE seq = {row}")).await;
    }
    raw.run("DELETE FROM audit WHERE seq = 1000").await;
    let told = told().await;
    let gap = "the ledger: its rows of the audit log 1000 to 1000 are missing".to_owned();
    assert!(told.contains(&gap), "{told:?}");
}

/// Things that administration never made, more than two pages of each.
const NEVER_MADE: [(&str, &str); 3] = [
    (
        "admin_keys (id, name, role, created_at, created_by)",
        "randomblob(16), 'k' || i, 'owner', 7, 'local'",
    ),
    ("people (id, created_at, created_by)", "randomblob(16), 7, 'local'"),
    (
        "webhooks (id, url, generation, server_secret, created_at, created_by)",
        "randomblob(16), 'https://example.com/', 1, zeroblob(8), 7, 'local'",
    ),
];

async fn every_page_of_what_administration_makes_is_checked(home: &impl Home) {
    let mut raw = Raw::reckless(home).await;
    for (table, values) in NEVER_MADE {
        let sql = format!(
            "INSERT INTO {table}
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 401)
             SELECT {values} FROM n"
        );
        raw.run(&sql).await;
        let found = home.store().verify().await.unwrap().mismatches;
        let untold = found.iter().filter(|it| it.sentence == "no row of the audit log made it");
        assert_eq!(untold.count(), 401, "{table}: {found:#?}");
        let name = table.split(' ').next().unwrap();
        raw.run(&format!("DELETE FROM {name}")).await;
    }
}

crate::scratch::on_every_store! {
    every_page_of_a_part_is_checked,
    counters_are_compared_in_passes,
    mismatches_beyond_a_thousand_are_counted,
    an_audit_goes_on_where_another_store_left_it,
    what_moves_between_two_pages_is_no_mismatch,
    a_key_that_was_retried_thousands_of_times_is_read_in_pages,
    operations_of_each_page_have_their_own_transfers,
    rows_of_the_trail_follow_one_another_across_pages,
    every_page_of_what_administration_makes_is_checked,
}
