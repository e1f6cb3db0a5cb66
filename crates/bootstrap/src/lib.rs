//! Opening of an installation: its database, server secrets, providers, receivers, and the use cases over the store.
//!
//! ```text
//! Config ─▶ database ─▶ secrets ─▶ accounts
//!        ├▶ provider      clients of providers, not connected yet
//!        ├▶ receivers     sender of webhooks, and the origins that may be called
//!        └▶ node          name of the process beside others
//! ```
//!
//! The process and the commands beside a database open the same parts in the same way. Never in here: a listener, a task,
//! or a line of output; a warning goes to the caller's function.

pub mod accounts;
pub mod database;
pub mod node;
pub mod provider;
mod receivers;
pub mod secret;

pub use crate::receivers::receivers;
