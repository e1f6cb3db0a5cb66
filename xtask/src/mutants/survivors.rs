//! The mutants that may survive, each with its reason, in one file.
//!
//! Known by their words and not by their lines. If two of a file have the same words, each of them needs an entry
//! of its own.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};

use super::outcome::{MutantOutcome, MutantVerdict};

/// The file that lists them.
pub(super) const FILE: &str = "xtask/mutants.toml";

/// Number of each that may survive, by file and words.
#[derive(Debug)]
pub(super) struct Survivors(BTreeMap<(String, String), usize>);

impl Survivors {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("no {FILE}"))?;
        Self::parse(&text).with_context(|| format!("{FILE} is not as it should be"))
    }

    fn parse(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse()?;
        let mut survivors = BTreeMap::new();
        let listed = table.get("survivor").map(|it| it.as_array().context("not [[survivor]]"));
        for survivor in listed.transpose()?.into_iter().flatten() {
            let text = |field| survivor.get(field).and_then(toml::Value::as_str);
            let file = text("file").context("a survivor without its file")?;
            let mutant = text("mutant").context("a survivor without its mutant")?;
            let reason = text("reason").unwrap_or_default();
            ensure!(!reason.trim().is_empty(), "no reason why this may survive: {mutant}");
            *survivors.entry((file.to_owned(), mutant.to_owned())).or_insert(0) += 1;
        }
        Ok(Self(survivors))
    }

    /// Mutants that were missed and may not be.
    pub(super) fn unknown<'a>(
        &self,
        missed: impl Iterator<Item = &'a MutantOutcome>,
    ) -> Vec<String> {
        let mut left = self.0.clone();
        let mut unknown = Vec::new();
        for MutantOutcome { file, mutant, .. } in missed {
            match left.get_mut(&(file.clone(), mutant.clone())) {
                // Used up: one entry excuses one mutant, not all that are called so.
                Some(count) if *count > 0 => *count -= 1,
                Some(_) | None => unknown.push(format!("{file}: {mutant}")),
            }
        }
        unknown
    }

    /// Listed mutants of tested files that do not survive, or are no more.
    pub(super) fn stale(&self, outcomes: &[MutantOutcome]) -> Vec<String> {
        let mut stale = Vec::new();
        for ((file, mutant), listed) in &self.0 {
            let mut of_file = outcomes.iter().filter(|it| it.file == *file).peekable();
            let is_tested = of_file.peek().is_some();
            let missed = of_file
                .filter(|it| it.mutant == *mutant && it.verdict == MutantVerdict::Missed)
                .count();
            if is_tested && missed < *listed {
                stale.push(format!("{file}: {mutant}"));
            }
        }
        stale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "
        [[survivor]]
        file = 'a.rs'
        mutant = 'replace f with ()'
        reason = 'f is for the eye'
    ";

    fn missed(file: &str, mutant: &str) -> MutantOutcome {
        outcome(file, mutant, MutantVerdict::Missed)
    }

    fn outcome(file: &str, mutant: &str, verdict: MutantVerdict) -> MutantOutcome {
        MutantOutcome { file: file.to_owned(), mutant: mutant.to_owned(), verdict }
    }

    #[test]
    fn an_entry_excuses_one_survivor() {
        let survivors = Survivors::parse(LISTED).unwrap();
        let f = || missed("a.rs", "replace f with ()");
        assert!(survivors.unknown([f()].iter()).is_empty());
        assert_eq!(survivors.unknown([f(), f()].iter()), ["a.rs: replace f with ()"]);
        let elsewhere = missed("b.rs", "replace f with ()");
        assert_eq!(survivors.unknown([elsewhere].iter()), ["b.rs: replace f with ()"]);
    }

    #[test]
    fn an_entry_that_excuses_nothing_is_stale() {
        let survivors = Survivors::parse(LISTED).unwrap();
        let caught = outcome("a.rs", "replace f with ()", MutantVerdict::Caught);
        assert_eq!(survivors.stale(&[caught]), ["a.rs: replace f with ()"]);
        assert!(survivors.stale(&[missed("a.rs", "replace f with ()")]).is_empty());
        assert!(survivors.stale(&[missed("b.rs", "other")]).is_empty(), "its file was not tested");
    }

    #[test]
    fn nothing_survives_without_a_reason() {
        assert!(Survivors::parse("").is_ok());
        assert!(Survivors::parse(&LISTED.replace("f is for the eye", " ")).is_err());
        assert!(Survivors::parse("[survivor]\nfile = 'a.rs'").is_err());
    }
}
