//! Seeds of counters: a limit that is set counts what the key has used in its window, not since the edit.
//!
//! Each counter takes two statements, under the lock of the key's wallet, which every change of an operation of
//! that key takes as well: the rows that run get the counter's bit, so that their endings correct it, and the
//! counter is set to the sum over all rows of the window. A version moves with its bit: an ending that
//! was judged by the row before meets another version, and is judged again.
//!
//! Rows are summed by the window of their last admission, as counters are. Not by `usage_hours`, whose
//! hours are those of endings.

use holdfast_domain::limits::Counter;
use holdfast_domain::{ApiKeyId, Timestamp};
use sea_orm::Statement;

use crate::dialect::{Dialect, blob};
use crate::rows::{self, COUNTED_TOKENS};

/// Condition: T3 gave back what `o` reserved. 128 is
/// [`Reservation::GIVEN_BACK`](holdfast_domain::limits::Reservation::GIVEN_BACK).
const IS_GIVEN_BACK: &str = "o.phase = 'open' OR (o.reserved_counters & 128) <> 0";

/// The statements that seed a counter in its window of this moment.
pub(super) fn statements(
    dialect: Dialect,
    api_key: ApiKeyId,
    counter: Counter,
    now: Timestamp,
) -> [Statement; 2] {
    let (start, end) = (counter.window(now), counter.window_end(now));
    let window = match end {
        Some(end) => {
            let [start, end] = [start, end].map(Timestamp::as_micros);
            format!("o.admitted_at >= {start} AND o.admitted_at < {end}")
        }
        None => "TRUE".to_owned(),
    };
    let code = rows::counter_code(counter);
    // Only those of the window: the counters of earlier ones stay as they are.
    // Those that run are few, whatever the key has: SQLite takes the index of the key without the sign.
    let by_running = match dialect {
        Dialect::Sqlite => "+",
        Dialect::Postgres => "",
    };
    let reserve = format!(
        "UPDATE operations AS o SET reserved_counters = o.reserved_counters | (1 << {code}),
         version = o.version + 1
         WHERE {by_running}o.api_key_id = $1 AND {} AND (o.reserved_counters & (1 << {code})) = 0 AND {window}",
        dialect.is_running("o")
    );
    let amount = amount(counter);
    // Halves of 32 bits: neither of their sums passes 64, and what passes them together is more than any bound.
    let count = format!(
        "INSERT INTO counters (api_key_id, counter, window_start, used)
         SELECT $1, {code}, $2, CASE WHEN s.high + (s.low >> 32) > 2147483647
            THEN 9223372036854775807
            ELSE ((s.high + (s.low >> 32)) << 32) + (s.low & 4294967295) END
         FROM (SELECT CAST(coalesce(sum(v.amount >> 32), 0) AS bigint) AS high,
            CAST(coalesce(sum(v.amount & 4294967295), 0) AS bigint) AS low
            FROM (SELECT CAST({amount} AS bigint) AS amount FROM operations AS o
                WHERE o.api_key_id = $1 AND {window}) AS v) AS s
         WHERE TRUE
         ON CONFLICT (api_key_id, counter, window_start) DO UPDATE SET used = excluded.used"
    );
    let key = blob(api_key.to_bytes());
    [
        dialect.statement(&reserve, [key.clone()]),
        dialect.statement(&count, [key, start.as_micros().into()]),
    ]
}

/// Amount that the operation `o` leaves in a counter.
fn amount(counter: Counter) -> String {
    match counter {
        Counter::Requests => {
            format!("CASE WHEN o.generation = 1 AND ({IS_GIVEN_BACK}) THEN 0 ELSE 1 END")
        }
        Counter::Tokens => format!(
            "CASE WHEN o.phase = 'completed' THEN {COUNTED_TOKENS} WHEN {IS_GIVEN_BACK} THEN 0 ELSE o.reserved_tokens END"
        ),
        Counter::Concurrency => {
            "CASE WHEN o.phase IN ('leased', 'recorded') THEN 1 ELSE 0 END".into()
        }
        Counter::SpendTotal | Counter::SpendDay | Counter::SpendMonth => {
            "CASE o.phase WHEN 'completed' THEN o.charge WHEN 'leased' THEN o.hold
             WHEN 'recorded' THEN o.hold ELSE 0 END"
                .into()
        }
    }
}
