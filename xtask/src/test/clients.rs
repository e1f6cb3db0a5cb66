//! The client libraries that the end-to-end suite drives the gateway with, and tools that test an API
//! against its description, in private environments under the target folder.
//!
//! Pinned, because the suite states what these very versions do. Where one cannot be had, its
//! tests are skipped and the reason is told; the rest of the suite runs.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::shell::{has, hear, say};

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

/// The clients, as far as they are there.
#[derive(Debug)]
pub(crate) struct Clients {
    /// The path of a Python that has the library.
    pub(crate) python: Client,
    /// The path of a folder whose `node_modules` has the library.
    pub(crate) node: Client,
}

#[derive(Debug)]
pub(crate) enum Client {
    Ready(PathBuf),
    /// The reason for people, where there is none.
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

/// Says in a line what came of it.
pub(crate) fn report(name: &str, packages: &str, prepared: Result<PathBuf>) -> Result<Client> {
    match prepared {
        Ok(path) => {
            say(&format!("{name} client: {packages}: ready"))?;
            Ok(Client::Ready(path))
        }
        Err(error) => {
            say(&format!("{name} client: not to be had: {error:#}"))?;
            Ok(Client::Missing(format!("{error:#}")))
        }
    }
}

/// As `pip` wants them named.
fn python_wanted() -> Vec<String> {
    PYTHON.iter().map(|(name, version)| format!("{name}=={version}")).collect()
}

fn python(folder: &Path) -> Result<PathBuf> {
    let python = folder.join("bin").join("python");
    let wanted = python_wanted();
    if python_has(&python) == Some(wanted.clone()) {
        return Ok(python);
    }
    say(&format!("Python client: installing {}", wanted.join(", ")))?;
    step("pip install", new_python(folder)?.args(&wanted))?;
    ensure!(python_has(&python) == Some(wanted), "pip did not install what it was asked for");
    Ok(python)
}

fn python_has(python: &Path) -> Option<Vec<String>> {
    const ASK: &str = "import sys, openai\nfrom importlib.metadata import version\n\
                       print(*[name + '==' + version(name) for name in sys.argv[1:]])";
    let names = PYTHON.iter().map(|(name, _)| name);
    let heard = hear(Command::new(python).args(["-c", ASK]).args(names));
    // A Python that cannot be asked has no libraries: they are installed anew.
    let heard = heard.ok().filter(|it| it.status.success())?;
    Some(heard.stdout.split_whitespace().map(str::to_owned).collect())
}

fn node(folder: &Path) -> Result<PathBuf> {
    ensure!(has("node"), "there is no node");
    if node_version(folder).is_some_and(|version| version == NODE_OPENAI) {
        return Ok(folder.to_owned());
    }
    ensure!(has("npm"), "there is no npm");
    say(&format!("Node client: installing openai {NODE_OPENAI}"))?;
    fs::create_dir_all(folder).context("cannot make the folder of the project")?;
    // Without a manifest of its own npm would look for a project in the folders above.
    fs::write(folder.join("package.json"), "{ \"private\": true }\n")
        .context("cannot write the project's manifest")?;
    let options = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"];
    let package = format!("openai@{NODE_OPENAI}");
    let mut npm = Command::new("npm");
    step("npm install", npm.current_dir(folder).arg("install").args(options).arg(package))?;
    ensure!(node_version(folder).is_some(), "npm did not install it");
    Ok(folder.to_owned())
}

/// Files by which npm installs.
const LOCKED: [&str; 2] = ["package.json", "package-lock.json"];

/// Installs what the lock file of a folder names into another one; nothing where that was done.
pub(crate) fn node_by_lock(from: &Path, folder: &Path) -> Result<()> {
    ensure!(has("node"), "there is no node");
    let read = |folder: &Path| LOCKED.map(|file| fs::read(folder.join(file)).ok());
    // npm writes this file last.
    let is_whole = folder.join("node_modules").join(".package-lock.json").is_file();
    if is_whole && read(folder) == read(from) {
        return Ok(());
    }
    ensure!(has("npm"), "there is no npm");
    say(&format!("Node: installing the libraries of {}", from.display()))?;
    fs::create_dir_all(folder).context("cannot make the folder of the libraries")?;
    for file in LOCKED {
        fs::copy(from.join(file), folder.join(file)).context("cannot copy the lock file")?;
    }
    let options = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"];
    let mut npm = Command::new("npm");
    step("npm ci", npm.current_dir(folder).arg("ci").args(options))
}

/// Installs what this list names into a Python of its own; nothing where that was done. Gives the Python's path.
pub(crate) fn python_by_list(list: &Path, folder: &Path) -> Result<PathBuf> {
    let (python, done) = (folder.join("bin").join("python"), folder.join("installed.txt"));
    let wanted = fs::read(list).context("there is no list of libraries")?;
    if fs::read(&done).is_ok_and(|installed| installed == wanted) {
        return Ok(python);
    }
    say(&format!("Python: installing the libraries of {}", list.display()))?;
    let mut pip = new_python(folder)?;
    step("pip install", pip.arg("--requirement").arg(list))?;
    // Last: half an installation has no such file.
    fs::write(done, wanted).context("cannot write down what is installed")?;
    Ok(python)
}

/// The installer of a new Python in this folder.
fn new_python(folder: &Path) -> Result<Command> {
    ensure!(has("python3"), "there is no python3");
    step("python3 -m venv", Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
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

/// Runs a step in silence; an error that says why where it fails.
pub(super) fn step(name: &str, command: &mut Command) -> Result<()> {
    let heard = hear(command)?;
    if heard.status.success() {
        return Ok(());
    }
    say(&heard.stderr)?;
    let reason = unreachable(&heard.stderr);
    let reason = reason.or_else(|| complaint(&heard.stderr).map(str::to_owned));
    bail!("{name} failed: {}", reason.unwrap_or_else(|| heard.last_words().to_owned()))
}

/// The reason where a registry was not reached: pip then says that there is no such version, npm only a code.
fn unreachable(stderr: &str) -> Option<String> {
    let find = |marks: &str| stderr.lines().find(|line| line.contains(marks));
    let of_pip = find("connection broken by").filter(|_| find("(from versions: none)").is_some());
    if let Some(line) = of_pip {
        let told = "Python's package index is out of reach; PIP_INDEX_URL names another";
        return Some(format!("{told}: {line}"));
    }
    let line = find("FetchError: request to")?;
    Some(format!("npm's registry is out of reach; npm_config_registry names another: {line}"))
}

/// The first line that calls itself an error: what follows it is advice.
fn complaint(stderr: &str) -> Option<&str> {
    let is_complaint = |line: &str| line.starts_with("ERROR") || line.starts_with("npm error");
    stderr.lines().find(|line| is_complaint(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_first_error() {
        let stderr = "npm warn x\nnpm error code ECONNREFUSED\nnpm error A complete log";
        assert_eq!(complaint(stderr), Some("npm error code ECONNREFUSED"));
        assert_eq!(complaint("WARNING: Retrying\n"), None);
    }

    #[test]
    fn a_registry_out_of_reach_is_told_as_that() {
        let broken =
            "WARNING: Retrying (total=0) after connection broken by 'refused': /simple/openai/";
        let none = "ERROR: Could not find a version that satisfies openai (from versions: none)";
        let of_pip = unreachable(&format!("{broken}\n{none}\n")).unwrap();
        assert!(of_pip.contains("PIP_INDEX_URL") && of_pip.ends_with(broken), "{of_pip}");
        let fetch = "npm error FetchError: request to http://127.0.0.1:9/openai failed";
        let of_npm = unreachable(&format!("npm error code ECONNREFUSED\n{fetch}\n")).unwrap();
        assert!(of_npm.contains("npm_config_registry") && of_npm.ends_with(fetch), "{of_npm}");
        // It was reached after all, or has no such version: the error's own words are the reason.
        let other = "ERROR: Could not find a version that satisfies openai (from versions: 1, 2)";
        assert_eq!(unreachable(&format!("{broken}\n{other}\n")), None);
        assert_eq!(unreachable(&format!("{none}\n")), None);
    }

    #[test]
    fn half_an_installation_is_none() {
        let nowhere = Path::new("no-such-folder");
        assert_eq!(node_version(nowhere), None);
        assert_eq!(python_has(&nowhere.join("python")), None);
    }
}
