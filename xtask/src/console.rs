//! `cargo xtask console`: the whole matrix of the console, which is too long for the suite: every role in a browser,
//! with a script and without, on a file and on a server. With `--scale`: the time and the bytes of each page over a
//! million operations, on both.
//!
//! The tests are those that are ignored elsewhere because they take minutes.

use std::path::PathBuf;

use anyhow::{Result, bail};

use crate::{
    gateway,
    postgres::{PostgresServer, Purpose},
    shell,
    test::browser::Browser,
    workspace::Workspace,
};

/// The package with the tests.
const PACKAGE: &str = "holdfast-tests";

/// Walks over every page in a browser; true if no test failed.
pub(crate) fn walk(workspace: &Workspace) -> Result<bool> {
    match Browser::prepare(workspace)? {
        Ok(browser) => run(workspace, "browser_matrix_", &browser.env()),
        Err(reason) => bail!("there is no browser: {reason}"),
    }
}

/// Times every page over a million operations; whether none is too slow or too large.
pub(crate) fn scale(workspace: &Workspace) -> Result<bool> {
    run(workspace, "console_scale_", &[])
}

/// Runs the tests whose names begin so.
fn run(workspace: &Workspace, tests: &str, env: &[(&str, PathBuf)]) -> Result<bool> {
    let Some(gateway) = gateway::build(workspace, gateway::Profile::Dev)? else {
        return Ok(false);
    };
    let server = PostgresServer::start(Purpose::Tests)?;
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["test", "--test", "it", "--no-fail-fast", "--package", PACKAGE, tests, "--"]);
    // One after the other: a browser needs the machine for itself, and so do timed tests.
    cargo.args(["--ignored", "--nocapture", "--test-threads=1"]);
    cargo.env("HOLDFAST_BIN", &gateway).envs(server.env()).envs(env.iter().cloned());
    shell::run(&mut cargo)
}
