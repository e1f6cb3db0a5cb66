//! Seeds of counters: a limit that is set counts what the key has used in its window, not since the edit.
//!
//! ```text
//! no lock    rows that have ended, a chunk at a time: their sums; which rows had not ended, and the last row
//! lock       the counter's bit in the rows that run; counter := sums + rows that had not ended + later rows
//! ```
//!
//! The lock is that of the key's wallet, which every change of an operation of that key takes as well. A row that
//! has ended never changes, and the number of a new one is drawn under the lock: it is above those of all rows of
//! the key that were committed before. So the lock is held for the rows that can have changed, however many rows
//! there are.
//!
//! A version moves with its bit: an ending that was judged by the row before meets another version, and is
//! judged again.
//!
//! Rows are summed by the window of their last admission, as counters are. Not by `usage_hours`, whose
//! hours are those of endings.

use std::collections::BTreeMap;

use holdfast_domain::limits::{Counter, Unit};
use holdfast_domain::{ApiKeyId, Timestamp};
use sea_orm::Statement;

use crate::rows::{self, BadRow, COUNTED_TOKENS, Cells};
use crate::schema::{Dialect, blob};

/// Condition: T3 gave back what `o` reserved. 128 is
/// [`Reservation::CANCELLED_OPEN`](holdfast_domain::limits::Reservation::CANCELLED_OPEN).
const IS_RETURNED: &str = "o.phase = 'open' OR (o.reserved_counters & 128) <> 0";

/// Rows of a chunk.
const CHUNK: usize = 20_000;

/// Sums over the rows of a key that have ended, by counter and window.
#[derive(Debug, Clone)]
pub(crate) struct EndedSums {
    api_key: ApiKeyId,
    sums: BTreeMap<(Counter, Timestamp), i128>,
    /// Number of the last row that was read.
    until: i64,
    /// Numbers of the rows up to it that had not ended, with commas between.
    not_ended: String,
}

impl EndedSums {
    /// No row was read yet. Sums are for the windows of this moment and for those after them, which may begin
    /// before the lock is taken.
    pub(crate) fn new(api_key: ApiKeyId, counters: &[Counter], now: Timestamp) -> Self {
        let windows = |counter: &Counter| {
            let (counter, start) = (*counter, counter.window(now));
            let next = counter.window_end(now);
            std::iter::once(start).chain(next).map(move |start| ((counter, start), 0))
        };
        let sums = counters.iter().flat_map(windows).collect();
        Self { api_key, sums, until: i64::MIN, not_ended: String::new() }
    }

    /// The statement that reads the next chunk: one row.
    pub(crate) fn chunk(&self, dialect: Dialect) -> Statement {
        let list = match dialect {
            Dialect::Sqlite => "group_concat",
            Dialect::Postgres => "string_agg",
        };
        let has_ended = "o.phase IN ('completed', 'refused', 'abandoned')";
        let sum = |(counter, start): &(Counter, Timestamp)| {
            let (window, amount) = (in_window(*counter, *start), amount(*counter));
            let amount = format!(
                "CAST(CASE WHEN {has_ended} AND {window} THEN {amount} ELSE 0 END AS bigint)"
            );
            format!(
                ", CAST(coalesce(sum({amount} >> 32), 0) AS bigint),
                 CAST(coalesce(sum({amount} & 4294967295), 0) AS bigint)"
            )
        };
        let sums: String = self.sums.keys().map(sum).collect();
        let sql = format!(
            "SELECT count(*), CAST(max(o.seq) AS bigint),
             {list}(CASE WHEN NOT {has_ended} THEN CAST(o.seq AS text) END, ','){sums}
             FROM (SELECT * FROM operations AS r WHERE r.api_key_id = $1 AND r.seq > $2
                ORDER BY r.seq LIMIT {CHUNK}) AS o"
        );
        dialect.statement(&sql, [blob(self.api_key.to_bytes()), self.until.into()])
    }

    /// Adds the row of a chunk; true if it was the last chunk.
    pub(crate) fn add(&mut self, cells: &mut Cells<'_>) -> Result<bool, BadRow> {
        let count: usize = cells.small()?;
        self.until = cells.opt_int()?.unwrap_or(self.until);
        if let Some(not_ended) = cells.opt_text()? {
            if !self.not_ended.is_empty() {
                self.not_ended.push(',');
            }
            self.not_ended.push_str(&not_ended);
        }
        for sum in self.sums.values_mut() {
            *sum = sum.saturating_add(cells.wide()?);
        }
        Ok(count < CHUNK)
    }

    /// The statements that seed a counter in its window of this moment; none if these sums are of other
    /// windows or counters.
    pub(super) fn seed(
        &self,
        dialect: Dialect,
        api_key: ApiKeyId,
        counter: Counter,
        now: Timestamp,
    ) -> Option<[Statement; 2]> {
        let start = counter.window(now);
        let sum = self.sums.get(&(counter, start)).filter(|_sum| self.api_key == api_key)?;
        let [high, low] = [sum >> 32, sum & 0xffff_ffff].map(|half| i64::try_from(half).ok());
        let key = blob(api_key.to_bytes());
        let binds = [
            key.clone(),
            start.as_micros().into(),
            self.until.into(),
            self.not_ended.clone().into(),
            high?.into(),
            low?.into(),
        ];
        Some([
            dialect.statement(&reserve(dialect, counter, start), [key]),
            dialect.statement(&count(dialect, counter, start), binds),
        ])
    }
}

/// Statement that sets the counter's bit in the rows that run.
fn reserve(dialect: Dialect, counter: Counter, start: Timestamp) -> String {
    let code = rows::counter_code(counter);
    // Only those of the window: the counters of earlier ones stay as they are. Running operations are few, however
    // many the key has: SQLite takes the index of the key without the sign.
    let by_running = match dialect {
        Dialect::Sqlite => "+",
        Dialect::Postgres => "",
    };
    format!(
        "UPDATE operations AS o SET reserved_counters = o.reserved_counters | (1 << {code}),
         version = o.version + 1
         WHERE {by_running}o.api_key_id = $1 AND {} AND (o.reserved_counters & (1 << {code})) = 0
         AND {}",
        dialect.is_running("o"),
        in_window(counter, start)
    )
}

/// Statement that sets the counter.
fn count(dialect: Dialect, counter: Counter, start: Timestamp) -> String {
    let (code, amount, window) =
        (rows::counter_code(counter), amount(counter), in_window(counter, start));
    let not_ended = match dialect {
        Dialect::Sqlite => "o.seq IN (SELECT j.value FROM json_each('[' || $4 || ']') AS j)",
        Dialect::Postgres => "o.seq = ANY(string_to_array($4, ',')::bigint[])",
    };
    // Halves of 32 bits: neither of their sums passes 64, and what passes them together is more than any bound.
    format!(
        "INSERT INTO counters (api_key_id, counter, window_start, used)
         SELECT $1, {code}, $2, CASE WHEN s.high + (s.low >> 32) > 2147483647
            THEN 9223372036854775807
            ELSE ((s.high + (s.low >> 32)) << 32) + (s.low & 4294967295) END
         FROM (SELECT CAST(coalesce(sum(v.amount >> 32), 0) + CAST($5 AS bigint) AS bigint) AS high,
            CAST(coalesce(sum(v.amount & 4294967295), 0) + CAST($6 AS bigint) AS bigint) AS low
            FROM (SELECT CAST({amount} AS bigint) AS amount FROM operations AS o
                WHERE o.api_key_id = $1 AND o.seq > $3 AND {window}
                UNION ALL SELECT CAST({amount} AS bigint) AS amount FROM operations AS o
                WHERE {not_ended} AND {window}) AS v) AS s
         WHERE TRUE
         ON CONFLICT (api_key_id, counter, window_start) DO UPDATE SET used = excluded.used"
    )
}

/// Condition: the operation `o` was admitted in the counter's window that starts then.
fn in_window(counter: Counter, start: Timestamp) -> String {
    match counter.window_end(start) {
        Some(end) => {
            let [start, end] = [start, end].map(Timestamp::as_micros);
            format!("o.admitted_at >= {start} AND o.admitted_at < {end}")
        }
        None => "TRUE".to_owned(),
    }
}

/// Amount that the operation `o` leaves in a counter.
fn amount(counter: Counter) -> String {
    match counter.unit() {
        Unit::Requests => {
            format!("CASE WHEN o.generation = 1 AND ({IS_RETURNED}) THEN 0 ELSE 1 END")
        }
        Unit::Tokens => format!(
            "CASE WHEN o.phase = 'completed' THEN {COUNTED_TOKENS} WHEN {IS_RETURNED} THEN 0 ELSE o.reserved_tokens END"
        ),
        Unit::Running => "CASE WHEN o.phase IN ('leased', 'recorded') THEN 1 ELSE 0 END".into(),
        Unit::Micros => "CASE o.phase WHEN 'completed' THEN o.charge WHEN 'leased' THEN o.hold
             WHEN 'recorded' THEN o.hold ELSE 0 END"
            .into(),
    }
}
