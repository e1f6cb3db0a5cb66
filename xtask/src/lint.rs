//! `cargo xtask lint`: all checks that judge the code without running it, except for one table.
//!
//! All checks run, also after one has failed: a developer sees every finding of a run. Tools that judge
//! dependencies are installed at their first use, and a check whose tool cannot be installed has failed.
//!
//! Only the database of advisories may be out of reach. Its check reports that then, and has neither passed nor
//! failed: a machine without a network can still be checked.

mod commits;
mod telemetry;

use anyhow::{Result, ensure};

use crate::{
    shell::{self, cargo, print_line},
    tidy, tools,
    workspace::{self, Workspace},
};

type Check = fn(&Workspace) -> Result<CheckVerdict>;

const CHECKS: &[(&str, Check)] = &[
    ("fmt", |it| check(it, &["fmt", "--all", "--check"])),
    ("outside", check_outside),
    ("tidy", check_tidy),
    ("commits", commits::check),
    ("doors", |it| check(it, INTERFACE_TESTS)),
    ("telemetry", |it| telemetry::check(it).map(judge)),
    ("clippy", |it| check(it, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("doc", check_doc),
    ("deny", check_deny),
    ("portable", check_portable),
    ("advisories", check_advisories),
    ("machete", check_machete),
];

/// The table of use cases against the endpoints, the commands and the roles that there are: it is code, and so are
/// its checks.
const INTERFACE_TESTS: &[&str] =
    &["test", "--quiet", "--workspace", "--lib", "--bins", "--", "use_case", "door", "endpoint"];
const FUZZ: &[&str] = &["--manifest-path", workspace::FUZZ];
/// Crates that the domain does without, so that it runs anywhere.
const UNPORTABLE: &[&str] = &["getrandom", "rand", "tokio"];
/// Features of the store, each with the drivers that are the other's.
const DATABASES: &[(&str, &[&str])] = &[
    ("sqlite", &["sqlx-postgres", "postgres-array"]),
    ("postgres", &["rusqlite", "sqlx-sqlite", "libsqlite3-sys"]),
];
/// The list of crates that may enter the build.
const DENY: &str = ".cargo/deny.toml";

#[derive(Debug, PartialEq, Eq)]
enum CheckVerdict {
    Passed,
    Failed,
    /// The reason why the check has no result.
    NotChecked(&'static str),
}

/// Runs the named checks, all of them when none is named; whether none failed.
pub(crate) fn run(workspace: &Workspace, named: &[String]) -> Result<bool> {
    let names = names();
    for name in named {
        ensure!(names.contains(&name.as_str()), "no check {name}; there are {}", names.join(", "));
    }
    let mut verdicts = Vec::new();
    for (name, check) in CHECKS {
        if named.is_empty() || named.iter().any(|it| it == name) {
            print_line(&format!("\ncheck {name}"))?;
            // A check that cannot even start must not keep the others from running.
            let verdict = check(workspace).or_else(|error| {
                print_line(&format!("error: {error:#}"))?;
                Ok::<_, anyhow::Error>(CheckVerdict::Failed)
            })?;
            verdicts.push((*name, verdict));
        }
    }
    print_line("")?;
    for (name, verdict) in &verdicts {
        print_line(&match verdict {
            CheckVerdict::Passed => format!("{name:<10} passed"),
            CheckVerdict::Failed => format!("{name:<10} FAILED"),
            CheckVerdict::NotChecked(reason) => format!("{name:<10} not checked: {reason}"),
        })?;
    }
    Ok(!verdicts.iter().any(|(_, verdict)| *verdict == CheckVerdict::Failed))
}

/// Names of all checks.
pub(crate) fn names() -> Vec<&'static str> {
    CHECKS.iter().map(|(name, _)| *name).collect()
}

fn check(workspace: &Workspace, args: &[&str]) -> Result<CheckVerdict> {
    shell::run(cargo(&workspace.root).args(args)).map(judge)
}

fn judge(passed: bool) -> CheckVerdict {
    if passed { CheckVerdict::Passed } else { CheckVerdict::Failed }
}

fn check_tidy(workspace: &Workspace) -> Result<CheckVerdict> {
    let findings = tidy::check(workspace)?;
    for finding in &findings {
        print_line(&finding.to_string())?;
    }
    Ok(judge(findings.is_empty()))
}

fn check_doc(workspace: &Workspace) -> Result<CheckVerdict> {
    let mut cargo = cargo(&workspace.root);
    cargo.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    shell::run(&mut cargo).map(judge)
}

/// The form of the fuzzer's workspace, which `--all` of this one does not reach.
fn check_outside(workspace: &Workspace) -> Result<CheckVerdict> {
    check(workspace, &[&["fmt", "--check"], FUZZ].concat())
}

/// Judges what is built here, and what the fuzz targets are built with: they are a workspace of their own.
fn check_deny(workspace: &Workspace) -> Result<CheckVerdict> {
    // Without advisories: those need a database from the network, and are a check of their own.
    const ARGS: &[&str] = &["--hide-inclusion-graph", "bans", "licenses", "sources"];
    let of_ours = deny(workspace, &[], ARGS)?;
    // Its few crates meet none of the layers that `.cargo/deny.toml` names.
    let quiet = ["--allow", "unused-wrapper", "--allow", "license-not-encountered"];
    let of_fuzz = deny(workspace, FUZZ, &[&quiet, ARGS].concat())?;
    Ok(judge(of_ours && of_fuzz))
}

/// The domain depends on no source of randomness and on no runtime, by any crate between; the store and the façade
/// for embedders compile with each database by itself, and without the driver of the other.
fn check_portable(workspace: &Workspace) -> Result<CheckVerdict> {
    let mut passed = is_domain_portable(workspace)?;
    for (database, foreign) in DATABASES {
        passed &= is_database_enough(workspace, database, foreign)?;
    }
    Ok(judge(passed))
}

fn is_domain_portable(workspace: &Workspace) -> Result<bool> {
    let found = depends_on(workspace, &["--package", "holdfast-domain"], UNPORTABLE)?;
    if !found.is_empty() {
        print_line(&format!("holdfast-domain depends on {}", found.join(", ")))?;
    }
    Ok(found.is_empty())
}

/// A command for each package: features of all members are one set in a build of the workspace, which hides mistakes.
fn is_database_enough(workspace: &Workspace, database: &str, foreign: &[&str]) -> Result<bool> {
    let alone = ["--no-default-features", "--features", database];
    let mut passed = true;
    for package in ["holdfast-store", "holdfast-embed"] {
        let of = [&["--package", package], &alone[..]].concat();
        let found = depends_on(workspace, &of, foreign)?;
        if !found.is_empty() {
            print_line(&format!(
                "{package} with {database} alone depends on {}",
                found.join(", ")
            ))?;
            passed = false;
        }
        let clippy = [&["clippy"], &of[..], &["--lib", "--", "-D", "warnings"]].concat();
        passed &= shell::run(cargo(&workspace.root).args(clippy))?;
    }
    let test = ["test", "--quiet", "--package", "holdfast-store", "--lib"];
    let test = [&test[..], &alone, &["--", "schema::url::"]].concat();
    Ok(shell::run(cargo(&workspace.root).args(test))? && passed)
}

/// Those of `names` that a build of these packages takes in.
fn depends_on(workspace: &Workspace, of: &[&str], names: &[&str]) -> Result<Vec<String>> {
    let args = [&["tree"], of, &["--edges", "normal", "--prefix", "none"]].concat();
    let tree = shell::printed(cargo(&workspace.root).args(args))?;
    let names_found = tree.lines().filter_map(|line| line.split(' ').next());
    Ok(names_found.filter(|name| names.contains(name)).map(str::to_owned).collect())
}

fn check_advisories(workspace: &Workspace) -> Result<CheckVerdict> {
    let path = tools::find(workspace, "deny")?;
    if !shell::run(cargo(&workspace.root).args(["deny", "fetch", "db"]).env("PATH", path))? {
        return Ok(CheckVerdict::NotChecked("the advisory database is out of reach"));
    }
    let advisories = ["--disable-fetch", "advisories"];
    let of_ours = deny(workspace, &[], &advisories)?;
    let of_fuzz = deny(workspace, FUZZ, &advisories)?;
    Ok(judge(of_ours && of_fuzz))
}

fn deny(workspace: &Workspace, of: &[&str], args: &[&str]) -> Result<bool> {
    let path = tools::find(workspace, "deny")?;
    let mut cargo = cargo(&workspace.root);
    // In full: a relative one would be resolved against the manifest of `of`.
    let config = workspace.root.join(DENY);
    cargo.arg("deny").args(of).arg("--config").arg(config).arg("check").args(args);
    shell::run(cargo.env("PATH", path))
}

fn check_machete(workspace: &Workspace) -> Result<CheckVerdict> {
    let path = tools::find(workspace, "machete")?;
    let mut machete = cargo(&workspace.root);
    // By this variable it distinguishes `cargo machete` from `cargo run`, which is what runs these tasks.
    machete.arg("machete").env("PATH", path).env_remove("CARGO_PKG_NAME");
    shell::run(&mut machete).map(judge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_does_not_exist_is_refused() {
        let workspace = Workspace::load().unwrap();
        let refused = run(&workspace, &["taste".to_owned()]).unwrap_err();
        assert!(refused.to_string().starts_with("no check taste; there are fmt, outside, tidy,"));
    }
}
