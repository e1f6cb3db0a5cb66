//! The statements by which a batch locks its wallets and reads the rows that its changes touch. Statements only;
//! the rows are used in [`super::begin`], judging is in [`crate::batch::judge`].
//!
//! Each has one text, however much is read, so that the driver prepares it once in a connection and the server
//! plans it once. A row that is named is compared by `= ANY`, see [`super::statements`].
//!
//! Only the lock is a text with its ids in it: it goes with BEGIN, and the driver sends values with one statement
//! only. Only ids of wallets may be written so.

use std::collections::BTreeSet;

use holdfast_domain::WalletId;

/// Statement that locks these wallets, always in the same order. The lock of a wallet covers its operations and the
/// counters of its API keys: every writer of those has it.
pub(super) fn lock(wallets: &BTreeSet<WalletId>) -> String {
    // Quoted by dollars a backslash is one, whatever the server's settings are; the array takes one
    // of two.
    let id = |id: &WalletId| format!(r"\\x{:032x}", u128::from_be_bytes(id.to_bytes()));
    let ids = wallets.iter().map(id).collect::<Vec<_>>().join(",");
    format!(
        "SELECT id, available, held, low_balance, limits_revision FROM wallets WHERE id = ANY($${{{ids}}}$$::bytea[]) \
         ORDER BY id FOR NO KEY UPDATE"
    )
}

/// Statement that finds which of these wallets another session has locked. It waits for none.
pub(super) const HELD: &str = "WITH free AS MATERIALIZED (
        SELECT id FROM wallets WHERE id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT w.id FROM wallets AS w
    WHERE w.id = ANY($1) AND NOT EXISTS (SELECT FROM free WHERE free.id = w.id)";

/// Codes of the kinds of rows: first cell of each row of [`OPERATIONS`] and [`COUNTERS`].
pub(super) const NUMBERS_ROW: i64 = 0;
pub(super) const OPERATION_ROW: i64 = 1;
pub(super) const COUNTER_ROW: i64 = 2;

/// Numbers for `$1` new operations, and the operations of the ids in `$2`. Each cell is of the type
/// that the first row has: otherwise all rows were passed through a step of their own.
pub(super) const OPERATIONS: &str = "SELECT 0::bigint, NULL::bytea, NULL::bytea, 0::bigint,
    0::bigint, 0::bigint, ARRAY(SELECT nextval('operations_seq') FROM generate_series(1, $1))
    UNION ALL
    SELECT 1::bigint, o.id::bytea, o.claim::bytea, o.seq, o.version::bigint, 0::bigint,
    NULL::bigint[] FROM operations AS o WHERE o.id = ANY($2)";

/// Addition to [`OPERATIONS`], of the counters of the API keys in `$3`: one statement, because a claim with limits
/// needs both and each would be a round trip. Left out if no API key has limits, so that a fault of this table
/// affects only callers with limits.
pub(super) const COUNTERS: &str = "UNION ALL
    SELECT 2::bigint, c.api_key_id::bytea, NULL::bytea, c.counter::bigint, c.window_start,
    c.used::bigint, NULL::bigint[]
    FROM UNNEST($3::bytea[], $4::bigint[], $5::bigint[]) AS v (api_key_id, counter, window_start)
    JOIN counters AS c ON c.api_key_id = ANY(ARRAY[v.api_key_id]) AND c.counter = v.counter
    AND c.window_start = v.window_start";

/// Sums of what recorded operations of these wallets hold. `OFFSET 0` keeps the planner to what runs: the operations
/// that a wallet ever had are many, and the writer waits for this.
pub(super) const RECORDED_HOLDS: &str = "SELECT o.wallet_id, CAST(sum(o.hold) AS bigint)
    FROM running AS r CROSS JOIN LATERAL
    (SELECT wallet_id, hold, phase FROM operations WHERE seq = r.op_seq OFFSET 0) AS o
    WHERE o.phase = 'recorded' AND o.wallet_id = ANY($1) GROUP BY o.wallet_id";

/// Price versions by their names.
pub(super) const PRICES: &str = "SELECT price_version, currency, input, cached_input,
    cache_write, audio_input, output, reasoning, audio_output, request, image, tiers
    FROM prices WHERE price_version = ANY($1)";
