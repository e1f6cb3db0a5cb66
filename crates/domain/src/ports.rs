//! Ports: all that the domain needs from outside, in its own words. Every implementation of the
//! storage ports passes the laws of `holdfast-testkit`.
//!
//! | port | keeps or does |
//! |---|---|
//! | [`Journal`] | operations, holds and the ledger: the only one that moves money |
//! | [`Nodes`] | leases of running processes |
//! | [`ApiKeys`], [`Wallets`], [`Prices`] | credentials, balances, price versions |
//! | [`Provider`], [`Sink`] | runs a model; receives its output |
//! | [`Statistics`] | counts of refused requests and of attempts on routes, and the newest of them |
//! | [`Pause`] | the wait between two offers |
//!
//! Ports of administration are in [`admin::ports`](crate::admin::ports).
//!
//! Futures of these traits may be dropped at any await: an implementation that writes must not lose
//! or half-do a write because its caller went away.
//!
//! Never in here: a driver's error type, a status code, a rule about money. Moments are the
//! database's clock alone, and come with what was read.
//!
//! ```
//! use async_trait::async_trait;
//! use holdfast_domain::answer::{ChoiceDelta, Delta, FinishReason};
//! use holdfast_domain::{ports::{Call, CallFailure, Provider, Sink}, usage::UsageReport};
//!
//! struct Canned(&'static str);
//! #[async_trait]
//! impl Provider for Canned {
//!     async fn run(&self, _: &Call, sink: &mut dyn Sink) -> Result<Option<UsageReport>, CallFailure> {
//!         // Before the first byte leaves: a call that is dropped earlier is proven not to have run.
//!         sink.on_send();
//!         let (content, finish) = (Some(self.0.to_owned()), Some(FinishReason::Stop));
//!         sink.on_delta(Delta::from(vec![ChoiceDelta { content, finish, ..ChoiceDelta::default() }]));
//!         Ok(Some(UsageReport::text(20, 10)))
//!     }
//! }
//! # struct Pieces(Vec<Delta>);
//! # impl Sink for Pieces { fn on_send(&mut self) {} fn on_delta(&mut self, it: Delta) { self.0.push(it) } }
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! let (call, mut pieces) = (holdfast_testkit::sample::call("What is a hold?"), Pieces(Vec::new()));
//! assert!(Canned("Reserved funds.").run(&call, &mut pieces).await.is_ok() && pieces.0.len() == 1);
//! # }
//! ```

mod call;
mod commit;
mod failure;
mod pending;
mod sink;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

pub use self::call::{Call, ResponseMode, UnsupportedParam};
pub use self::commit::CommitError;
pub use self::failure::{CallFailure, NotRunProof, UnknownReason, UnreadableReason, rejected_text};
pub use self::pending::{PendingWork, WorkKind};
pub use self::sink::Sink;
pub use crate::credential::NewApiKey;
use crate::credential::{ApiKey, Credential};
use crate::ledger::{Account, Posting};
use crate::limits::CounterReadings;
use crate::operation::{Lease, Node, Operation, Receipt, SealedResult, Snapshot, Transition};
use crate::price::{PriceVersion, PriceVersionId};
use crate::request::Request;
use crate::restore::{Restore, UnknownKeys};
pub use crate::statistics::FailureNote;
use crate::statistics::{BreakerReport, RefusalBatch, RouteFailure, RouteHour};
use crate::usage::UsageReport;
use crate::wallet::Wallet;
use crate::{
    ApiKeyId, ClaimId, CredentialId, Currency, Micros, NodeAddress, OperationId, PostingId,
    RequestKey, Timestamp, WalletId,
};

/// Cause below a port, for the log.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The store cannot be reached or does not work; no change is known to have been made.
#[derive(Debug, thiserror::Error)]
#[error("the store is unavailable")]
pub struct Unavailable(#[source] pub Cause);

/// Reach of a commit that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// On one machine: what that machine loses is lost.
    Local,
    /// On another machine, too: a failover to it loses no commit.
    Replicated,
}

impl Durability {
    /// The word for it, in answers and in lists.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Replicated => "replicated",
        }
    }
}

/// Keeps operations, holds and the ledger. Group commit, retries on its own errors and everything
/// about SQL are its business; what changes and why is not.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Reads one operation with its sealed result, its owner's node row and the database's clock. A journal may
    /// withhold the bytes of a large result, and then returns their number.
    async fn load(&self, operation: OperationId) -> Result<Snapshot, Unavailable>;

    /// Reads an operation's sealed result, all of it; `None` if it is not kept (any more). To be overridden by
    /// a journal whose loads withhold results.
    async fn result(&self, operation: OperationId) -> Result<Option<SealedResult>, Unavailable> {
        Ok(self.load(operation).await?.result)
    }

    /// Reads the database's clock, the same as in loads and receipts: proof that it can be read.
    async fn clock(&self) -> Result<Timestamp, Unavailable>;

    /// Reach of its commits now.
    fn durability(&self) -> Durability {
        Durability::Local
    }

    /// Commits one change durably, all of it or none. Cancel safe: a dropped future does not undo it.
    ///
    /// # Errors
    ///
    /// In the order of judgement: [`CommitError::Conflict`], [`CommitError::LimitsEdited`],
    /// [`CommitError::LimitReached`], [`CommitError::InsufficientFunds`] or [`CommitError::FundsHeld`],
    /// [`CommitError::Collision`]. Without a judgement: [`CommitError::TooLarge`], [`CommitError::Overloaded`] and
    /// [`CommitError::Unavailable`] changed no row; after [`CommitError::Uncertain`] offer the same change again.
    async fn commit(&self, change: Arc<Transition>) -> Result<Receipt, CommitError>;

    /// Operations that may be due for reaping or settling, oldest first: recorded ones, and leased ones past
    /// their deadline or whose node row is missing, expired or of another incarnation.
    async fn due(&self, limit: u32) -> Result<Vec<OperationId>, Unavailable>;

    /// The operations leased to a node.
    async fn leased_to(&self, node: &Node) -> Result<Vec<LeasedOperation>, Unavailable>;

    /// Stores a cost that came after the ending, if the row has none. True if this call stored it. By default, for a
    /// journal without such notes, false.
    async fn note_cost(&self, _note: CostNote) -> Result<bool, Unavailable> {
        Ok(false)
    }

    /// Deletes the sealed content of at most `limit` operations that ended longer than `age` ago, of fewer if
    /// it is large, and returns their number: zero once there are no more. The rows stay for ever. A store may
    /// delete as many of its other temporary rows with them.
    async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable>;
}

/// Note on the cost of a generation, which its ended row does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostNote {
    /// The operation.
    pub operation: OperationId,
    /// Generation that ran.
    pub generation: u32,
    /// Cost in the wallet's currency; `None` while it is awaited.
    pub cost: Option<Micros>,
}

/// Operation that is leased to a process, with what that process has to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeasedOperation {
    /// The operation.
    pub operation: OperationId,
    /// Claim that it is leased under.
    pub claim: ClaimId,
    /// True once its caller requested its cancellation.
    pub cancel_asked: bool,
}

impl From<&Operation> for LeasedOperation {
    fn from(row: &Operation) -> Self {
        Self { operation: row.id, claim: row.owner.claim, cancel_asked: row.cancel_asked }
    }
}

/// Way in which a process comes to its node's row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseMode {
    /// At the start, if other evidence (a file lock) proves that no other process has the name.
    Take,
    /// At the start: only if the name is free or its lease has expired.
    TakeExpired,
    /// At every heartbeat: only if the row is still this incarnation's.
    Renew,
}

/// Finding of a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeartbeatOutcome {
    /// Row of this process, until the lease ends.
    Held {
        /// The row.
        lease: Lease,
        /// The database's clock.
        now: Timestamp,
        /// Work that waits for this process or for any.
        pending: PendingWork,
    },
    /// The row is another incarnation's, or gone: this process has been superseded, or waits for the name.
    Lost {
        /// The row as it stands.
        lease: Option<Lease>,
        /// The database's clock.
        now: Timestamp,
    },
}

/// Keeps the leases of running processes.
#[async_trait]
pub trait Nodes: Send + Sync {
    /// Takes or renews the node's row for `lease` from now, by the database's clock, and reports the work that waits.
    async fn heartbeat(
        &self,
        node: &Node,
        lease: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable>;

    /// Removes the row, if it is still this incarnation's.
    async fn leave(&self, node: &Node) -> Result<(), Unavailable>;

    /// Writes the address of the process into the row, if it is still this incarnation's. It stays for as long
    /// as the incarnation has the name. A store without relays between processes may keep none.
    async fn advertise(&self, _node: &Node, _address: &NodeAddress) -> Result<(), Unavailable> {
        Ok(())
    }

    /// Address of that process; `None` if it has not published one, or another has the name.
    async fn address(&self, _node: &Node) -> Result<Option<NodeAddress>, Unavailable> {
        Ok(None)
    }
}

/// A credential and its API key, with the database's clock to judge their ends by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownCredential {
    /// Credential that the bearer's secret is checked against.
    pub credential: Credential,
    /// API key that it belongs to.
    pub api_key: ApiKey,
    /// Revision of the limits of its wallet's API keys, as they are here.
    pub limits_revision: u64,
    /// End of the window of a restore that lost request keys of the API key, if one is open.
    pub unknown_until: Option<Timestamp>,
    /// The database's clock.
    pub now: Timestamp,
}

impl KnownCredential {
    /// True if it is accepted no more. A revoked API key is not, at any time of the clock: a clock that is set
    /// back does not give it back.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // The end itself is not within: from that moment on the credential is refused.
        self.api_key.revoked_at.is_some() || self.ends_at().is_some_and(|end| end <= self.now)
    }

    /// Moment from which it is not accepted, unless its API key is revoked before: the earlier of
    /// its own end and its API key's.
    #[must_use]
    pub fn ends_at(&self) -> Option<Timestamp> {
        [self.credential.ends_at, self.api_key.grant.ends_at].into_iter().flatten().min()
    }
}

/// Readings of all counters of an API key at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterSnapshot {
    /// Every counter.
    pub counters: CounterReadings,
    /// The database's clock: the readings are those of its windows.
    pub now: Timestamp,
}

/// Keeps API keys and their credentials. They change by commands of [`Administration`](crate::admin::Administration).
#[async_trait]
pub trait ApiKeys: Send + Sync {
    /// Looks a credential up. A known one may be cached for a few seconds; an unknown one may not.
    async fn credential(&self, id: CredentialId) -> Result<Option<KnownCredential>, Unavailable>;

    /// Reads every counter of an API key in the window of now.
    async fn counters(&self, api_key: ApiKeyId) -> Result<CounterSnapshot, Unavailable>;
}

/// Entry of a wallet's statement: one transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Moment of its commit.
    pub at: Timestamp,
    /// Operation or posting that it belongs to.
    pub source: LedgerSource,
    /// Label of its kind.
    pub kind: &'static str,
    /// Account that paid.
    pub debit: Account,
    /// Account that was paid.
    pub credit: Account,
    /// Amount; above zero.
    pub amount: Micros,
}

/// Source of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LedgerSource {
    /// An operation, in one of its generations.
    Operation(OperationId, u32),
    /// A deposit, refund or adjustment.
    Posting(PostingId),
}

/// Keeps restores: the moments since which an older copy of the ledger is served again.
#[async_trait]
pub trait Restores: Send + Sync {
    /// Declares that the ledger is an older copy, from now on. Claims that are on their way by an earlier read of their
    /// API key are refused as after an edit of limits. Cancel safe.
    async fn declare(&self, unknown: UnknownKeys) -> Result<Restore, Unavailable>;

    /// The restore whose window is open, and ends last.
    async fn open_window(&self) -> Result<Option<Restore>, Unavailable>;
}

/// Keeps wallets. They change by commands of [`Administration`](crate::admin::Administration), their balances also
/// through [`Journal::commit`].
#[async_trait]
pub trait Wallets: Send + Sync {
    /// Finds a wallet by its id.
    async fn find(&self, id: WalletId) -> Result<Option<Wallet>, Unavailable>;

    /// The newest `limit` transfers of a wallet, oldest of them first.
    async fn transfers(&self, id: WalletId, limit: u32) -> Result<Vec<LedgerEntry>, Unavailable>;

    /// Reads a posting again, after it was offered twice.
    async fn posting(&self, id: PostingId) -> Result<Option<Posting>, Unavailable>;
}

/// Reason why prices were not pinned.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// Version that is known with other numbers.
    #[error("price version {0} is known with other numbers: give new prices a new effective_from")]
    Conflict(PriceVersionId),
    /// The store does not work.
    #[error("the store is unavailable")]
    Unavailable(#[source] Cause),
}

/// Keeps price versions for ever.
#[async_trait]
pub trait Prices: Send + Sync {
    /// Stores the versions that are not known yet; all or none of them.
    async fn pin(&self, versions: &[PriceVersion]) -> Result<(), PinError>;
}

/// Failure of an addition to the statistics.
#[derive(Debug, thiserror::Error)]
pub enum AdditionError {
    /// A row that the store refuses, or one that it cannot read: the same addition fails each time.
    #[error("the store refuses a row of statistics")]
    Misfit(#[source] Cause),
    /// No answer of the store, or an outage.
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

/// Adds up statistics of all processes. They are no money: an addition whose answer was lost may count twice.
#[async_trait]
pub trait Statistics: Send + Sync {
    /// Adds the counts, and lists the requests in the [ring](crate::statistics::ring) of each API key; all of
    /// it or none. Additions of several processes add up. Cancel safe.
    async fn add_refusals(&self, refusals: Arc<RefusalBatch>) -> Result<(), AdditionError>;

    /// Adds attempts to the rows of their keys; all of it or none. Cancel safe.
    async fn add_route_hours(&self, hours: Arc<Vec<RouteHour>>) -> Result<(), AdditionError>;

    /// Keeps these failures, and of each route the newest [`FAILURES_KEPT`](crate::statistics::FAILURES_KEPT). Cancel
    /// safe.
    async fn add_route_failures(
        &self,
        failures: Arc<Vec<RouteFailure>>,
    ) -> Result<(), AdditionError>;

    /// Replaces the circuit breakers that a node has reported, if its name is this incarnation's. They go with its
    /// lease. Cancel safe.
    async fn set_route_states(
        &self,
        node: &Node,
        breakers: &[BreakerReport],
    ) -> Result<(), Unavailable>;

    /// Deletes hours that began longer ago than `age`, and failures of routes of that age: up to `limit` rows of each
    /// kind. Returns the number of all.
    async fn purge_hours(&self, age: Duration, limit: u32) -> Result<u64, Unavailable>;
}

/// Connections of a provider, for its operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Kept for the next call.
    pub idle: usize,
    /// Connections of calls, or of one that is about to be sent.
    pub used: usize,
}

/// Runs models.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Checks that it can do all that a request contains; by default, everything. A claim checks this before its
    /// key is bound, and never sends an unsupported field: a field is not dropped on the way.
    ///
    /// # Errors
    ///
    /// [`UnsupportedParam`], the first unsupported one. The same request has the same answer.
    fn check_supported(&self, _request: &Request) -> Result<(), UnsupportedParam> {
        Ok(())
    }

    /// Bytes of prompt that it adds to a request's own, at most: a hold counts them. By default none.
    fn added_prompt_bytes(&self, _request: &Request) -> u64 {
        0
    }

    /// Name of the format of the state that its models attach to tool calls and require back. One name never stands
    /// for two formats. `None`, the default: they require none.
    fn state_shape(&self) -> Option<&'static str> {
        None
    }

    /// Name of its kind in telemetry, by OpenTelemetry's conventions for generative AI
    /// (`gen_ai.provider.name`), or one of its own if those have none.
    fn semantic_name(&self) -> &'static str {
        "_OTHER"
    }

    /// True if calls have a key of their own, which goes along with the request.
    fn takes_key(&self) -> bool {
        false
    }

    /// True if a call whose outcome is unknown is repeated under its key, at a server that may have run and
    /// charged it. No other route is then tried after it, under any guarantee.
    fn repeats_calls(&self) -> bool {
        false
    }

    /// Ends the run of a dropped call at a server that keeps keys, and returns its charge; `None` if that is
    /// not known in time, and at any other server.
    async fn end_run(&self, _key: RequestKey) -> Option<(Currency, Micros)> {
        None
    }

    /// Reads from its server the facts that calls depend on, at a start: it runs no model and is free of
    /// charge. By default there are none.
    async fn prepare(&self) {}

    /// Connections that it has now; `None`, the default, for a provider without connections.
    fn connections(&self) -> Option<ConnectionCounts> {
        None
    }

    /// Runs the call at most once: an implementation never sends it again, except under the call's key to a
    /// server that has shown that it keeps keys. Returns the usage as reported, unchecked; `None` without a
    /// report. Dropping the future cuts the call; whether it had run is then unknown, unless the sink was not
    /// yet notified of its sending.
    async fn run(
        &self,
        call: &Call,
        sink: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, CallFailure>;
}

/// Wait between two offers to a store that did not take the first.
#[async_trait]
pub trait Pause: Send + Sync {
    /// Waits before offer number `attempt`, counted from one; longer for later ones.
    async fn pause(&self, attempt: u32);
}

/// Implements `Debug` for a port as its name, so that structs that hold one can derive it.
macro_rules! named_ports {
    ($($port:ident),+) => {$(
        impl fmt::Debug for dyn $port {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($port))
            }
        }
    )+};
}

named_ports! { Journal, Nodes, ApiKeys, Wallets, Restores, Provider, Statistics }
pub(crate) use named_ports;
