//! Recorder of a run: its trace with the digest, the steps that it reached, and the invariants that it broke.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::step::Step;

/// Most violations that one run keeps: the first ones are the ones to read.
const VIOLATIONS_MAX: usize = 20;

/// Rule of `operation.md`, by its name there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// At most one run of a key, unless a run is proven not to have happened.
    I1,
    /// At most one usage record and one settlement; the charge is at most the hold.
    I2,
    /// The hold is active in the phases leased and recorded only.
    I3,
    /// The hold is captured in the phase completed only.
    I4,
    /// Balances are never negative, held is the sum of active holds, and money is conserved.
    I5,
    /// All final answers of a key are the same.
    I6,
    /// A charge has a run.
    I7,
    /// The generation never decreases; the fingerprint never changes.
    I8,
    /// A usage record exists in the phases recorded and completed only.
    I9,
    /// Each operation comes to rest.
    L1,
    /// A terminal phase never changes.
    Terminal,
    /// The charge of an answer is the charge of its row, and the price of what its run reported.
    Charge,
    /// An answer is of the contract: of its own request, and no bug.
    Answer,
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Violation of an invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Rule that is broken.
    pub invariant: Invariant,
    /// Simulated time since the start of the run.
    pub at: Duration,
    /// Contradiction, in a sentence.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} broken at {:.3} s: {}", self.invariant, self.at.as_secs_f64(), self.text)
    }
}

/// Committed change of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TracedChange {
    /// Transition that it was.
    pub step: Step,
    /// True if it was made under the claim of the row's owner.
    pub is_owners: bool,
    /// Name of the phase after it.
    pub phase: &'static str,
    /// Version after it.
    pub version: u64,
    /// Generation after it.
    pub generation: u64,
}

/// Counts of steps.
pub type StepCounts = BTreeMap<Step, u64>;

/// Recorder of a run.
#[derive(Debug)]
pub struct Recorder {
    started: Instant,
    state: Mutex<RecorderState>,
}

#[derive(Debug, Default)]
struct RecorderState {
    digest: blake3::Hasher,
    lines: u64,
    /// Millisecond of the lines that are not in the digest yet, and those lines.
    moment: u128,
    open: Vec<String>,
    /// Trace as text, if it is to be printed.
    kept: Option<Vec<String>>,
    steps: StepCounts,
    changes: BTreeMap<String, Vec<TracedChange>>,
    violations: Vec<Violation>,
}

/// Content of a recorder at the end of its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recording {
    /// Digest of the trace.
    pub digest: String,
    /// Lines of the trace.
    pub lines: u64,
    /// Trace as text; empty unless it was kept.
    pub trace: Vec<String>,
    /// Steps that were reached.
    pub steps: StepCounts,
    /// Changes of each operation in their order.
    pub changes: BTreeMap<String, Vec<TracedChange>>,
    /// Violations in their order, the first of them.
    pub violations: Vec<Violation>,
    /// Simulated time of the run.
    pub simulated: Duration,
}

impl RecorderState {
    /// Takes the lines of a millisecond into the digest, sorted: a watch channel of tokio wakes its receivers in an
    /// order of chance, and no later line depends on it.
    fn close_moment(&mut self) {
        let mut lines = std::mem::take(&mut self.open);
        lines.sort_unstable();
        for line in lines {
            self.digest.update(line.as_bytes()).update(b"\n");
            self.lines += 1;
            self.kept.iter_mut().for_each(|kept| kept.push(line.clone()));
        }
    }
}

impl Recorder {
    /// Empty recorder, at the present moment of the simulated clock.
    #[must_use]
    pub fn start(keeps_trace: bool) -> Self {
        let state = RecorderState { kept: keeps_trace.then(Vec::new), ..RecorderState::default() };
        Self { started: Instant::now(), state: Mutex::new(state) }
    }

    /// Simulated time since the start.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The same in whole milliseconds.
    #[must_use]
    pub fn millis(&self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Adds a line to the trace: names of ours and outcomes, never a random id.
    pub fn note(&self, line: fmt::Arguments<'_>) {
        let moment = self.elapsed().as_millis();
        let mut state = self.state();
        if state.moment != moment {
            state.close_moment();
            state.moment = moment;
        }
        state.open.push(format!("{moment:>10} {line}"));
    }

    /// Counts a step.
    pub fn reach(&self, step: Step) {
        *self.state().steps.entry(step).or_default() += 1;
    }

    /// Records a committed change of an operation.
    pub fn change(&self, operation: &str, change: TracedChange) {
        self.state().changes.entry(operation.to_owned()).or_default().push(change);
    }

    /// Records a violation.
    pub fn violate(&self, invariant: Invariant, text: String) {
        self.note(format_args!("VIOLATION of {invariant}: {text}"));
        let at = self.elapsed();
        let mut state = self.state();
        if state.violations.len() < VIOLATIONS_MAX {
            state.violations.push(Violation { invariant, at, text });
        }
    }

    /// Ends the recording.
    #[must_use]
    pub fn finish(&self) -> Recording {
        let simulated = self.elapsed();
        let mut state = self.state();
        state.close_moment();
        Recording {
            digest: state.digest.finalize().to_hex().as_str().chars().take(32).collect(),
            lines: state.lines,
            trace: state.kept.clone().into_iter().flatten().collect(),
            steps: state.steps.clone(),
            changes: state.changes.clone(),
            violations: state.violations.clone(),
            simulated,
        }
    }

    fn state(&self) -> MutexGuard<'_, RecorderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
