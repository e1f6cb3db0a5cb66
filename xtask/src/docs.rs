//! `cargo xtask docs`: writes the documents that are made from the code. That none of them is stale is
//! a test of the crate that each is made from.
//!
//! The examples that print them are built together, with the features that all crates of the workspace request: each
//! by itself would compile its dependencies again.

use std::{fs, process::Command};

use anyhow::{Context, Result};

use crate::{
    gateway,
    shell::{self, print_line},
    workspace::Workspace,
};

/// A document, and the example that prints it.
const DOCUMENTS: &[(&str, &str)] = &[
    ("docs/reference/errors.md", "errors"),
    ("docs/reference/configuration.md", "options"),
    ("docs/reference/cli.md", "commands"),
    ("docs/reference/administration-api.md", "api"),
    ("docs/reference/metrics.md", "metrics"),
    ("docs/reference/traces.md", "traces"),
];

/// Writes all of them; true if all could be made.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let examples = DOCUMENTS.iter().flat_map(|(_, example)| ["--example", *example]);
    let arguments: Vec<&str> = ["--workspace"].into_iter().chain(examples).collect();
    let Some(built) = gateway::build_programs(workspace, &arguments)? else { return Ok(false) };
    for (path, example) in DOCUMENTS {
        let mut program = Command::new(gateway::named(example, &built)?);
        let captured = shell::capture(program.current_dir(&workspace.root))?;
        if !captured.status.success() {
            print_line(&captured.stderr)?;
            return Ok(false);
        }
        fs::write(workspace.root.join(path), captured.stdout)
            .with_context(|| format!("cannot write {path}"))?;
        print_line(&format!("{path} is written"))?;
    }
    Ok(true)
}
