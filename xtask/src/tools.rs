//! Cargo's own subcommands that not everybody has: installed under the target folder at their first
//! use, and looked for on the `PATH` before that.

use std::{env, ffi::OsString};

use anyhow::{Result, ensure};

use crate::{
    shell::{self, say},
    workspace::Workspace,
};

/// The `PATH` on which Cargo finds `cargo-<subcommand>`.
pub(crate) fn find(workspace: &Workspace, subcommand: &str) -> Result<OsString> {
    let tools = workspace.target.join("tools");
    let before = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(env::split_paths(&before).chain([tools.join("bin")]))?;
    let mut version = shell::cargo(&workspace.root);
    let is_there = |heard: shell::Heard| heard.status.success();
    if shell::hear(version.args([subcommand, "--version"]).env("PATH", &path)).is_ok_and(is_there) {
        return Ok(path);
    }
    let name = format!("cargo-{subcommand}");
    say(&format!("{name} is not installed: installing it, which takes some minutes once"))?;
    let mut install = shell::cargo(&workspace.root);
    install.args(["install", &name, "--locked", "--root"]).arg(&tools);
    ensure!(
        shell::run(&mut install)?,
        "{name} cannot be installed here, so nothing was tested; \
         `cargo install {name} --locked` where there is a registry, then again"
    );
    Ok(path)
}
