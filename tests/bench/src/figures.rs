//! Figures of one target in one round, and the middle of several rounds.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::latencies::Latencies;
use crate::listen::StreamFigures;
use crate::numbers::{each, median};

/// Result of a load, as the load saw it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadResult {
    pub(crate) micros: u64,
    pub(crate) answers: BTreeMap<u16, Latencies>,
    /// Figures of streams, where streams were asked for.
    pub(crate) flow: StreamFigures,
}

impl LoadResult {
    pub(crate) fn read(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let answers = value.get("answers")?.as_object()?;
        let answer = |(status, value): (&String, &Value)| {
            Some((status.parse().ok()?, Latencies::read(value)?))
        };
        Some(Self {
            micros: value.get("micros")?.as_u64()?,
            answers: answers.iter().map(answer).collect::<Option<_>>()?,
            flow: value.get("flow").and_then(StreamFigures::read).unwrap_or_default(),
        })
    }

    pub(crate) fn of(&self, status: u16) -> Latencies {
        self.answers.get(&status).copied().unwrap_or_default()
    }

    /// Answers of any other status, and those that never came.
    pub(crate) fn failures(&self, status: u16) -> u64 {
        let others = self.answers.iter().filter(|(other, _)| **other != status);
        others.map(|(_, latencies)| latencies.count).sum()
    }
}

/// Figures of a round. A figure that nobody counts is 0.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Figures {
    /// Answered with 200, a second.
    pub(crate) rate: u64,
    pub(crate) latencies: Latencies,
    /// Answered otherwise, or not at all.
    pub(crate) others: u64,
    /// The target's CPU time a request, in nanoseconds.
    pub(crate) cpu_nanos: u64,
    /// Bytes that the target made the kernel write, a request.
    pub(crate) written: u64,
    /// A thousand requests: transactions, statements, rows.
    pub(crate) transactions: u64,
    pub(crate) statements: u64,
    pub(crate) rows: u64,
    /// Changes of a thousand transactions.
    pub(crate) batch: u64,
    pub(crate) resident_kib: u64,
    /// CPU time of the database server a request, in nanoseconds.
    pub(crate) server_nanos: u64,
    /// Bytes that the server wrote to its log, a request.
    pub(crate) logged: u64,
    /// Waits of the server for its disk, a thousand requests.
    pub(crate) syncs: u64,
    /// Figures of streams.
    pub(crate) flow: StreamFigures,
    /// Chunks with text, a second.
    pub(crate) chunk_rate: u64,
    /// The target's CPU time for a chunk, in nanoseconds.
    pub(crate) chunk_nanos: u64,
    /// Bytes by which the target has grown for each connection since its start, at its largest.
    pub(crate) grown: u64,
    /// Cores that were busy with something else, in thousandths.
    pub(crate) disturbance: u64,
}

impl Figures {
    /// The middle of each figure by itself.
    pub(crate) fn middle(rounds: &[Self]) -> Self {
        let of = |figure: fn(&Self) -> u64| median(rounds.iter().map(figure).collect());
        let latencies = |all: fn(&Self) -> Latencies| {
            let all: Vec<_> = rounds.iter().map(all).collect();
            let of = |one: fn(&Latencies) -> u64| median(all.iter().map(one).collect());
            Latencies {
                count: of(|it| it.count),
                p50: of(|it| it.p50),
                p99: of(|it| it.p99),
                max: all.iter().map(|it| it.max).max().unwrap_or(0),
            }
        };
        Self {
            rate: of(|it| it.rate),
            latencies: latencies(|it| it.latencies),
            others: of(|it| it.others),
            cpu_nanos: of(|it| it.cpu_nanos),
            written: of(|it| it.written),
            transactions: of(|it| it.transactions),
            statements: of(|it| it.statements),
            rows: of(|it| it.rows),
            batch: of(|it| it.batch),
            resident_kib: of(|it| it.resident_kib),
            server_nanos: of(|it| it.server_nanos),
            logged: of(|it| it.logged),
            syncs: of(|it| it.syncs),
            flow: StreamFigures {
                first: latencies(|it| it.flow.first),
                delay: latencies(|it| it.flow.delay),
                stall: rounds.iter().map(|it| it.flow.stall).max().unwrap_or(0),
            },
            chunk_rate: of(|it| it.chunk_rate),
            chunk_nanos: of(|it| it.chunk_nanos),
            grown: of(|it| it.grown),
            disturbance: rounds.iter().map(|it| it.disturbance).max().unwrap_or(0),
        }
    }

    pub(crate) fn of(seen: &LoadResult) -> Self {
        let latencies = seen.of(200);
        let a_second = |count: u64| each(count.saturating_mul(1_000_000), seen.micros);
        Self {
            rate: a_second(latencies.count),
            latencies,
            others: seen.failures(200),
            flow: seen.flow,
            chunk_rate: a_second(seen.flow.delay.count),
            ..Self::default()
        }
    }

    pub(crate) fn to_json(self) -> Value {
        json!({
            "requests_per_second": self.rate,
            "latency_us": self.latencies.to_json(),
            "other_answers": self.others,
            "cpu_ns_per_request": self.cpu_nanos,
            "bytes_written_per_request": self.written,
            "transactions_per_1000_requests": self.transactions,
            "statements_per_1000_requests": self.statements,
            "rows_per_1000_requests": self.rows,
            "changes_per_1000_transactions": self.batch,
            "resident_kib": self.resident_kib,
            "server_cpu_ns_per_request": self.server_nanos,
            "server_bytes_logged_per_request": self.logged,
            "server_syncs_per_1000_requests": self.syncs,
            "streams_us": self.flow.to_json(),
            "chunks_per_second": self.chunk_rate,
            "cpu_ns_per_chunk": self.chunk_nanos,
            "bytes_grown_per_connection": self.grown,
            "disturbance_per_1000_cores": self.disturbance,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_200_is_counted_apart() {
        let line = r#"{"micros": 2000000, "answers": {
            "0": {"count": 1, "p50": 9, "p99": 9, "max": 9},
            "200": {"count": 8, "p50": 5, "p99": 7, "max": 8},
            "503": {"count": 3, "p50": 1, "p99": 1, "max": 1}}}"#;
        let figures = Figures::of(&LoadResult::read(line).unwrap());
        assert_eq!((figures.rate, figures.latencies.p99, figures.others), (4, 7, 4));
    }
}
