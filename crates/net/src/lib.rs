//! Listeners of the processes: accepted connections, their limits and timeouts, and client addresses.
//!
//! ```text
//! Listener ─ accept ─▶ ConnectionLimiter ─▶ connection: CallerSocket ─ TimedStream ─ hyper ─▶ answer
//! ```
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
    Client, ConnectionOptions, accept, connection, finish, serve_stream, set_nodelay,
    spare_connection,
};
pub use crate::limiter::{
    Admission, ConnectionLimiter, ConnectionPermit, ListenerLimits, SparePermit,
};
pub use crate::listener::Listener;
pub use crate::peers::{
    AddressCounts, AddressPermit, BadNetwork, Network, client, client_beyond, group, is_trusted,
};
pub use crate::refusals::RefusalLog;
pub use crate::socket::{AbortSignal, CallerSocket};
pub use crate::timed_stream::{BusyFlag, BusyGuard, GuardedBody, ReadTimeouts, TimedStream};
pub use crate::unknown_keys::{LookupRefusal, UnknownKeyLimiter, UnknownTextLimiter};
