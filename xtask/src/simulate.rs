//! `cargo xtask simulate`: the deterministic simulation, for as many seeds as one likes.
//!
//! The suite `simulation` runs the same code for a minute. A build for development, because only those can break a
//! guard of the engine on purpose.

use anyhow::Result;

use crate::{shell, workspace::Workspace};

/// Runs the command of the simulation with these arguments; true if no seed failed.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<bool> {
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["run", "--quiet", "--package", "holdfast-simulation", "--bin", "simulate", "--"]);
    shell::run(cargo.args(args))
}
