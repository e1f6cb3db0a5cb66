//! The suite of examples: each of a crate and the service of its own, run to its end.
//!
//! They are built at once and as the tests are: one by one, Cargo would resolve the features of each crate by
//! itself, and compile its dependencies again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::tally::TestTally;
use crate::{
    gateway,
    shell::{self, print_line},
    workspace::{THUMBNAILS, Workspace},
};

/// Runs all of them; one that does not build, or ends in failure, has failed.
pub(crate) fn run(workspace: &Workspace) -> Result<TestTally> {
    let all = ["--workspace", "--examples", "--bin", THUMBNAILS];
    let built = gateway::build_programs(workspace, &all)?;
    let mut tally = TestTally::default();
    for package in &workspace.packages {
        for example in &package.examples {
            print_line(&format!("example {example} of {}", package.name))?;
            let passed = match built.as_deref().and_then(|built| find(built, example)) {
                Some(program) => {
                    let mut program = shell::without_settings(Command::new(program));
                    shell::run(program.current_dir(&workspace.root))?
                }
                None => false,
            };
            tally = tally + count(passed);
        }
    }
    let passed = match built.as_deref().and_then(|built| find(built, THUMBNAILS)) {
        Some(program) => run_thumbnails(workspace, program)?,
        None => false,
    };
    Ok(tally + count(passed))
}

fn count(passed: bool) -> TestTally {
    if passed { TestTally::ONE_PASSED } else { TestTally::NOT_RUN }
}

fn find<'a>(built: &'a [PathBuf], example: &str) -> Option<&'a Path> {
    let program = built.iter().find(|program| program.file_stem().is_some_and(|it| it == example));
    program.map(PathBuf::as_path)
}

/// Runs the service that embeds the domain from outside, on a database of its own.
fn run_thumbnails(workspace: &Workspace, program: &Path) -> Result<bool> {
    print_line(&format!("example {THUMBNAILS}, a service of its own"))?;
    let folder = workspace.target.join(THUMBNAILS).join("run");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the database of the last run")?;
    }
    let mut program = shell::without_settings(Command::new(program));
    let picture = workspace.root.join("LICENSE");
    shell::run(program.arg(format!("sqlite://{}", folder.join("shop.db").display())).arg(picture))
}
