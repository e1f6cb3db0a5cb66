//! `cargo xtask test`: every suite, from a clean clone, and one line that counts them all.
//!
//! What cannot run here is counted as skipped and its reason is printed; nothing is left out in
//! silence. A suite that does not build, or ends without saying why, counts as one failure.
//!
//! ```text
//! build all suites at once ─▶ database server ─▶ unit suites in one run ─▶ end to end ─▶ browser ─▶
//! benchmark ─▶ examples ─▶ doc tests ─▶ the ten slowest tests ─▶ one line
//! ```
//!
//! All suites are built together, because the features that crates share are then resolved once: built one
//! by one, each would compile its dependencies again. The unit suites share one run, so that a test that waits
//! leaves its processor to a test of another crate; `.config/nextest.toml` bounds those that compute. The
//! end-to-end suite, the browser and the benchmark follow one after the other, because each measures moments.

pub(crate) mod browser;
pub(crate) mod clients;
mod examples;
mod runner;
mod tally;

use std::{
    cmp::Reverse,
    env,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

pub(crate) use self::runner::Runner;
use self::{
    browser::Browser,
    clients::{Client, Clients},
    runner::TestRun,
    tally::{FinishedTest, TestTally},
};
use crate::{
    gateway,
    postgres::{PostgresServer, Purpose},
    previous,
    shell::{self, say, spell},
    tools::{
        debian::{self, DebianProgram},
        helm,
    },
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
    (END_TO_END, "holdfast-tests"),
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
/// Drives the console in a real browser: those end-to-end tests whose names begin so.
const BROWSER: &str = "browser";
/// The benchmark, to see that it still runs; it drives the real binary too.
const BENCH: &str = "bench";
/// Prefix of the benchmark's tests that need this program, and the program's own name.
const VALGRIND: &str = "valgrind";
/// Tests whose names begin so need this program, which they are told of by this variable.
const DEBIAN: &[(&str, &str, DebianProgram)] = &[
    ("promtool", "HOLDFAST_TEST_PROMTOOL", debian::PROMTOOL),
    ("postgres_haproxy", "HOLDFAST_TEST_HAPROXY", debian::HAPROXY),
    ("systemd", "HOLDFAST_TEST_SYSTEMD_ANALYZE", debian::SYSTEMD_ANALYZE),
];
/// Tests whose names begin so need Helm, and a Python with Kubernetes' schemas.
const HELM: [&str; 3] = ["helm", "postgres_helm", "postgres_haproxy_helm"];
/// Tests whose names begin so need this program, for people who have not got it.
const TOOLS: &[(&str, &str, &str)] = &[
    ("lock", "python3", "there is no python3, whose SQLite holds the lock"),
    ("sqlite", "python3", "there is no python3, whose SQLite reads and changes the file"),
    ("postgres_clock", "cc", "there is no cc, which builds the library that a wrong clock is"),
    ("disk", "prlimit", "there is no prlimit, which fills the disk of a running process"),
];
/// Prefix of the tests whose pages call the gateway in a browser.
const CHROMIUM: &str = "chromium";
/// Every example of the workspace and the one beside it, run to its end.
const EXAMPLES: &str = "examples";
/// The code in the documentation.
const DOC: &str = "doc";

/// Number of the slowest tests that the closing lines list.
const SLOWEST: usize = 10;

struct Suite {
    name: &'static str,
    tally: TestTally,
    took: Duration,
    /// Clock of the time: the wall's, or the sum over tests that ran beside each other.
    clock: &'static str,
    tests: Vec<FinishedTest>,
}

/// Runs the named suites, all of them when none is named; whether nothing failed.
pub(crate) fn run(workspace: &Workspace, named: &[String]) -> Result<bool> {
    let names = names();
    for name in named {
        ensure!(names.contains(&name.as_str()), "no suite {name}; there are {}", names.join(", "));
    }
    let unlisted = without_a_suite(workspace);
    // A crate that is new would else be tested by nobody, and nothing would say so.
    ensure!(unlisted.is_empty(), "crates without a suite in xtask: {}", unlisted.join(", "));

    let is_wanted = |name: &str| named.is_empty() || named.iter().any(|it| it == name);
    let wanted: Vec<_> = CRATES.iter().copied().filter(|(name, _)| is_wanted(name)).collect();
    let packages = wanted.iter().map(|(_, package)| *package).collect();
    let runner = Runner::find(&workspace.root, packages, named.is_empty());
    say(runner.introduce())?;

    let started = Instant::now();
    let mut notes = Vec::new();
    let mut suites = Vec::new();
    let is_built = runner.build()?;
    say(&format!("build: {}", spell(started.elapsed())))?;
    let server = match wanted
        .iter()
        .any(|(name, _)| [STORE, EMBED, CONSOLE, END_TO_END, BENCH].contains(name))
    {
        // Only after the build: it would stand idle for as long as that takes.
        true if is_built => server(&mut notes)?,
        true | false => None,
    };
    let (units, others): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|(name, _)| ![END_TO_END, BROWSER, BENCH].contains(name));
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
    for (name, package) in others {
        suites.push(time(name, || match name {
            _ if !is_built => Ok(TestRun::not_run()),
            END_TO_END => end_to_end(workspace, &runner, package, server.as_ref(), &mut notes),
            BROWSER => in_a_browser(workspace, &runner, package, &mut notes),
            _ => with_gateway(workspace, &runner, package, server.as_ref(), &mut notes),
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
    say(&format!("\nsuite {name}"))?;
    let started = Instant::now();
    let TestRun { tally, tests } = run()?;
    let took = started.elapsed();
    say(&format!("suite {name}: {tally} in {}", spell(took)))?;
    Ok(Suite { name, tally, took, clock: "", tests })
}

/// A run that has counts alone.
fn counted(tally: Result<TestTally>) -> Result<TestRun> {
    tally.map(|tally| TestRun { tally, tests: Vec::new() })
}

/// The unit suites in one run. The time of each is the sum over its tests, some of which ran beside others.
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
        say(&format!("suite {}: it has no test", suite.name))?;
        suite.tally = TestTally::NOT_RUN;
    }
    if sum != all.tally {
        say(&format!("suite {UNITS}: its tests are {sum}, its summary is {}", all.tally))?;
        suites.push(Suite { tally: TestTally::NOT_RUN, tests: Vec::new(), ..all });
    }
    Ok(suites)
}

/// A database server for the tests that need one.
fn server(notes: &mut Vec<String>) -> Result<Option<PostgresServer>> {
    match PostgresServer::start(Purpose::Tests) {
        Ok(server) => Ok(Some(server)),
        Err(error) => {
            say(&format!("PostgreSQL: not to be had: {error:#}"))?;
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

fn with_gateway(
    workspace: &Workspace,
    runner: &Runner,
    package: &str,
    server: Option<&PostgresServer>,
    notes: &mut Vec<String>,
) -> Result<TestRun> {
    let Some(gateway) = gateway::build_plain(workspace, gateway::Profile::Dev)? else {
        return Ok(TestRun::not_run());
    };
    // It measures a disk, and callgrind is asked by pipes in the folder that all processes share.
    let mut env = vec![("HOLDFAST_BIN", gateway), ("TMPDIR", env::temp_dir())];
    let mut skip = Vec::new();
    match server {
        Some(server) => env.extend(server.env()),
        None => skip.push(format!("{POSTGRES}_")),
    }
    if !shell::has(VALGRIND) {
        notes.push(format!(
            "skipped, the tests with {VALGRIND}_ in their names: there is no {VALGRIND}"
        ));
        skip.push(format!("{VALGRIND}_"));
    }
    runner.run(&[package], &env, &skip)
}

fn end_to_end(
    workspace: &Workspace,
    runner: &Runner,
    package: &str,
    server: Option<&PostgresServer>,
    notes: &mut Vec<String>,
) -> Result<TestRun> {
    // First: the gateway that is built last stays in its place in the target folder.
    let previous = server.map(|_| previous::build(workspace));
    let Some(gateway) = gateway::build(workspace)? else {
        notes.push("the gateway does not build: its end-to-end suite counts as one failure".into());
        return Ok(TestRun::not_run());
    };
    let mut env = Vec::from(gateway.env());
    env.extend(runner::at_once(3));
    let mut skip = Vec::new();
    let Clients { python, node } = clients::prepare(&workspace.target)?;
    let clients =
        [("python", "HOLDFAST_TEST_PYTHON", python), ("node", "HOLDFAST_TEST_NODE_DIR", node)];
    for (name, variable, client) in clients {
        match client {
            Client::Ready(path) => env.push((variable, path)),
            Client::Missing(reason) => {
                notes.push(format!("skipped, the tests with {name}_ in their names: {reason}"));
                skip.push(name);
            }
        }
    }
    match server {
        Some(server) => env.extend(server.env()),
        None => skip.push(POSTGRES),
    }
    // Without a server these are skipped with all others that need one.
    if let Some(built) = previous {
        found(built, (previous::TESTS, previous::VARIABLE), (&mut env, &mut skip), notes);
    }
    for (name, variable, program) in DEBIAN {
        let program = debian::find(workspace, *program);
        found(program, (name, variable), (&mut env, &mut skip), notes);
    }
    match helm::find(workspace) {
        Ok(path) if !skip.contains(&"python") => env.push(("HOLDFAST_TEST_HELM", path)),
        Ok(_helm) => {
            let names = HELM.join("_ or ");
            notes.push(format!(
                "skipped, the tests with {names}_ in their names: they need Python's packages"
            ));
            skip.extend(HELM);
        }
        Err(error) => {
            notes.push(format!(
                "skipped, the tests with {}_ in their names: {error:#}",
                HELM.join("_ or ")
            ));
            skip.extend(HELM);
        }
    }
    if let Err(error) = browser::chromium() {
        notes.push(format!("skipped, the tests with {CHROMIUM}_ in their names: {error:#}"));
        skip.push(CHROMIUM);
    }
    for (name, _program, reason) in TOOLS.iter().filter(|(_, program, _)| !shell::has(program)) {
        notes.push(format!("skipped, the tests with {name}_ in their names: {reason}"));
        skip.push(name);
    }
    if !skip.is_empty() {
        env.push(("HOLDFAST_SKIP", skip.join(",").into()));
    }
    // With the underscore: a test that is only called alike still runs.
    let others = skip.into_iter().chain([BROWSER]);
    let prefixes: Vec<String> = others.map(|name| format!("{name}_")).collect();
    runner.run(&[package], &env, &prefixes)
}

/// Adds a program to the environment under its variable, or skips the tests of this prefix with the reason.
fn found(
    program: Result<PathBuf>,
    (prefix, variable): (&'static str, &'static str),
    (env, skip): (&mut Vec<(&'static str, PathBuf)>, &mut Vec<&'static str>),
    notes: &mut Vec<String>,
) {
    match program {
        Ok(path) => env.push((variable, path)),
        Err(error) => {
            notes.push(format!("skipped, the tests with {prefix}_ in their names: {error:#}"));
            skip.push(prefix);
        }
    }
}

/// The console's own suite: a part of the end-to-end tests, with the machine for itself.
fn in_a_browser(
    workspace: &Workspace,
    runner: &Runner,
    package: &str,
    notes: &mut Vec<String>,
) -> Result<TestRun> {
    let Some(gateway) = gateway::build_plain(workspace, gateway::Profile::Dev)? else {
        return Ok(TestRun::not_run());
    };
    let only = format!("{BROWSER}_");
    let (mut env, mut skip) = (vec![("HOLDFAST_BIN", gateway)], Vec::new());
    match Browser::prepare(workspace)? {
        Ok(browser) => env.extend(browser.env()),
        Err(reason) => {
            notes.push(format!("skipped, the tests with {only} in their names: {reason}"));
            skip.push(only.clone());
        }
    }
    runner.run_some((&[package], Some(&only)), &env, &skip)
}

fn close(suites: &[Suite], notes: &[String], took: Duration) -> Result<bool> {
    say("")?;
    for Suite { name, tally, took, clock, tests: _ } in suites {
        say(&format!("{name:<10} {tally} in {}{clock}", spell(*took)))?;
    }
    let mut tests: Vec<&FinishedTest> = suites.iter().flat_map(|suite| &suite.tests).collect();
    tests.sort_by_key(|test| Reverse(test.took));
    for test in tests.iter().take(SLOWEST) {
        say(&format!("slowest: {:>10} {test}", spell(test.took)))?;
    }
    say(&format!("all suites in {}", spell(took)))?;
    for note in notes {
        say(note)?;
    }
    if let Some(note) = unexplained(suites, notes) {
        say(&note)?;
    }
    let total = suites.iter().fold(TestTally::default(), |sum, suite| sum + suite.tally);
    say(&total.to_string())?;
    Ok(total.failed == 0)
}

/// Note on skipped tests of which no other note speaks: the tests themselves have asked for it.
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
