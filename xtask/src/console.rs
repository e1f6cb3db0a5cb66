//! `cargo xtask console`: the whole matrix of the console, which is too long for the suite: every role in a browser,
//! with a script and without, on a file and on a server; then the time of each page over a million operations.
//!
//! The tests are those that are ignored elsewhere because they take minutes.

use anyhow::{Result, bail};

use crate::{
    gateway,
    postgres::{PostgresServer, Purpose},
    shell::{self, say},
    test::browser::Browser,
    workspace::Workspace,
};

/// The package with the tests, and what their names have.
const PACKAGE: &str = "holdfast-tests";
const TESTS: [&str; 2] = ["browser_matrix_", "console_scale_"];

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
    let mut passed = true;
    for name in TESTS {
        say(&format!("\n{name}"))?;
        let mut cargo = shell::cargo(&workspace.root);
        cargo.args(["test", "--tests", "--no-fail-fast", "--package", PACKAGE, name, "--"]);
        // One after the other: a browser and a million rows want the machine for themselves.
        cargo.args(["--ignored", "--nocapture", "--test-threads=1"]);
        cargo.env("HOLDFAST_BIN", &gateway).envs(server.env()).envs(browser.clone());
        passed &= shell::run(&mut cargo)?;
    }
    Ok(passed)
}
