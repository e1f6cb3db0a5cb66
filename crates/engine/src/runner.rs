//! The runner: operations as tasks that outlive their callers, from the claim to the committed ending.
//!
//! ```text
//! front ─ prepared claim ─► operate ─► claim ─► routes ─► assembly ─► rendering ─► ending
//!                              │                             │                       │
//!                            tape: stage               tape: chunks            tape: outcome
//! ```
//!
//! A run is a task on a set that drain waits for. Its callers read its [`tape`](crate::tape) and may go away at any
//! moment; no step of a run awaits a reader. Each run has its own memory share, which ends with its committed
//! ending, because the store may hold the answer for as long as it does not take it.
//!
//! It never answers a caller: [`front`](crate::front) makes replies of outcomes. It never changes a row except
//! through the conduct that [`membership`](crate::membership) makes.

mod answer_bytes;
mod assembly;
mod chain_end;
mod claim_failure;
mod claiming;
mod fallback;
mod metering;
mod operate;
mod rebinding;
mod rendering;
mod route_complaints;
mod run_trace;
mod states;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use holdfast_domain::ports::{Journal, Wallets};
use tokio_util::task::TaskTracker;

use self::answer_bytes::AnswerBytes;
use self::rebinding::Rebinder;
use self::route_complaints::RouteComplaints;
pub(crate) use self::states::may_grow;
use crate::authentication::{Authentication, Secrets};
use crate::membership::Membership;
use crate::metrics::Metrics;
use crate::parsing::ParsePlaces;
use crate::request_context::{PreparedClaim, RequestContext};
use crate::results::ResultLimiter;
use crate::statistics::RouteCollector;
use crate::tape::RunRegistry;

/// Runner of this process: its tasks, and the ports and counters that every run works on.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) membership: Arc<Membership>,
    authentication: Arc<Authentication>,
    pub(crate) running: Arc<RunRegistry>,
    /// Tasks of operations, one each: a drain waits until this set is empty.
    pub(crate) tasks: TaskTracker,
    /// Tasks that end runs at gateways behind: a drain waits a while for them.
    pub(crate) chain_ends: TaskTracker,
    pub(crate) metrics: Arc<Metrics>,
    journal: Arc<dyn Journal>,
    wallets: Arc<dyn Wallets>,
    secrets: Arc<Secrets>,
    results: Arc<ResultLimiter>,
    /// Statistics of attempts.
    routes: Arc<RouteCollector>,
    pub(crate) parsing: ParsePlaces,
    answers: Arc<AnswerBytes>,
    route_complaints: RouteComplaints,
    /// Lost-commit latch: set for the life of the process when a claim that the database had
    /// acknowledged is gone. Readiness fails from then on, so that requests go elsewhere until an
    /// operator has looked.
    has_lost_commits: AtomicBool,
}

/// The ports that runs work on, and what they share with the other owners.
pub(crate) struct RunnerParts {
    pub(crate) membership: Arc<Membership>,
    pub(crate) authentication: Arc<Authentication>,
    pub(crate) running: Arc<RunRegistry>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) wallets: Arc<dyn Wallets>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) results: Arc<ResultLimiter>,
    pub(crate) routes: Arc<RouteCollector>,
}

impl Runner {
    /// Creates a runner without tasks; the parts are shared with the other owners.
    pub(crate) fn new(parts: RunnerParts) -> Arc<Self> {
        let RunnerParts {
            membership,
            authentication,
            running,
            metrics,
            journal,
            wallets,
            secrets,
            results,
            routes,
        } = parts;
        Arc::new(Self {
            membership,
            authentication,
            running,
            tasks: TaskTracker::new(),
            chain_ends: TaskTracker::new(),
            metrics,
            journal,
            wallets,
            secrets,
            results,
            routes,
            parsing: ParsePlaces::default(),
            answers: Arc::default(),
            route_complaints: RouteComplaints::default(),
            has_lost_commits: AtomicBool::new(false),
        })
    }

    /// Reads the lost-commit latch: `true` once the store has lost a commit that it acknowledged.
    pub(crate) fn has_lost_commits(&self) -> bool {
        // Relaxed: a latch that guards no other memory; a probe that is a moment late does no harm.
        self.has_lost_commits.load(Ordering::Relaxed)
    }

    /// True if the answers of all runs hold at least `bytes_max` bytes. Admission then refuses new runs, and those
    /// under way go on.
    pub(crate) fn is_memory_spent(&self, bytes_max: usize) -> bool {
        self.answers.are_spent(bytes_max)
    }

    /// Makes the rebinder of this request, by which its claim can be compared with an older row.
    fn rebinder(
        &self,
        context: &RequestContext,
        prepared: &PreparedClaim,
        body: Bytes,
    ) -> Rebinder {
        let (secrets, caller) = (Arc::clone(&self.secrets), Arc::clone(&context.caller));
        let request = Arc::clone(prepared.written.as_ref().unwrap_or(&prepared.request));
        Rebinder { secrets, caller, request, body, large: Mutex::default() }
    }
}
