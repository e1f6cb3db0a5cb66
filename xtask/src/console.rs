//! `cargo xtask console`: the whole matrix of the console, which is too long for the suite: every role in a browser,
//! with a script and without, on a file and on a server.
//!
//! The tests are those that are ignored elsewhere because they take minutes.

use anyhow::{Result, bail};

use crate::{
    gateway,
    postgres::{PostgresServer, Purpose},
    shell,
    test::browser::Browser,
    workspace::Workspace,
};

/// The package with the tests, and the beginning of their names.
const PACKAGE: &str = "holdfast-tests";
const TESTS: &str = "browser_matrix_";

/// Runs all of it; whether nothing failed.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let browser = match Browser::prepare(workspace)? {
        Ok(browser) => browser.env(),
        Err(reason) => bail!("there is no browser: {reason}"),
    };
    let Some(gateway) = gateway::build_plain(workspace, gateway::Profile::Dev)? else {
        return Ok(false);
    };
    let server = PostgresServer::start(Purpose::Tests)?;
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["test", "--test", "it", "--no-fail-fast", "--package", PACKAGE, TESTS, "--"]);
    // One after the other: a browser wants the machine for itself.
    cargo.args(["--ignored", "--nocapture", "--test-threads=1"]);
    cargo.env("HOLDFAST_BIN", &gateway).envs(server.env()).envs(browser);
    shell::run(&mut cargo)
}
