//! `cargo xtask clients`: every client of `docs/how-to/connect-a-framework.md` through the sidecar and against
//! gateways in trouble, and the helpers over many cuts and before type checkers, which takes too long for the
//! suite: it installs frameworks and waits for their retries.
//!
//! The tests are those that other suites ignore because they take minutes. A client whose libraries cannot be
//! installed is left out, and the last line reports it.

use std::{path::PathBuf, time::Instant};

use anyhow::Result;

use crate::{
    gateway,
    shell::{self, print_line, spell},
    test::clients::{self, ClientLibraries, Clients},
    workspace::Workspace,
};

/// The package with the tests.
const PACKAGE: &str = "holdfast-tests";

/// Libraries of one language, and the variables by which tests find them.
struct Language {
    /// The beginning of its tests' names.
    tests: &'static str,
    libraries: [(&'static str, ClientLibraries); 2],
}

/// Runs all of it; true if no test failed.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let started = Instant::now();
    let languages = prepare(workspace)?;
    print_line(&format!("libraries: {}", spell(started.elapsed())))?;
    let Some(gateway) = gateway::build(workspace, gateway::Profile::Dev)? else {
        return Ok(false);
    };
    let (mut has_passed, mut skipped) = (true, Vec::new());
    for Language { tests, libraries } in languages {
        match found(libraries) {
            Ok(env) => {
                let began = Instant::now();
                let mut cargo = shell::cargo(&workspace.root);
                cargo.args(["test", "--test", "it", "--package", PACKAGE, tests, "--"]);
                // One after the other: they count seconds.
                cargo.args(["--ignored", "--nocapture", "--test-threads=1"]);
                has_passed &= shell::run(cargo.env("HOLDFAST_BIN", &gateway).envs(env))?;
                print_line(&format!("{tests}*: {}", spell(began.elapsed())))?;
            }
            Err(reason) => skipped.push(format!("the tests named {tests}*: {reason}")),
        }
    }
    print_line(&format!("all clients in {}", spell(started.elapsed())))?;
    let skipped = if skipped.is_empty() { "nothing".to_owned() } else { skipped.join("; ") };
    print_line(&format!("skipped: {skipped}"))?;
    Ok(has_passed)
}

fn prepare(workspace: &Workspace) -> Result<[Language; 2]> {
    let Clients { python, node } = clients::prepare(&workspace.target)?;
    let from = workspace.root.join("tests/clients/frameworks");
    let to = workspace.target.join("clients");
    let list = from.join("requirements.txt");
    let of_python = clients::python_by_list(&list, &to.join("frameworks-python"));
    let of_python = clients::report("Python", "requirements.txt", of_python)?;
    let modules = to.join("frameworks-node");
    let of_node = clients::node_by_lock(&from, &modules).map(|()| modules);
    let of_node = clients::report("Node", "package-lock.json", of_node)?;
    Ok([
        Language {
            tests: "clients_python_",
            libraries: [
                ("HOLDFAST_TEST_PYTHON", python),
                ("HOLDFAST_TEST_PYTHON_FRAMEWORKS", of_python),
            ],
        },
        Language {
            tests: "clients_node_",
            libraries: [
                ("HOLDFAST_TEST_NODE_DIR", node),
                ("HOLDFAST_TEST_NODE_FRAMEWORKS_DIR", of_node),
            ],
        },
    ])
}

/// All of them, or the reason why one cannot be had.
fn found(
    libraries: [(&'static str, ClientLibraries); 2],
) -> Result<Vec<(&'static str, PathBuf)>, String> {
    let path = |(variable, client)| match client {
        ClientLibraries::Ready(path) => Ok((variable, path)),
        ClientLibraries::Missing(reason) => Err(reason),
    };
    libraries.into_iter().map(path).collect()
}
