//! `cargo xtask release`: the released binary, with its bill of materials.
//!
//! ```text
//! newest commit ─▶ folder ─────────▶ build ─▶ binary, which names its crates and no path ─┐
//!             │          └─▶ bill of materials (CycloneDX) ───────────────────────────────┤
//!             └──▶ another folder ─▶ the same ─────────────────────────────────────────────┴▶ equal? ─▶ files
//! ```
//!
//! Uncommitted changes take no part. The bill has the crates that `cargo auditable` wrote into the binary, or there
//! is no release. Both builds have the toolchain, the C compiler, the linker and the C library of this machine:
//! equal hashes prove that folder and moment leave no trace, and prove nothing about another machine. Release files
//! are neither signed nor published.

mod bill;
mod binary;

use std::{env, fs, path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};

use crate::{
    gateway::Profile,
    shell::{self, print_line, printed},
    tools,
    workspace::{Workspace, emptied},
};

/// Package that is built, and its program.
const BUILT: &str = "holdfast";
const MANIFEST: &str = "crates/gateway/Cargo.toml";
/// Names of other lengths: a path moves what lies behind it.
const FOLDERS: [&str; 2] = ["one", "another-folder"];
/// Text in the binary instead of the folder of its source, and of the crates of others.
const SOURCE: &str = "/source";
const CRATES: &str = "/cargo";
/// Variables of `cargo auditable build --locked`: itself for a compiler, and its arguments. It would give its whole
/// path, which Cargo mixes into the symbols of our crates: an installation at another path would build another
/// binary. Its output is read again from the binary, so that a version with another protocol is noticed.
const AUDITABLE: (&str, &str, &str) = (
    "cargo-auditable",
    "CARGO_AUDITABLE_ORIG_ARGS",
    r#"{"offline":false,"locked":true,"frozen":false,"config":[]}"#,
);

/// The commit that is built.
#[derive(Debug, Clone, Copy)]
struct Commit<'a> {
    hash: &'a str,
    /// Seconds since the epoch, by which files are dated.
    epoch: &'a str,
}

/// A checkout of it, only for a build.
#[derive(Debug)]
struct Checkout<'a> {
    commit: Commit<'a>,
    folder: PathBuf,
    /// Cargo's own folder, which has the source of other people's crates.
    crates: PathBuf,
}

/// Builds twice, compares, and puts one binary into the folder of releases; true if all of it went well.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<bool> {
    let profile = Profile::chosen("release", args)?;
    // Once: a commit that comes meanwhile takes no part.
    let newest = workspace.newest_commit("%H %ct")?;
    let (hash, epoch) = newest.split_once(' ').context("git says no commit")?;
    let commit = Commit { hash, epoch };
    print_line(&format!("building {hash} twice"))?;
    let [one, another] = FOLDERS;
    let Some((binary, bill)) = build(workspace, profile, commit, one)? else { return Ok(false) };
    let Some((other, other_bill)) = build(workspace, profile, commit, another)? else {
        return Ok(false);
    };
    let differing = binary::differing_sections(&binary, &other)?;
    if !differing.is_empty() {
        print_line(&format!("{} and {} differ in:", binary.display(), other.display()))?;
        print_line(&differing.join("\n"))?;
        return Ok(false);
    }
    ensure!(bill == other_bill, "the bills of materials of {} differ", FOLDERS.join(" and "));
    let files = emptied(&workspace.target.join("release-files"))?;
    fs::copy(&binary, files.join(BUILT)).context("the binary was not copied")?;
    let bill_name = format!("{BUILT}.cdx.json");
    fs::write(files.join(&bill_name), bill).context("the bill of materials was not written")?;
    let mut sums = Command::new("sha256sum");
    let sums = printed(sums.current_dir(&files).args([BUILT, &bill_name]))?;
    fs::write(files.join("SHA256SUMS"), &sums).context("SHA256SUMS was not written")?;
    print_line(&format!("{}: equal in both folders", files.display()))?;
    print_line(sums.trim_end())?;
    Ok(true)
}

/// The binary that a checkout makes, and its bill of materials; `None` when it does not build.
fn build(
    workspace: &Workspace,
    profile: Profile,
    commit: Commit<'_>,
    name: &str,
) -> Result<Option<(PathBuf, String)>> {
    let checkout = Checkout::make(workspace, commit, name)?;
    // First: it takes a second, and its findings need not wait for minutes.
    let bill = bill::make(workspace, &checkout)?;
    let Some(binary) = checkout.build(workspace, profile)? else { return Ok(None) };
    for path in [&checkout.folder, &checkout.crates] {
        let named = binary::names(&binary, path)?;
        ensure!(!named, "{} names {}", binary.display(), path.display());
    }
    let crates = bill::check(&bill, &binary)?;
    print_line(&format!("{}: the {crates} crates of its bill of materials", binary.display()))?;
    Ok(Some((binary, bill)))
}

impl<'a> Checkout<'a> {
    fn make(workspace: &Workspace, commit: Commit<'a>, name: &str) -> Result<Self> {
        let folder = emptied(&workspace.target.join("release-build").join(name))?;
        workspace.extract(commit.hash, &folder)?;
        let given = env::var_os("CARGO_HOME").map(PathBuf::from);
        let crates = given.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
        let crates = crates.context("there is no home: set CARGO_HOME")?;
        Ok(Self { commit, folder, crates })
    }

    /// Cargo in this checkout, which compiles into it, with the paths of the machine replaced.
    fn cargo(&self, workspace: &Workspace, tool: &str) -> Result<Command> {
        let mut cargo = shell::cargo(&self.folder);
        cargo.env("PATH", tools::find(workspace, tool)?);
        cargo.env("CARGO_TARGET_DIR", self.folder.join("target"));
        cargo.env("SOURCE_DATE_EPOCH", self.commit.epoch);
        let paths = [(&*self.folder, SOURCE), (&*self.crates, CRATES)];
        let replaced = paths.map(|(path, name)| format!("{}={name}", path.display()));
        let rust = replaced.each_ref().map(|pair| format!("--remap-path-prefix={pair}"));
        let c = replaced.each_ref().map(|pair| format!("-ffile-prefix-map={pair}"));
        // Before `RUSTFLAGS` and before any file of configuration: no developer's own flags get into a release.
        cargo.env("CARGO_ENCODED_RUSTFLAGS", rust.join("\x1f")).env_remove("RUSTFLAGS");
        cargo.env("CFLAGS", c.join(" "));
        Ok(cargo)
    }

    /// The binary; `None` when it does not build.
    fn build(&self, workspace: &Workspace, profile: Profile) -> Result<Option<PathBuf>> {
        let (name, folder) = match profile {
            Profile::Dev => ("dev", "debug"),
            Profile::Dist => ("dist", "dist"),
        };
        let mut cargo = self.cargo(workspace, "auditable")?;
        cargo.args(["build", "--locked", "--package", BUILT, "--bin", BUILT, "--profile", name]);
        cargo.env("RUSTC_WORKSPACE_WRAPPER", AUDITABLE.0).env(AUDITABLE.1, AUDITABLE.2);
        if !shell::run(&mut cargo)? {
            return Ok(None);
        }
        let binary = self.folder.join("target").join(folder).join(BUILT);
        Ok(Some(binary))
    }
}
