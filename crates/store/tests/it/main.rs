//! The store on real SQLite files: the laws of every store, and what only this one promises.
#![expect(clippy::unwrap_used, reason = "a test that fails panics")]

mod laws;
mod scratch;
