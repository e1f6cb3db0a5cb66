//! The client libraries that the end-to-end suite drives the gateway with, and tools that test an API against its
//! description, in private environments under the target folder.
//!
//! Pinned, because the suite asserts the behaviour of these very versions. If one cannot be installed, its tests
//! are skipped and the reason is printed; the rest of the suite runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell::{capture, fetch, has, print_line, printed};

/// The library of the Python client, what tests the gateway against its own description, what
/// receivers verify webhooks with, and Kubernetes' schemas with what reads them.
const PYTHON: &[(&str, &str)] = &[
    ("kubernetes-validate", "1.37.0"),
    ("openai", "3.51.0"),
    ("openapi-spec-validator", "0.9.0"),
    ("schemathesis", "4.32.5"),
    ("standardwebhooks", "1.1.0"),
];
const NODE_OPENAI: &str = "6.49.0";

/// Sources of packages, and the remedy if they do not answer.
const INDEX: &str = "the package index of Python";
const REACH_INDEX: &str = "name one that answers (`pip config set global.index-url`)";
const REGISTRY: &str = "the registry of npm";
const REACH_REGISTRY: &str = "name one that answers (`npm config set registry`)";

/// The clients, as far as they are there.
#[derive(Debug)]
pub(crate) struct Clients {
    /// The path of a Python that has the library.
    pub(crate) python: ClientLibraries,
    /// The path of a folder whose `node_modules` has the library.
    pub(crate) node: ClientLibraries,
}

#[derive(Debug)]
pub(crate) enum ClientLibraries {
    Ready(PathBuf),
    /// The reason for people, if there is none.
    Missing(String),
}

/// Installs what is not there yet under `target`.
pub(crate) fn prepare(target: &Path) -> Result<Clients> {
    let folder = target.join("clients");
    fs::create_dir_all(&folder).context("cannot make the folder of the clients")?;
    Ok(Clients {
        python: report("Python", &python_wanted().join(", "), python(&folder.join("python")))?,
        node: report("Node", &format!("openai@{NODE_OPENAI}"), node(&folder.join("node")))?,
    })
}

/// Prints the result in a line.
pub(crate) fn report(
    name: &str,
    packages: &str,
    prepared: Result<PathBuf>,
) -> Result<ClientLibraries> {
    match prepared {
        Ok(path) => {
            print_line(&format!("{name} client: {packages}: ready"))?;
            Ok(ClientLibraries::Ready(path))
        }
        Err(error) => {
            print_line(&format!("{name} client: not to be had: {error:#}"))?;
            Ok(ClientLibraries::Missing(format!("{error:#}")))
        }
    }
}

/// Packages in the notation of `pip`.
fn python_wanted() -> Vec<String> {
    PYTHON.iter().map(|(name, version)| format!("{name}=={version}")).collect()
}

fn python(folder: &Path) -> Result<PathBuf> {
    let python = folder.join("bin").join("python");
    let wanted = python_wanted();
    if python_has(&python) == Some(wanted.clone()) {
        return Ok(python);
    }
    print_line(&format!("Python client: installing {}", wanted.join(", ")))?;
    fetch(new_python(folder)?.args(&wanted), INDEX, REACH_INDEX)?;
    ensure!(python_has(&python) == Some(wanted), "pip did not install what it was asked for");
    Ok(python)
}

fn python_has(python: &Path) -> Option<Vec<String>> {
    const ASK: &str = "import sys, openai\nfrom importlib.metadata import version\n\
                       print(*[name + '==' + version(name) for name in sys.argv[1:]])";
    let names = PYTHON.iter().map(|(name, _)| name);
    let captured = capture(Command::new(python).args(["-c", ASK]).args(names));
    // A Python that does not answer has no libraries: they are installed anew.
    let captured = captured.ok().filter(|it| it.status.success())?;
    Some(captured.stdout.split_whitespace().map(str::to_owned).collect())
}

fn node(folder: &Path) -> Result<PathBuf> {
    ensure!(has("node"), "there is no node");
    if node_version(folder).is_some_and(|version| version == NODE_OPENAI) {
        return Ok(folder.to_owned());
    }
    ensure!(has("npm"), "there is no npm");
    print_line(&format!("Node client: installing openai {NODE_OPENAI}"))?;
    fs::create_dir_all(folder).context("cannot make the folder of the project")?;
    // Without a manifest of its own npm would search for a project in the folders above.
    fs::write(folder.join("package.json"), "{ \"private\": true }\n")
        .context("cannot write the project's manifest")?;
    let options = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"];
    let package = format!("openai@{NODE_OPENAI}");
    let mut npm = Command::new("npm");
    npm.current_dir(folder).arg("install").args(options).arg(package);
    fetch(&mut npm, REGISTRY, REACH_REGISTRY)?;
    ensure!(node_version(folder).is_some(), "npm did not install it");
    Ok(folder.to_owned())
}

/// Files by which npm installs.
const LOCKED: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs the packages of the lock file of one folder into another one, unless that was done.
pub(crate) fn node_by_lock(from: &Path, folder: &Path) -> Result<()> {
    ensure!(has("node"), "there is no node");
    let read = |folder: &Path| LOCKED.map(|file| fs::read(folder.join(file)).ok());
    // npm writes this file last.
    let is_whole = folder.join("node_modules").join(".package-lock.json").is_file();
    if is_whole && read(folder) == read(from) {
        return Ok(());
    }
    ensure!(has("npm"), "there is no npm");
    print_line(&format!("Node: installing the libraries of {}", from.display()))?;
    fs::create_dir_all(folder).context("cannot make the folder of the libraries")?;
    for file in LOCKED {
        fs::copy(from.join(file), folder.join(file)).context("cannot copy the lock file")?;
    }
    let options = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"];
    let mut npm = Command::new("npm");
    fetch(npm.current_dir(folder).arg("ci").args(options), REGISTRY, REACH_REGISTRY).map(drop)
}

/// Installs the packages of this list into a Python of its own, unless that was done. Gives the Python's path.
pub(crate) fn python_by_list(list: &Path, folder: &Path) -> Result<PathBuf> {
    let (python, done) = (folder.join("bin").join("python"), folder.join("installed.txt"));
    let wanted = fs::read(list).context("there is no list of libraries")?;
    if fs::read(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    print_line(&format!("Python: installing the libraries of {}", list.display()))?;
    let mut pip = new_python(folder)?;
    fetch(pip.arg("--requirement").arg(list), INDEX, REACH_INDEX)?;
    // Last: half an installation has no such file.
    fs::write(done, wanted).context("cannot write down what is installed")?;
    Ok(python)
}

/// The installer of a new Python in this folder.
fn new_python(folder: &Path) -> Result<Command> {
    ensure!(has("python3"), "there is no python3");
    let mut venv = Command::new("python3");
    printed(venv.args(["-m", "venv", "--clear"]).arg(folder)).context(
        "python3 makes no environment: install Debian's package python3-venv, then again",
    )?;
    let mut pip = Command::new(folder.join("bin").join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    pip.arg("--retries=2");
    Ok(pip)
}

fn node_version(folder: &Path) -> Option<String> {
    let manifest = folder.join("node_modules").join("openai").join("package.json");
    // No manifest, or half of one: it is installed anew.
    let manifest: Value = serde_json::from_slice(&fs::read(manifest).ok()?).ok()?;
    manifest.get("version")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_an_installation_is_none() {
        let nowhere = Path::new("no-such-folder");
        assert_eq!(node_version(nowhere), None);
        assert_eq!(python_has(&nowhere.join("python")), None);
    }
}
