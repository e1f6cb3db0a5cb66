//! House rules that no lint of the compiler has: permitted dependencies, and the form of our files.
//!
//! The rules are pure functions over text and over the list of crates; only this file reads.

mod boundaries;
mod cycles;
mod evidence;
mod files;
mod layers;
mod links;
mod literals;
mod names;
mod pages;
mod prose;
mod quotes;
mod tokens;
mod versions;
mod words;

use std::{fmt, fs, io::ErrorKind, path::Path, process::Command};

use anyhow::{Context, Result, ensure};

pub(crate) use self::tokens::{Token, pieces};
use crate::{shell, workspace::Workspace};

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// `path:line`, `path`, or a crate.
    pub(crate) place: String,
    pub(crate) what: String,
}

impl Finding {
    fn new(place: impl fmt::Display, what: impl fmt::Display) -> Self {
        Self { place: place.to_string(), what: what.to_string() }
    }

    /// Lines are counted from zero by the rules, from one by editors.
    fn at(path: &str, index: usize, what: impl fmt::Display) -> Self {
        Self::new(format_args!("{path}:{}", index + 1), what)
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// All findings of all rules.
pub(crate) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = layers::check(&workspace.packages);
    findings.extend(boundaries::check(&workspace.packages));
    let mut texts = Vec::new();
    let paths = ours(&workspace.root)?;
    for path in &paths {
        if let Some(text) = read(&workspace.root.join(path))? {
            texts.push((path.clone(), text));
        }
    }
    findings.extend(links::check(&texts, &paths.iter().map(String::as_str).collect()));
    findings.extend(cycles::check(&texts));
    findings.extend(evidence::check(&texts));
    for (path, text) in &texts {
        findings.extend(files::check(path, text));
        findings.extend(literals::check(path, text));
        findings.extend(names::check(path, text));
        findings.extend(pages::check(path, text));
        findings.extend(prose::check(path, text));
        findings.extend(words::check(path, text));
        findings.extend(versions::check(path, text));
        let source = |from: &str| fs::read_to_string(workspace.root.join(from)).ok();
        findings.extend(quotes::check(path, text, source));
    }
    Ok(findings)
}

/// Files that are tracked, or would be by `git add`.
fn ours(root: &Path) -> Result<Vec<String>> {
    let mut git = Command::new("git");
    // Git knows what is ours: target folders and what editors leave are not.
    git.current_dir(root).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let captured = shell::capture(&mut git)?;
    ensure!(captured.status.success(), "git ls-files: {}", captured.last_words());
    let paths = captured.stdout.split_terminator('\0');
    Ok(paths.map(str::to_owned).collect())
}

/// The text of a file; none if it is not text, or deleted and not yet committed.
fn read(path: &Path) -> Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(String::from_utf8(bytes).ok()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// True if `word` is in `text` and is not part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(word).any(|(start, _)| {
        let (before, rest) = text.split_at(start);
        let after = rest.strip_prefix(word).unwrap_or_default();
        // Only if the word itself ends in a letter: `env::` is whole before any character.
        let goes_on_before = word.starts_with(is_part) && before.ends_with(is_part);
        let goes_on_after = word.ends_with(is_part) && after.starts_with(is_part);
        !goes_on_before && !goes_on_after
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_borders() {
        assert!(has_word("use std::env;", "env"));
        assert!(has_word("(env::var)", "env::"));
        assert!(!has_word("environment, my_env", "env"));
        assert!(!has_word("my_env::var", "env::"));
    }

    #[test]
    fn a_finding_is_a_place_and_a_reason() {
        assert_eq!(Finding::at("a.rs", 0, "too long").to_string(), "a.rs:1: too long");
    }
}
