//! Prints `docs/reference/metrics.md` from the catalogue. `cargo xtask docs` writes it; a test compares.

use std::io::{self, Write};

use holdfast_telemetry::{CATALOGUE, Metric, MetricKind};

const INTRODUCTION: &str = "\
# Metrics

<!-- Written by `cargo xtask docs` from crates/telemetry/src/catalogue: change it there. -->

For operators: every metric with its meaning. `GET /metrics` of `admin.listen`, with `admin.token`, returns
them in Prometheus' text format ([set-up](../how-to/set-up-metrics-and-alerts.md)). A scrape
has exactly these names. A series that an alert uses exists from the start, at zero, so that its first event is an
increase.

[deploy/prometheus/rules.yml](../../deploy/prometheus/rules.yml) has the alerts, which need an action; the last column
also lists values that are worth a look. [deploy/grafana](../../deploy/grafana) has the dashboards.
";

fn main() -> io::Result<()> {
    io::stdout().write_all(document().as_bytes())
}

/// The whole document.
pub(crate) fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    for group in CATALOGUE {
        text.push_str(&format!("\n## {}\n\n{}\n\n", group.title, wrapped(group.introduction)));
        text.push_str("| metric | kind, unit | meaning | worth a look when |\n|---|---|---|---|\n");
        text.extend(group.metrics.iter().map(row));
    }
    text.push_str("\n## Buckets\n\n| histogram | upper bounds |\n|---|---|\n");
    for metric in CATALOGUE.iter().flat_map(|group| group.metrics) {
        if let MetricKind::Histogram(bounds) = metric.kind {
            let bounds = bounds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            text.push_str(&format!("| `{}` | {bounds} |\n", metric.name));
        }
    }
    text
}

fn row(metric: &Metric) -> String {
    let Metric { name, kind, unit, labels, help, alarm } = metric;
    let labels =
        if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    format!("| `{name}{labels}` | {}, {unit} | {help} | {alarm} |\n", kind.label())
}

/// The text in lines of at most 120 characters.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if lines.last().is_some_and(|line| line.len() + word.len() >= 120) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join("\n")
}
