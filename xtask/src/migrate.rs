//! `cargo xtask migrate`: the gateway's own `migrate`, so that there is one code path.

use std::path::Path;

use anyhow::Result;

use crate::shell;

/// Runs the gateway's command; true if it succeeded. It runs in the caller's folder, with the caller's settings:
/// relative paths keep their meaning.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let mut cargo = shell::cargo_as_configured(Path::new("."));
    shell::run(cargo.args(["run", "--quiet", "--package", "holdfast", "--", "migrate"]).args(args))
}
