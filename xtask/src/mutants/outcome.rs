//! Outcomes of mutants, from the report of cargo-mutants.

use std::{fmt, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// A mutant and what became of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MutantOutcome {
    pub(super) file: String,
    /// Change and function, without the line: lines move.
    pub(super) mutant: String,
    pub(super) verdict: MutantVerdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MutantVerdict {
    Caught,
    Missed,
    /// The tests did not come to their end, which a developer would have noticed.
    Timeout,
    /// Code that does not compile, so that this mistake cannot be made.
    Unviable,
}

/// Mutants by their end.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MutantCounts {
    caught: usize,
    missed: usize,
    timeout: usize,
    unviable: usize,
}

impl MutantCounts {
    pub(super) fn of<'a>(outcomes: impl Iterator<Item = &'a MutantOutcome>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            *match outcome.verdict {
                MutantVerdict::Caught => &mut counts.caught,
                MutantVerdict::Missed => &mut counts.missed,
                MutantVerdict::Timeout => &mut counts.timeout,
                MutantVerdict::Unviable => &mut counts.unviable,
            } += 1;
        }
        counts
    }

    /// Mutants noticed of a hundred that build, rounded down; `None` if none builds.
    pub(super) fn percentage(&self) -> Option<usize> {
        // A mutant that hangs is noticed: no test would pass it.
        let noticed = self.caught + self.timeout;
        (100 * noticed).checked_div(noticed + self.missed)
    }
}

impl fmt::Display for MutantCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { caught, missed, timeout, unviable } = self;
        write!(f, "{caught:>6} {missed:>6} {timeout:>7} {unviable:>8}")
    }
}

/// Reads the report of one run.
pub(super) fn read(path: &Path) -> Result<Vec<MutantOutcome>> {
    let text = fs::read_to_string(path).context("cargo-mutants left no report")?;
    let report: Value = serde_json::from_str(&text).context("the mutants' report is not JSON")?;
    let outcomes = report.get("outcomes").and_then(Value::as_array);
    let outcomes = outcomes.context("the mutants' report has another shape")?;
    outcomes.iter().filter_map(|outcome| read_one(outcome).transpose()).collect()
}

/// The end of a mutant; `None` for the tests of the code as it is.
fn read_one(outcome: &Value) -> Result<Option<MutantOutcome>> {
    let scenario = outcome.get("scenario").context("an outcome is of nothing")?;
    let Some(mutant) = scenario.get("Mutant") else { return Ok(None) };
    let text = |value: &Value, field| value.get(field)?.as_str().map(str::to_owned);
    let name = text(mutant, "name").context("a mutant has no name")?;
    // Without the line, which changes with every edit above it.
    let (_place, what) = name.split_once(": ").context("a mutant's name has another shape")?;
    let verdict = match text(outcome, "summary").as_deref() {
        Some("CaughtMutant") => MutantVerdict::Caught,
        Some("MissedMutant") => MutantVerdict::Missed,
        Some("Timeout") => MutantVerdict::Timeout,
        Some("Unviable") => MutantVerdict::Unviable,
        other => bail!("{name} ended as {other:?}"),
    };
    let file = text(mutant, "file").context("a mutant is in no file")?;
    Ok(Some(MutantOutcome { file, mutant: what.to_owned(), verdict }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counted(verdicts: &[MutantVerdict]) -> MutantCounts {
        let outcome =
            |verdict| MutantOutcome { file: String::new(), mutant: String::new(), verdict };
        let outcomes: Vec<_> = verdicts.iter().copied().map(outcome).collect();
        MutantCounts::of(outcomes.iter())
    }

    #[test]
    fn a_mutant_is_known_without_its_line() {
        let mutant = json!({ "name": "a/b.rs:7:3: replace < with <= in f", "file": "a/b.rs" });
        let outcome = json!({ "scenario": { "Mutant": mutant }, "summary": "MissedMutant" });
        let expected = MutantOutcome {
            file: "a/b.rs".to_owned(),
            mutant: "replace < with <= in f".to_owned(),
            verdict: MutantVerdict::Missed,
        };
        assert_eq!(read_one(&outcome).unwrap(), Some(expected));
        let baseline = json!({ "scenario": "Baseline", "summary": "Success" });
        assert_eq!(read_one(&baseline).unwrap(), None);
        let odd = json!({ "scenario": { "Mutant": mutant_named("x: y") }, "summary": "Failure" });
        assert!(read_one(&odd).is_err());
    }

    fn mutant_named(name: &str) -> Value {
        json!({ "name": name, "file": "a" })
    }

    #[test]
    fn what_does_not_build_does_not_count() {
        use MutantVerdict::{Caught, Missed, Timeout, Unviable};
        assert_eq!(counted(&[Caught, Timeout, Missed, Unviable]).percentage(), Some(66));
        assert_eq!(counted(&[Unviable]).percentage(), None);
        assert_eq!(counted(&[]).percentage(), None);
    }
}
