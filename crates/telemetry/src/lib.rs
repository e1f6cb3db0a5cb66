//! Telemetry of the process: traces ([`traces`]), and the catalogue of metrics, the only place that lists them
//! with their meaning and the value at which one is a reason to act.
//!
//! ```text
//!              ┌─ register()              HELP and TYPE of a scrape, counters without labels at zero
//! catalogue ───┼─ docs/reference/metrics.md         written by `cargo xtask docs`
//!              └─ deploy/grafana/*.json   written by hand, a test compares metrics and labels of each query
//! ```
//!
//! The crates count under the names of the catalogue; an end-to-end test compares a scrape with it, both
//! ways. A metric is here before it is anywhere else.
//!
//! Rules of every row: its name has its unit, its labels have few values that are known beforehand, and
//! money has its currency as a label, so that no sum over it adds up currencies. It must never have a label
//! that a caller writes, an id, an address, or a word of a prompt.

mod catalogue;
pub mod traces;

pub use crate::catalogue::{CATALOGUE, Metric, MetricGroup, MetricKind, families, find, register};
