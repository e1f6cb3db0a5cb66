//! The program that runs the tests: nextest where it is installed, else Cargo's own.

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::Result;

use super::tally::TestTally;
use crate::shell;

/// Runner of the tests of some crates.
#[derive(Debug)]
pub(crate) struct Runner {
    root: PathBuf,
    kind: RunnerKind,
    /// Packages that are built together, as arguments of Cargo: the features that crates share are then
    /// resolved once, and nothing is compiled twice.
    selection: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum RunnerKind {
    Nextest,
    Cargo,
}

impl Runner {
    /// The runner for `packages`, which may be all there are.
    pub(crate) fn find(root: &Path, packages: Vec<&str>, is_all: bool) -> Self {
        let kind =
            if shell::has_cargo(root, "nextest") { RunnerKind::Nextest } else { RunnerKind::Cargo };
        let selection = if is_all {
            vec!["--workspace".to_owned()]
        } else {
            packages.into_iter().map(|package| format!("--package={package}")).collect()
        };
        Self { root: root.to_owned(), kind, selection }
    }

    /// Says in a line what runs the tests.
    pub(crate) fn introduce(&self) -> &'static str {
        match self.kind {
            RunnerKind::Nextest => "tests run with cargo nextest",
            RunnerKind::Cargo => "tests run with cargo test: cargo nextest is not installed",
        }
    }

    /// Builds everything that [`Self::run`] will need; whether it builds.
    pub(crate) fn build(&self) -> Result<bool> {
        // Only examples or documentation were asked for. Without a package Cargo would build all of them.
        if self.selection.is_empty() {
            return Ok(true);
        }
        let mut command = shell::cargo(&self.root);
        match self.kind {
            RunnerKind::Nextest => command.args(["nextest", "run"]),
            RunnerKind::Cargo => command.args(["test", "--tests"]),
        };
        shell::run(command.arg("--no-run").args(&self.selection))
    }

    /// Runs the tests of one crate, without those whose names contain one of `skip`.
    pub(crate) fn run(
        &self,
        package: &str,
        env: &[(&str, PathBuf)],
        skip: &[String],
    ) -> Result<TestTally> {
        self.run_some((package, None), env, skip)
    }

    /// The same for those tests alone whose names contain `only`.
    pub(crate) fn run_some(
        &self,
        (package, only): (&str, Option<&str>),
        env: &[(&str, PathBuf)],
        skip: &[String],
    ) -> Result<TestTally> {
        let mut command = shell::cargo(&self.root);
        match self.kind {
            RunnerKind::Nextest => {
                let filter = format!("package(={package})");
                // A suite in which everything is skipped has not failed.
                command.args(["nextest", "run", "--no-fail-fast", "--no-tests=pass"]);
                // The same selection as the build, then one crate of it: another selection has
                // other features, and is compiled again.
                command.args(&self.selection).args(["-E", &filter]);
            }
            RunnerKind::Cargo => {
                command.args(["test", "--tests", "--no-fail-fast", "--package", package]);
            }
        }
        command.args(only).arg("--").args(skip.iter().flat_map(|pattern| ["--skip", pattern]));
        command.envs(env.iter().map(|(name, value)| (name, value)));
        let tally = self.count(&mut command)?;
        // Of those alone: tests of another name are not skipped, they belong elsewhere.
        Ok(if only.is_some() { TestTally { skipped: 0, ..tally } } else { tally })
    }

    fn count(&self, command: &mut Command) -> Result<TestTally> {
        let heard = shell::overhear(command)?;
        Ok(match self.kind {
            RunnerKind::Nextest => TestTally::of_nextest(&heard),
            RunnerKind::Cargo => TestTally::of_libtest(&heard),
        })
    }
}

/// Variables that let a runner run so many tests at once for each processor: those of some suites wait for
/// others more than they compute.
pub(crate) fn at_once(for_each_processor: usize) -> [(&'static str, PathBuf); 2] {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let tests = PathBuf::from((for_each_processor * processors).to_string());
    [("NEXTEST_TEST_THREADS", tests.clone()), ("RUST_TEST_THREADS", tests)]
}

/// The code in the documentation of every crate, which only Cargo's own runner knows.
pub(crate) fn doc_tests(root: &Path) -> Result<TestTally> {
    let mut command = shell::cargo(root);
    command.args(["test", "--doc", "--workspace", "--no-fail-fast"]);
    shell::overhear(&mut command).map(|heard| TestTally::of_libtest(&heard))
}
