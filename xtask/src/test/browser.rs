//! The browser that the console is driven with: Debian's Chromium, and the libraries of `tests/console` in a private
//! folder under the target folder, by their lock file. No browser is downloaded by a library.
//!
//! Where one of them cannot be had, its tests are skipped and the reason is told.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::clients::step;
use crate::{
    shell::{has, say},
    workspace::Workspace,
};

/// Debian's package, and the program in it.
const CHROMIUM: &str = "chromium";
const FILES: [&str; 2] = ["package.json", "package-lock.json"];

/// Paths of what drives the console.
#[derive(Debug)]
pub(crate) struct Browser {
    /// Folder whose `node_modules` has the libraries.
    modules: PathBuf,
    chromium: PathBuf,
}

impl Browser {
    /// Variables by which tests find it.
    pub(crate) fn env(self) -> [(&'static str, PathBuf); 2] {
        [("HOLDFAST_TEST_BROWSER_DIR", self.modules), ("HOLDFAST_TEST_CHROMIUM", self.chromium)]
    }

    /// Installs what is not there yet; the reason for people where it cannot be had.
    pub(crate) fn prepare(workspace: &Workspace) -> Result<Result<Self, String>> {
        let prepared = chromium().and_then(|chromium| {
            let modules = workspace.target.join("clients").join("console");
            install(&workspace.root.join("tests").join("console"), &modules)?;
            Ok(Self { modules, chromium })
        });
        match &prepared {
            Ok(browser) => say(&format!("browser: {}: ready", browser.chromium.display()))?,
            Err(error) => say(&format!("browser: not to be had: {error:#}"))?,
        }
        Ok(prepared.map_err(|error| format!("{error:#}")))
    }
}

fn chromium() -> Result<PathBuf> {
    if !has(CHROMIUM) {
        say(&format!("browser: installing Debian's package {CHROMIUM}"))?;
        let mut apt = Command::new("apt-get");
        apt.args(["install", "--yes", "--quiet", "--no-install-recommends", CHROMIUM]);
        step("apt-get install chromium", apt.env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    let path = std::env::var_os("PATH").context("there is no PATH")?;
    let found = std::env::split_paths(&path).map(|folder| folder.join(CHROMIUM));
    found.into_iter().find(|program| program.is_file()).context("there is no chromium")
}

/// Installs what the lock file names; nothing where that was done.
fn install(from: &Path, folder: &Path) -> Result<()> {
    ensure!(has("node"), "there is no node");
    let read = |folder: &Path| FILES.map(|file| fs::read(folder.join(file)).ok());
    // npm writes this file last.
    let is_whole = folder.join("node_modules").join(".package-lock.json").is_file();
    if is_whole && read(folder) == read(from) {
        return Ok(());
    }
    ensure!(has("npm"), "there is no npm");
    say("browser: installing the libraries of tests/console")?;
    fs::create_dir_all(folder).context("cannot make the folder of the libraries")?;
    for file in FILES {
        fs::copy(from.join(file), folder.join(file)).context("cannot copy the lock file")?;
    }
    let options = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"];
    let mut npm = Command::new("npm");
    step("npm ci", npm.current_dir(folder).arg("ci").args(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_installed_by_a_lock_file_that_names_each_exactly() {
        let folder = Workspace::load().unwrap().root.join("tests/console");
        let lock = fs::read_to_string(folder.join("package-lock.json")).unwrap();
        let manifest = fs::read_to_string(folder.join("package.json")).unwrap();
        let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
        for (name, version) in manifest["dependencies"].as_object().unwrap() {
            let version = version.as_str().unwrap();
            assert!(version.starts_with(|it: char| it.is_ascii_digit()), "{name} {version}");
            assert!(lock.contains(&format!("\"version\": \"{version}\"")), "{name} {version}");
        }
        assert!(!lock.contains("\"resolved\""), "the lock names no host");
    }
}
