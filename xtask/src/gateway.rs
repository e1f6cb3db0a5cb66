//! The gateway's own binary: as its users build it, and for tests.
//!
//! For tests it is built together with them, with the features that all crates of the workspace request together:
//! by itself it would request fewer, and all its dependencies would be compiled twice.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{shell, workspace::Workspace};

/// Arguments of Cargo for what is shipped.
pub(crate) const DIST: [&str; 2] = ["--profile", "dist"];

/// Profile of a build: how much the compiler does to a binary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Dev,
    /// As it is shipped.
    Dist,
}

impl Profile {
    /// The one that the arguments of a command choose.
    pub(crate) fn chosen(command: &str, args: &[String]) -> Result<Self> {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        match args.as_slice() {
            [] => Ok(Self::Dist),
            ["--profile", "dev"] => Ok(Self::Dev),
            _ => bail!("{command} takes nothing, or --profile dev for a quick look"),
        }
    }
}

/// Arguments of Cargo for the gateway together with the tests. An example makes Cargo count the features of tests.
const FOR_TESTS: [&str; 5] = ["--workspace", "--example", "embed", "--bin", "holdfast"];
/// The same for the one that users build.
const FOR_USERS: [&str; 4] = ["--package", "holdfast", "--bin", "holdfast"];

/// Builds it; `None` when it does not build. The one for tests stays where users and the tests look for it.
pub(crate) fn build(workspace: &Workspace, profile: Profile) -> Result<Option<PathBuf>> {
    match profile {
        Profile::Dev => build_binary(workspace, &FOR_TESTS, &[]),
        Profile::Dist => build_binary(workspace, &FOR_USERS, &DIST),
    }
}

/// Builds one binary and returns its path: the last argument of `binary` is its name.
pub(crate) fn build_binary(
    workspace: &Workspace,
    binary: &[&str],
    arguments: &[&str],
) -> Result<Option<PathBuf>> {
    let name = binary.last().context("no binary is named")?;
    let built = build_programs(workspace, &[binary, arguments].concat())?;
    built.map(|built| named(name, &built)).transpose()
}

/// Settings of Cargo for a binary that tests only talk to: no model checker runs these, and nobody reads their lines.
const TALKED_TO: [&str; 6] = [
    "--config",
    "profile.dev.debug=false",
    "--config",
    "profile.dev.package.holdfast-domain.opt-level=0",
    "--config",
    "profile.dev.package.holdfast-sidecar.opt-level=0",
];

/// Builds the one of another checkout in the target folder of the workspace, with its settings of Cargo: a dependency
/// that sees another environment is compiled again. `None` when it does not build. A later build of this workspace
/// replaces it in its place.
pub(crate) fn build_at(source: &Path, workspace: &Workspace) -> Result<Option<PathBuf>> {
    let mut cargo = shell::cargo(source);
    cargo.arg("build").args(FOR_TESTS).args(TALKED_TO).env("CARGO_TARGET_DIR", &workspace.target);
    cargo.arg("--config").arg(workspace.root.join(".cargo/config.toml"));
    built_programs(cargo)?.map(|built| named("holdfast", &built)).transpose()
}

/// The program of this name.
pub(crate) fn named(name: &str, built: &[PathBuf]) -> Result<PathBuf> {
    let is_named = |program: &&PathBuf| program.file_stem().is_some_and(|stem| stem == name);
    built.iter().find(is_named).cloned().context("cargo does not say where the binary is")
}

/// Builds the targets of these arguments of Cargo and returns the paths of their programs; `None` if one does not
/// build.
pub(crate) fn build_programs(
    workspace: &Workspace,
    arguments: &[&str],
) -> Result<Option<Vec<PathBuf>>> {
    let mut cargo = shell::cargo(&workspace.root);
    cargo.arg("build").args(arguments);
    built_programs(cargo)
}

/// Paths of the programs of a build; `None` if a target does not build.
fn built_programs(mut cargo: Command) -> Result<Option<Vec<PathBuf>>> {
    if !shell::run(&mut cargo)? {
        return Ok(None);
    }
    // A second time, with all targets compiled: the first one has shown its progress on the terminal.
    let captured = shell::capture(cargo.args(["--quiet", "--message-format", "json"]))?;
    Ok(Some(captured.stdout.lines().filter_map(executable).collect()))
}

/// Copies a binary to a folder in which no later build replaces it.
pub(crate) fn put_aside(binary: &Path, folder: &Path) -> Result<PathBuf> {
    fs::create_dir_all(folder).context("cannot make the folder of the binary for tests")?;
    let name = binary.file_name().context("the gateway has no name")?;
    let (copy, new) = (folder.join(name), folder.join("new"));
    fs::copy(binary, &new).context("cannot copy the binary for tests")?;
    // In one step: another process may be running the old one.
    fs::rename(&new, &copy).context("cannot replace the binary for tests")?;
    Ok(copy)
}

fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    message.get("executable")?.as_str().map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_where_cargo_says() {
        let message = r#"{"reason":"compiler-artifact","executable":"/there/holdfast"}"#;
        assert_eq!(executable(message), Some(PathBuf::from("/there/holdfast")));
        assert_eq!(executable(r#"{"reason":"compiler-artifact","executable":null}"#), None);
    }
}
