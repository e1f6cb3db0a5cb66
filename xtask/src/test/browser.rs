//! The browser that drives the console: Debian's Chromium, and the libraries of `tests/console` in a private folder
//! under the target folder, by their lock file. No browser is downloaded by a library.
//!
//! If one of them cannot be installed, its tests are skipped and the reason is printed.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result};

use super::clients;
use crate::{
    shell::{capture, fetch, find_program, has, print_line},
    workspace::Workspace,
};

/// Debian's package, and the program in it.
const CHROMIUM: &str = "chromium";

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

    /// Installs missing parts; the reason for people if one cannot be installed.
    pub(crate) fn prepare(workspace: &Workspace) -> Result<Result<Self, String>> {
        let prepared = chromium().and_then(|chromium| {
            let modules = workspace.target.join("clients").join("console");
            clients::node_by_lock(&workspace.root.join("tests/console"), &modules)?;
            Ok(Self { modules, chromium })
        });
        match &prepared {
            Ok(browser) => print_line(&format!("browser: {}: ready", browser.chromium.display()))?,
            Err(error) => print_line(&format!("browser: not to be had: {error:#}"))?,
        }
        Ok(prepared.map_err(|error| format!("{error:#}")))
    }
}

/// The browser, installed if it is not there yet.
pub(super) fn chromium() -> Result<PathBuf> {
    if !has(CHROMIUM) {
        print_line(&format!("browser: installing Debian's package {CHROMIUM}"))?;
        // A new machine has no list of packages yet.
        capture(Command::new("apt-get").args(["update", "--quiet"]))?;
        let mut apt = Command::new("apt-get");
        apt.args(["install", "--yes", "--quiet", "--no-install-recommends", CHROMIUM]);
        let apt = apt.env("DEBIAN_FRONTEND", "noninteractive");
        let fetched = fetch(apt, "Debian's archive", "install the package chromium by hand");
        fetched.context("there is no chromium")?;
    }
    find_program(CHROMIUM).context("there is no chromium")
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    #[test]
    fn libraries_are_installed_by_a_lock_file_that_names_each_exactly() {
        for folder in ["tests/console", "tests/clients/frameworks"] {
            check_lock(&Workspace::load().unwrap().root.join(folder));
        }
    }

    fn check_lock(folder: &Path) {
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
