//! The store on real SQLite files: the laws of every store, and what only this one promises.
#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

mod commit;
mod constraints;
mod differential;
mod laws;
mod postgres;
mod raw;
mod report;
mod schema;
mod scratch;
mod server;
mod statement;
mod usage;
mod verify;
