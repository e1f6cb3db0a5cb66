//! Reports over 10^6 operations, half of them one customer's: seconds and the size of the sums, on a
//! file and on a server. It takes minutes and is run by hand:
//!
//! ```text
//! cargo nextest run -p holdfast-store --run-ignored only --no-capture usage_scale
//! ```
//!
//! The rows are made by SQL, an operation every 2.6 s for thirty days.

use std::io::Write;
use std::time::{Duration, Instant};

use holdfast_domain::listing::Period;
use holdfast_domain::report::{GroupBy, Grouping, Reports as _, UsageFilter, UsageQuery};
use holdfast_domain::{Timestamp, WalletId};
use holdfast_store::Store;
use holdfast_store::usage::SummingProgress;

use holdfast_testkit::sample;

use crate::raw::Raw;
use crate::scratch::Home;

pub(crate) const OPERATIONS: i64 = 1_000_000;
pub(crate) const DAY: i64 = 86_400_000_000;
/// 2026-10-01.
pub(crate) const BEGIN: i64 = 20_727 * DAY;
const SPAN: i64 = 30 * DAY;

/// Longest time of a report for one customer.
const CUSTOMER: Duration = Duration::from_millis(300);

pub(crate) fn say(text: &str) {
    writeln!(std::io::stderr().lock(), "{text}").unwrap();
}

/// Sixteen bytes: a letter and a number.
fn id(raw: &Raw, letter: &str, number: &str) -> String {
    match raw {
        Raw::File(_) => format!("CAST(printf('{letter}%015d', {number}) AS BLOB)"),
        Raw::Server(_) => {
            format!("convert_to('{letter}' || lpad(({number})::text, 15, '0'), 'UTF8')")
        }
    }
}

/// A request key, which has to be a UUID of version 4: digits around the bits that say so.
fn request_key(raw: &Raw) -> &'static str {
    match raw {
        Raw::File(_) => {
            "CAST(printf('%06d@x', i / 10000000) || x'80' || printf('%07d', i % 10000000) AS BLOB)"
        }
        Raw::Server(_) => {
            "convert_to(lpad((i / 10000000)::text, 6, '0') || '@x', 'UTF8') || '\\x80'::bytea
                || convert_to(lpad((i % 10000000)::text, 7, '0'), 'UTF8')"
        }
    }
}

/// Numbers from 0 to below `count`, as `i`.
fn series(raw: &Raw, count: i64) -> String {
    match raw {
        Raw::File(_) => format!(
            "(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count})
             SELECT i FROM n) AS n"
        ),
        Raw::Server(_) => {
            format!(
                "(SELECT CAST(i AS bigint) AS i FROM generate_series(0, {count} - 1) AS i) AS n"
            )
        }
    }
}

/// A hundred wallets with ten API keys each, five models, two routes; the first wallet has every second
/// operation, and one of a hundred has a refund.
pub(crate) async fn fill(raw: &mut Raw, count: i64) {
    let owner = "(CASE i % 2 WHEN 0 THEN 0 ELSE (i / 2) % 99 + 1 END)";
    let key = format!("({owner} * 10 + (i / 7) % 10)");
    let (wallets, keys) = (series(raw, 100), series(raw, 1_000));
    let (wallet, of_key, key_id) = (id(raw, "w", "i"), id(raw, "w", "i / 10"), id(raw, "k", "i"));
    raw.run(&format!(
        "INSERT INTO wallets (id, name, currency, available, held, created_at)
         SELECT {wallet}, 'wallet-' || i, 'USD', 0, 0, 0 FROM {wallets}"
    ))
    .await;
    raw.run(&format!(
        "INSERT INTO api_keys (id, wallet_id, name, balance, created_at)
         SELECT {key_id}, {of_key}, 'key-' || i, 'shown', 0 FROM {keys}"
    ))
    .await;
    let (operation, wallet, key) = (id(raw, "o", "i"), id(raw, "w", owner), id(raw, "k", &key));
    let (all, request_key) = (series(raw, count), request_key(raw));
    let price = sample::price().id;
    let created = format!("{BEGIN} + i * {}", SPAN / count);
    raw.run(&format!(
        "INSERT INTO operations (seq, id, api_key_id, request_key, wallet_id, model, server_secret,
         fingerprint_version, contract, fingerprint, body_digest, created_at, generation,
         price_version, hold, reserved_counters, reserved_tokens, claim, node, incarnation,
         admitted_at, deadline, phase, version, cancel_asked, attempts, input, cached_input,
         cache_write, audio_input, output, reasoning, audio_output, request, image, meters_source,
         charge, shortfall, finished_at, provider_cost)
         SELECT i + 1, {operation}, {key}, {request_key}, {wallet}, 'acme/model-' || (i % 5),
         zeroblob(8), 1, 1, zeroblob(32), zeroblob(32), {created}, 1, '{price}', 5000, 0, 0, {operation},
         'node', zeroblob(16), {created}, {created}, 'completed', 2, 0,
         '[[\"route-' || (i % 2) || '\",\"ok\",1500000,false]]', 100 + i % 900, 0, 0, 0, 50 + i % 70,
         0, 0, 1, 0, 'reported', i % 4000, 0, {created} + 2000000,
         CASE i % 3 WHEN 0 THEN NULL ELSE i % 3000 END FROM {all}"
    ))
    .await;
    let (refund, refunded) = (id(raw, "r", "i"), id(raw, "o", "i * 100 + 7"));
    let some = series(raw, count / 100);
    raw.run(&format!(
        "INSERT INTO postings (id, wallet_id, kind, operation_id, amount, created_at)
         SELECT {refund}, o.wallet_id, 'refund', o.id, 1, {BEGIN} + i
         FROM {some} JOIN operations AS o ON o.id = {refunded}"
    ))
    .await;
    if let Raw::Server(_) = raw {
        // The numbers that were written here are taken.
        raw.run(
            "SELECT setval(pg_get_serial_sequence('operations', 'seq'), max(seq)) FROM operations",
        )
        .await;
        raw.run("ANALYZE").await;
    }
}

/// The one in the middle of five.
async fn time(store: &Store, name: &str, query: &UsageQuery) -> Duration {
    let mut times = Vec::new();
    let mut rows = 0;
    for _ in 0..5 {
        let begun = Instant::now();
        rows = store.usage(query.clone()).await.unwrap().len();
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    say(&format!("  {name}: {rows} rows, {:?} to {:?}", times[0], times[4]));
    times[2]
}

/// Operations of one wallet.
fn customer(number: u128) -> UsageFilter {
    let text = format!("w{number:015}");
    let bytes: [u8; 16] = text.as_bytes().try_into().unwrap();
    UsageFilter { wallet: Some(WalletId::from_bytes(bytes)), ..UsageFilter::default() }
}

/// The report by each two keys for the large customer, all thirty days of it.
async fn every_pair(store: &Store) -> Duration {
    say(" large customer, by each pair");
    let mut slowest = Duration::ZERO;
    for (at, first) in GroupBy::ALL.into_iter().enumerate() {
        for second in GroupBy::ALL.into_iter().skip(at + 1) {
            let by = Grouping::by_both(first, second).unwrap();
            let query = UsageQuery { filter: customer(0), ..UsageQuery::all(by) };
            let name = format!("{first:?} and {second:?}");
            slowest = slowest.max(time(store, &name, &query).await);
        }
    }
    slowest
}

async fn reports(store: &Store, stage: &str) -> Duration {
    say(&format!(" {stage}"));
    let week = Period {
        from: Some(Timestamp::from_micros(BEGIN + 7 * DAY)),
        to: Some(Timestamp::from_micros(BEGIN + 14 * DAY)),
    };
    let pair = |a, b| Grouping::by_both(a, b).unwrap();
    let by_day = pair(GroupBy::Day, GroupBy::Model);
    let query =
        |by, number, period| UsageQuery { by, filter: customer(number), period, rows_max: None };
    let mut slowest = Duration::ZERO;
    for (name, query) in [
        ("large customer, day and model", query(by_day, 0, Period::default())),
        ("large customer, hour and key", query(pair(GroupBy::Hour, GroupBy::ApiKey), 0, week)),
        ("small customer, month", query(Grouping::by(GroupBy::Month), 5, Period::default())),
    ] {
        slowest = slowest.max(time(store, name, &query).await);
    }
    let routes = pair(GroupBy::Route, GroupBy::Model);
    for (name, by) in [("everybody, day and model", by_day), ("everybody, route and model", routes)]
    {
        time(store, name, &UsageQuery::all(by)).await;
    }
    slowest
}

async fn a_report_of_a_customer_is_read_at_once(home: &impl Home) {
    let mut raw = home.raw().await;
    let begun = Instant::now();
    fill(&mut raw, OPERATIONS).await;
    say(&format!("{OPERATIONS} operations made in {:?}", begun.elapsed()));
    let store = home.store();
    reports(store, "nothing is summed").await;
    let (begun, mut steps, mut longest) = (Instant::now(), 0_u32, Duration::ZERO);
    loop {
        let step = Instant::now();
        if store.sum_usage().await.unwrap() == SummingProgress::Done {
            break;
        }
        longest = longest.max(step.elapsed());
        steps += 1;
    }
    let rows = raw.number("SELECT count(*) FROM usage_hours").await;
    say(&format!(
        " summed in {steps} steps, {:?}, the longest {longest:?}: {rows} rows",
        begun.elapsed()
    ));
    let slowest = reports(store, "all is summed").await.max(every_pair(store).await);
    assert!(slowest <= CUSTOMER, "{slowest:?} for one customer");
    let begun = Instant::now();
    let found = store.verify().await.unwrap();
    let usage = found.mismatches.iter().filter(|it| it.sentence.starts_with("its usage")).count();
    say(&format!(" verified in {:?}", begun.elapsed()));
    assert_eq!(usage, 0);
}

#[tokio::test]
#[ignore = "takes minutes; its figures are in tests/bench/notes"]
async fn on_a_file() {
    a_report_of_a_customer_is_read_at_once(&crate::scratch::Scratch::open().await).await;
}

#[tokio::test]
#[ignore = "takes minutes; its figures are in tests/bench/notes"]
async fn postgres_on_a_server() {
    a_report_of_a_customer_is_read_at_once(&crate::server::Server::open().await).await;
}
