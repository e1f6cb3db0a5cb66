//! The program that runs the tests: nextest if it is installed, else Cargo's own.

use std::{
    num::NonZero,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use anyhow::Result;

use super::tally::{FinishedTest, TestTally};
use crate::{scratch, shell};

/// Runner of the tests of some crates.
#[derive(Debug)]
pub(crate) struct Runner {
    root: PathBuf,
    kind: RunnerKind,
    /// Packages that are built together, as arguments of Cargo: the features that crates share are then resolved
    /// once, and no crate is compiled twice.
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

    /// Name of the runner in a line.
    pub(crate) fn introduce(&self) -> &'static str {
        match self.kind {
            RunnerKind::Nextest => "tests run with cargo nextest",
            RunnerKind::Cargo => "tests run with cargo test: cargo nextest is not installed",
        }
    }

    /// Builds all targets that [`Self::run`] will need; true if they build.
    pub(crate) fn build(&self) -> Result<bool> {
        // Only examples or documentation were selected. Without a package Cargo would build all of them.
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

    /// True if one run can take the tests of many packages, and its report keeps them apart.
    pub(crate) fn takes_many(&self) -> bool {
        match self.kind {
            RunnerKind::Nextest => true,
            RunnerKind::Cargo => false,
        }
    }

    /// Runs the tests of some packages, without those whose names contain one of `skip`.
    pub(crate) fn run(
        &self,
        packages: &[&str],
        env: &[(&str, PathBuf)],
        skip: &[String],
    ) -> Result<TestRun> {
        self.run_some((packages, None), env, skip)
    }

    /// The same, only for tests whose names contain `only`.
    pub(crate) fn run_some(
        &self,
        (packages, only): (&[&str], Option<&str>),
        env: &[(&str, PathBuf)],
        skip: &[String],
    ) -> Result<TestRun> {
        let mut command = shell::cargo(&self.root);
        match self.kind {
            RunnerKind::Nextest => {
                let filters: Vec<String> =
                    packages.iter().map(|package| format!("package(={package})")).collect();
                // A suite whose tests are all skipped has not failed.
                command.args(["nextest", "run", "--no-fail-fast", "--no-tests=pass"]);
                command.args(["--status-level", if only.is_some() { "pass" } else { "skip" }]);
                // The same selection as the build, then some packages of it: another selection has
                // other features, and is compiled again.
                command.args(&self.selection).args(["-E", &filters.join(" | ")]);
            }
            RunnerKind::Cargo => {
                command.args(["test", "--tests", "--no-fail-fast"]);
                command.args(packages.iter().flat_map(|package| ["--package", package]));
            }
        }
        command.args(only).arg("--").args(skip.iter().flat_map(|pattern| ["--skip", pattern]));
        // The counter is a part of each line that is read.
        command.env("NEXTEST_SHOW_PROGRESS", "counter");
        command
            .env("TMPDIR", scratch::folder()?)
            .envs(env.iter().map(|(name, value)| (name, value)));
        let TestRun { tally, tests } = self.count(&mut command)?;
        // Only of those: tests of another name are not skipped, they belong to another suite.
        let tally = if only.is_some() { TestTally { skipped: 0, ..tally } } else { tally };
        Ok(TestRun { tally, tests })
    }

    fn count(&self, command: &mut Command) -> Result<TestRun> {
        let captured = shell::capture_shown(command)?;
        Ok(match self.kind {
            RunnerKind::Nextest => TestRun {
                tally: TestTally::of_nextest(&captured),
                tests: FinishedTest::of_nextest(&captured),
            },
            RunnerKind::Cargo => {
                TestRun { tally: TestTally::of_libtest(&captured), tests: Vec::new() }
            }
        })
    }
}

/// Counts of a run, and each of its tests if the runner is nextest.
#[derive(Debug, Default)]
pub(crate) struct TestRun {
    pub(crate) tally: TestTally,
    pub(crate) tests: Vec<FinishedTest>,
}

impl TestRun {
    /// A run that should have taken place and did not.
    pub(crate) fn not_run() -> Self {
        Self { tally: TestTally::NOT_RUN, tests: Vec::new() }
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
    shell::capture_shown(&mut command).map(|captured| TestTally::of_libtest(&captured))
}
