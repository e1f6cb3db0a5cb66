//! Connections of the processes: listeners with their limits and timeouts, and clients of servers.
//!
//! ```text
//! Listener ─ accept ─▶ ConnectionLimiter ─ Served ─▶ connection: CallerSocket ─ TimedStream ─ hyper ─▶ answer
//!                                        └─ Spare ──▶ spare_connection: the same, for one answer
//! ```
//!
//! A client ([`Transport`], [`ServerClient`]) sends a request once, and its errors prove which bytes have left.
//!
//! Beside them: client addresses behind proxies (`peers`), the look-ups that forged credentials cost (`unknown_keys`),
//! and a sample of log lines (`refusals`).
//!
//! Never in here: routes, the meaning of an answer, credentials' proofs.
#![warn(missing_docs)]

mod admin_url;
mod base_url;
mod connection;
mod limiter;
mod listener;
mod one_shot;
mod peers;
mod proxy;
mod refusals;
mod retry_after;
mod roots;
mod server_client;
mod socket;
mod target;
mod timed_stream;
mod transport;
mod unknown_keys;

pub use crate::admin_url::{AdminUrl, BadAdminUrl, host_and_port};
pub use crate::base_url::{BadBaseUrl, BadOptions, BaseUrl};
pub use crate::connection::{
    Client, ConnectionOptions, accept, await_first_event, connection, finish, serve_stream,
    set_nodelay, spare_connection,
};
pub use crate::limiter::{
    Admission, AnswerLength, ConnectionLimiter, ConnectionPermit, ListenerLimits, SpareAnswer,
    SparePermit, SpareTurn,
};
pub use crate::listener::Listener;
pub use crate::one_shot::one_shot;
pub use crate::peers::{BadNetwork, Network, client, client_beyond, group};
pub use crate::proxy::{BadProxy, Proxies};
pub use crate::refusals::RefusalLog;
pub use crate::retry_after::{clock, requests_pause, time_until};
pub use crate::roots::tls;
pub use crate::server_client::{PassedAnswer, PassedFailure, ServerClient};
pub use crate::socket::AbortSignal;
pub use crate::timed_stream::{GuardedBody, ReadTimeouts};
pub use crate::transport::{SendError, TURN_BYTES, Transport, UnsentCause, UpstreamResponse, host};
pub use crate::unknown_keys::{LookupRefusal, UnknownKeyLimiter, UnknownTextLimiter};
