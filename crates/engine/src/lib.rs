//! The engine: operations as tasks that outlive their callers, and their surroundings in one process: admission,
//! sealing, routes, heartbeat, reconciler, drain.
//!
//! `holdfast-domain` decides what is true; this crate brings time, tasks and randomness to it. It knows no HTTP and
//! no SQL. An operation is a task on a set that drain waits for; its caller reads its [`tape`](crate) and may go
//! away at any moment.

mod authentication;
mod catalogue;
mod counts;
mod engine;
mod failure;
mod front;
mod live_config;
mod membership;
mod metrics;
mod options;
mod parsing;
mod rate_limit;
mod relay;
mod relay_transport;
mod request_context;
mod results;
mod routes;
mod runner;
#[doc(hidden)]
pub mod seal;
mod serving_config;
mod statistics;
mod tape;

pub use crate::authentication::{AuthError, Caller, InFlight, Secrets};
pub use crate::catalogue::{Catalogue, Guarantee, Model, Price, Route, Timeouts};
pub use crate::engine::{Engine, Ports};
pub use crate::failure::{HeldBalance, RequestFailure};
pub use crate::front::{
    Account, CompletionStream, LookupError, OperationLookup, Quote, QuoteRequest, Readiness, Reply,
    ReplyBody, ReplyFacts, ResultState, StreamFailure, StreamItem,
};
pub use crate::membership::StartError;
pub use crate::options::Options;
pub use crate::rate_limit::{RateLimitStatus, RateLimitWindow};
pub use crate::relay_transport::{
    RelayAnswer, RelayFuture, RelayOptions, RelayRequest, RelayTransport,
};
pub use crate::request_context::{MemoryReservation, RunMode, Submission};
pub use crate::results::is_large;
pub use crate::routes::{BreakerRules, SkippedRoute};
pub use crate::serving_config::{ServingConfig, ServingRules};
pub use crate::statistics::RefusalFacts;
