//! The workspace as Cargo knows it: its crates and their dependencies.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::shell;

/// Manifest of the fuzzer's targets: a workspace of its own, built with a fuzzer.
pub(crate) const FUZZ: &str = "tests/fuzz/Cargo.toml";
/// The example that is a service of its own, as a stranger would write it.
pub(crate) const THUMBNAILS: &str = "thumbnails";

/// The workspace of this repository.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) target: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// A crate of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) examples: Vec<String>,
}

/// A line of a crate's dependencies.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    /// Ends in what is built, or builds it.
    Shipped,
    /// For tests and examples.
    Dev,
}

impl Workspace {
    /// The workspace around the current folder.
    pub(crate) fn load() -> Result<Self> {
        let here = std::env::current_dir().context("no current folder")?;
        let mut cargo = shell::cargo(&here);
        let captured =
            shell::capture(cargo.args(["metadata", "--no-deps", "--format-version", "1"]))?;
        ensure!(captured.status.success(), "cargo metadata: {}", captured.last_words());
        let metadata =
            serde_json::from_str(&captured.stdout).context("cargo metadata is not JSON")?;
        Self::read(&metadata).context("cargo metadata has another shape")
    }

    /// Output of `git log` for the newest commit in this format.
    pub(crate) fn newest_commit(&self, format: &str) -> Result<String> {
        let mut git = Command::new("git");
        git.current_dir(&self.root).args(["log", "-1"]).arg(format!("--format={format}"));
        Ok(shell::printed(&mut git)?.trim().to_owned())
    }

    /// Puts the files of a commit into this folder.
    pub(crate) fn extract(&self, commit: &str, folder: &Path) -> Result<()> {
        let archive = folder.with_extension("tar");
        let mut git = Command::new("git");
        git.current_dir(&self.root).args(["archive", "--format=tar", commit, "--output"]);
        shell::printed(git.arg(&archive))?;
        let mut tar = Command::new("tar");
        tar.arg("--extract").arg("--file").arg(&archive).arg("--directory").arg(folder);
        shell::printed(&mut tar)?;
        fs::remove_file(&archive).context("the archive is left")
    }

    fn read(metadata: &Value) -> Option<Self> {
        let packages = metadata.get("packages")?.as_array()?;
        Some(Self {
            root: text(metadata, "workspace_root")?.into(),
            target: text(metadata, "target_directory")?.into(),
            packages: packages.iter().map(Package::read).collect::<Option<_>>()?,
        })
    }
}

impl Package {
    fn read(package: &Value) -> Option<Self> {
        let dependencies = package.get("dependencies")?.as_array()?;
        let targets = package.get("targets")?.as_array()?;
        let examples = targets.iter().filter(|target| is_example(target));
        Some(Self {
            name: text(package, "name")?,
            dependencies: dependencies.iter().map(Dependency::read).collect::<Option<_>>()?,
            examples: examples.map(|target| text(target, "name")).collect::<Option<_>>()?,
        })
    }
}

impl Dependency {
    fn read(dependency: &Value) -> Option<Self> {
        let kind = match dependency.get("kind")?.as_str() {
            // A build dependency runs while what is shipped is built, and counts as shipped.
            Some("dev") => DependencyKind::Dev,
            Some(_) | None => DependencyKind::Shipped,
        };
        Some(Self { name: text(dependency, "name")?, kind })
    }
}

/// An empty folder.
pub(crate) fn emptied(folder: &Path) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    Ok(folder.to_owned())
}

fn is_example(target: &Value) -> bool {
    let kinds = target.get("kind").and_then(Value::as_array);
    kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "example"))
}

fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn crates_dependencies_and_examples_are_read() {
        let metadata = json!({
            "workspace_root": "/here",
            "target_directory": "/here/target",
            "packages": [{
                "name": "a",
                "dependencies": [
                    { "name": "b", "kind": null },
                    { "name": "c", "kind": "dev" },
                    { "name": "d", "kind": "build" },
                ],
                "targets": [
                    { "name": "a", "kind": ["lib"] },
                    { "name": "tour", "kind": ["example"] },
                ],
            }],
        });
        let workspace = Workspace::read(&metadata).unwrap();
        let package = &workspace.packages[0];
        let kinds: Vec<_> = package.dependencies.iter().map(|it| (&*it.name, it.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("b", DependencyKind::Shipped),
                ("c", DependencyKind::Dev),
                ("d", DependencyKind::Shipped)
            ]
        );
        assert_eq!(package.examples, ["tour"]);
    }

    #[test]
    fn another_shape_is_refused() {
        assert!(Workspace::read(&json!({ "packages": [{}] })).is_none());
    }
}
