//! Proofs for embedders and implementers of ports: a journal in memory that loses commits on demand, a provider
//! that follows a script, and the laws that every store passes. For tests only: no product code depends on it.
//!
//! A store runs all laws, each as a test of its own, by naming a function that makes a fresh one:
//!
//! ```
//! # use holdfast_testkit::memory::MemoryJournal;
//! async fn fresh() -> MemoryJournal {
//!     MemoryJournal::new()
//! }
//!
//! holdfast_testkit::journal_laws!(fresh);
//! holdfast_testkit::ports_laws!(fresh);
//! ```
//!
//! The first line is for a store of operations, wallets and nodes, the second one for a store that keeps API
//! keys and prices as well.
//!
//! `route_laws` has the laws of a store that keeps statistics of routes.
//!
//! The using crate has `tokio` (`macros`, `rt`) among its dev-dependencies.
#![warn(missing_docs)]

pub mod commands;
pub mod dice;
pub mod join;
pub mod laws;
pub mod memory;
pub mod pause;
pub mod provider;
pub mod route_laws;
pub mod sample;

pub use crate::commands::Commands;
pub use crate::dice::Dice;
pub use crate::join::join_all;
pub use crate::laws::Stores;
pub use crate::memory::{Fault, MemoryJournal};
pub use crate::pause::NoPause;
pub use crate::provider::{Gate, Script, ScriptedProvider};
