//! HTTP/1.1 front of the gateway: the public API, the operator's listener and the listener for
//! other nodes.
//!
//! The crate turns requests into the engine's words and its replies into statuses, headers and bodies. No
//! decision about operations or money is made here. A handler may be dropped at any await, because its client
//! hung up: no future in here owns work that must finish.

mod admin;
mod body;
mod chat;
mod cors;
mod departure;
mod description;
mod error;
mod guarded_bytes;
mod headers;
mod limits;
mod live_options;
mod local;
mod log;
mod probe;
mod problem;
mod receipts;
mod relay;
mod reply;
mod request_metrics;
mod resources;
mod response_body;
mod route;
mod serve;
mod service;
mod usage;

use std::time::Duration;

use holdfast_net::{ConnectionOptions, ListenerLimits, ReadTimeouts};

pub use crate::admin::{
    Admin, AdminHandler, Administration, HandlerBody, HoldersPages, Metrics, serve_admin,
    serve_holders,
};
pub use crate::cors::{AllowedOrigin, BadOrigin};
pub use crate::departure::Departure;
pub use crate::live_options::{HttpConfig, LiveOptions};
pub use crate::local::LocalBody;
pub use crate::relay::{DirectTransport, serve_nodes};
pub use crate::response_body::BodyError;
pub use crate::serve::{Ports, PublicApi, serve};

/// Limits of connections and requests, all of them replaceable while the process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Largest head of a request, in bytes.
    pub header_bytes: usize,
    /// Largest body in bytes, unless a model of the caller's takes a larger one.
    pub body_bytes: usize,
    /// Time for a head from its first byte to its last.
    pub header_time: Duration,
    /// Idle time of a connection between two requests, after which it is closed.
    pub idle_time: Duration,
    /// Time for a body from the end of its head to its last byte.
    pub body_time: Duration,
    /// Time that a write may wait without its reader taking a byte, before the connection is cut.
    pub write_time: Duration,
    /// Connections at once, of all addresses.
    pub connections: usize,
    /// Connections at once of one address that is no trusted proxy.
    pub connections_per_address: usize,
    /// Bytes of bodies in memory, of all requests that are being read or wait to be judged.
    pub body_bytes_in_memory: usize,
    /// Longest wait of a retry for the running operation of its key.
    pub retry_wait: Duration,
}

impl Options {
    /// Limits of one connection.
    pub(crate) const fn of_connection(&self) -> ConnectionOptions {
        ConnectionOptions {
            header_bytes: self.header_bytes,
            reads: ReadTimeouts { head: self.header_time, idle: self.idle_time },
            write_time: self.write_time,
        }
    }

    /// Numbers of connections at once.
    pub(crate) const fn of_listener(&self) -> ListenerLimits {
        ListenerLimits {
            connections: self.connections,
            connections_per_address: self.connections_per_address,
        }
    }
}
