//! State after each step of a request: the rows by which kills and stops are judged.

/// The names of the steps at which a gateway can be stopped.
pub const STEPS: [&str; 9] = [
    "claim_offered",
    "claim_committed",
    "sending",
    "answered",
    "settlement_offered",
    "settlement_committed",
    "batch_begun",
    "batch_written",
    "batch_committed",
];

/// State that a caller finds after a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOutcome {
    /// The key was not bound: the retry runs.
    NotBound,
    /// Outcome unknown: no charge, and it never runs again.
    Unknown,
    /// It was settled: the retry gets the answer that was never sent.
    Settled,
}

/// One moment between two effects of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The step.
    pub step: &'static str,
    /// Number of the arrival at it.
    pub nth: u32,
    /// Runs of the model by then.
    pub runs: usize,
    /// State that is found after a kill there.
    pub found: RetryOutcome,
}

const fn row(step: &'static str, nth: u32, runs: usize, found: RetryOutcome) -> Row {
    Row { step, nth, runs, found }
}

/// A request from its claim to its answer.
pub const ROWS: [Row; 12] = [
    row("claim_offered", 1, 0, RetryOutcome::NotBound),
    row("batch_begun", 1, 0, RetryOutcome::NotBound),
    row("batch_written", 1, 0, RetryOutcome::NotBound),
    row("batch_committed", 1, 0, RetryOutcome::Unknown),
    row("claim_committed", 1, 0, RetryOutcome::Unknown),
    row("sending", 1, 0, RetryOutcome::Unknown),
    row("answered", 1, 1, RetryOutcome::Unknown),
    row("settlement_offered", 1, 1, RetryOutcome::Unknown),
    row("batch_begun", 2, 1, RetryOutcome::Unknown),
    row("batch_written", 2, 1, RetryOutcome::Unknown),
    row("batch_committed", 2, 1, RetryOutcome::Settled),
    row("settlement_committed", 1, 1, RetryOutcome::Settled),
];
