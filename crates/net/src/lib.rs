//! Listeners of the processes: accepted connections, their limits and timeouts, and client addresses.
//!
//! ```text
//! Listener ─ accept ─▶ ConnectionLimiter ─ Served ─▶ connection: CallerSocket ─ TimedStream ─ hyper ─▶ answer
//!                                        └─ Spare ──▶ spare_connection: the same, for one answer
//! ```
//!
//! Beside them: client addresses behind proxies (`peers`), the look-ups that forged credentials cost (`unknown_keys`),
//! and a sample of log lines (`refusals`).
//!
//! Never in here: routes, answers, credentials' proofs, and the requests that go to providers.
#![warn(missing_docs)]

mod connection;
mod limiter;
mod listener;
mod peers;
mod refusals;
mod socket;
mod target;
mod timed_stream;
mod unknown_keys;

pub use crate::connection::{
    Client, ConnectionOptions, accept, await_first_event, connection, finish, serve_stream,
    set_nodelay, spare_connection,
};
pub use crate::limiter::{
    Admission, AnswerLength, ConnectionLimiter, ConnectionPermit, ListenerLimits, SpareAnswer,
    SparePermit, SpareTurn,
};
pub use crate::listener::Listener;
pub use crate::peers::{BadNetwork, Network, client, client_beyond, group};
pub use crate::refusals::RefusalLog;
pub use crate::socket::AbortSignal;
pub use crate::timed_stream::{GuardedBody, ReadTimeouts};
pub use crate::unknown_keys::{LookupRefusal, UnknownKeyLimiter, UnknownTextLimiter};
