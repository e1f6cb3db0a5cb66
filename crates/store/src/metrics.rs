//! The store's metrics: their names, and the places that count them. Their meanings are in the process's catalogue
//! of all metrics.

use std::sync::LazyLock;
use std::time::Duration;

use holdfast_domain::operation::Receipt;
use holdfast_domain::ports::CommitError;
use metrics::{Counter, Histogram, counter, histogram};

const BATCH_SIZE: &str = "holdfast_commit_batch_size";
const BATCH_SECONDS: &str = "holdfast_commit_batch_seconds";
const WAIT_SECONDS: &str = "holdfast_commit_wait_seconds";
const STATEMENTS: &str = "holdfast_commit_statements_total";
const ROWS: &str = "holdfast_commit_rows_total";
const COSTS_EXCLUDED: &str = "holdfast_usage_costs_excluded_total";
const COMMITS: &str = "holdfast_commits_total";

/// Labels of the verdict of a change that was offered.
const VERDICTS: [&str; 10] = [
    "committed",
    "conflict",
    "insufficient_funds",
    "limits_edited",
    "limit_reached",
    "collision",
    "too_large",
    "overloaded",
    "unavailable",
    "uncertain",
];

/// Shows every verdict from the start, once the recorder is installed: one that begins with its first
/// event shows no growth to who watches it.
pub(crate) fn begin() {
    counter!(COSTS_EXCLUDED).increment(0);
    for verdict in VERDICTS {
        counter!(COMMITS, "verdict" => verdict).increment(0);
    }
}

/// Costs were left out of the sums of usage.
pub(crate) fn costs_excluded(operations: usize) {
    counter!(COSTS_EXCLUDED).increment(u64::try_from(operations).unwrap_or(u64::MAX));
}

/// Metrics that every commit moves, looked up once.
struct CommitMetrics {
    batch_size: Histogram,
    batch_seconds: Histogram,
    wait_seconds: Histogram,
    statements: Counter,
    rows: Counter,
    committed: Counter,
}

// At the first commit, not before: a handle that was made without a recorder counts nowhere for ever.
static USUAL: LazyLock<CommitMetrics> = LazyLock::new(|| CommitMetrics {
    batch_size: histogram!(BATCH_SIZE),
    batch_seconds: histogram!(BATCH_SECONDS),
    wait_seconds: histogram!(WAIT_SECONDS),
    statements: counter!(STATEMENTS),
    rows: counter!(ROWS),
    committed: counter!(COMMITS, "verdict" => "committed"),
});

/// A batch goes to the database: its oldest change has waited for it since it was offered.
pub(crate) fn waited(oldest: Option<Duration>) {
    if let Some(oldest) = oldest {
        USUAL.wait_seconds.record(oldest);
    }
}

pub(crate) fn batch(changes: usize, took: Duration) {
    USUAL.batch_size.record(f64::from(u32::try_from(changes).unwrap_or(u32::MAX)));
    USUAL.batch_seconds.record(took.as_secs_f64());
}

/// A transaction was run to its end: so many statements, which wrote so many rows.
pub(crate) fn transaction(statements: u64, rows: u64) {
    USUAL.statements.increment(statements);
    USUAL.rows.increment(rows);
}

pub(crate) fn committed(verdict: &Result<Receipt, CommitError>) {
    let label = match verdict {
        Ok(_) => return USUAL.committed.increment(1),
        Err(CommitError::Conflict) => "conflict",
        Err(CommitError::InsufficientFunds | CommitError::FundsHeld { .. }) => "insufficient_funds",
        Err(CommitError::LimitsEdited) => "limits_edited",
        Err(CommitError::LimitReached(_)) => "limit_reached",
        Err(CommitError::Collision) => "collision",
        Err(CommitError::TooLarge) => "too_large",
        Err(CommitError::Overloaded) => "overloaded",
        Err(CommitError::Unavailable(_)) => "unavailable",
        Err(CommitError::Uncertain(_)) => "uncertain",
    };
    // Looked up each time: these are rare, and the usual one has returned above.
    counter!(COMMITS, "verdict" => label).increment(1);
}
