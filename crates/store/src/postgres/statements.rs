//! The statement by which a batch writes all its rows. Statements only; judging is in [`crate::batch::judge`], and
//! the order of steps in [`super::batch`].
//!
//! All rows are written in one statement, whose parts see the rows as they were before it and do not see each
//! other. A part without rows is left out. The constants of a phase are in the text, only values that differ from
//! row to row are sent.
//!
//! Rows are found by `= ANY(ARRAY[…])`, not by `=`: for a small table the planner may otherwise scan an index for each
//! given row, and keeps that plan as the table grows. An operation's row is found by its number and compared by its
//! claim: the number may come from a row that is remembered.

use std::collections::HashMap;
use std::sync::Arc;

use super::arrays::{Columns, Rows};

/// Rows of the writing statement, part by part; the order of its fields is the order of `WRITES`.
pub(super) struct Writes {
    pub(super) prices: Rows,
    pub(super) admissions: Rows,
    pub(super) reopenings: Rows,
    pub(super) endings: Rows,
    pub(super) settlements: Rows,
    pub(super) cancellations: Rows,
    pub(super) cancelled: Rows,
    pub(super) begun: Rows,
    pub(super) resumed: Rows,
    pub(super) ended: Rows,
    pub(super) results: Rows,
    pub(super) settled_results: Rows,
    pub(super) transfers: Rows,
    pub(super) counters: Rows,
    pub(super) wallets: Rows,
    pub(super) events: Rows,
}

/// A part of the writing statement: `{v}` are its rows.
struct WritePart {
    columns: Columns,
    sql: &'static str,
    hits: RowCheck,
}

/// Rule for the number of rows that a part changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowCheck {
    /// Exactly one row for each given, or the statement fails: such a part adds them.
    All,
    /// Exactly one row for each given, or else the batch must not be committed: the server counts, the batch
    /// compares.
    Counted,
    /// The rows that are there, as many as there are.
    Found,
}

const NUMBER: Columns = Columns { ints: &["op_seq"], ..Columns::NONE };
const EXPECTED: Columns =
    Columns { ints: &["seq", "expected"], fixed: &[("judged", 16)], ..Columns::NONE };

/// Largest number of parts of the writing statement, one for each field of `Writes`.
pub(super) const PARTS: usize = 16;

/// In the order of [`Writes`]. `$1` is the transaction's moment.
const WRITES: [WritePart; PARTS] = [
    WritePart {
        columns: Columns {
            ints: &[
                "input",
                "cached_input",
                "cache_write",
                "audio_input",
                "output",
                "reasoning",
                "audio_output",
                "request",
                "image",
            ],
            texts: &["price_version", "currency", "tiers"],
            ..Columns::NONE
        },
        sql: "INSERT INTO prices (price_version, currency, input, cached_input, cache_write,
              audio_input, output, reasoning, audio_output, request, image, tiers)
              SELECT price_version, currency, input, cached_input, cache_write, audio_input, output,
              reasoning, audio_output, request, image, tiers FROM {v}",
        hits: RowCheck::All,
    },
    WritePart {
        columns: Columns {
            ints: &[
                "seq",
                "fingerprint_version",
                "contract",
                "hold",
                "reserved_counters",
                "reserved_tokens",
                "deadline",
            ],
            fixed: &[
                ("id", 16),
                ("api_key_id", 16),
                ("request_key", 16),
                ("wallet_id", 16),
                ("server_secret", 8),
                ("fingerprint", 32),
                ("body_digest", 32),
                ("claim", 16),
                ("incarnation", 16),
            ],
            names: &["model", "model_alias", "price_version", "node"],
            ..Columns::NONE
        },
        sql: "INSERT INTO operations (seq, id, api_key_id, request_key, wallet_id, model,
              server_secret, fingerprint_version, contract, fingerprint, body_digest, created_at,
              generation, price_version, hold, reserved_counters, reserved_tokens, claim, node,
              incarnation, admitted_at, deadline, phase, version, cancel_asked, attempts, model_alias)
              SELECT seq, id, api_key_id, request_key, wallet_id, model, server_secret,
              fingerprint_version, contract, fingerprint, body_digest, $1, 1, price_version, hold,
              reserved_counters, reserved_tokens, claim, node, incarnation, $1, deadline,
              'leased', 1, 0, '[]', model_alias FROM {v}",
        hits: RowCheck::All,
    },
    WritePart {
        columns: Columns {
            ints: &[
                "seq",
                "expected",
                "generation",
                "hold",
                "reserved_counters",
                "reserved_tokens",
                "deadline",
            ],
            fixed: &[("judged", 16), ("claim", 16), ("incarnation", 16)],
            names: &["price_version", "node"],
            ..Columns::NONE
        },
        sql: "UPDATE operations AS o SET phase = 'leased', version = o.version + 1,
              generation = v.generation, price_version = v.price_version, hold = v.hold,
              released = coalesce(o.released, 0) + o.hold,
              reserved_counters = v.reserved_counters, reserved_tokens = v.reserved_tokens,
              claim = v.claim, node = v.node, incarnation = v.incarnation, admitted_at = $1,
              deadline = v.deadline, attempts = '[]'
              FROM {v} WHERE o.seq = ANY(ARRAY[v.seq]) AND o.claim = v.judged
              AND o.version = v.expected AND o.phase = 'open'",
        hits: RowCheck::Counted,
    },
    WritePart {
        columns: Columns {
            ints: &[
                "seq",
                "expected",
                "is_finished",
                "input",
                "cached_input",
                "cache_write",
                "audio_input",
                "output",
                "reasoning",
                "audio_output",
                "request",
                "image",
                "charge",
                "shortfall",
                "provider_cost",
                "usage_reasons",
            ],
            fixed: &[("judged", 16)],
            names: &["phase", "meters_source", "refusal"],
            texts: &["attempts"],
            ..Columns::NONE
        },
        sql: "UPDATE operations AS o SET version = o.version + 1, attempts = v.attempts,
              phase = v.phase, finished_at = CASE v.is_finished WHEN 1 THEN $1 END,
              input = v.input, cached_input = v.cached_input, cache_write = v.cache_write,
              audio_input = v.audio_input, output = v.output, reasoning = v.reasoning,
              audio_output = v.audio_output, request = v.request, image = v.image,
              meters_source = v.meters_source, charge = v.charge, shortfall = v.shortfall,
              provider_cost = v.provider_cost, usage_reasons = v.usage_reasons,
              refusal = v.refusal
              FROM {v} WHERE o.seq = ANY(ARRAY[v.seq]) AND o.claim = v.judged
              AND o.version = v.expected AND o.phase = 'leased'",
        hits: RowCheck::Counted,
    },
    WritePart {
        columns: EXPECTED,
        sql: "UPDATE operations AS o SET phase = 'completed', version = o.version + 1,
              finished_at = $1 FROM {v}
              WHERE o.seq = ANY(ARRAY[v.seq]) AND o.claim = v.judged
              AND o.version = v.expected AND o.phase = 'recorded'",
        hits: RowCheck::Counted,
    },
    WritePart {
        columns: EXPECTED,
        sql: "UPDATE operations AS o SET cancel_asked = 1, version = o.version + 1 FROM {v}
              WHERE o.seq = ANY(ARRAY[v.seq]) AND o.claim = v.judged
              AND o.version = v.expected AND o.phase = 'leased'",
        hits: RowCheck::Counted,
    },
    WritePart {
        columns: EXPECTED,
        // 128 is Reservation::CANCELLED_OPEN.
        sql: "UPDATE operations AS o SET phase = 'abandoned', version = o.version + 1,
              finished_at = $1, reserved_counters = o.reserved_counters | 128 FROM {v}
              WHERE o.seq = ANY(ARRAY[v.seq]) AND o.claim = v.judged
              AND o.version = v.expected AND o.phase = 'open'",
        hits: RowCheck::Counted,
    },
    WritePart {
        columns: NUMBER,
        // These numbers are new: with `ON CONFLICT` each would be looked for first.
        sql: "INSERT INTO running (op_seq) SELECT op_seq FROM {v}",
        hits: RowCheck::All,
    },
    WritePart {
        columns: NUMBER,
        sql: "INSERT INTO running (op_seq) SELECT op_seq FROM {v} ON CONFLICT DO NOTHING",
        // It may be listed already: `running` only makes it findable, its own row decides whether it may run.
        hits: RowCheck::Found,
    },
    WritePart {
        columns: NUMBER,
        sql: "DELETE FROM running WHERE op_seq = ANY(ARRAY(SELECT op_seq FROM {v}))",
        // A row that is missing here must not keep an ending from being committed.
        hits: RowCheck::Found,
    },
    WritePart {
        columns: Columns {
            ints: &["op_seq", "format", "is_finished"],
            fixed: &[("credential_id", 16), ("nonce", 12)],
            blobs: &["sealed"],
            ..Columns::NONE
        },
        sql: "INSERT INTO results (op_seq, credential_id, format, nonce, sealed, finished_at)
              SELECT op_seq, credential_id, format, nonce, sealed,
              CASE is_finished WHEN 1 THEN $1 END FROM {v}",
        hits: RowCheck::All,
    },
    WritePart {
        columns: NUMBER,
        sql: "UPDATE results AS r SET finished_at = $1 FROM {v}
              WHERE r.op_seq = ANY(ARRAY[v.op_seq])",
        // A result that was deleted by hand does not keep the money held.
        hits: RowCheck::Found,
    },
    WritePart {
        columns: Columns { ints: &["op_seq", "leg", "amount"], ..Columns::NONE },
        // Numbered by the table, in the order of the rows.
        sql: "INSERT INTO transfers (op_seq, leg, amount, created_at)
              SELECT op_seq, leg, amount, $1 FROM {v}",
        hits: RowCheck::All,
    },
    WritePart {
        columns: Columns {
            ints: &["counter", "window_start", "used"],
            fixed: &[("api_key_id", 16)],
            ..Columns::NONE
        },
        sql: "INSERT INTO counters (api_key_id, counter, window_start, used)
              SELECT api_key_id, counter, window_start, used FROM {v}
              ON CONFLICT (api_key_id, counter, window_start)
              DO UPDATE SET used = excluded.used",
        hits: RowCheck::All,
    },
    WritePart {
        columns: Columns { ints: &["available", "held"], fixed: &[("id", 16)], ..Columns::NONE },
        sql: "UPDATE wallets AS w SET available = w.available + v.available,
              held = w.held + v.held FROM {v} WHERE w.id = ANY(ARRAY[v.id])",
        hits: RowCheck::Counted,
    },
    WritePart {
        columns: Columns {
            fixed: &[("id", 16), ("wallet_id", 16)],
            names: &["kind"],
            texts: &["data"],
            ..Columns::NONE
        },
        // A batch does not read the currency: it is appended here as the last member, so `data` comes without its
        // closing brace.
        sql: "INSERT INTO events (id, kind, wallet_id, created_at, data)
              SELECT v.id, v.kind, w.id, $1, v.data || ',\"currency\":\"' || w.currency || '\"}'
              FROM {v} JOIN wallets AS w ON w.id = ANY(ARRAY[v.wallet_id])
              ON CONFLICT (id) DO NOTHING",
        // An existing one was sent. No money waits for an event.
        hits: RowCheck::Found,
    },
];

/// Texts of writing statements by the parts that are in them, each made once.
#[derive(Debug, Default)]
pub(super) struct StatementTexts(HashMap<u32, Arc<str>>);

impl StatementTexts {
    /// Writes; the one row that comes back has the number of rows that the parts with [`RowCheck::Counted`] have
    /// changed. `$1` is the moment.
    pub(super) fn write(&mut self, writes: &[Rows; PARTS]) -> Arc<str> {
        debug_assert!(WRITES.iter().zip(writes).all(|(write, rows)| rows.are_of(&write.columns)));
        let make = || {
            let mut bind = 2;
            let (mut parts, mut counts) = (Vec::new(), vec!["0::bigint".to_owned()]);
            for (at, (write, rows)) in WRITES.iter().zip(writes).enumerate() {
                // Left out: each combination of parts is a text, and a prepared statement, of its
                // own.
                if rows.is_empty() {
                    continue;
                }
                let sql = write.sql.replace("{v}", &write.columns.table(bind));
                // Each part sees the rows as they were, so the counts do not depend on the order of
                // parts.
                if write.hits == RowCheck::Counted {
                    parts.push(format!("w{at} AS ({sql} RETURNING 1)"));
                    counts.push(format!("(SELECT count(*) FROM w{at})"));
                } else {
                    parts.push(format!("w{at} AS ({sql})"));
                }
                bind += write.columns.count();
            }
            format!("WITH {}\nSELECT {}", parts.join(",\n"), counts.join(" + ")).into()
        };
        Arc::clone(self.0.entry(present(writes)).or_insert_with(make))
    }
}

/// A bit for each part that has rows, the first one's is the lowest.
pub(super) fn present<'r>(
    rows: impl IntoIterator<Item = &'r Rows, IntoIter: DoubleEndedIterator>,
) -> u32 {
    rows.into_iter().rev().fold(0, |bits, rows| bits << 1 | u32::from(!rows.is_empty()))
}

/// Numbers of rows that the writing statement has to change.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExpectedCounts {
    /// Rows of the parts that the server counts.
    pub(super) counted: i64,
    /// Rows of the parts that change all or fail.
    pub(super) added: i64,
}

pub(super) fn expected_counts(writes: &[Rows; PARTS]) -> ExpectedCounts {
    let of = |hits| {
        let parts = WRITES.iter().zip(writes).filter(|(write, _)| write.hits == hits);
        parts.map(|(_, rows)| i64::try_from(rows.count()).unwrap_or(i64::MAX)).sum()
    };
    ExpectedCounts { counted: of(RowCheck::Counted), added: of(RowCheck::All) }
}

impl Writes {
    /// Empty rows, with room for so many changes.
    pub(super) fn with_room(expected: usize) -> Self {
        let rows = || Rows::with_room(expected);
        Self {
            prices: rows(),
            admissions: rows(),
            reopenings: rows(),
            endings: rows(),
            settlements: rows(),
            cancellations: rows(),
            cancelled: rows(),
            begun: rows(),
            resumed: rows(),
            ended: rows(),
            results: rows(),
            settled_results: rows(),
            transfers: rows(),
            counters: rows(),
            wallets: rows(),
            events: rows(),
        }
    }

    pub(super) fn in_order(self) -> [Rows; PARTS] {
        [
            self.prices,
            self.admissions,
            self.reopenings,
            self.endings,
            self.settlements,
            self.cancellations,
            self.cancelled,
            self.begun,
            self.resumed,
            self.ended,
            self.results,
            self.settled_results,
            self.transfers,
            self.counters,
            self.wallets,
            self.events,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_counted_adds_all_of_its_rows_or_may_miss_some() {
        for WritePart { sql, hits, .. } in &WRITES {
            let added = sql.starts_with("INSERT INTO ") && !sql.contains("NOTHING");
            let every_row =
                sql.ends_with("FROM {v}") || sql.ends_with("DO UPDATE SET used = excluded.used");
            let of_money = ["operations", "transfers", "wallets", "postings", "counters"];
            let of_money = of_money.iter().any(|table| {
                sql.starts_with(&format!("INSERT INTO {table} "))
                    || sql.starts_with(&format!("UPDATE {table} "))
            });
            let fits = match hits {
                RowCheck::All => added && every_row,
                RowCheck::Counted => sql.starts_with("UPDATE "),
                RowCheck::Found => !of_money,
            };
            assert!(fits, "{hits:?}: {sql}");
        }
    }
}
