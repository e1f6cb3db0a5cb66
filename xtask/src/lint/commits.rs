//! The form of the messages of commits that are not merged yet: `area: imperative verb and object`, then why.
//!
//! Merged history is never judged, because it cannot be mended. Commits are unmerged if `origin/main` does not have
//! them; a clone without that branch has no base for a comparison. Only the form is judged here: no rule reads a
//! cause.

use std::process::Command;

use anyhow::Result;

use super::CheckVerdict;
use crate::{
    shell::{self, print_line},
    workspace::Workspace,
};

/// The branch that changes are merged into.
const MAIN: &str = "origin/main";
/// Characters that a list of commits shows whole.
const SUBJECT_LENGTH: usize = 72;

/// Judges each message between the branch that changes are merged into and the newest commit.
pub(super) fn check(workspace: &Workspace) -> Result<CheckVerdict> {
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.current_dir(&workspace.root).args(args);
        git
    };
    if !shell::capture(&mut git(&["rev-parse", "--verify", "--quiet", MAIN]))?.status.success() {
        return Ok(CheckVerdict::NotChecked("there is no origin/main to compare with"));
    }
    let range = format!("{MAIN}..HEAD");
    let log = shell::printed(&mut git(&["log", "--no-merges", "--format=%h %B%x00", &range]))?;
    let mut passed = true;
    for (commit, message) in log.split('\0').filter_map(|it| it.trim_start().split_once(' ')) {
        if let Some(reason) = fault(message) {
            print_line(&format!("commit {commit}: {reason}"))?;
            passed = false;
        }
    }
    Ok(super::judge(passed))
}

/// The rule that a message breaks, if it breaks one.
fn fault(message: &str) -> Option<&'static str> {
    let mut lines = message.lines();
    let subject = lines.next().unwrap_or("");
    let Some((areas, summary)) = subject.split_once(": ") else {
        return Some("the subject has no area: write `area: imperative verb and object`");
    };
    let is_area = |area: &str| {
        !area.is_empty()
            && area.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-')
    };
    if !areas.split(", ").all(is_area) {
        return Some("the area is the name of a crate or folder, several divided by a comma");
    }
    if !summary.starts_with(|first: char| first.is_ascii_lowercase()) || summary.ends_with('.') {
        return Some("the summary begins with a verb in small letters and has no full stop");
    }
    if subject.chars().count() > SUBJECT_LENGTH {
        return Some("the subject has more than 72 characters");
    }
    if lines.next().is_some_and(|second| !second.is_empty()) {
        return Some("the second line is empty: the body begins on the third");
    }
    if lines.all(|line| line.trim().is_empty()) {
        return Some("there is no body: write symptom, cause, and why this way");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn a_message_of_the_form_passes() {
        assert_eq!(fault("store: keep a row\n\nIt was lost.\n"), None);
        assert_eq!(fault("admin, cli: read JSON errors\n\nThey were text.\n"), None);
    }

    #[test]
    fn each_rule_is_named_by_what_breaks_it() {
        let long = format!("store: {}\n\nWhy.\n", "x".repeat(72));
        for (message, of) in [
            ("keep a row\n\nWhy.\n", "no area"),
            ("fixup! store: keep a row\n\nWhy.\n", "name of a crate"),
            ("Store: keep a row\n\nWhy.\n", "name of a crate"),
            ("store: Keep a row\n\nWhy.\n", "small letters"),
            ("store: keep a row.\n\nWhy.\n", "full stop"),
            (long.as_str(), "more than 72"),
            ("store: keep a row\nWhy.\n", "second line"),
            ("store: keep a row\n", "no body"),
        ] {
            assert!(fault(message).is_some_and(|it| it.contains(of)), "{message}");
        }
    }
}
