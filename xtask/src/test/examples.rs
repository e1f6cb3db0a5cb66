//! The suite of examples: each of the workspace and the one beside it, run to its end.
//!
//! The workspace's are built at once and as the tests are: one by one, Cargo would resolve the features of
//! each crate alone, and compile what it depends on again.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};

use super::tally::TestTally;
use crate::{
    gateway,
    shell::{self, say},
    workspace::{THUMBNAILS, Workspace},
};

/// Runs all of them; one that does not build, or ends in failure, has failed.
pub(crate) fn run(workspace: &Workspace) -> Result<TestTally> {
    let built = gateway::build_programs(workspace, &["--workspace", "--examples"])?;
    let mut tally = TestTally::default();
    for package in &workspace.packages {
        for example in &package.examples {
            say(&format!("example {example} of {}", package.name))?;
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
    Ok(tally + count(run_thumbnails(workspace)?))
}

fn count(passed: bool) -> TestTally {
    if passed { TestTally::ONE_PASSED } else { TestTally::NOT_RUN }
}

fn find<'a>(built: &'a [PathBuf], example: &str) -> Option<&'a Path> {
    let program = built.iter().find(|program| program.file_stem().is_some_and(|it| it == example));
    program.map(PathBuf::as_path)
}

/// Runs the service that embeds the domain from outside. It is another workspace to Cargo, with this
/// one's lock, target folder and way to build dependencies: what both have alike is built once.
fn run_thumbnails(workspace: &Workspace) -> Result<bool> {
    const PROFILE: [&str; 4] = [
        "profile.dev.debug='line-tables-only'",
        "profile.dev.package.'*'.debug=false",
        "profile.dev.package.'*'.opt-level=1",
        "profile.dev.package.holdfast-domain.opt-level=2",
    ];
    say("example thumbnails, a workspace of its own")?;
    let manifest = workspace.root.join(THUMBNAILS);
    // Copied at each run: Cargo would else resolve newer versions there, and build everything twice.
    fs::copy(workspace.root.join("Cargo.lock"), manifest.with_file_name("Cargo.lock"))
        .context("cannot copy the lock of the workspace")?;
    let folder = workspace.target.join("thumbnails");
    if folder.exists() {
        fs::remove_dir_all(&folder).context("cannot remove the database of the last run")?;
    }
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["run", "--manifest-path"]).arg(manifest);
    cargo.arg("--target-dir").arg(&workspace.target);
    cargo.args(PROFILE.iter().flat_map(|setting| ["--config", setting]));
    cargo.arg("--").arg(format!("sqlite://{}", folder.join("shop.db").display()));
    shell::run(&mut cargo)
}
