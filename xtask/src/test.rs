//! `cargo xtask test`: every suite, from a clean clone, and one line that counts them all.
//!
//! Tests that cannot run here are counted as skipped and the reason is printed; none is left out in silence. A
//! suite that does not build, or ends without a summary, counts as one failure.
//!
//! ```text
//! build all suites at once, and install programs ─▶ database server ─▶ unit suites in one run ─▶ end to end ─▶
//! browser ─▶ benchmark ─▶ examples ─▶ doc tests ─▶ the ten slowest tests ─▶ one line
//! ```
//!
//! All suites are built together, because the features that crates share are then resolved once: built one by one,
//! each would compile its dependencies again. The unit suites share one run, so that a test that waits leaves its
//! processor to a test of another crate; `.config/nextest.toml` bounds those that compute. The end-to-end suite,
//! the browser and the benchmark follow one after the other, because each measures moments.

pub(crate) mod browser;
pub(crate) mod clients;
mod examples;
mod programs;
mod runner;
mod tally;

use std::{
    cmp::Reverse,
    env, mem, thread,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, ensure};

pub(crate) use self::runner::Runner;
use self::{
    programs::{SuiteNeeds, TestPrograms},
    runner::TestRun,
    tally::{FinishedTest, TestTally},
};
use crate::{
    gateway,
    postgres::{PostgresServer, Purpose},
    previous,
    shell::{self, print_line, spell},
    workspace::{THUMBNAILS, Workspace},
};

/// The suites of one crate each: what the suite is called, and the crate.
const CRATES: &[(&str, &str)] = &[
    ("domain", "holdfast-domain"),
    ("accounts", "holdfast-accounts"),
    ("admin", "holdfast-admin"),
    (CONSOLE, "holdfast-console"),
    ("failpoint", "holdfast-failpoint"),
    ("telemetry", "holdfast-telemetry"),
    ("testkit", "holdfast-testkit"),
    ("wire", "holdfast-wire"),
    (STORE, "holdfast-store"),
    ("engine", "holdfast-engine"),
    ("providers", "holdfast-providers"),
    ("receipts", "holdfast-receipts"),
    ("webhooks", "holdfast-webhooks"),
    ("net", "holdfast-net"),
    ("sidecar", "holdfast-sidecar"),
    ("http", "holdfast-http"),
    ("config", "holdfast-config"),
    ("bootstrap", "holdfast-bootstrap"),
    (EMBED, "holdfast-embed"),
    ("thumbnails", THUMBNAILS),
    ("cli", "holdfast-cli"),
    ("gateway", "holdfast"),
    ("xtask", "xtask"),
    ("checker", "history-checker"),
    ("simulation", "holdfast-simulation"),
    (SPECIFICATION, "specification"),
    (END_TO_END, "holdfast-tests"),
    (HISTORIES, "holdfast-tests"),
    (BROWSER, "holdfast-tests"),
    (BENCH, "holdfast-bench"),
];

/// The pages of the console, on SQLite and on a server.
const CONSOLE: &str = "console";
/// The run of all suites of [`CRATES`] before the end-to-end one.
const UNITS: &str = "units";
/// Sales and administration of an embedder, on SQLite and on a server.
const EMBED: &str = "embed";
/// Everything that stores promise, on SQLite and on a server.
const STORE: &str = "store";
/// In the names of tests that need a database server, before an underscore.
const POSTGRES: &str = "postgres";
/// Drives the real binary with real client libraries.
const END_TO_END: &str = "tests";
/// Records histories of unbroken and broken gateways, and judges them: those end-to-end tests whose names begin so.
const HISTORIES: &str = "histories";
/// Explores the models of the operation's state machine in another language, and prints what they come to.
const SPECIFICATION: &str = "specification";
/// Drives the console in a real browser: those end-to-end tests whose names begin so.
const BROWSER: &str = "browser";
/// The benchmark, to see that it still runs; it drives the real binary too.
const BENCH: &str = "bench";
/// Prefix of the benchmark's tests that need this program, and the program's own name.
const VALGRIND: &str = "valgrind";
/// Every example of the workspace, and the service in its own workspace, run to its end.
const EXAMPLES: &str = "examples";
/// The code in the documentation.
const DOC: &str = "doc";

/// Number of the slowest tests that the closing lines list.
const SLOWEST: usize = 10;

struct Suite {
    name: &'static str,
    tally: TestTally,
    took: Duration,
    /// Clock of the time: the wall's, or the sum over tests that ran at the same time.
    clock: &'static str,
    tests: Vec<FinishedTest>,
}

/// Runs the named suites, all of them if none is named; true if no test failed.
pub(crate) fn run(workspace: &Workspace, named: &[String]) -> Result<bool> {
    let names = names();
    for name in named {
        ensure!(names.contains(&name.as_str()), "no suite {name}; there are {}", names.join(", "));
    }
    let unlisted = without_a_suite(workspace);
    // The tests of a new crate would never run, without a report.
    ensure!(unlisted.is_empty(), "crates without a suite in xtask: {}", unlisted.join(", "));

    let is_wanted = |name: &str| named.is_empty() || named.iter().any(|it| it == name);
    let wanted: Vec<_> = CRATES.iter().copied().filter(|(name, _)| is_wanted(name)).collect();
    let packages = wanted.iter().map(|(_, package)| *package).collect();
    let runner = Runner::find(&workspace.root, packages, named.is_empty());
    print_line(runner.introduce())?;

    let started = Instant::now();
    let mut notes = Vec::new();
    let mut suites = Vec::new();
    let (is_built, programs) = thread::scope(|scope| {
        let programs = scope.spawn(|| TestPrograms::prepare(workspace, is_wanted));
        let is_built = runner.build();
        // Judged by the suites that need them: the others run without.
        (
            is_built,
            programs.join().unwrap_or_else(|_panic| Err(anyhow!("an installation panicked"))),
        )
    });
    let is_built = is_built?;
    print_line(&format!("build: {}", spell(started.elapsed())))?;
    let server = match wanted
        .iter()
        .any(|(name, _)| [STORE, EMBED, CONSOLE, END_TO_END, HISTORIES, BENCH].contains(name))
    {
        // Only after the build: it would stand idle for as long as that takes.
        true if is_built => server(&mut notes)?,
        true | false => None,
    };
    let (units, others): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|(name, _)| {
        ![SPECIFICATION, END_TO_END, HISTORIES, BROWSER, BENCH].contains(name)
    });
    if runner.takes_many() && is_built && !units.is_empty() {
        suites.extend(together(&runner, &units, server.as_ref())?);
    } else {
        for (name, package) in units {
            suites.push(time(name, || match is_built {
                true => with_server(&runner, &[package], server.as_ref()),
                false => Ok(TestRun::not_run()),
            })?);
        }
    }
    let mut programs = programs.or_else(|error| match others.is_empty() {
        true => Ok(TestPrograms::default()),
        false => Err(error),
    })?;
    let world = TestWorld { workspace, runner: &runner, server: server.as_ref() };
    for (name, package) in others {
        suites.push(time(name, || match is_built {
            true => world.run((name, package), &mut programs, &mut notes),
            false => Ok(TestRun::not_run()),
        })?);
    }
    if is_wanted(EXAMPLES) {
        suites.push(time(EXAMPLES, || counted(examples::run(workspace)))?);
    }
    if is_wanted(DOC) {
        suites.push(time(DOC, || counted(runner::doc_tests(&workspace.root)))?);
    }
    if !is_built {
        notes.push("the suites do not build: each that was not run counts as one failure".into());
    }
    close(&suites, &notes, started.elapsed())
}

/// Names of all suites.
pub(crate) fn names() -> Vec<&'static str> {
    CRATES.iter().map(|(name, _)| *name).chain([EXAMPLES, DOC]).collect()
}

fn without_a_suite(workspace: &Workspace) -> Vec<&str> {
    let names = workspace.packages.iter().map(|package| package.name.as_str());
    names.filter(|name| !CRATES.iter().any(|(_, package)| package == name)).collect()
}

fn time(name: &'static str, run: impl FnOnce() -> Result<TestRun>) -> Result<Suite> {
    print_line(&format!("\nsuite {name}"))?;
    let started = Instant::now();
    let TestRun { tally, tests } = run()?;
    let took = started.elapsed();
    print_line(&format!("suite {name}: {tally} in {}", spell(took)))?;
    Ok(Suite { name, tally, took, clock: "", tests })
}

/// A run that has only counts.
fn counted(tally: Result<TestTally>) -> Result<TestRun> {
    tally.map(|tally| TestRun { tally, tests: Vec::new() })
}

/// The unit suites in one run. The time of each is the sum over its tests, some of which ran at the same time.
fn together(
    runner: &Runner,
    units: &[(&'static str, &str)],
    server: Option<&PostgresServer>,
) -> Result<Vec<Suite>> {
    let packages: Vec<&str> = units.iter().map(|(_, package)| *package).collect();
    let all = time(UNITS, || with_server(runner, &packages, server))?;
    let mut suites: Vec<Suite> = units
        .iter()
        .map(|(name, package)| {
            let tally = TestTally::of_package(&all.tests, package);
            let tests: Vec<_> =
                all.tests.iter().filter(|test| test.is_of(package)).cloned().collect();
            let took = tests.iter().map(|test| test.took).sum();
            Suite { name, tally, took, clock: " of tests", tests }
        })
        .collect();
    let sum = suites.iter().fold(TestTally::default(), |sum, suite| sum + suite.tally);
    for suite in suites.iter_mut().filter(|suite| suite.tests.is_empty()) {
        print_line(&format!("suite {}: it has no test", suite.name))?;
        suite.tally = TestTally::NOT_RUN;
    }
    if sum != all.tally {
        print_line(&format!("suite {UNITS}: its tests are {sum}, its summary is {}", all.tally))?;
        suites.push(Suite { tally: TestTally::NOT_RUN, tests: Vec::new(), ..all });
    }
    Ok(suites)
}

/// A database server for the tests that need one.
fn server(notes: &mut Vec<String>) -> Result<Option<PostgresServer>> {
    match PostgresServer::start(Purpose::Tests) {
        Ok(server) => Ok(Some(server)),
        Err(error) => {
            print_line(&format!("PostgreSQL: not to be had: {error:#}"))?;
            notes.push(format!("skipped, the tests with {POSTGRES}_ in their names: {error:#}"));
            Ok(None)
        }
    }
}

fn with_server(
    runner: &Runner,
    packages: &[&str],
    server: Option<&PostgresServer>,
) -> Result<TestRun> {
    let mut env = Vec::from(runner::at_once(2));
    match server {
        Some(server) => {
            env.extend(server.env());
            runner.run(packages, &env, &[])
        }
        None => runner.run(packages, &env, &[format!("{POSTGRES}_")]),
    }
}

/// Suites with a run of their own have these in common.
struct TestWorld<'a> {
    workspace: &'a Workspace,
    runner: &'a Runner,
    server: Option<&'a PostgresServer>,
}

impl TestWorld<'_> {
    /// Runs a suite with the programs that it needs.
    fn run(
        &self,
        (name, package): (&str, &str),
        programs: &mut TestPrograms,
        notes: &mut Vec<String>,
    ) -> Result<TestRun> {
        match name {
            SPECIFICATION => self.with_spin(package, mem::take(&mut programs.specification), notes),
            END_TO_END => self.end_to_end(package, mem::take(&mut programs.end_to_end), notes),
            HISTORIES => self.histories(package),
            BROWSER => self.in_a_browser(package, mem::take(&mut programs.browser), notes),
            _ => self.with_gateway(package, notes),
        }
    }

    /// The models' own suite: each test is a model, and prints the states of its searches.
    fn with_spin(
        &self,
        package: &str,
        mut needs: SuiteNeeds,
        notes: &mut Vec<String>,
    ) -> Result<TestRun> {
        notes.append(&mut needs.notes);
        needs.env.push(("NEXTEST_SUCCESS_OUTPUT", "immediate".into()));
        let skip: Vec<String> = needs.skip.iter().map(|name| format!("{name}_")).collect();
        self.runner.run(&[package], &needs.env, &skip)
    }

    fn with_gateway(&self, package: &str, notes: &mut Vec<String>) -> Result<TestRun> {
        let Some(gateway) = gateway::build(self.workspace, gateway::Profile::Dev)? else {
            return Ok(TestRun::not_run());
        };
        // It measures a disk, and callgrind is reached by pipes in the folder that all processes share.
        let mut env = vec![("HOLDFAST_BIN", gateway), ("TMPDIR", env::temp_dir())];
        let mut skip = Vec::new();
        match self.server {
            Some(server) => env.extend(server.env()),
            None => skip.push(format!("{POSTGRES}_")),
        }
        if !shell::has(VALGRIND) {
            notes.push(format!(
                "skipped, the tests with {VALGRIND}_ in their names: there is no {VALGRIND}"
            ));
            skip.push(format!("{VALGRIND}_"));
        }
        self.runner.run(&[package], &env, &skip)
    }

    fn end_to_end(
        &self,
        package: &str,
        mut needs: SuiteNeeds,
        notes: &mut Vec<String>,
    ) -> Result<TestRun> {
        // First: the gateway that is built last stays in its place in the target folder.
        let previous = self.server.map(|_| previous::build(self.workspace));
        let Some(gateway) = gateway::build(self.workspace, gateway::Profile::Dev)? else {
            notes.push(
                "the gateway does not build: its end-to-end suite counts as one failure".into(),
            );
            return Ok(TestRun::not_run());
        };
        needs.env.push(("HOLDFAST_BIN", gateway));
        needs.env.extend(runner::at_once(4));
        match self.server {
            Some(server) => needs.env.extend(server.env()),
            // The closing lines have its reason already.
            None => needs.skip.push(POSTGRES),
        }
        // Without a server these are skipped with all others that need one.
        if let Some(built) = previous {
            needs.add(built, (previous::TESTS, previous::VARIABLE));
        }
        notes.append(&mut needs.notes);
        if !needs.skip.is_empty() {
            needs.env.push(("HOLDFAST_SKIP", needs.skip.join(",").into()));
        }
        // With the underscore: a test whose name only begins like it still runs.
        let others = needs.skip.into_iter().chain([BROWSER, HISTORIES]);
        let prefixes: Vec<String> = others.map(|name| format!("{name}_")).collect();
        self.runner.run(&[package], &needs.env, &prefixes)
    }

    /// The histories' own suite: a part of the end-to-end tests that keeps its files, and prints what they come to.
    fn histories(&self, package: &str) -> Result<TestRun> {
        let Some(gateway) = gateway::build(self.workspace, gateway::Profile::Dev)? else {
            return Ok(TestRun::not_run());
        };
        let mut env = vec![
            ("HOLDFAST_BIN", gateway),
            ("HOLDFAST_HISTORIES", self.workspace.target.join(HISTORIES)),
            ("NEXTEST_SUCCESS_OUTPUT", "immediate".into()),
        ];
        let mut skip = Vec::new();
        match self.server {
            Some(server) => env.extend(server.env()),
            // The closing lines have its reason already.
            None => skip.push(format!("{POSTGRES}_")),
        }
        self.runner.run_some((&[package], Some(&format!("{HISTORIES}_"))), &env, &skip)
    }

    /// The console's own suite: a part of the end-to-end tests, with the machine for itself.
    fn in_a_browser(
        &self,
        package: &str,
        mut needs: SuiteNeeds,
        notes: &mut Vec<String>,
    ) -> Result<TestRun> {
        let Some(gateway) = gateway::build(self.workspace, gateway::Profile::Dev)? else {
            return Ok(TestRun::not_run());
        };
        needs.env.push(("HOLDFAST_BIN", gateway));
        notes.append(&mut needs.notes);
        let only = format!("{BROWSER}_");
        let skip: Vec<String> = needs.skip.iter().map(|name| format!("{name}_")).collect();
        self.runner.run_some((&[package], Some(&only)), &needs.env, &skip)
    }
}

fn close(suites: &[Suite], notes: &[String], took: Duration) -> Result<bool> {
    print_line("")?;
    for Suite { name, tally, took, clock, tests: _ } in suites {
        print_line(&format!("{name:<10} {tally} in {}{clock}", spell(*took)))?;
    }
    let mut tests: Vec<&FinishedTest> = suites.iter().flat_map(|suite| &suite.tests).collect();
    tests.sort_by_key(|test| Reverse(test.took));
    for test in tests.iter().take(SLOWEST) {
        print_line(&format!("slowest: {:>10} {test}", spell(test.took)))?;
    }
    print_line(&format!("all suites in {}", spell(took)))?;
    for note in notes {
        print_line(note)?;
    }
    if let Some(note) = unexplained(suites, notes) {
        print_line(&note)?;
    }
    let total = suites.iter().fold(TestTally::default(), |sum, suite| sum + suite.tally);
    print_line(&total.to_string())?;
    Ok(total.failed == 0)
}

/// Note on skipped tests that no other note explains: the tests themselves were skipped on their own condition.
fn unexplained(suites: &[Suite], notes: &[String]) -> Option<String> {
    let is_quiet = |suite: &&Suite| {
        ![STORE, EMBED, CONSOLE, END_TO_END, BROWSER].contains(&suite.name) || notes.is_empty()
    };
    let quiet = suites.iter().filter(|suite| suite.tally.skipped > 0).filter(is_quiet);
    let names: Vec<&str> = quiet.map(|suite| suite.name).collect();
    let names = names.join(", ");
    (!names.is_empty()).then(|| format!("skipped, in {names}: tests marked as ignored"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_crate_of_the_workspace_has_a_suite() {
        assert_eq!(without_a_suite(&Workspace::load().unwrap()), Vec::<&str>::new());
    }

    #[test]
    fn skipped_tests_are_explained() {
        let suite = |name, skipped| Suite {
            name,
            tally: TestTally { skipped, ..TestTally::default() },
            took: Duration::ZERO,
            clock: "",
            tests: Vec::new(),
        };
        let suites = [suite("wire", 1), suite("store", 0), suite(END_TO_END, 2)];
        let note = "skipped, in wire, tests: tests marked as ignored";
        assert_eq!(unexplained(&suites, &[]).as_deref(), Some(note));
        let notes = ["skipped, the tests with node_ in their names: there is no node".to_owned()];
        let note = "skipped, in wire: tests marked as ignored";
        assert_eq!(unexplained(&suites, &notes).as_deref(), Some(note));
        assert_eq!(unexplained(&[suite("store", 0)], &[]), None);
    }
}
