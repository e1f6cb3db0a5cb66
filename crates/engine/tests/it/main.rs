//! What the engine does, through its public door alone, over a store in memory and scripted
//! providers. Time is tokio's paused clock, and the database's clock follows it.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking"
)]

/// The one that the gateway ships with: what takes long depends on it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod aliases;
mod binding;
mod callers;
mod cancel;
mod commits;
mod cooling;
mod drain;
mod ignores;
mod large_bodies;
mod leases;
mod meters;
mod one_charge;
mod polls;
mod results;
mod routes;
mod running;
mod stale;
mod states;
mod store;
mod storm;
mod streams;
mod views;
mod world;
