//! `cargo xtask migrate`: the gateway's own `migrate`, so that there is one code path.

use std::path::Path;

use anyhow::Result;

use crate::shell;

/// Runs the gateway's command; true where it succeeded. It runs where the caller stands, with the caller's
/// settings: relative paths mean what they say.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let mut cargo = shell::cargo_as_configured(Path::new("."));
    shell::run(cargo.args(["run", "--quiet", "--package", "holdfast", "--", "migrate"]).args(args))
}
