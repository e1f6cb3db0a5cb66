//! Programs and libraries that the end-to-end suites need, installed while the suites compile: compilation leaves
//! the network idle, and an installation leaves the processors idle.
//!
//! A program that cannot be installed is not an error here. The tests that need it are skipped, and the closing
//! lines have the reason. No step here runs Cargo, which would wait for the compilation.

use std::{
    env, iter,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::Result;

use super::{
    BROWSER, END_TO_END, SPECIFICATION,
    browser::{self, Browser},
    clients::{self, ClientLibraries, Clients},
};
use crate::{
    shell,
    tools::{
        debian::{self, DebianProgram},
        helm, patroni,
    },
    workspace::Workspace,
};

/// Prefix of tests, the variable that names their program, and the program.
const DEBIAN: &[(&str, &str, DebianProgram)] = &[
    ("promtool", "HOLDFAST_TEST_PROMTOOL", debian::PROMTOOL),
    ("postgres_haproxy", "HOLDFAST_TEST_HAPROXY", debian::HAPROXY),
    ("systemd", "HOLDFAST_TEST_SYSTEMD_ANALYZE", debian::SYSTEMD_ANALYZE),
];
/// Prefix of tests that have Patroni read its file, and the variable that names it.
const PATRONI: (&str, &str) = ("postgres_patroni", "HOLDFAST_TEST_PATRONI");
/// Prefixes of tests that need Helm, and a Python with Kubernetes' schemas.
const HELM: [&str; 3] = ["helm", "postgres_helm", "postgres_haproxy_helm"];
/// Prefix of tests, a program that is not installed for them, and the reason why they are skipped without it.
const TOOLS: &[(&str, &str, &str)] = &[
    ("lock", "python3", "there is no python3, whose SQLite holds the lock"),
    ("sqlite", "python3", "there is no python3, whose SQLite reads and changes the file"),
    ("postgres_clock", "cc", "there is no cc, which builds the library that a wrong clock is"),
    ("disk", "prlimit", "there is no prlimit, which fills the disk of a running process"),
];
/// Prefix of the tests that explore models.
const SPIN: &str = "spin";
/// Prefix of the tests whose pages call the gateway in a browser.
const CHROMIUM: &str = "chromium";

/// Installed programs of the suites that were named, by what their tests need.
#[derive(Debug, Default)]
pub(super) struct TestPrograms {
    pub(super) specification: SuiteNeeds,
    pub(super) end_to_end: SuiteNeeds,
    pub(super) browser: SuiteNeeds,
}

/// Environment of a suite, and the tests that it runs without.
#[derive(Debug, Default, Clone)]
pub(super) struct SuiteNeeds {
    pub(super) env: Vec<(&'static str, PathBuf)>,
    /// Prefixes of the names of tests that are skipped.
    pub(super) skip: Vec<&'static str>,
    /// A line for each reason.
    pub(super) notes: Vec<String>,
}

impl TestPrograms {
    /// Installs the programs of the wanted suites, one after the other: installations of Debian's packages exclude
    /// each other.
    pub(super) fn prepare(workspace: &Workspace, is_wanted: impl Fn(&str) -> bool) -> Result<Self> {
        let mut programs = Self::default();
        if is_wanted(SPECIFICATION) {
            programs.specification = specification(workspace);
        }
        if is_wanted(END_TO_END) {
            programs.end_to_end = end_to_end(workspace)?;
        }
        if is_wanted(BROWSER) {
            match Browser::prepare(workspace)? {
                Ok(browser) => programs.browser.env.extend(browser.env()),
                Err(reason) => programs.browser.leave_out(&[BROWSER], &reason),
            }
        }
        Ok(programs)
    }
}

impl SuiteNeeds {
    /// Adds a program under its variable, or skips the tests of this prefix with the reason.
    pub(super) fn add(
        &mut self,
        program: Result<PathBuf>,
        (prefix, variable): (&'static str, &'static str),
    ) {
        match program {
            Ok(path) => self.env.push((variable, path)),
            Err(error) => self.leave_out(&[prefix], &format!("{error:#}")),
        }
    }

    /// Skips the tests of these prefixes.
    pub(super) fn leave_out(&mut self, prefixes: &[&'static str], reason: &str) {
        let names = prefixes.join("_ or ");
        self.notes.push(format!("skipped, the tests with {names}_ in their names: {reason}"));
        self.skip.extend(prefixes);
    }
}

/// Spin reads a model through gcc's preprocessor, and writes a verifier in C.
fn specification(workspace: &Workspace) -> SuiteNeeds {
    let mut needs = SuiteNeeds::default();
    if shell::has("gcc") {
        needs.add(debian::find(workspace, debian::SPIN), (SPIN, "HOLDFAST_TEST_SPIN"));
    } else {
        needs.leave_out(
            &[SPIN],
            "there is no gcc, with which Spin reads models and builds verifiers",
        );
    }
    needs
}

fn end_to_end(workspace: &Workspace) -> Result<SuiteNeeds> {
    let mut needs = SuiteNeeds::default();
    needs.env.extend(path_to_python().map(|path| ("PATH", path)));
    let Clients { python, node } = clients::prepare(&workspace.target)?;
    let clients =
        [("python", "HOLDFAST_TEST_PYTHON", python), ("node", "HOLDFAST_TEST_NODE_DIR", node)];
    for (name, variable, client) in clients {
        match client {
            ClientLibraries::Ready(path) => needs.env.push((variable, path)),
            ClientLibraries::Missing(reason) => needs.leave_out(&[name], &reason),
        }
    }
    for (name, variable, program) in DEBIAN {
        needs.add(debian::find(workspace, *program), (name, variable));
    }
    needs.add(patroni::find(workspace), PATRONI);
    match helm::find(workspace) {
        Ok(path) if !needs.skip.contains(&"python") => {
            needs.env.push(("HOLDFAST_TEST_HELM", path));
        }
        Ok(_helm) => needs.leave_out(&HELM, "they need Python's packages"),
        Err(error) => needs.leave_out(&HELM, &format!("{error:#}")),
    }
    if let Err(error) = browser::chromium() {
        needs.leave_out(&[CHROMIUM], &format!("{error:#}"));
    }
    for (name, _program, reason) in TOOLS.iter().filter(|(_, program, _)| !shell::has(program)) {
        needs.leave_out(&[name], reason);
    }
    Ok(needs)
}

/// The search path with the folder of Python itself first: a version manager puts a script in its place, which takes
/// longer than what tests do in Python.
fn path_to_python() -> Option<PathBuf> {
    let mut python = Command::new("python3");
    let program = shell::printed(python.args(["-c", "import sys; print(sys.executable)"])).ok()?;
    let folder = Path::new(program.trim()).parent()?.to_owned();
    let others = env::var_os("PATH")?;
    let folders = iter::once(folder).chain(env::split_paths(&others));
    env::join_paths(folders).ok().map(PathBuf::from)
}
