//! A book of many finished operations, made by SQL: as the gateway would have left it, but for the results, which
//! no page reads. It adds up: `holdfast ledger verify` finds nothing but operations without a result.
//!
//! A hundred wallets have ten API keys each, five models and two routes. The first wallet has every second operation,
//! and one operation of a hundred has a refund. Operations began at equal distances for thirty days, which end now.

/// Time from the first operation to the last one: thirty days.
const SPAN: i64 = 30 * 86_400_000_000;
/// First number of an operation.
const FIRST: i64 = 1_000;
/// Deposit of each wallet, in micros, and the hold of each operation.
const DEPOSIT: i64 = 1_000_000_000_000;
const HOLD: i64 = 5_000;

/// Somebody at the SQL prompt.
pub(crate) type Execute<'d> = &'d dyn Fn(&str);

/// The words in which the two databases differ.
pub(crate) struct Dialect {
    /// Sixteen bytes of a letter and a number.
    id: fn(&str, &str) -> String,
    /// A request key, which has to be a UUID of version 4: digits around the bits that say so.
    request_key: &'static str,
    /// Numbers from 0 to below a count, as `i`.
    series: fn(i64) -> String,
    zeros: fn(u32) -> String,
    now: &'static str,
    /// What follows: numbers that were written are taken, and the planner knows how many there are.
    settle: &'static [&'static str],
}

pub(crate) const FILE: Dialect = Dialect {
    id: |letter, number| format!("CAST(printf('{letter}%015d', {number}) AS BLOB)"),
    request_key: "CAST(printf('%06d@x', i / 10000000) || x'80' || printf('%07d', i % 10000000) AS BLOB)",
    series: |count| {
        format!(
            "(WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count})
             SELECT i FROM n) AS n"
        )
    },
    zeros: |length| format!("zeroblob({length})"),
    now: "unixepoch() * 1000000",
    settle: &[],
};

pub(crate) const SERVER: Dialect = Dialect {
    id: |letter, number| {
        format!("convert_to('{letter}' || lpad(({number})::text, 15, '0'), 'UTF8')")
    },
    request_key: "convert_to(lpad((i / 10000000)::text, 6, '0') || '@x', 'UTF8') || '\\x80'::bytea
        || convert_to(lpad((i % 10000000)::text, 7, '0'), 'UTF8')",
    series: |count| {
        format!("(SELECT CAST(i AS bigint) AS i FROM generate_series(0, {count} - 1) AS i) AS n")
    },
    zeros: |length| format!("decode(repeat('00', {length}), 'hex')"),
    now: "(extract(epoch FROM now()) * 1000000)::bigint",
    settle: &[
        "SELECT setval(pg_get_serial_sequence('operations', 'seq'), max(seq)) FROM operations",
        "SELECT setval(pg_get_serial_sequence('postings', 'seq'), max(seq)) FROM postings",
        "ANALYZE",
    ],
};

/// An id as pages write it.
pub(crate) fn id(letter: char, number: u32) -> String {
    let bytes: [u8; 16] = format!("{letter}{number:015}").into_bytes().try_into().unwrap();
    uuid::Uuid::from_bytes(bytes).to_string()
}

/// Fills an empty database that has one price with so many operations.
pub(crate) fn fill(dialect: &Dialect, count: i64, execute: Execute<'_>) {
    accounts(dialect, execute);
    operations(dialect, count, execute);
    money(dialect, count, execute);
    for sql in dialect.settle {
        execute(sql);
    }
}

fn accounts(dialect: &Dialect, execute: Execute<'_>) {
    let (wallets, keys) = ((dialect.series)(100), (dialect.series)(1_000));
    let (wallet, of_key) = ((dialect.id)("w", "i"), (dialect.id)("w", "i / 10"));
    let (key, deposit) = ((dialect.id)("k", "i"), (dialect.id)("d", "i"));
    execute(&format!(
        "INSERT INTO wallets (id, name, currency, available, held, created_at)
         SELECT {wallet}, 'wallet-' || i, 'USD', 0, 0, 1 FROM {wallets}"
    ));
    execute(&format!(
        "INSERT INTO postings (seq, id, wallet_id, kind, amount, created_at)
         SELECT i + 1, {deposit}, {wallet}, 'deposit', {DEPOSIT}, 1 FROM {wallets}"
    ));
    execute(&format!(
        "INSERT INTO api_keys (id, wallet_id, name, balance, created_at)
         SELECT {key}, {of_key}, 'key-' || i, 'shown', 1 FROM {keys}"
    ));
}

fn operations(dialect: &Dialect, count: i64, execute: Execute<'_>) {
    let owner = "(CASE i % 2 WHEN 0 THEN 0 ELSE (i / 2) % 99 + 1 END)";
    let key = format!("({owner} * 10 + (i / 7) % 10)");
    let (id, wallet) = ((dialect.id)("o", "i"), (dialect.id)("w", owner));
    let (key, all) = ((dialect.id)("k", &key), (dialect.series)(count));
    let (now, request_key) = (dialect.now, dialect.request_key);
    let step = SPAN / count;
    let created = format!("{now} - (CAST({count} AS bigint) - i) * {step} - 3000000");
    let [eight, sixteen, digest] = [8, 16, 32].map(dialect.zeros);
    execute(&format!(
        "INSERT INTO operations (seq, id, api_key_id, request_key, wallet_id, model, server_secret,
         fingerprint_version, contract, fingerprint, body_digest, created_at, generation,
         price_version, hold, reserved_counters, reserved_tokens, claim, node, incarnation,
         admitted_at, deadline, phase, version, cancel_asked, attempts, input, cached_input,
         cache_write, audio_input, output, reasoning, audio_output, request, image, meters_source,
         charge, shortfall, finished_at, provider_cost)
         SELECT i + {FIRST}, {id}, {key}, {request_key}, {wallet}, 'acme/model-' || (i % 5),
         {eight}, 1, 1, {digest}, {digest}, {created}, 1,
         (SELECT min(price_version) FROM prices), {HOLD}, 0, 0, {id},
         'node', {sixteen}, {created}, {created}, 'completed', 2, 0,
         '[[\"route-' || (i % 2) || '\",\"ok\",1500000,false]]', 100 + i % 900, 0, 0, 0, 50 + i % 70,
         0, 0, 1, 0, 'reported', i % 4000, 0, {created} + 2000000,
         CASE i % 3 WHEN 0 THEN NULL ELSE i % 3000 END FROM {all}"
    ));
}

/// Holds, charges and what was left of the holds, refunds, and what the wallets have after all of it.
fn money(dialect: &Dialect, count: i64, execute: Execute<'_>) {
    for (leg, amount, at, those) in [
        ("8", "hold", "admitted_at", "hold > 0"),
        ("9", "charge", "finished_at", "charge > 0"),
        ("10", "hold - charge", "finished_at", "hold > charge"),
    ] {
        execute(&format!(
            "INSERT INTO transfers (op_seq, leg, amount, created_at)
             SELECT seq, {leg}, {amount}, {at} FROM operations WHERE {those}"
        ));
    }
    let (refund, refunds) = ((dialect.id)("r", "i"), (dialect.series)(count / 100));
    execute(&format!(
        "INSERT INTO postings (seq, id, wallet_id, kind, operation_id, amount, created_at)
         SELECT i + 101, {refund}, o.wallet_id, 'refund', o.id, 1, o.finished_at + 1
         FROM {refunds} JOIN operations AS o ON o.seq = i * 100 + 7 + {FIRST}"
    ));
    execute(
        "UPDATE wallets SET available =
         (SELECT sum(amount) FROM postings WHERE wallet_id = wallets.id)
         - (SELECT sum(charge) FROM operations WHERE wallet_id = wallets.id)",
    );
}
