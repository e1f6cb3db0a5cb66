//! The gateway of the release before this version, as tests run it next to the current one on one database.
//!
//! No binary is kept in the repository. The release's commit is taken out of the clone's own history and built, with
//! the dependencies that the workspace has compiled already: only the crates of the workspace are compiled again. To
//! Cargo two checkouts of one workspace are the same packages, which would replace each other's files in the target
//! folder at every build, so the older one gets another version number ([`MARK`]).
//!
//! ```text
//! tests/fixtures/ledger/releases ─▶ git archive ─▶ target/previous/source ─▶ cargo build ─▶ target/previous/<commit>
//! ```
//!
//! A clone without that commit (a shallow one, an unpacked archive) has no such binary: the tests that need it are
//! skipped, and the reason is printed.

use std::{fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    fixture::RELEASES,
    gateway, shell,
    workspace::{Workspace, emptied},
};

/// Variable by which tests find the binary.
pub(crate) const VARIABLE: &str = "HOLDFAST_TEST_PREVIOUS_BIN";
/// Prefix of the names of tests that need it.
pub(crate) const TESTS: &str = "postgres_previous";
/// Added to the version of the workspace.
const MARK: &str = "+previous";
/// First line of the profiles, which end a manifest.
const PROFILES: &str = "\n[profile.dev]\n";

/// Binary of the newest release in the list, built if it is not there yet.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf> {
    let releases = fs::read_to_string(workspace.root.join(RELEASES)).context(RELEASES)?;
    let commit = newest(&releases).with_context(|| format!("{RELEASES} names no commit"))?;
    let folder = workspace.target.join("previous");
    let binary = folder.join(commit);
    if binary.is_file() {
        return Ok(binary);
    }
    has_commit(workspace, commit)?;
    let source = emptied(&folder.join("source"))?;
    workspace.extract(commit, &source)?;
    let manifest = source.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).context("a checkout without its manifest")?;
    let ours = fs::read_to_string(workspace.root.join("Cargo.toml")).context("no manifest")?;
    // The lock follows by itself: packages of a workspace are of no registry.
    let text = with_profiles_of(&ours, &marked(&text)?)?;
    fs::write(&manifest, text).context("the checkout cannot be changed")?;
    let Some(built) = gateway::build_at(&source, workspace)? else {
        bail!("the release {commit} does not build");
    };
    // In one step: a build that is cut short leaves no half of a binary.
    let new = folder.join("new");
    fs::copy(&built, &new).context("cannot copy the binary of the release")?;
    fs::rename(&new, &binary).context("cannot replace the binary of the release")?;
    Ok(binary)
}

fn newest(releases: &str) -> Option<&str> {
    releases.lines().filter_map(|line| line.split(' ').nth(1)).next_back()
}

fn has_commit(workspace: &Workspace, commit: &str) -> Result<()> {
    let mut git = Command::new("git");
    git.current_dir(&workspace.root).args(["cat-file", "-e", &format!("{commit}^{{commit}}")]);
    let is_there = shell::capture(&mut git).is_ok_and(|captured| captured.status.success());
    let fetch = format!("git fetch origin {commit}");
    ensure!(is_there, "this clone does not have commit {commit} of the release before: `{fetch}`");
    Ok(())
}

/// The manifest of the workspace with a version of its own.
fn marked(manifest: &str) -> Result<String> {
    let (before, rest) =
        manifest.split_once("[workspace.package]\nversion = \"").context("no version")?;
    let (version, after) = rest.split_once('"').context("no version")?;
    Ok(format!("{before}[workspace.package]\nversion = \"{version}{MARK}\"{after}"))
}

/// The manifest with the profiles of another one: a dependency that was compiled by another profile is compiled again.
fn with_profiles_of(other: &str, manifest: &str) -> Result<String> {
    let (before, _) = manifest.split_once(PROFILES).context("no profiles")?;
    let (_, profiles) = other.split_once(PROFILES).context("no profiles")?;
    Ok(format!("{before}{PROFILES}{profiles}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_release_is_the_last_line() {
        assert_eq!(newest("one 1a\ntwo 2b\n"), Some("2b"));
        assert_eq!(newest(""), None);
    }

    #[test]
    fn a_checkout_gets_a_version_of_its_own() {
        let manifest = "[workspace.package]\nversion = \"0.1.0\"\nedition = \"2024\"\n";
        let expected = "[workspace.package]\nversion = \"0.1.0+previous\"\nedition = \"2024\"\n";
        assert_eq!(marked(manifest).unwrap(), expected);
        assert!(marked("[package]\nversion = \"0.1.0\"\n").is_err());
    }

    #[test]
    fn a_checkout_gets_the_profiles_of_the_workspace() {
        let manifest = |profile| format!("[workspace]\n\n[profile.dev]\n{profile}\n");
        let (ours, theirs) = (manifest("debug = 0"), manifest("debug = 1"));
        assert_eq!(with_profiles_of(&ours, &theirs).unwrap(), ours);
        assert!(with_profiles_of(&ours, "[workspace]\n").is_err());
    }
}
