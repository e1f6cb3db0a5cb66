//! Patroni, which runs PostgreSQL servers, in a Python of its own under the target folder.
//!
//! PostgreSQL refuses to run as root, and so does a server that Patroni starts. If the tests are root's, Patroni runs
//! as the user of the servers, who may not read an interpreter in root's home folder: the system's own goes first.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    postgres,
    shell::{capture, fetch, print_line, printed},
    workspace::Workspace,
};

/// Packages, at the versions that the tests were written for.
const PACKAGES: [&str; 2] = ["patroni[etcd3]==4.1.5", "psycopg[binary]==3.3.9"];
/// Version of Patroni, as it prints it.
const VERSION: &str = "patroni 4.1.5";
/// Interpreters, in the order in which they are tried.
const PYTHONS: [&str; 2] = ["/usr/bin/python3", "python3"];
const INDEX: &str = "the package index of Python";
const REACH_INDEX: &str = "name one that answers (`pip config set global.index-url`)";

/// Finds Patroni, and installs it first if it is missing.
pub(crate) fn find(workspace: &Workspace) -> Result<PathBuf> {
    let tools = workspace.target.join("tools");
    let folder = tools.join("patroni");
    let patroni = folder.join("bin").join("patroni");
    if runs(&patroni)? {
        return Ok(patroni);
    }
    // Another process waits here, and then finds it.
    fs::create_dir_all(&tools).context("cannot make the folder of the tools")?;
    let lock = File::create(tools.join("patroni.lock")).context("cannot make the lock")?;
    lock.lock().context("cannot lock the folder of Patroni")?;
    if runs(&patroni)? {
        return Ok(patroni);
    }
    print_line(&format!("Patroni: installing {}", PACKAGES.join(", ")))?;
    for python in PYTHONS {
        if install(python, &folder).is_ok() && runs(&patroni)? {
            return Ok(patroni);
        }
    }
    // Once more for its reason.
    install("python3", &folder)?;
    ensure!(
        runs(&patroni)?,
        "the user of the database servers cannot run {}: the folders above it, or those of its Python, are closed \
         to others",
        patroni.display()
    );
    Ok(patroni)
}

fn install(python: &str, folder: &Path) -> Result<()> {
    printed(Command::new(python).args(["-m", "venv", "--clear"]).arg(folder)).context(
        "python3 makes no environment: install Debian's package python3-venv, then again",
    )?;
    let mut pip = Command::new(folder.join("bin").join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    fetch(pip.arg("--retries=2").args(PACKAGES), INDEX, REACH_INDEX).map(drop)
}

/// True if the user of the servers can run it, in the wanted version.
fn runs(patroni: &Path) -> Result<bool> {
    let version = capture(postgres::as_server(patroni)?.arg("--version"))?;
    Ok(version.stdout.trim() == VERSION)
}
