//! How it runs: operations as tasks that outlive their callers, and everything around them in one
//! process: admission, sealing, routes, heartbeat, reconciler, drain.
//!
//! What is true is decided in `holdfast-domain`; this crate brings time, tasks and randomness to it.
//! It knows no HTTP and no SQL. An operation is a task on a set that drain waits for; whoever asked
//! for it reads its [`tape`](crate) and may go away at any moment.

mod admission;
mod answer_bytes;
mod assembly;
mod backoff;
mod callers;
mod cancel;
mod catalogue;
mod claim_failure;
mod clocks;
mod counts;
mod heartbeat;
mod lifecycle;
mod metering;
mod metrics;
mod nodes;
mod operate;
mod options;
mod rate_limit;
mod reconciler;
mod relay;
mod remote_run;
mod rendering;
mod reply;
mod results;
mod route_complaints;
mod routes;
mod row_poller;
#[doc(hidden)]
pub mod seal;
mod serving_config;
mod states;
mod streaming;
mod submit;
mod tape;
mod unknown_keys;
mod views;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_domain::ports::{ApiKeys, Journal, Nodes, Wallets};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use crate::callers::{AuthError, Caller, InFlight, Secrets};
pub use crate::catalogue::{Catalogue, Guarantee, Model, Price, Route, Timeouts};
pub use crate::nodes::StartError;
pub use crate::options::Options;
pub use crate::rate_limit::{RateLimitStatus, RateLimitWindow};
pub use crate::relay::{RelayAnswer, RelayFuture, RelayOptions, RelayRequest, RelayTransport};
pub use crate::reply::{Reply, ReplyBody, ReplyFacts, RequestFailure};
pub use crate::results::is_large;
pub use crate::routes::{CoolDown, SkippedRoute};
pub use crate::serving_config::{ServingConfig, ServingRules};
pub use crate::streaming::{CompletionStream, StreamFailure, StreamItem};
pub use crate::submit::Submission;
pub use crate::views::{Account, LookupError, OperationLookup, Readiness, ResultState};

/// The storage ports that an engine works on.
#[derive(Clone)]
pub struct Ports {
    /// Operations and the book.
    pub journal: Arc<dyn Journal>,
    /// Leases of processes.
    pub nodes: Arc<dyn Nodes>,
    /// API keys.
    pub keys: Arc<dyn ApiKeys>,
    /// Balances.
    pub wallets: Arc<dyn Wallets>,
}

impl std::fmt::Debug for Ports {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ports")
    }
}

/// One running gateway process.
#[derive(Debug)]
pub struct Engine {
    ports: Ports,
    secrets: Arc<Secrets>,
    options: Options,
    /// How long sealed results are kept. It may change while the process runs.
    kept: Mutex<Duration>,
    /// Those that are on their way to callers.
    results: results::ResultLimiter,
    pause: backoff::BackOff,
    callers: callers::Callers,
    running: tape::RunRegistry,
    row_poller: row_poller::RowPoller,
    /// Without them, what a run says is heard by its row alone where it does not run.
    relays: Option<relay::Relays>,
    answers: Arc<answer_bytes::AnswerBytes>,
    route_complaints: route_complaints::RouteComplaints,
    metrics: metrics::Metrics,
    readable: views::ReadinessCache,
    node: nodes::Membership,
    /// Operations.
    tasks: TaskTracker,
    /// Heartbeat and reconciler.
    keepers: TaskTracker,
    /// Heartbeat and reconciler end with this, after the operations have.
    background: CancellationToken,
    /// The database is not the one any more that acknowledged a claim of this process: until somebody
    /// has looked and starts another, it takes nothing that can go elsewhere.
    has_lost_commits: AtomicBool,
    /// From the first moment of drain: nothing new.
    draining: CancellationToken,
    /// From the drain's deadline: what still runs is cut, and so is what is heard of other processes' runs.
    cutting: CancellationToken,
}
