//! The front: requests of authenticated callers, from their raw body to a reply.
//!
//! ```text
//! submit ─ admission ─► runner                     a key without a run: claim, then follow the tape
//!    ├──── attach ────► tape                       a run of this process
//!    └──── follow ────► row poller, relay          a run of another process: its row, and its text
//!                             └─► reply            a tape or a row in the form for this caller
//! views, cancel ─────────► membership, runner      other requests about operations
//! quote ── admission                               the hold of a request that is not sent
//! ```
//!
//! Every future in here may be dropped at any await, because callers hang up: work that has to finish is a task of
//! the [`runner`](crate::runner), and cancelling a wait cancels only the wait.
//!
//! From the first moment of a drain it accepts no new request; an answer that has begun is sent to its end, or to
//! the drain's deadline.

mod admission;
mod cancel;
mod quote;
mod reply;
mod row_poller;
mod submit;
mod views;

use std::sync::Arc;

use holdfast_domain::ports::{ApiKeys, Journal, Wallets};
use tokio_util::sync::CancellationToken;

pub use self::quote::{Quote, QuoteRequest};
pub use self::reply::{CompletionStream, Reply, ReplyBody, ReplyFacts, StreamFailure, StreamItem};
use self::row_poller::RowPoller;
use self::views::ReadinessCache;
pub use self::views::{Account, LookupError, OperationLookup, Readiness, ResultState};
use crate::authentication::Secrets;
use crate::membership::Membership;
use crate::relay::Relays;
use crate::relay_transport::{RelayAnswer, RelayRequest};
use crate::results::ResultLimiter;
use crate::runner::Runner;

/// Front of this process: every question of an authenticated caller enters here.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) results: Arc<ResultLimiter>,
    /// Drain signal: from its first moment no new request is accepted. Set while the end is announced, and all
    /// requests are still accepted.
    pub(crate) leaving: CancellationToken,
    pub(crate) draining: CancellationToken,
    /// Cut signal at the drain's deadline: streams of other processes' runs end.
    pub(crate) cutting: CancellationToken,
    membership: Arc<Membership>,
    runner: Arc<Runner>,
    journal: Arc<dyn Journal>,
    keys: Arc<dyn ApiKeys>,
    wallets: Arc<dyn Wallets>,
    secrets: Arc<Secrets>,
    row_poller: Arc<RowPoller>,
    /// Relays to other nodes; without them a run of another node is followed only by its row.
    relays: Option<Arc<Relays>>,
    readable: ReadinessCache,
}

/// Parts of a front: storage ports, and what it shares with the other owners.
pub(crate) struct FrontParts {
    pub(crate) membership: Arc<Membership>,
    pub(crate) runner: Arc<Runner>,
    pub(crate) results: Arc<ResultLimiter>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) keys: Arc<dyn ApiKeys>,
    pub(crate) wallets: Arc<dyn Wallets>,
    pub(crate) secrets: Arc<Secrets>,
    pub(crate) relays: Option<Arc<Relays>>,
}

impl Front {
    /// Creates a front that takes requests at once.
    pub(crate) fn new(parts: FrontParts) -> Arc<Self> {
        let FrontParts { membership, runner, results, journal, keys, wallets, secrets, relays } =
            parts;
        Arc::new(Self {
            results,
            leaving: CancellationToken::new(),
            draining: CancellationToken::new(),
            cutting: CancellationToken::new(),
            row_poller: Arc::new(RowPoller::new(Arc::clone(&membership))),
            membership,
            runner,
            journal,
            keys,
            wallets,
            secrets,
            relays,
            readable: ReadinessCache::default(),
        })
    }

    /// Count of requests that wait for the end of an operation, here or elsewhere.
    pub(crate) fn waiters(&self) -> usize {
        self.runner.running.waiters().saturating_add(self.row_poller.waiters())
    }

    /// Serves a relay of a run of this process to another node; `None` is a refusal.
    pub(crate) fn relay(&self, request: &RelayRequest, waiters_max: usize) -> Option<RelayAnswer> {
        self.relays.as_ref()?.serve(&self.runner.running, request, waiters_max)
    }

    /// True if this process drains, or has lost its name to another one.
    fn takes_nothing_new(&self) -> bool {
        self.draining.is_cancelled() || self.membership.node.superseded.is_cancelled()
    }
}
