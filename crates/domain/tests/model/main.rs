//! Explores every interleaving of small worlds around the production's `decide`: tasks, processes,
//! leases, lost and late commits, reaping, money. Not the stores, which have their laws, nor what
//! proves that a provider did not run, which is a table with its sources.
//!
//! `HOLDFAST_MODEL=large cargo test -p holdfast-domain --test model whole` explores larger worlds, for
//! minutes. `-- --nocapture` shows how many states there are, and the way to each broken rule.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "the model's own numbers are small, and its traces are what its tests have to show"
)]

mod broken;
mod check;
mod configuration;
mod explore;
mod invariants;
mod mutants;
mod rows;
mod store;
mod tasks;
mod whole;
mod world;
