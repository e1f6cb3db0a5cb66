//! `cargo xtask docs`: writes the documents that are made from the code. That none of them is stale is
//! a test of the crate that each is made from.

use std::fs;

use anyhow::{Context, Result};

use crate::{
    shell::{self, print_line},
    workspace::Workspace,
};

/// A document, and the example that prints it.
const DOCUMENTS: &[(&str, &str, &str)] = &[
    ("docs/reference/errors.md", "holdfast-wire", "errors"),
    ("docs/reference/configuration.md", "holdfast-config", "options"),
    ("docs/reference/cli.md", "holdfast-cli", "commands"),
    ("docs/reference/administration-api.md", "holdfast-admin", "api"),
    ("docs/reference/metrics.md", "holdfast-telemetry", "metrics"),
    ("docs/reference/traces.md", "holdfast-telemetry", "traces"),
];

/// Writes all of them; true if all could be made.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    for (path, package, example) in DOCUMENTS {
        let mut cargo = shell::cargo(&workspace.root);
        cargo.args(["run", "--quiet", "--package", package, "--example", example]);
        let captured = shell::capture(&mut cargo)?;
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
