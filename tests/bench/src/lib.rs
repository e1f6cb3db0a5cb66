//! The benchmark that `cargo xtask bench` runs: the real gateway, its upstream, a load and the anchors, each a process
//! of its own, and one table of what was measured.
//!
//! A figure on its own says little on another machine. CPU per request and the ratios to what was
//! measured in the same run are what to compare.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a harness that cannot go on ends the run, at the line that says why"
)]

mod accounts;
pub mod bench;
mod bulk;
mod callgrind;
mod counters;
pub mod figures;
mod goals;
pub mod instructions;
pub mod journal;
pub mod latencies;
mod listen;
pub mod load;
mod measurements;
mod numbers;
pub mod pairs;
pub mod passthrough;
mod pinned;
pub mod plain;
mod report;
pub mod scenario;
mod server;
mod stand;
pub mod store;
pub mod upstream;
mod usage;

use std::io::Write;

/// Prints a line for whoever started this process.
pub(crate) fn say(line: &str) {
    writeln!(std::io::stdout(), "{line}").expect("somebody listens");
}

/// Beginning of the first line of a process that listens.
pub(crate) const LISTENS: &str = "listens on ";
