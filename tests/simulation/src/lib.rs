//! Deterministic simulation of Holdfast: three engines over one store in simulated time, on one thread.
//!
//! The engine is the product's own, with its relays, routes, heartbeats and reconcilers. Simulated are the clock, the
//! store's server, the network between the nodes, upstreams, callers and operators. All chance comes from one seed:
//! the same seed is the same run, which two digests of its trace prove. A run counts the steps of `operation.md` that
//! it reaches and judges its invariants; a violation names the seed that repeats it.
//!
//! Never: a real clock, a thread, a socket or a file; and no judgement by the code that is judged.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a simulation that cannot go on ends, at the line that says why"
)]

pub mod answers;
pub mod callers;
pub mod chance;
pub mod defect;
pub mod disturbance;
pub mod judge;
pub mod keys;
pub mod network;
pub mod node;
pub mod process;
pub mod recorder;
pub mod report;
pub mod run;
pub mod step;
pub mod store;
pub mod upstream;

pub use crate::defect::Defect;
pub use crate::recorder::{Invariant, Recording, StepCounts, TracedChange, Violation};
pub use crate::report::Totals;
pub use crate::run::{RunPlan, simulate};
pub use crate::step::Step;
