//! `cargo xtask chaos --mutants`: breaks the pure core in every way that cargo-mutants knows, one at a time, and
//! counts the mutants that its tests notice.
//!
//! Only the fast tests: the model and the other crates' suites notice more, in minutes for each. A mutant that
//! survives shows that a rule has no test among these. Survivors that are known, each with its reason, are in
//! `xtask/mutants.toml`.

mod outcome;
mod survivors;

use std::{ffi::OsStr, fs, path::Path, process::Command};

use anyhow::{Context, Result, bail, ensure};

use self::{
    outcome::{MutantCounts, MutantOutcome, MutantVerdict},
    survivors::Survivors,
};
use crate::{
    shell::{self, print_line},
    tools,
    workspace::Workspace,
};

/// Mutants of a hundred that build which the tests have to notice.
const WANTED: usize = 90;
/// Exit codes of cargo-mutants when no mutant was missed, when one was, and when one hung.
const TESTED: [i32; 3] = [0, 2, 3];

/// Random histories of many operations take longer than all other tests of the domain together.
const WITHOUT_HISTORIES: &[&str] = &["--", "--skip=histories::"];

/// Rows and readings: the models of the table take longer than all of these.
const SIDECAR: &[&str] = &["--", "table::tests::", "answer::"];

/// Files whose mutants the same tests catch.
struct MutationTarget {
    name: &'static str,
    package: &'static str,
    files: &'static [&'static str],
    /// The tests to build.
    targets: &'static [&'static str],
    /// The tests among them to run, as arguments of `cargo test`.
    chosen: &'static [&'static str],
}

/// The pure core, from the rules of money to the rules of repeated calls.
const CORE: &[MutationTarget] = &[
    MutationTarget {
        name: "rules",
        package: "holdfast-domain",
        files: &[
            "crates/domain/src/operation.rs",
            "crates/domain/src/operation/change.rs",
            "crates/domain/src/operation/decide.rs",
            "crates/domain/src/ledger.rs",
            "crates/domain/src/limits.rs",
            "crates/domain/src/limits/reservation.rs",
            "crates/domain/src/hold.rs",
            "crates/domain/src/price.rs",
            "crates/domain/src/usage.rs",
            "crates/domain/src/billing.rs",
        ],
        targets: &["--test=it"],
        chosen: WITHOUT_HISTORIES,
    },
    MutationTarget {
        name: "judge",
        package: "holdfast-store",
        files: &["crates/store/src/batch/judge.rs"],
        targets: &["--lib"],
        chosen: &["judge::"],
    },
    MutationTarget {
        name: "values",
        package: "holdfast-domain",
        files: &[
            "crates/domain/src/conduct.rs",
            "crates/domain/src/conduct/concluding.rs",
            "crates/domain/src/conduct/offering.rs",
            "crates/domain/src/conduct/upkeep.rs",
            "crates/domain/src/money.rs",
            "crates/domain/src/identity.rs",
            "crates/domain/src/request/canon.rs",
            "crates/domain/src/request/decimal.rs",
        ],
        targets: &["--lib", "--test=it"],
        chosen: WITHOUT_HISTORIES,
    },
    MutationTarget {
        name: "verdict",
        package: "holdfast-providers",
        files: &["crates/providers/src/chain/verdict.rs"],
        targets: &["--lib"],
        chosen: &["chain::verdict::"],
    },
    MutationTarget {
        name: "resume",
        package: "holdfast-wire",
        files: &["crates/wire/src/chat/resume.rs"],
        targets: &["--test=it"],
        chosen: &["chunks::resumed::"],
    },
    MutationTarget {
        name: "sidecar",
        package: "holdfast-sidecar",
        files: &["crates/sidecar/src/table.rs", "crates/sidecar/src/answer.rs"],
        targets: &["--lib"],
        chosen: SIDECAR,
    },
];

#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    /// All of the core when there are none.
    files: Vec<String>,
    shard: Option<String>,
}

/// Tests the mutants that `args` select; true if enough were noticed and every survivor is known.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<bool> {
    let options = parse(args)?;
    let survivors = Survivors::read(&workspace.root)?;
    let path = tools::find(workspace, "mutants")?;
    let mut outcomes = Vec::new();
    for part in CORE {
        let files: Vec<&str> = part.files.iter().copied().filter(|it| options.wants(it)).collect();
        if !files.is_empty() {
            print_line(&format!("\nmutants of {}: {}", part.name, files.join(", ")))?;
            outcomes.extend(test(workspace, &path, part, &files, options.shard.as_deref())?);
        }
    }
    conclude(&survivors, &outcomes, options.shard.is_none())
}

fn parse(args: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(option) = args.next() {
        let value = args.next().with_context(|| format!("{option} wants a value"))?;
        match option.as_str() {
            "--file" => {
                let known = CORE.iter().any(|part| part.files.contains(&value.as_str()));
                ensure!(known, "{value} is not in the pure core");
                options.files.push(value.clone());
            }
            "--shard" => options.shard = Some(value.clone()),
            _ => bail!("chaos --mutants takes --file PATH and --shard K/N"),
        }
    }
    Ok(options)
}

impl Options {
    fn wants(&self, file: &str) -> bool {
        self.files.is_empty() || self.files.iter().any(|it| it == file)
    }
}

fn test(
    workspace: &Workspace,
    path: &OsStr,
    part: &MutationTarget,
    files: &[&str],
    shard: Option<&str>,
) -> Result<Vec<MutantOutcome>> {
    let folder = workspace.target.join("mutants");
    let output = folder.join(part.name);
    fs::create_dir_all(&output).context("cannot make the folder of the mutants")?;
    let mut cargo = command(workspace, part, files, &output);
    cargo.env("PATH", path).env("CARGO_TARGET_DIR", folder.join("build"));
    if let Some(shard) = shard {
        cargo.args(["--shard", shard]);
    }
    let status = cargo.status().context("cannot run cargo mutants")?;
    // Other codes mean that the code as it is did not build or pass, which proves nothing.
    let is_tested = status.code().is_some_and(|code| TESTED.contains(&code));
    ensure!(is_tested, "cargo mutants gave up on {}: {status}", part.name);
    outcome::read(&output.join("mutants.out").join("outcomes.json"))
}

/// Built as fast as can be: without debug information, and the domain unoptimized, of which a mutant
/// is built once for a second of tests.
fn command(workspace: &Workspace, part: &MutationTarget, files: &[&str], output: &Path) -> Command {
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["mutants", "--package", part.package, "--no-shuffle", "--colors=never"]);
    // The tests take about a second: one that takes so much longer hangs, on a busy machine too.
    cargo.args(["--timeout", "20", "--build-timeout", "900", "--jobs", "1"]);
    cargo.arg("--output").arg(output);
    cargo.args(files.iter().flat_map(|file| ["--file", file]));
    // Arguments only for tests would come after the build, which would build every target.
    cargo.args(part.targets.iter().map(|target| format!("--cargo-arg={target}")));
    cargo.args(part.chosen.iter().map(|chosen| format!("--cargo-test-arg={chosen}")));
    cargo.arg("--cargo-arg=--config=profile.dev.package.holdfast-domain.opt-level=0");
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
    cargo
}

fn conclude(survivors: &Survivors, outcomes: &[MutantOutcome], whole: bool) -> Result<bool> {
    let counts = MutantCounts::of(outcomes.iter());
    print_line(&format!("\n{:<40} caught missed timeout unviable", ""))?;
    for file in CORE.iter().flat_map(|part| part.files) {
        let of_file = MutantCounts::of(outcomes.iter().filter(|it| it.file == *file));
        if of_file != MutantCounts::default() {
            print_line(&format!("{file:<40} {of_file}"))?;
        }
    }
    print_line(&format!("{:<40} {counts}", "all"))?;
    let Some(percentage) = counts.percentage() else {
        print_line("no mutant was tested")?;
        return Ok(false);
    };
    let missed = outcomes.iter().filter(|it| it.verdict == MutantVerdict::Missed);
    let unknown = survivors.unknown(missed);
    for mutant in &unknown {
        print_line(&format!("survives, and is not in {}: {mutant}", survivors::FILE))?;
    }
    // A shard has seen a part of the mutants: an entry that it did not meet may be another shard's.
    if whole {
        for mutant in survivors.stale(outcomes) {
            print_line(&format!("stale in {}, no longer survives: {mutant}", survivors::FILE))?;
        }
    }
    print_line(&format!(
        "{percentage} % of the mutants that build are noticed, {WANTED} % are wanted"
    ))?;
    Ok(percentage >= WANTED && unknown.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Option<Options> {
        let args: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
        parse(&args).ok()
    }

    #[test]
    fn only_the_core_is_mutated() {
        let hold = "crates/domain/src/hold.rs";
        assert!(parsed(&[]).unwrap().wants(hold));
        let one = parsed(&["--file", hold, "--shard", "0/4"]).unwrap();
        assert!(one.wants(hold) && !one.wants("crates/domain/src/money.rs"));
        assert_eq!(one.shard.as_deref(), Some("0/4"));
        for bad in [&["--file", "crates/http/src/lib.rs"][..], &["--file"], &["--jobs", "2"]] {
            assert_eq!(parsed(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn every_file_of_the_core_is_there() {
        let root = Workspace::load().unwrap().root;
        for file in CORE.iter().flat_map(|part| part.files) {
            assert!(root.join(file).is_file(), "{file}");
        }
    }
}
