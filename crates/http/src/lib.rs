//! Who asks: the public HTTP API over HTTP/1.1, the operator's listener beside it, and the one for other nodes.
//!
//! This crate turns requests into the engine's words and its replies into statuses, headers and
//! bodies. It decides nothing about operations or money. A handler may be dropped at any await,
//! because its client hung up: nothing in here owns work that must finish.

mod admin;
mod body;
mod chat;
mod description;
mod error;
mod headers;
mod limits;
mod live_config;
mod log;
mod peers;
mod refusals;
mod relay;
mod reply;
mod request_metrics;
mod resources;
mod response_body;
mod route;
mod serve;
mod service;
mod socket;
mod timed_stream;

use std::time::Duration;

pub use crate::admin::{Admin, Metrics, serve_admin};
pub use crate::live_config::{HttpConfig, LiveConfig};
pub use crate::peers::{BadNetwork, Network};
pub use crate::relay::{DirectTransport, serve_nodes};
pub use crate::serve::serve;

/// Limits of connections and requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The largest head of a request.
    pub header_bytes: usize,
    /// The largest body where there is no model to say otherwise.
    pub body_bytes: usize,
    /// How long a head may take.
    pub header_time: Duration,
    /// How long a connection may be idle between two requests.
    pub idle_time: Duration,
    /// How long a body may take.
    pub body_time: Duration,
    /// How long an answer may wait for its reader to take any of it.
    pub write_time: Duration,
    /// Connections at once.
    pub connections: usize,
    /// The same of one address that is no proxy.
    pub connections_per_address: usize,
    /// Bytes of bodies in memory that are read, or wait to be judged.
    pub body_bytes_in_memory: usize,
    /// How long a retry waits for an operation that runs.
    pub retry_wait: Duration,
}
