//! Harness of the end-to-end tests: the gateway's real binary in a folder of its own, a client that shows every
//! byte of an answer, a provider on a real socket that follows a script, and the command line. It knows no crate of
//! the product: only the interfaces of its users.
//!
//! Threads and blocking sockets, so that a test reads from top to bottom. Every wait ends by itself, and
//! [`watchdog`] ends a test that does not.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a harness that cannot go on ends its test, at the line that says why"
)]

pub mod account;
pub mod balancer;
pub mod chain;
pub mod chaos;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod database;
pub mod deployment;
pub mod events;
pub mod gateway;
pub mod haproxy;
pub mod http;
pub mod line;
pub mod patroni;
pub mod postgres;
pub mod proxy;
pub mod releases;
pub mod rolling;
pub mod site;
pub mod upstream;
pub mod watchdog;

use std::time::Duration;

pub use crate::account::Account;
pub use crate::balancer::Balancer;
pub use crate::cli::Ran;
pub use crate::config::Config;
pub use crate::events::{Events, StreamedAnswer};
pub use crate::gateway::Gateway;
pub use crate::http::{Answer, Request, Waiting};
pub use crate::proxy::Proxy;
pub use crate::site::Site;
pub use crate::upstream::{Gate, Reply, Streaming, Upstream};

/// Longest wait: an event that takes longer never happens.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// A new request key.
#[must_use]
pub fn request_key() -> String {
    uuid::Uuid::new_v4().to_string()
}
