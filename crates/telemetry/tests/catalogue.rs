//! Whatever is made of the catalogue says what the catalogue says: the manual, the dashboards, the alarms.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use holdfast_telemetry::{families, find};
use saphyr::{LoadableYamlNode as _, Yaml};
use serde_json::Value;

#[expect(dead_code, reason = "the example prints what is compared here")]
#[path = "../examples/metrics.rs"]
mod manual;

const RULES: &str = include_str!("../../../deploy/prometheus/rules.yml");
const RULE_TESTS: &str = include_str!("../../../deploy/prometheus/rules.test.yml");
const ALERTS: &str = include_str!("../../../docs/how-to/respond-to-alerts.md");

/// Names of the files in `deploy/grafana`.
const DASHBOARDS: [&str; 5] = ["money", "nodes", "routes", "store", "traffic"];

/// Labels of a scrape that are not in the catalogue.
const OF_SCRAPE: [&str; 3] = ["instance", "job", "le"];

/// The dashboards, in the order of their names.
fn dashboards() -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/grafana");
    let files: BTreeSet<_> = folder.read_dir().unwrap().map(|it| it.unwrap().path()).collect();
    let expected = DASHBOARDS.map(|name| folder.join(format!("{name}.json")));
    assert_eq!(files, BTreeSet::from(expected));
    files.iter().map(|it| serde_json::from_slice(&fs::read(it).unwrap()).unwrap()).collect()
}

/// Queries of a dashboard, each with the legend of its series.
fn queries(dashboard: &Value) -> Vec<(String, String)> {
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    targets.map(|target| (text(&target["expr"]), text(&target["legendFormat"]))).collect()
}

/// Words of a query that may be metrics: neither functions nor labels nor what is in quotes.
fn metrics_in(query: &str) -> BTreeSet<String> {
    let bare: String = query.split('"').step_by(2).collect();
    let words = bare.split(|it: char| !it.is_ascii_alphanumeric() && it != '_');
    let prefixes = ["holdfast_", "process_", "gen_ai_"];
    let is_label = |word: &str| families().any(|metric| metric.labels.contains(&word));
    words
        .filter(|word| prefixes.iter().any(|it| word.starts_with(it)) && !is_label(word))
        .map(str::to_owned)
        .collect()
}

/// Matchers of a query: a metric and a label that is compared with a value.
fn matchers_in(query: &str) -> Vec<(String, String)> {
    let bare: String = query.split('"').step_by(2).collect();
    let mut matchers = Vec::new();
    for (place, _brace) in bare.match_indices('{') {
        let (before, after) = bare.split_at(place);
        let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
        let metric = before.rsplit(|it| !is_part(it)).next().unwrap();
        let (list, _) = after.trim_start_matches('{').split_once('}').unwrap();
        for label in list.split(',').filter_map(|matcher| matcher.split(['=', '!']).next()) {
            matchers.push((metric.to_owned(), label.trim().to_owned()));
        }
    }
    matchers
}

#[track_caller]
fn check_query(query: &str) {
    for (name, label) in matchers_in(query) {
        let label = label.as_str();
        let known = find(&name).map(|metric| metric.labels.iter().chain(&OF_SCRAPE));
        let is_known = known.is_some_and(|mut labels| labels.any(|it| *it == label));
        assert!(is_known, "{name} has no label {label}: {query}");
    }
    let named = metrics_in(query);
    assert!(!named.is_empty(), "{query} is over no metric");
    for name in &named {
        let metric =
            find(name).unwrap_or_else(|| panic!("{name} is not in the catalogue: {query}"));
        if metric.unit == "micros" {
            assert!(query.contains("by (currency"), "{query} adds up currencies");
        }
        assert!(
            !metric.help.contains("a fact of the database") || query.contains("max"),
            "{query} adds up a fact that every gateway tells"
        );
    }
}

/// A rule of Prometheus.
#[derive(Debug)]
struct Alert {
    name: String,
    query: String,
    severity: String,
    runbook: String,
}

fn alerts() -> Vec<Alert> {
    let rules = Yaml::load_from_str(RULES).unwrap();
    let list = rules[0]["groups"][0]["rules"].as_sequence().unwrap().clone();
    let text = |yaml: &Yaml<'_>| yaml.as_str().unwrap().to_owned();
    let alert = |rule: &Yaml<'_>| Alert {
        name: text(&rule["alert"]),
        query: text(&rule["expr"]),
        severity: text(&rule["labels"]["severity"]),
        runbook: text(&rule["annotations"]["runbook_url"]),
    };
    list.iter().map(alert).collect()
}

#[test]
fn a_metric_has_one_row_its_unit_in_its_name_and_a_line_of_help() {
    let mut names = BTreeSet::new();
    for metric in families() {
        let name = metric.name;
        assert!(names.insert(name), "{name} is there twice");
        assert!(!metric.help.is_empty() && !metric.help.contains('\n'), "{name}");
        let units = [("seconds", "_seconds"), ("micros", "_micros"), ("bytes", "_bytes")];
        for (unit, part) in units.iter().filter(|(unit, _)| *unit == metric.unit) {
            assert!(name.contains(part), "{name} is in {unit}");
        }
        let is_counter = metric.kind.label() == "counter";
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        if metric.unit == "micros" {
            assert!(metric.labels.contains(&"currency"), "{name} adds up currencies");
        }
    }
}

#[test]
fn the_manual_is_fresh() {
    let written = include_str!("../../../docs/reference/metrics.md");
    assert!(
        written == manual::document(),
        "docs/reference/metrics.md is stale: run `cargo xtask docs`"
    );
}

#[test]
fn every_query_of_the_dashboards_has_metrics_and_labels_of_the_catalogue() {
    for (query, legend) in dashboards().iter().flat_map(queries) {
        check_query(&query);
        let groups = query.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
        let grouped: BTreeSet<&str> = groups.flat_map(|list| list.split(", ")).collect();
        let named = metrics_in(&query);
        let metrics = named.iter().filter_map(|name| find(name));
        let known: BTreeSet<&str> = metrics.flat_map(|metric| metric.labels).copied().collect();
        let unknown = grouped.iter().find(|it| !known.contains(*it) && !OF_SCRAPE.contains(it));
        assert_eq!(unknown, None, "{query}");
        let kept = if grouped.is_empty() { &known } else { &grouped };
        for label in legend.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()) {
            assert!(kept.contains(label) || label == "instance", "{legend}: {query}");
        }
    }
}

#[test]
fn every_metric_is_on_a_dashboard() {
    let dashboards = dashboards();
    let queries = dashboards.iter().flat_map(queries);
    let shown: BTreeSet<_> = queries.flat_map(|(query, _legend)| metrics_in(&query)).collect();
    let shown: BTreeSet<_> = shown.iter().filter_map(|name| find(name)).map(|it| it.name).collect();
    let all: BTreeSet<_> = families().map(|metric| metric.name).collect();
    assert_eq!(all.difference(&shown).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn every_dashboard_has_its_file_s_name_and_every_panel_an_id_and_a_place() {
    for (name, dashboard) in DASHBOARDS.into_iter().zip(dashboards()) {
        assert_eq!(dashboard["uid"], format!("holdfast-{name}"));
        let panels = dashboard["panels"].as_array().unwrap();
        let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
        let places: BTreeSet<_> = panels.iter().map(|it| it["gridPos"].to_string()).collect();
        assert_eq!((ids.len(), places.len()), (panels.len(), panels.len()), "{name}");
    }
}

#[test]
fn every_panel_has_a_title_a_unit_and_the_chosen_datasource() {
    let is_text = |value: &Value| value.as_str().is_some_and(|it| !it.is_empty());
    for (name, dashboard) in DASHBOARDS.into_iter().zip(dashboards()) {
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        let is_datasource = |it: &&Value| it["name"] == "datasource" && it["type"] == "datasource";
        assert_eq!(variables.iter().filter(is_datasource).count(), 1, "{name}");
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = &panel["title"];
            assert!(is_text(title), "{name}: a panel without a title: {panel}");
            let unit = &panel["fieldConfig"]["defaults"]["unit"];
            assert!(is_text(unit), "{name}: {title} has no unit");
            let targets = panel["targets"].as_array().unwrap();
            for it in targets.iter().chain([panel]) {
                assert_eq!(it["datasource"]["uid"], "${datasource}", "{name}: {title}");
            }
            assert!(targets.iter().all(|it| is_text(&it["refId"])), "{name}: {title}");
            let ids: BTreeSet<_> = targets.iter().map(|it| it["refId"].as_str()).collect();
            assert_eq!(ids.len(), targets.len(), "{name}: {title}: {ids:?}");
        }
    }
}

/// The section of an alert in the manual: everything below its heading.
fn section(anchor: &str) -> &'static str {
    let sections = ALERTS.split("\n### ").skip(1);
    let below = |text: &'static str| {
        let (title, body) = text.split_once('\n')?;
        let body = body.split("\n## ").next()?;
        (title.to_lowercase() == anchor).then_some(body)
    };
    sections.filter_map(below).next().unwrap_or_else(|| panic!("no section of {anchor}"))
}

#[test]
fn every_alert_is_over_the_catalogue_has_a_section_and_a_test_that_raises_and_ends_it() {
    let alerts = alerts();
    assert!(alerts.len() >= 10, "{alerts:?}");
    for Alert { name, query, severity, runbook } in &alerts {
        // `up` is a series that Prometheus makes of each scrape: no row of the catalogue.
        if !query.starts_with("up{") {
            check_query(query);
        }
        let anchor = runbook.strip_prefix("docs/how-to/respond-to-alerts.md#").unwrap();
        assert_eq!(anchor, name.to_lowercase());
        let section = section(anchor);
        let severity = format!("**Severity:** {severity}.");
        for part in [severity.as_str(), "**Meaning:** ", "**First look:** ", "**Ends when:** "] {
            assert_eq!(section.matches(part).count(), 1, "{name}: {part}");
        }
        let is_quiet = |test: &&str| test.trim_start().starts_with("exp_alerts: []");
        let groups = RULE_TESTS.split("\n  - interval:").skip(1);
        let tests = groups
            .map(|group| group.split(&format!("alertname: {name}\n")).skip(1).collect::<Vec<_>>());
        let tests: Vec<_> = tests.filter(|tests| !tests.is_empty()).collect();
        let ends = |tests: &&Vec<_>| !is_quiet(&tests[0]) && is_quiet(&tests[tests.len() - 1]);
        assert!(tests.iter().any(|tests| ends(&tests)), "{name} is never raised and ended");
        assert!(tests.iter().any(|tests| is_quiet(&tests[0])), "{name} is never quiet");
    }
    let sections = ALERTS.lines().filter(|line| line.starts_with("### Holdfast")).count();
    assert_eq!(sections, alerts.len(), "a section of an alert that there is not");
}
