//! The engine of one process: four owners, made in the order in which they need each other, and ended in reverse.
//!
//! | owner | has |
//! |---|---|
//! | [`authentication`](crate::authentication) | credentials, secrets, requests in flight of each API key |
//! | [`membership`](crate::membership) | the node's lease, heartbeat, reconciler |
//! | [`runner`](crate::runner) | the operations of this process, their tapes and their endings |
//! | [`front`](crate::front) | submissions, replies, look-ups, cancels |
//!
//! It also holds the [live configuration](crate::live_config), which each request carries through them, and the
//! [statistics](crate::statistics) of requests.
//!
//! An owner names only those above it. Parts that two owners share (the registry of runs, metrics, room for
//! results) are made once at the start; a request copies pointers and creates none.
//!
//! A drain ends in this order, and no other: new requests are refused; operations finish, or are cut at the
//! deadline, and commit their endings; heartbeat and reconciler end; the name is given back; costs of cut runs are
//! awaited, for [`Options::CHAIN_END_WAIT`]. A lease that ended earlier would let another process reap operations that
//! this one is about to settle.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::ports::EventOutbox;
use holdfast_domain::operation::Operation;
use holdfast_domain::ports::{
    ApiKeys, Durability, Journal, Nodes, PendingWork, Statistics, Wallets,
};
use holdfast_domain::{RequestKey, Timestamp};
use tokio::sync::watch;

use crate::authentication::{AuthError, Authentication, Caller, InFlight, Secrets};
use crate::failure::RequestFailure;
use crate::front::{
    Account, Front, FrontParts, LookupError, OperationLookup, Quote, QuoteRequest, Readiness, Reply,
};
use crate::live_config::LiveConfig;
use crate::membership::{Membership, MembershipParts, StartError};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::relay::Relays;
use crate::relay_transport::{RelayAnswer, RelayRequest};
use crate::request_context::Submission;
use crate::results::ResultLimiter;
use crate::runner::{Runner, RunnerParts};
use crate::serving_config::ServingConfig;
use crate::statistics::{LeaseState, RefusalFacts, RouteCollector, StatisticsWriter};
use crate::tape::RunRegistry;

/// The storage ports that an engine works on.
#[derive(Debug, Clone)]
pub struct Ports {
    /// Operations and the ledger.
    pub journal: Arc<dyn Journal>,
    /// Leases of processes.
    pub nodes: Arc<dyn Nodes>,
    /// API keys.
    pub keys: Arc<dyn ApiKeys>,
    /// Balances.
    pub wallets: Arc<dyn Wallets>,
    /// Events of what this process notices.
    pub events: Arc<dyn EventOutbox>,
    /// Statistics of all processes.
    pub statistics: Arc<dyn Statistics>,
}

/// Engine of one running gateway process, which wires the four owners together.
#[derive(Debug)]
pub struct Engine {
    authentication: Arc<Authentication>,
    membership: Arc<Membership>,
    runner: Arc<Runner>,
    front: Arc<Front>,
    live: Arc<LiveConfig>,
    statistics: Arc<StatisticsWriter>,
}

impl Engine {
    /// Takes the node's name and starts heartbeat and reconciler. Requests are served by `serving` until
    /// [`Self::replace_serving`].
    ///
    /// # Errors
    ///
    /// A [`StartError`] if the name cannot be taken.
    pub async fn start(
        ports: Ports,
        secrets: Secrets,
        options: Options,
        serving: ServingConfig,
    ) -> Result<Arc<Self>, StartError> {
        let Ports { journal, nodes, keys, wallets, events, statistics } = ports;
        let (metrics, secrets) = (Arc::new(Metrics::begin()), Arc::new(secrets));
        let (running, routes) = (Arc::<RunRegistry>::default(), Arc::<RouteCollector>::default());
        let results =
            Arc::new(ResultLimiter::new(options.result_bytes_per_key, options.result_bytes));
        let statistics =
            Arc::new(StatisticsWriter::new(statistics, options.statistics, Arc::clone(&routes)));
        let parts = MembershipParts {
            statistics: Arc::clone(&statistics),
            journal: Arc::clone(&journal),
            nodes: Arc::clone(&nodes),
            events,
            running: Arc::clone(&running),
            metrics: Arc::clone(&metrics),
        };
        // First of all steps that can fail: without the name no other may begin.
        let membership = Membership::enter(parts, &options).await?;
        let (own_keys, own_wallets) = (Arc::clone(&keys), Arc::clone(&wallets));
        let authentication = Arc::new(Authentication::new(
            own_keys,
            own_wallets,
            Arc::clone(&secrets),
            options.cell,
        ));
        // A node without an address of its own does not query others either: both sides have to be configured.
        let relays = options.relay.clone();
        let relays = relays.map(|own| Arc::new(Relays::new(own, nodes, Arc::clone(&metrics))));
        let runner = Runner::new(RunnerParts {
            membership: Arc::clone(&membership),
            authentication: Arc::clone(&authentication),
            running,
            metrics,
            journal: Arc::clone(&journal),
            wallets: Arc::clone(&wallets),
            secrets: Arc::clone(&secrets),
            results: Arc::clone(&results),
            routes,
        });
        let front = Front::new(FrontParts {
            membership: Arc::clone(&membership),
            runner: Arc::clone(&runner),
            results,
            journal,
            keys,
            wallets,
            secrets,
            relays,
        });
        membership.begin(&authentication, &options);
        let live = Arc::new(LiveConfig::new(serving, &runner.metrics));
        // Among the keepers: it ends with the membership that feeds it.
        membership.keepers.spawn(Arc::clone(&runner).end_reaped(Arc::clone(&live)));
        // Bound to a name, so that the type becomes that of the trait.
        let shared = Arc::clone(&membership);
        let lease: Arc<dyn LeaseState> = shared;
        statistics.watch_breakers(Arc::downgrade(&lease), &live);
        Ok(Arc::new(Self { authentication, membership, runner, front, live, statistics }))
    }

    /// Reports of the heartbeats on the work that waits, one for each heartbeat that held the lease. The first is
    /// there at once.
    #[must_use]
    pub fn pending_work(&self) -> watch::Receiver<PendingWork> {
        let mut reports = self.membership.pending.subscribe();
        reports.mark_changed();
        reports
    }

    /// Serving configuration of now. A request takes it once, at its beginning, and keeps it.
    #[must_use]
    pub fn serving(&self) -> Arc<ServingConfig> {
        self.live.get()
    }

    /// Serves later requests by another configuration. Running ones keep theirs.
    pub fn replace_serving(&self, serving: ServingConfig) {
        self.live.replace(serving, &self.runner.metrics);
    }

    /// Authenticates a bearer text that came from this address. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`AuthError::Invalid`] for every fault of it; [`AuthError::TooManyUnknown`] if it was not looked up.
    pub async fn authenticate(&self, bearer: &str, peer: IpAddr) -> Result<Arc<Caller>, AuthError> {
        self.authentication.authenticate(bearer, peer, || self.membership.node.now()).await
    }

    /// Counts a request of this caller until the guard is dropped; `None` when it has as many as the
    /// request's configuration allows.
    #[must_use]
    pub fn enter(&self, serving: &ServingConfig, caller: &Caller) -> Option<InFlight> {
        self.authentication.enter(caller, serving.rules.operations_per_key)
    }

    /// Runs a chat completion once, or answers from the operation that the key is bound to. Cancel
    /// safe: a dropped future leaves the operation running.
    // Not async itself: a second future around the first would hold the submission twice.
    pub fn complete(&self, submission: Submission) -> impl Future<Output = Reply> + Send {
        self.front.complete(submission)
    }

    /// Prices a body: the hold that a completion of it would have now. Binds no key and reads only memory.
    ///
    /// # Errors
    ///
    /// The failure by which the completion would be refused before its claim.
    pub async fn quote(&self, request: QuoteRequest) -> Result<Quote, RequestFailure> {
        self.front.quote(request).await
    }

    /// Shows an operation of this API key; reconciles stale work as a retry would, and never starts a run. Cancel
    /// safe.
    pub async fn look_up(
        &self,
        caller: &Caller,
        request_key: RequestKey,
    ) -> Result<OperationLookup, LookupError> {
        self.front.look_up(caller, request_key).await
    }

    /// Row of an operation of this API key with the moment of the read, and without its content; reconciles stale work
    /// as a retry would. Cancel safe.
    ///
    /// # Errors
    ///
    /// Fails if the API key has no such operation, or the store does not work.
    pub async fn operation(
        &self,
        caller: &Caller,
        request_key: RequestKey,
    ) -> Result<(Operation, Timestamp), LookupError> {
        self.front.operation(caller, request_key).await
    }

    /// Requests the end of an operation of this API key, and shows its state: leased if its owner has the request.
    /// Cancel safe: a requested cancel stays requested.
    pub async fn cancel(
        &self,
        caller: &Caller,
        request_key: RequestKey,
    ) -> Result<OperationLookup, LookupError> {
        self.front.cancel(caller, request_key).await
    }

    /// The caller's wallet, and the counters of its API key's limits. Cancel safe.
    ///
    /// # Errors
    ///
    /// Fails if the store does not work, or the wallet is gone.
    pub async fn account(&self, caller: &Caller) -> Result<Account, LookupError> {
        self.front.account(caller).await
    }

    /// Readiness for probes. Cancel safe.
    pub async fn readiness(&self) -> Readiness {
        self.front.readiness().await
    }

    /// The same without a read of the database: by the heartbeats, which are writes.
    #[must_use]
    pub fn presumed_readiness(&self) -> Readiness {
        self.front.presumed_readiness()
    }

    /// Reach of the ledger's commits now, as the store read it last.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.front.durability()
    }

    /// Text of a run of this process, for another node that knows its result key; `None` for any other node, for a
    /// run that is not here or has no log of chunks, and if too many relays are open.
    #[must_use]
    pub fn relay(&self, request: &RelayRequest) -> Option<RelayAnswer> {
        // Of now, not of the run: the limit bounds what this process has in hand at this moment.
        self.front.relay(request, self.live.get().rules.waiters_per_operation)
    }

    /// Runs work on a large result that takes milliseconds off the runtime's workers. `None` if it panicked, which
    /// was logged. Cancel safe: dropped work goes on, and its result is dropped.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.front.results.run_blocking(work).await
    }

    /// The database's clock, as well as this process knows it: prices are in force by it.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.membership.node.now()
    }

    /// Notes a refused request of this caller, for the statistics. It does not wait.
    pub fn note_refusal(&self, caller: &Caller, mut facts: RefusalFacts) {
        let key = (caller.api_key.id, caller.api_key.wallet);
        // Any other name is a text of the caller's, and no row may keep one.
        let serving = self.live.get();
        facts.model = facts.model.filter(|model| serving.catalogue.find(model).is_some());
        self.statistics.refusals.note(key, self.now(), facts);
    }

    /// Writes the statistics of requests that were answered since the last write: after a drain, once the connections
    /// have ended. It waits for a silent store for two seconds at most. Not cancel safe.
    pub async fn flush_statistics(&self) {
        self.statistics.flush_at_end().await;
    }

    /// Completes when another process has taken this one's name: it has to drain. Cancel safe.
    pub async fn superseded(&self) {
        self.membership.node.superseded.cancelled().await;
    }

    /// Keeps sealed results for this long from now on, also those that are kept already.
    pub fn keep_results(&self, time: Duration) {
        self.membership.keep_results(time);
    }

    /// Keeps hours of statistics for this long from now on, also those that are kept already.
    pub fn keep_statistics(&self, time: Duration) {
        self.statistics.keep(time);
    }

    /// Count of requests that wait for the end of an operation, here or elsewhere.
    #[must_use]
    pub fn waiters(&self) -> usize {
        self.front.waiters()
    }

    /// Reports not ready from now on, and accepts all requests all the same: load balancers send to other nodes
    /// before a request is refused.
    pub fn announce_end(&self) {
        self.front.leaving.cancel();
    }

    /// Refuses new requests from now on.
    pub fn stop_admitting(&self) {
        self.front.draining.cancel();
    }

    /// Lets running operations finish until `drain_time` ends, cuts the rest, commits every ending, and gives the
    /// name back. True if all of them finished by themselves. Not cancel safe: a dropped drain leaves operations to the
    /// reconcilers of others.
    pub async fn drain(&self, drain_time: Duration) -> bool {
        self.stop_admitting();
        let tasks = &self.runner.tasks;
        // A set that is open is waited for without end, empty or not.
        tasks.close();
        let finished = tokio::time::timeout(drain_time, tasks.wait()).await.is_ok();
        if !finished {
            let operations = tasks.len();
            tracing::warn!(operations, "drain deadline: cutting running operations");
            self.runner.running.stop_all();
            self.front.cutting.cancel();
            let settled = tokio::time::timeout(Options::COMMIT_WAIT, tasks.wait()).await;
            if settled.is_err() {
                let operations = tasks.len();
                tracing::error!(
                    operations,
                    "the store did not commit every ending: they are \
                    reconciled later"
                );
            }
        }
        self.statistics.flush_at_end().await;
        // After every ending: with the name gone, another process may reap operations that are still leased to this one.
        self.membership.leave().await;
        // After the reaper, which starts these too. The note of a cost changes no leased row, so it needs no lease.
        let ends = &self.runner.chain_ends;
        ends.close();
        if tokio::time::timeout(Options::CHAIN_END_WAIT, ends.wait()).await.is_err() {
            let operations = ends.len();
            tracing::warn!(operations, "the costs of cut runs at upstream gateways stay unknown");
        }
        finished
    }
}
