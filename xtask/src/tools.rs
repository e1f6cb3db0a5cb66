//! Cargo's own subcommands that not everybody has: installed under the target folder at their first
//! use, and looked for on the `PATH` before that.

pub(crate) mod debian;
pub(crate) mod helm;
pub(crate) mod patroni;

use std::{
    env,
    ffi::{OsStr, OsString},
    fs::{self, File},
};

use anyhow::{Context, Result, ensure};

use crate::{
    shell::{self, print_line},
    workspace::Workspace,
};

/// Versions that are installed if a subcommand is missing: those that the checks were written for. Another version
/// on the `PATH` has precedence.
const VERSIONS: &[(&str, &str)] = &[
    ("auditable", "0.7.7"),
    ("cyclonedx", "0.5.9"),
    ("deb", "3.8.0"),
    ("deny", "0.20.2"),
    ("machete", "0.9.2"),
];

/// The `PATH` on which Cargo finds `cargo-<subcommand>`.
pub(crate) fn find(workspace: &Workspace, subcommand: &str) -> Result<OsString> {
    let tools = workspace.target.join("tools");
    let before = env::var_os("PATH").unwrap_or_default();
    // At the end: a developer's own installation goes first.
    let path = env::join_paths(env::split_paths(&before).chain([tools.join("bin")]))?;
    if is_there(workspace, subcommand, &path) {
        return Ok(path);
    }
    // Another process waits here, and then finds it: two would build the same for minutes.
    fs::create_dir_all(&tools).context("cannot make the folder of the tools")?;
    let lock = File::create(tools.join("lock")).context("cannot make the lock of the tools")?;
    lock.lock().context("cannot lock the folder of the tools")?;
    if is_there(workspace, subcommand, &path) {
        return Ok(path);
    }
    let package = package(subcommand);
    print_line(&format!(
        "{package} is not installed: building it into {}, which takes some minutes once",
        tools.display()
    ))?;
    let mut install = shell::cargo(&workspace.root);
    // --locked: with the versions that its authors tested, whatever came out since.
    install.args(["install", &package, "--locked", "--root"]).arg(&tools);
    ensure!(
        shell::run(&mut install)?,
        "{package} cannot be installed here; `cargo install {package} --locked` where there is a \
         registry, then again"
    );
    Ok(path)
}

fn is_there(workspace: &Workspace, subcommand: &str, path: &OsStr) -> bool {
    let mut version = shell::cargo(&workspace.root);
    let captured = shell::capture(version.args([subcommand, "--version"]).env("PATH", path));
    captured.is_ok_and(|captured| captured.status.success())
}

/// Package in the notation of `cargo install`.
fn package(subcommand: &str) -> String {
    let pinned = VERSIONS.iter().find(|(name, _)| *name == subcommand);
    let version = pinned.map(|(_, version)| format!("@{version}")).unwrap_or_default();
    format!("cargo-{subcommand}{version}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_judges_the_code_has_a_fixed_version() {
        assert_eq!(package("deny"), "cargo-deny@0.20.2");
        assert_eq!(package("fuzz"), "cargo-fuzz");
    }

    #[test]
    fn a_tool_that_cannot_be_installed_is_an_error_that_says_what_to_do() {
        let mut workspace = Workspace::load().unwrap();
        workspace.target = env::temp_dir().join(format!("holdfast-tools-{}", std::process::id()));
        // No registry is queried for a name that none can have.
        let error = find(&workspace, "no name").unwrap_err().to_string();
        fs::remove_dir_all(&workspace.target).unwrap();
        assert!(error.contains("cannot be installed here; `cargo install"), "{error}");
    }
}
