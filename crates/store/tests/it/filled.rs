//! More operations than a page may read, made by SQL within seconds. No audit finds them in order: what is made is
//! only what lists look at.

use holdfast_testkit::sample;

use crate::raw::Raw;

const DAY: i64 = 86_400_000_000;
/// 2026-10-01.
const BEGIN: i64 = 20_727 * DAY;
const SPAN: i64 = 30 * DAY;

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
