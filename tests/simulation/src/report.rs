//! Report of many runs: simulated time against processor time, and the count of each step.

use std::fmt;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::recorder::{Recording, StepCounts};
use crate::step::Step;

/// Count of a step from which a long run has seen enough of it.
const ENOUGH: u64 = 1_000;

/// Processor time of this process.
#[must_use]
pub fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

/// Sums over many runs.
#[derive(Debug, Clone, Default)]
pub struct Totals {
    /// Runs.
    pub seeds: u64,
    /// Simulated time.
    pub simulated: Duration,
    /// Processor time.
    pub processor: Duration,
    /// Digest of the digests of all traces.
    pub digest: blake3::Hasher,
    /// Lines of all traces.
    pub lines: u64,
    /// Steps that were reached.
    pub steps: StepCounts,
}

impl Totals {
    /// Adds a run.
    pub fn add(&mut self, recording: &Recording) {
        self.seeds += 1;
        self.simulated += recording.simulated;
        self.digest.update(recording.digest.as_bytes());
        self.lines += recording.lines;
        for (step, count) in &recording.steps {
            *self.steps.entry(*step).or_default() += count;
        }
    }

    /// Steps that were never reached.
    #[must_use]
    pub fn missing(&self) -> Vec<Step> {
        Step::ALL.iter().copied().filter(|step| !self.steps.contains_key(step)).collect()
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |step: &Step| self.steps.get(step).copied().unwrap_or(0);
        for step in Step::ALL {
            let note = match count(step) {
                0 => "  never",
                1..ENOUGH => "  fewer than 1,000",
                _ => "",
            };
            writeln!(f, "{:>10}  {step}{note}", count(step))?;
        }
        let hours = self.simulated.as_secs() / 3_600;
        let rate = self.simulated.as_secs() * 60 / 3_600 * 1_000
            / u64::try_from(self.processor.as_millis()).unwrap_or(u64::MAX).max(1);
        write!(
            f,
            "{} seeds, {hours} simulated hours in {} s of processor time: {rate} hours a minute; {} lines of trace, digest {}",
            self.seeds,
            self.processor.as_secs(),
            self.lines,
            self.digest.finalize().to_hex().as_str().split_at(16).0
        )
    }
}
