//! Prints a dashboard as Grafana reads it: the argument is its name, and without one they are all printed.
//! `cargo xtask docs` writes them to `deploy/grafana`; a test compares.

use std::env;
use std::io::{self, Error, Write};

use holdfast_telemetry::dashboards::{DASHBOARDS, Dashboard, Panel};
use serde_json::{Value, json};

/// Height and width of a panel; a dashboard is 24 wide.
const SIZE: (usize, usize) = (8, 12);

fn main() -> io::Result<()> {
    let name = env::args().nth(1);
    let is_meant = |it: &&Dashboard| name.as_ref().is_none_or(|name| it.name == name);
    let meant: String = DASHBOARDS.iter().filter(is_meant).map(document).collect();
    if meant.is_empty() {
        return Err(Error::other("there is no dashboard of that name"));
    }
    io::stdout().write_all(meant.as_bytes())
}

/// The whole document.
pub(crate) fn document(dashboard: &Dashboard) -> String {
    let panels: Vec<Value> = dashboard.panels.iter().enumerate().map(panel).collect();
    let source = json!({
        "name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus",
    });
    let dashboard = json!({
        "uid": format!("holdfast-{}", dashboard.name),
        "title": dashboard.title,
        "tags": ["holdfast"],
        "timezone": "utc",
        "schemaVersion": 39,
        "refresh": "1m",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [source]},
        "panels": panels,
    });
    format!("{dashboard:#}\n")
}

fn panel((index, panel): (usize, &Panel)) -> Value {
    let (height, width) = SIZE;
    let source = json!({"type": "prometheus", "uid": "${datasource}"});
    let targets: Vec<Value> = panel.queries.iter().zip('A'..).map(|((query, legend), id)| {
        json!({"refId": id, "expr": query, "legendFormat": legend, "datasource": source})
    }).collect();
    json!({
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": {"h": height, "w": width, "x": index % 2 * width, "y": index / 2 * height},
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": targets,
    })
}
