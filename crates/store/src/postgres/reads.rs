//! The statements by which a batch locks its wallets and reads what its changes touch. Statements
//! only; what becomes of the rows is in [`super::begin`], judging is in [`crate::judge`].
//!
//! A row that is named is compared by `= ANY`, see [`super::statements`].

use super::arrays::{Columns, Rows};
use super::session::CLOCK;
use super::statements::present;

/// Locks the wallets of a batch, always in the same order. The lock of a wallet covers its
/// operations and the counters of its API keys: whoever changes those has it.
pub(super) const LOCK: &str =
    "SELECT 5::bigint, id, available, held FROM wallets WHERE id = ANY($1)
    ORDER BY id FOR NO KEY UPDATE";

/// Statement that finds which of these wallets somebody else has locked. It waits for none.
pub(super) const HELD: &str = "WITH free AS MATERIALIZED (
        SELECT id FROM wallets WHERE id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED
    )
    SELECT w.id FROM wallets AS w
    WHERE w.id = ANY($1) AND NOT EXISTS (SELECT FROM free WHERE free.id = w.id)";

/// Codes of the kinds of rows: first cell of each row of [`read`] and [`LOCK`].
pub(super) const CLOCK_ROW: i64 = 0;
pub(super) const OPERATION_ROW: i64 = 1;
pub(super) const COUNTER_ROW: i64 = 2;
pub(super) const POSTING_ROW: i64 = 3;
pub(super) const CHARGED_ROW: i64 = 4;
pub(super) const WALLET_ROW: i64 = 5;

/// Fails in a transaction that has failed, and does nothing.
pub(super) const STANDS: &str = "SELECT WHERE false";

/// Price versions by their names.
pub(super) const PRICES: &str = "SELECT price_version, currency, input, cached_input,
    cache_write, audio_input, output, reasoning, audio_output, request, image, tiers
    FROM prices WHERE price_version = ANY($1)";

/// Reads of a batch beside its wallets and prices.
pub(super) struct BatchReads {
    /// Operations that are new, if they pass: as many numbers are asked for.
    pub(super) numbers: i64,
    pub(super) operations: Rows,
    pub(super) counters: Rows,
    pub(super) postings: Rows,
    pub(super) charged: Rows,
}

const ID: Columns = Columns { fixed: &[("id", 16)], ..Columns::NONE };
const WINDOW: Columns = Columns {
    ints: &["counter", "earliest", "latest"],
    fixed: &[("api_key_id", 16)],
    ..Columns::NONE
};

/// In the order of [`BatchReads`]; a row is a tag, two ids and three integers, and beside the clock
/// the numbers. Each cell is of the type that the clock's row has: otherwise all rows were passed
/// through a step of their own.
const READS: [(Columns, &str); 4] = [
    (
        ID,
        "SELECT 1::bigint, o.id::bytea, o.claim::bytea, o.seq, o.version, 0::bigint, NULL::bigint[]
         FROM operations AS o
         WHERE o.id = ANY(ARRAY(SELECT id FROM {v}))",
    ),
    (
        WINDOW,
        "SELECT 2::bigint, c.api_key_id::bytea, NULL::bytea, c.counter::bigint, c.window_start,
         c.used::bigint, NULL::bigint[] FROM {v}
         JOIN counters AS c ON c.api_key_id = ANY(ARRAY[v.api_key_id]) AND c.counter = v.counter
         AND c.window_start BETWEEN v.earliest AND v.latest",
    ),
    (
        ID,
        "SELECT 3::bigint, t.id::bytea, NULL::bytea, 0::bigint, 0::bigint, 0::bigint, NULL::bigint[]
         FROM postings AS t
         WHERE t.id = ANY(ARRAY(SELECT id FROM {v}))",
    ),
    (
        ID,
        "SELECT 4::bigint, o.id::bytea, o.wallet_id, o.charge::bigint,
         (SELECT CAST(coalesce(sum(t.amount), 0) AS bigint) FROM postings AS t
          WHERE t.operation_id = o.id), 0::bigint, NULL::bigint[]
         FROM operations AS o
         WHERE o.id = ANY(ARRAY(SELECT id FROM {v})) AND o.phase = 'completed'",
    ),
];

/// All parts of [`READS`].
pub(super) const READ_ALL: u16 = (1 << READS.len()) - 1;

/// Prepares whatever [`BatchReads::ask`] executes. The server plans it when it is used first.
pub(super) fn prepare_reads() -> String {
    // Every combination at once, in one round trip of connecting: planning waits for the first use.
    (0..=READ_ALL)
        .map(|parts| format!("PREPARE holdfast_read_{parts} AS {};\n", read(parts)))
        .collect()
}

/// Reads these parts of [`READS`], and the clock first, with new numbers. `$1` is how many of them
/// are asked for.
pub(super) fn read(parts: u16) -> String {
    let mut text = format!(
        "SELECT 0::bigint AS row, NULL::bytea AS id, NULL::bytea AS other, {CLOCK} AS a,
         0::bigint AS b, 0::bigint AS c,
         (SELECT array_agg(nextval('operations_seq'))
          FROM generate_series(1, $1::bigint)) AS numbers"
    );
    let mut bind = 2;
    for (at, (columns, sql)) in READS.iter().enumerate() {
        if parts >> at & 1 == 1 {
            // One statement for all reads: they share one moment, and one answer.
            text.push_str("\nUNION ALL ");
            // Binds are counted through all parts; `$1` is the number of new operations.
            text.push_str(&sql.replace("{v}", &columns.table(bind)));
            bind += columns.count();
        }
    }
    text
}

impl BatchReads {
    /// Empty reads, with room for so many changes.
    pub(super) fn with_room(expected: usize) -> Self {
        let [operations, counters, postings, charged] =
            std::array::from_fn(|_part| Rows::with_room(expected));
        Self { numbers: 0, operations, counters, postings, charged }
    }

    /// True where rows are read beside the clock.
    pub(super) const fn has_rows(&self) -> bool {
        !(self.operations.is_empty()
            && self.counters.is_empty()
            && self.postings.is_empty()
            && self.charged.is_empty())
    }

    /// Adds the statement that reads this, which must have been prepared.
    pub(super) fn ask(&self, text: &mut String) {
        let parts = [&self.operations, &self.counters, &self.postings, &self.charged];
        debug_assert!(READS.iter().zip(parts).all(|((columns, _), rows)| rows.are_of(columns)));
        let present = present(parts);
        for part in ["EXECUTE holdfast_read_", &present.to_string(), "(", &self.numbers.to_string()]
        {
            text.push_str(part);
        }
        for rows in parts.into_iter().filter(|rows| !rows.is_empty()) {
            rows.write_literals(text);
        }
        text.push(')');
    }
}
