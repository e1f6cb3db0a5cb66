//! The check `telemetry`: Prometheus' own tool reads the alarms, runs the test of each, and parses every
//! query of the dashboards. That queries name metrics of the catalogue is a test of its crate.

use std::{fs, process::Command};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::{
    shell::{self, print_line},
    tools::debian,
    workspace::Workspace,
};

const RULES: &str = "deploy/prometheus/rules.yml";
const TESTS: &str = "deploy/prometheus/rules.test.yml";
const DASHBOARDS: &str = "deploy/grafana";

/// True if all of them pass.
pub(super) fn check(workspace: &Workspace) -> Result<bool> {
    let promtool = debian::find(workspace, debian::PROMTOOL)?;
    let run = |args: [&str; 3]| {
        shell::run(Command::new(&promtool).current_dir(&workspace.root).args(args))
    };
    let tools = workspace.target.join("tools");
    fs::create_dir_all(&tools).context("no folder for the queries")?;
    let queries = tools.join("dashboards.yml");
    fs::write(&queries, as_rules(&queries_of(workspace)?)).context("no file for the queries")?;
    let rules = run(["check", "rules", RULES])?;
    let tests = run(["test", "rules", TESTS])?;
    let queries = run(["check", "rules", &queries.to_string_lossy()])?;
    Ok(rules && tests && queries)
}

/// The queries of all dashboards.
fn queries_of(workspace: &Workspace) -> Result<Vec<String>> {
    let mut queries = Vec::new();
    for file in fs::read_dir(workspace.root.join(DASHBOARDS)).context(DASHBOARDS)? {
        let path = file.context(DASHBOARDS)?.path();
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let dashboard: Value =
            serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let found = queries_in(&dashboard);
        print_line(&format!("{}: {} queries", path.display(), found.len()))?;
        queries.extend(found);
    }
    Ok(queries)
}

fn queries_in(dashboard: &Value) -> Vec<String> {
    let list = |value: &Value, name: &str| {
        value.get(name).and_then(Value::as_array).cloned().unwrap_or_default()
    };
    let panels = list(dashboard, "panels").into_iter();
    let targets = panels.flat_map(|panel| list(&panel, "targets"));
    targets.filter_map(|target| target.get("expr")?.as_str().map(str::to_owned)).collect()
}

/// Rules that record each query: the tool parses only rules.
fn as_rules(queries: &[String]) -> String {
    let mut text = "groups:\n  - name: dashboards\n    rules:\n".to_owned();
    for (number, query) in queries.iter().enumerate() {
        let query = query.replace('\'', "''");
        text.push_str(&format!("      - record: query:{number}\n        expr: '{query}'\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_query_of_every_panel_is_parsed() {
        let panel = |exprs: &[&str]| {
            let targets: Vec<_> = exprs.iter().map(|expr| json!({"expr": expr})).collect();
            json!({"targets": targets})
        };
        let dashboard = json!({"panels": [panel(&["a", "b{c='d'}"]), panel(&["e"])]});
        let queries = queries_in(&dashboard);
        assert_eq!(queries, ["a", "b{c='d'}", "e"]);
        assert!(as_rules(&queries).contains("- record: query:1\n        expr: 'b{c=''d''}'\n"));
    }
}
