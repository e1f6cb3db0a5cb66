//! The command line of Holdfast: arguments, commands of administration and maintenance, and their output.
//!
//! ```text
//! arguments ─┬─ Process      serve, sidecar, check-config: the process runs them
//!            ├─ Maintenance ─▶ maintain    files and database of this machine
//!            └─ Admin ───────▶ administer  the administration's API, over the network or in this process
//! ```
//!
//! Answers go to standard output, notes and failures to standard error; a [`failure::CommandFailure`] has the exit
//! status. Never in here: a decision about money or keys, which the use cases make.

#[cfg(test)]
extern crate self as holdfast_cli;

mod admin_client;
pub mod arguments;
mod command;
pub mod failure;
mod file_output;
pub mod output;
#[cfg(test)]
mod pages;
mod table;
mod view;

pub use crate::command::{ConfigFile, PlaceFlags, administer, maintain};
