//! Report of a verifier: its counts, and the first violation.

use crate::CheckError;

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Different states that were stored.
    pub states: u64,
    /// Longest path of the search, in steps.
    pub depth: u64,
    /// Absent if the search is complete and has found none.
    pub violation: Option<Violation>,
}

/// First violation of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// An assertion, by its text: a law is a variable, whose name the text is.
    Assertion(String),
    /// A cycle that a formula forbids.
    Cycle,
}

impl Report {
    /// Reads a report.
    ///
    /// # Errors
    ///
    /// [`CheckError`] if a bound has cut the search, or a count is missing.
    pub fn read(text: &str) -> Result<Self, CheckError> {
        let is_cut = ["max search depth too small", "reached -DMEMLIM", "out of memory"];
        if let Some(line) = text.lines().find(|line| is_cut.iter().any(|it| line.contains(it))) {
            return Err(CheckError::Truncated(line.to_owned()));
        }
        let violation = violation(text)?;
        if violation.is_none() && text.contains("Search not completed") {
            return Err(CheckError::Truncated(text.to_owned()));
        }
        let count = |value: Option<&str>| {
            let parsed = value.and_then(|digits| digits.trim().parse().ok());
            parsed.ok_or_else(|| CheckError::Unreadable(text.to_owned()))
        };
        let states = text.lines().find_map(|line| line.split_once(" states, stored"));
        let depth = text.lines().find_map(|line| line.split_once("depth reached "));
        let depth = depth.and_then(|(_, rest)| rest.split_once(','));
        Ok(Self {
            states: count(states.map(|(states, _)| states))?,
            depth: count(depth.map(|(depth, _)| depth))?,
            violation,
        })
    }
}

/// A verifier prints its errors as lines that begin with `pan:1:`.
fn violation(text: &str) -> Result<Option<Violation>, CheckError> {
    let Some(line) = text.lines().find_map(|line| line.strip_prefix("pan:1: ")) else {
        return Ok(None);
    };
    let (what, _) = line.split_once(" (at depth").unwrap_or((line, ""));
    if let Some(assertion) = what.strip_prefix("assertion violated ") {
        return Ok(Some(Violation::Assertion(assertion.trim().to_owned())));
    }
    if what.starts_with("acceptance cycle") {
        return Ok(Some(Violation::Cycle));
    }
    // An end state that is none, or a fault of the model itself.
    Err(CheckError::Unreadable(line.to_owned()))
}
