//! `cargo xtask fixture`: the ledgers of a release, kept so that every later version is tried on them.
//!
//! The program that writes them is `tests/src/bin/releases.rs`. A ledger that is there already stays: it is proof only as
//! long as it is what that release wrote on its day.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    path::PathBuf,
};

use anyhow::{Context, Result, bail, ensure};

use crate::{
    gateway::{self, Profile},
    postgres::{PostgresServer, Purpose},
    shell::{self, print_line},
    workspace::Workspace,
};

/// List of releases whose ledgers are fixtures, oldest first: a name and a commit per line.
pub(crate) const RELEASES: &str = "tests/fixtures/ledger/releases";
const USAGE: &str =
    "fixture takes NAME and perhaps --binary PATH and --commit HASH, the commit of that binary";

/// A fixture to write, and the binary that writes it.
#[derive(Debug, PartialEq, Eq)]
struct FixtureOrder<'a> {
    name: &'a str,
    /// Binary of a release and its commit; none for the newest commit's own.
    of: Option<(&'a str, &'a str)>,
}

/// Writes both ledgers and the release's line in the list; whether that went well.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<bool> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let FixtureOrder { name, of } = parse(&args)?;
    let is_plain = |it: char| it.is_ascii_alphanumeric() || ".-".contains(it);
    ensure!(!name.is_empty() && name.chars().all(is_plain), "{name} is no name of a folder");
    let list = workspace.root.join(RELEASES);
    let folder = list.with_file_name(name);
    ensure!(!folder.exists(), "{} is there, and is never written again", folder.display());
    let (binary, commit) = match of {
        Some((binary, commit)) => {
            (fs::canonicalize(binary).context(binary.to_owned())?, commit.to_owned())
        }
        None => match gateway::build(workspace, Profile::Dev)? {
            Some(binary) => (binary, workspace.newest_commit("%H")?),
            None => return Ok(false),
        },
    };
    let server = PostgresServer::start(Purpose::Tests)?;
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["run", "--quiet", "--package", "holdfast-tests", "--bin", "releases", "--", name]);
    cargo.env("HOLDFAST_BIN", binary).envs(server.env());
    if !shell::run(&mut cargo)? {
        return Ok(false);
    }
    add(list, &format!("{name} {commit}"))
}

fn parse<'a>(args: &[&'a str]) -> Result<FixtureOrder<'a>> {
    match args {
        [name] => Ok(FixtureOrder { name, of: None }),
        [name, "--binary", binary, "--commit", commit] => {
            Ok(FixtureOrder { name, of: Some((binary, commit)) })
        }
        _ => bail!(USAGE),
    }
}

fn add(list: PathBuf, line: &str) -> Result<bool> {
    let mut file = OpenOptions::new().create(true).append(true).open(list).context(RELEASES)?;
    writeln!(file, "{line}").context(RELEASES)?;
    print_line(&format!("{RELEASES}: {line}"))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_comes_with_its_commit() {
        assert_eq!(parse(&["1.0"]).unwrap(), FixtureOrder { name: "1.0", of: None });
        let of = Some(("holdfast", "1a"));
        let args = ["1.0", "--binary", "holdfast", "--commit", "1a"];
        assert_eq!(parse(&args).unwrap(), FixtureOrder { name: "1.0", of });
        assert!(parse(&[]).is_err());
        assert!(parse(&["1.0", "--binary", "holdfast"]).is_err());
    }
}
