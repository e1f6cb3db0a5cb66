//! Whatever is made of the catalogue says what the catalogue says: the manual, the dashboards, the alarms.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use std::collections::BTreeSet;

use holdfast_telemetry::dashboards::DASHBOARDS;
use holdfast_telemetry::{families, find};
use saphyr::{LoadableYamlNode as _, Yaml};

#[expect(dead_code, reason = "the example prints what is compared here")]
#[path = "../examples/dashboard.rs"]
mod dashboard;
#[expect(dead_code, reason = "the example prints what is compared here")]
#[path = "../examples/metrics.rs"]
mod manual;

const RULES: &str = include_str!("../../../deploy/prometheus/rules.yml");
const RULE_TESTS: &str = include_str!("../../../deploy/prometheus/rules.test.yml");
const OPERATIONS: &str = include_str!("../../../docs/operations.md");

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

#[track_caller]
fn check_query(query: &str) {
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

fn alerts() -> Vec<(String, String, String)> {
    let rules = Yaml::load_from_str(RULES).unwrap();
    let list = rules[0]["groups"][0]["rules"].as_sequence().unwrap().clone();
    let text = |yaml: &Yaml<'_>| yaml.as_str().unwrap().to_owned();
    let alert = |rule: &Yaml<'_>| {
        (text(&rule["alert"]), text(&rule["expr"]), text(&rule["annotations"]["runbook"]))
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
fn the_manual_and_the_dashboards_are_fresh() {
    let written = include_str!("../../../docs/metrics.md");
    assert!(written == manual::document(), "docs/metrics.md is stale: run `cargo xtask docs`");
    let files = [
        include_str!("../../../deploy/grafana/traffic.json"),
        include_str!("../../../deploy/grafana/money.json"),
        include_str!("../../../deploy/grafana/routes.json"),
        include_str!("../../../deploy/grafana/store.json"),
        include_str!("../../../deploy/grafana/nodes.json"),
    ];
    assert_eq!(files.len(), DASHBOARDS.len());
    for (written, dashboard) in files.iter().zip(DASHBOARDS) {
        let fresh = dashboard::document(dashboard);
        assert!(*written == fresh, "{} is stale: run `cargo xtask docs`", dashboard.name);
    }
}

#[test]
fn every_query_of_the_dashboards_names_metrics_of_the_catalogue() {
    for panel in DASHBOARDS.iter().flat_map(|dashboard| dashboard.panels) {
        for (query, _legend) in panel.queries {
            check_query(query);
        }
    }
}

#[test]
fn every_metric_is_on_a_dashboard() {
    let queries = DASHBOARDS.iter().flat_map(|dashboard| dashboard.panels);
    let queries = queries.flat_map(|panel| panel.queries);
    let shown: BTreeSet<_> = queries.flat_map(|(query, _legend)| metrics_in(query)).collect();
    let shown: BTreeSet<_> = shown.iter().filter_map(|name| find(name)).map(|it| it.name).collect();
    let all: BTreeSet<_> = families().map(|metric| metric.name).collect();
    assert_eq!(all.difference(&shown).collect::<Vec<_>>(), Vec::<&&str>::new());
}

#[test]
fn every_alarm_is_over_the_catalogue_has_a_section_and_tests_of_both_outcomes() {
    let alerts = alerts();
    assert!(alerts.len() >= 10, "{alerts:?}");
    for (name, query, runbook) in &alerts {
        check_query(query);
        let anchor = runbook.strip_prefix("docs/operations.md#").unwrap();
        let has_heading = OPERATIONS.lines().any(|line| {
            line.strip_prefix("### ").is_some_and(|title| title.to_lowercase() == anchor)
        });
        assert!(has_heading, "{runbook} is nowhere");
        let tested: Vec<_> = RULE_TESTS.split(&format!("alertname: {name}\n")).skip(1).collect();
        let is_quiet = |test: &&str| test.trim_start().starts_with("exp_alerts: []");
        assert!(tested.iter().any(is_quiet), "{name} is never quiet");
        assert!(!tested.iter().all(is_quiet), "{name} is never raised");
    }
    let sections = OPERATIONS.lines().filter(|line| line.starts_with("### Holdfast")).count();
    assert_eq!(sections, alerts.len(), "a section of an alarm that there is not");
}
