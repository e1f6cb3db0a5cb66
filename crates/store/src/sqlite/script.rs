//! The two scripts of a batch: what it reads, and what it writes. Statements only; judging is in
//! [`crate::judge`], and the order of things in [`super::batch`].
//!
//! A script is one round trip to the connection's thread. A statement that has nothing to do is left
//! out; binds are numbered across the whole script, so that they stay where they are. The constants
//! of a phase stand in the text, only what differs from row to row is bound.

use std::collections::HashMap;
use std::sync::Arc;

use super::connect::CLOCK;
use super::records::Cell::{Bytes, Fixed, Int, Text};
use super::records::{Cell, Records, Shape};

/// A statement on records: `{v}` is the query that reads them.
#[derive(Debug)]
pub(super) struct Statement {
    cells: &'static [Cell],
    sql: &'static str,
    /// Whether it changes one row for each record, or else must not be committed.
    counted: bool,
}

/// What the rows of the reading script begin with. The clock's comes first.
pub(super) const CLOCK_ROW: i64 = -1;
pub(super) const WALLET_ROW: i64 = 0;
pub(super) const OPERATION_ROW: i64 = 1;
pub(super) const COUNTER_ROW: i64 = 2;
pub(super) const POSTING_ROW: i64 = 3;
pub(super) const CHARGED_ROW: i64 = 4;
pub(super) const PRICE_ROW: i64 = 5;

/// What the reading script looks for.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    pub(super) wallets: Records,
    pub(super) operations: Records,
    pub(super) counters: Records,
    pub(super) postings: Records,
    pub(super) charged: Records,
    pub(super) prices: Records,
}

/// What the writing script writes.
#[derive(Debug, Default)]
pub(super) struct Writes {
    pub(super) prices: Records,
    pub(super) admissions: Records,
    pub(super) reopenings: Records,
    pub(super) endings: Records,
    pub(super) settlements: Records,
    pub(super) cancellations: Records,
    pub(super) results: Records,
    pub(super) settled_results: Records,
    pub(super) transfers: Records,
    pub(super) postings: Records,
    pub(super) counters: Records,
    pub(super) wallets: Records,
}

/// In the order of [`Wanted`].
const READS: [Statement; 6] = [
    Statement {
        cells: &[Fixed("id", 16)],
        sql: "WITH v AS ({v}) SELECT 0, w.id, w.available, w.held
              FROM v CROSS JOIN wallets AS w ON w.id = v.id",
        counted: false,
    },
    Statement {
        cells: &[Fixed("id", 16)],
        sql: "WITH v AS ({v}) SELECT 1, o.id, o.seq, o.version
              FROM v CROSS JOIN operations AS o ON o.id = v.id",
        counted: false,
    },
    Statement {
        cells: &[Fixed("api_key_id", 16), Int("counter"), Int("earliest"), Int("latest")],
        sql: "WITH v AS ({v}) SELECT 2, c.api_key_id, c.counter, c.window_start, c.used
              FROM v CROSS JOIN counters AS c ON c.api_key_id = v.api_key_id
              AND c.counter = v.counter AND c.window_start BETWEEN v.earliest AND v.latest",
        counted: false,
    },
    Statement {
        cells: &[Fixed("id", 16)],
        sql: "WITH v AS ({v}) SELECT 3, t.id FROM v CROSS JOIN postings AS t ON t.id = v.id",
        counted: false,
    },
    Statement {
        cells: &[Fixed("id", 16)],
        sql: "WITH v AS ({v}) SELECT 4, o.id, o.wallet_id, o.charge,
              (SELECT coalesce(sum(t.amount), 0) FROM postings AS t WHERE t.operation_id = o.id)
              FROM v CROSS JOIN operations AS o ON o.id = v.id AND o.phase = 'completed'",
        counted: false,
    },
    Statement {
        cells: &[Text("price_version")],
        sql: "WITH v AS ({v}) SELECT 5, p.price_version, p.currency, p.input, p.cached_input,
              p.cache_write, p.audio_input, p.output, p.reasoning, p.audio_output, p.request,
              p.image FROM v CROSS JOIN prices AS p ON p.price_version = v.price_version",
        counted: false,
    },
];

/// In the order of [`Writes`]. `$1` is the transaction's moment.
const WRITES: [Statement; 12] = [
    Statement {
        cells: &[
            Text("price_version"),
            Text("currency"),
            Int("input"),
            Int("cached_input"),
            Int("cache_write"),
            Int("audio_input"),
            Int("output"),
            Int("reasoning"),
            Int("audio_output"),
            Int("request"),
            Int("image"),
        ],
        sql: "INSERT INTO prices (price_version, currency, input, cached_input, cache_write,
              audio_input, output, reasoning, audio_output, request, image) {v}",
        counted: true,
    },
    Statement {
        cells: &[
            Int("seq"),
            Fixed("id", 16),
            Fixed("api_key_id", 16),
            Fixed("request_key", 16),
            Fixed("wallet_id", 16),
            Text("model"),
            Fixed("server_secret", 8),
            Int("fingerprint_version"),
            Int("contract"),
            Fixed("fingerprint", 32),
            Fixed("body_digest", 32),
            Text("price_version"),
            Int("hold"),
            Int("reserved_counters"),
            Int("reserved_tokens"),
            Fixed("claim", 16),
            Text("node"),
            Fixed("incarnation", 16),
            Int("deadline"),
        ],
        sql: "INSERT INTO operations (seq, id, api_key_id, request_key, wallet_id, model,
              server_secret, fingerprint_version, contract, fingerprint, body_digest, created_at,
              generation, price_version, hold, reserved_counters, reserved_tokens, claim, node,
              incarnation, admitted_at, deadline, phase, version, cancel_asked, attempts)
              SELECT seq, id, api_key_id, request_key, wallet_id, model, server_secret,
              fingerprint_version, contract, fingerprint, body_digest, $1, 1, price_version, hold,
              reserved_counters, reserved_tokens, claim, node, incarnation, $1, deadline,
              'leased', 1, 0, '[]' FROM ({v})",
        counted: true,
    },
    Statement {
        cells: &[
            Int("seq"),
            Int("expected"),
            Int("generation"),
            Text("price_version"),
            Int("hold"),
            Int("reserved_counters"),
            Int("reserved_tokens"),
            Fixed("claim", 16),
            Text("node"),
            Fixed("incarnation", 16),
            Int("deadline"),
        ],
        sql: "UPDATE operations AS o SET phase = 'leased', version = o.version + 1,
              generation = v.generation, price_version = v.price_version, hold = v.hold,
              reserved_counters = v.reserved_counters, reserved_tokens = v.reserved_tokens,
              claim = v.claim, node = v.node, incarnation = v.incarnation, admitted_at = $1,
              deadline = v.deadline, attempts = '[]'
              FROM ({v}) AS v WHERE o.seq = v.seq AND o.version = v.expected AND o.phase = 'open'",
        counted: true,
    },
    Statement {
        cells: &[
            Int("seq"),
            Int("expected"),
            Int("phase"),
            Int("input"),
            Int("cached_input"),
            Int("cache_write"),
            Int("audio_input"),
            Int("output"),
            Int("reasoning"),
            Int("audio_output"),
            Int("request"),
            Int("image"),
            Int("source"),
            Int("charge"),
            Int("shortfall"),
            Int("refusal"),
            Text("attempts"),
        ],
        sql: "UPDATE operations AS o SET version = o.version + 1, attempts = v.attempts,
              phase = CASE v.phase WHEN 0 THEN 'completed' WHEN 1 THEN 'recorded'
              WHEN 2 THEN 'open' WHEN 3 THEN 'refused' WHEN 4 THEN 'abandoned' END,
              finished_at = CASE v.phase WHEN 1 THEN NULL WHEN 2 THEN NULL ELSE $1 END,
              input = nullif(v.input, -1), cached_input = nullif(v.cached_input, -1),
              cache_write = nullif(v.cache_write, -1), audio_input = nullif(v.audio_input, -1),
              output = nullif(v.output, -1), reasoning = nullif(v.reasoning, -1),
              audio_output = nullif(v.audio_output, -1), request = nullif(v.request, -1),
              image = nullif(v.image, -1),
              meters_source = CASE v.source WHEN 0 THEN 'reported' WHEN 1 THEN 'estimated' END,
              charge = nullif(v.charge, -1), shortfall = nullif(v.shortfall, -1),
              refusal = CASE v.refusal WHEN 0 THEN 'request' WHEN 1 THEN 'context_length' END
              FROM ({v}) AS v
              WHERE o.seq = v.seq AND o.version = v.expected AND o.phase = 'leased'",
        counted: true,
    },
    Statement {
        cells: &[Int("seq"), Int("expected")],
        sql: "UPDATE operations AS o SET phase = 'completed', version = o.version + 1,
              finished_at = $1 FROM ({v}) AS v
              WHERE o.seq = v.seq AND o.version = v.expected AND o.phase = 'recorded'",
        counted: true,
    },
    Statement {
        cells: &[Int("seq"), Int("expected")],
        sql: "UPDATE operations AS o SET cancel_asked = 1, version = o.version + 1
              FROM ({v}) AS v
              WHERE o.seq = v.seq AND o.version = v.expected AND o.phase = 'leased'",
        counted: true,
    },
    Statement {
        cells: &[
            Int("op_seq"),
            Fixed("credential_id", 16),
            Int("format"),
            Fixed("nonce", 12),
            Bytes("sealed"),
            Int("ended"),
        ],
        sql: "INSERT INTO results (op_seq, credential_id, format, nonce, sealed, finished_at)
              SELECT op_seq, credential_id, format, nonce, sealed, iif(ended, $1, NULL)
              FROM ({v})",
        counted: true,
    },
    Statement {
        cells: &[Int("op_seq")],
        sql: "UPDATE results AS r SET finished_at = $1 FROM ({v}) AS v WHERE r.op_seq = v.op_seq",
        // A result that somebody took away does not keep the money held.
        counted: false,
    },
    Statement {
        cells: &[Int("op_seq"), Int("leg"), Int("amount")],
        sql: "INSERT INTO transfers (op_seq, leg, debit, credit, amount, created_at)
              SELECT op_seq, leg, iif(leg & 3, 'held', 'available'),
              CASE leg & 3 WHEN 0 THEN 'held' WHEN 1 THEN 'revenue' ELSE 'available' END,
              amount, $1 FROM ({v})",
        counted: true,
    },
    Statement {
        cells: &[
            Fixed("id", 16),
            Fixed("wallet_id", 16),
            Int("kind"),
            Fixed("operation_id", 16),
            Int("amount"),
            Text("reason"),
        ],
        sql: "INSERT INTO postings (id, wallet_id, kind, operation_id, amount, reason, created_at)
              SELECT id, wallet_id,
              CASE kind WHEN 0 THEN 'deposit' WHEN 1 THEN 'refund' ELSE 'adjustment' END,
              iif(kind = 1, operation_id, NULL), amount, iif(kind = 2, reason, NULL), $1
              FROM ({v})",
        counted: true,
    },
    Statement {
        cells: &[Fixed("api_key_id", 16), Int("counter"), Int("window_start"), Int("used")],
        sql: "INSERT INTO counters (api_key_id, counter, window_start, used)
              SELECT api_key_id, counter, window_start, used FROM ({v}) WHERE TRUE
              ON CONFLICT (api_key_id, counter, window_start)
              DO UPDATE SET used = excluded.used",
        counted: true,
    },
    Statement {
        cells: &[Fixed("id", 16), Int("available"), Int("held")],
        sql: "UPDATE wallets AS w SET available = w.available + v.available,
              held = w.held + v.held FROM ({v}) AS v WHERE w.id = v.id",
        counted: true,
    },
];

/// The texts of scripts by the statements that are in them, made once each.
#[derive(Debug, Default)]
pub(super) struct Scripts(HashMap<(bool, u16), Script>);

/// A text and the number of statements in it.
type Script = (Arc<str>, usize);

impl Scripts {
    /// Opens the transaction and reads. Binds begin at `$1`.
    pub(super) fn read(&mut self, wanted: &[bool]) -> Script {
        self.script(true, wanted, |at, statement, script| {
            let shape = Shape { first: 1 + 3 * at, cells: statement.cells };
            script.push_str(&statement.sql.replace("{v}", &shape.select()));
            script.push_str(";\n");
        })
    }

    /// Writes and commits. `$1` is the moment; the records' binds begin at `$2`.
    pub(super) fn write(&mut self, wanted: &[bool]) -> Script {
        self.script(false, wanted, |at, statement, script| {
            let shape = Shape { first: 2 + 3 * at, cells: statement.cells };
            script.push_str(&statement.sql.replace("{v}", &shape.select()));
            script.push_str(";\n");
            // Another number of rows than of records stops the script before it commits. SQLite has
            // no other way to raise an error outside of triggers: the least integer has no absolute
            // value. It yields no row.
            if statement.counted {
                script.push_str(&format!(
                    "SELECT 1 WHERE abs(iif(changes() = {}, 0, -9223372036854775808)) = 1;\n",
                    shape.count()
                ));
            }
        })
    }

    fn script(
        &mut self,
        reads: bool,
        wanted: &[bool],
        add: impl Fn(usize, &Statement, &mut String),
    ) -> Script {
        let bits = wanted.iter().rev().fold(0_u16, |bits, want| bits << 1 | u16::from(*want));
        let make = || {
            let statements: &[Statement] = if reads { &READS } else { &WRITES };
            let mut script = String::new();
            if reads {
                script.push_str(&format!(
                    "BEGIN IMMEDIATE;\nSELECT -1, {CLOCK},
                    (SELECT coalesce(max(seq), 0) FROM operations);\n"
                ));
            }
            for (at, (statement, _)) in
                statements.iter().zip(wanted).enumerate().filter(|(_, (_, wanted))| **wanted)
            {
                add(at, statement, &mut script);
            }
            if !reads {
                script.push_str("COMMIT");
            }
            let statements = script.matches(';').count() + usize::from(!reads);
            (script.into(), statements)
        };
        self.0.entry((reads, bits)).or_insert_with(make).clone()
    }
}

impl Wanted {
    pub(super) fn in_order(self) -> [Records; READS.len()] {
        let Self { wallets, operations, counters, postings, charged, prices } = self;
        [wallets, operations, counters, postings, charged, prices]
    }
}

impl Writes {
    pub(super) fn in_order(self) -> [Records; WRITES.len()] {
        [
            self.prices,
            self.admissions,
            self.reopenings,
            self.endings,
            self.settlements,
            self.cancellations,
            self.results,
            self.settled_results,
            self.transfers,
            self.postings,
            self.counters,
            self.wallets,
        ]
    }
}
