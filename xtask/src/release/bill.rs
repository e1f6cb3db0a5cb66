//! The bill of materials: the list of `cargo cyclonedx` for the package, compared with the list in the binary.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, ensure};
use auditable_info::{Limits, json_from_file};
use serde_json::Value;

use super::{BUILT, Checkout, MANIFEST, SOURCE};
use crate::{shell::printed, workspace::Workspace};

/// Name and version of a crate.
type CrateVersion = (String, String);

/// Makes it; its text, without paths of the machine.
pub(super) fn make(workspace: &Workspace, checkout: &Checkout<'_>) -> Result<String> {
    let mut cargo = checkout.cargo(workspace, "cyclonedx")?;
    cargo.args(["cyclonedx", "--format", "json", "--spec-version", "1.5"]);
    printed(cargo.arg("--manifest-path").arg(checkout.folder.join(MANIFEST)))?;
    // It writes one next to the manifest of each package of the workspace.
    let file = checkout.folder.join(MANIFEST).with_file_name(format!("{BUILT}.cdx.json"));
    let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(text.replace(&checkout.folder.display().to_string(), SOURCE))
}

/// Holds a bill against the list of crates that `cargo auditable` wrote into the binary; how many there are.
pub(super) fn check(bill: &str, binary: &Path) -> Result<usize> {
    let bill = serde_json::from_str(bill).context("the bill of materials is not JSON")?;
    let audited = json_from_file(binary, Limits::default());
    let audited = audited.with_context(|| format!("the crates of {}", binary.display()))?;
    let audited = serde_json::from_str(&audited).context("the list of crates is not JSON")?;
    compare(&bill, &audited)
}

fn compare(bill: &Value, audited: &Value) -> Result<usize> {
    let root = bill.pointer("/metadata/component");
    let billed = list(bill, "components")?.iter().chain(root).map(crate_version);
    let billed: BTreeSet<CrateVersion> = billed.collect::<Option<_>>().context("a component")?;
    let contained = list(audited, "packages")?.iter().map(crate_version);
    let contained: BTreeSet<CrateVersion> = contained.collect::<Option<_>>().context("a crate")?;
    let spelled = |(name, version): &CrateVersion| format!("{name} {version}");
    let missing: Vec<String> = contained.difference(&billed).map(spelled).collect();
    let added: Vec<String> = billed.difference(&contained).map(spelled).collect();
    ensure!(
        missing.is_empty() && added.is_empty(),
        "the bill of materials is not of this binary: it lacks [{}], and has besides [{}]",
        missing.join(", "),
        added.join(", ")
    );
    Ok(contained.len())
}

fn list<'a>(value: &'a Value, field: &str) -> Result<&'a [Value]> {
    let found = value.get(field).and_then(Value::as_array);
    found.map(Vec::as_slice).with_context(|| format!("there are no {field}"))
}

fn crate_version(value: &Value) -> Option<CrateVersion> {
    let text = |field: &str| value.get(field)?.as_str().map(str::to_owned);
    Some((text("name")?, text("version")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn bill(components: &[(&str, &str)]) -> Value {
        let components: Vec<Value> = components.iter().map(component).collect();
        json!({ "metadata": { "component": component(&("a", "1.0.0")) }, "components": components })
    }

    fn component((name, version): &(&str, &str)) -> Value {
        json!({ "name": name, "version": version })
    }

    #[test]
    fn a_bill_of_another_binary_is_refused() {
        let audited = json!({
            "packages": [component(&("a", "1.0.0")), component(&("b", "2.0.0"))],
        });
        assert_eq!(compare(&bill(&[("b", "2.0.0")]), &audited).unwrap(), 2);
        let other = compare(&bill(&[("b", "2.0.1")]), &audited).unwrap_err().to_string();
        assert!(other.ends_with("it lacks [b 2.0.0], and has besides [b 2.0.1]"), "{other}");
    }

    #[test]
    fn a_binary_without_a_list_of_crates_is_refused() {
        let ours = std::env::current_exe().unwrap();
        let refused = check("{}", &ours).unwrap_err().to_string();
        assert_eq!(refused, format!("the crates of {}", ours.display()));
    }
}
