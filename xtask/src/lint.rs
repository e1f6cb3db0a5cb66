//! `cargo xtask lint`: everything that judges the code without running it.
//!
//! All checks run, also after one has failed. A check whose tool is not installed says so: it has
//! neither passed nor failed.

use anyhow::{Result, ensure};

use crate::{
    shell::{self, cargo, has_cargo, say},
    tidy,
    workspace::Workspace,
};

type Check = fn(&Workspace) -> Result<Verdict>;

const CHECKS: &[(&str, Check)] = &[
    ("fmt", |it| check(it, &["fmt", "--all", "--check"])),
    ("fuzz", |it| check(it, &["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])),
    ("tidy", check_tidy),
    ("clippy", |it| check(it, &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])),
    ("doc", check_doc),
    ("deny", check_deny),
    ("advisories", check_advisories),
    ("machete", check_machete),
];

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Passed,
    Failed,
    /// Why nothing can be said.
    CannotRun(&'static str),
}

/// Runs the named checks, all of them when none is named; whether none failed.
pub(crate) fn run(workspace: &Workspace, named: &[String]) -> Result<bool> {
    let names: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
    for name in named {
        ensure!(names.contains(&name.as_str()), "no check {name}; there are {}", names.join(", "));
    }
    let mut verdicts = Vec::new();
    for (name, check) in CHECKS {
        if named.is_empty() || named.iter().any(|it| it == name) {
            say(&format!("\ncheck {name}"))?;
            verdicts.push((*name, check(workspace)?));
        }
    }
    say("")?;
    for (name, verdict) in &verdicts {
        say(&match verdict {
            Verdict::Passed => format!("{name:<10} passed"),
            Verdict::Failed => format!("{name:<10} FAILED"),
            Verdict::CannotRun(reason) => format!("{name:<10} not run: {reason}"),
        })?;
    }
    Ok(!verdicts.iter().any(|(_, verdict)| *verdict == Verdict::Failed))
}

fn check(workspace: &Workspace, args: &[&str]) -> Result<Verdict> {
    shell::run(cargo(&workspace.root).args(args)).map(judge)
}

fn judge(passed: bool) -> Verdict {
    if passed { Verdict::Passed } else { Verdict::Failed }
}

fn check_tidy(workspace: &Workspace) -> Result<Verdict> {
    let findings = tidy::check(workspace)?;
    for finding in &findings {
        say(&finding.to_string())?;
    }
    Ok(judge(findings.is_empty()))
}

fn check_doc(workspace: &Workspace) -> Result<Verdict> {
    let mut cargo = cargo(&workspace.root);
    cargo.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    shell::run(&mut cargo).map(judge)
}

fn check_deny(workspace: &Workspace) -> Result<Verdict> {
    if !has_cargo(&workspace.root, "deny") {
        return Ok(Verdict::CannotRun("cargo-deny is not installed"));
    }
    check(workspace, &["deny", "check", "bans", "licenses", "sources"])
}

fn check_advisories(workspace: &Workspace) -> Result<Verdict> {
    if !has_cargo(&workspace.root, "deny") {
        return Ok(Verdict::CannotRun("cargo-deny is not installed"));
    }
    if !shell::run(cargo(&workspace.root).args(["deny", "fetch", "db"]))? {
        return Ok(Verdict::CannotRun("the advisory database is not to be had"));
    }
    check(workspace, &["deny", "check", "--disable-fetch", "advisories"])
}

fn check_machete(workspace: &Workspace) -> Result<Verdict> {
    if !has_cargo(&workspace.root, "machete") {
        return Ok(Verdict::CannotRun("cargo-machete is not installed"));
    }
    check(workspace, &["machete"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_does_not_exist_is_refused() {
        let workspace = Workspace::load().unwrap();
        let refused = run(&workspace, &["taste".to_owned()]).unwrap_err();
        assert!(refused.to_string().starts_with("no check taste; there are fmt, fuzz, tidy,"));
    }
}
