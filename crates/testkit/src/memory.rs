//! Every storage port in memory, with a clock that tests turn and commits that are lost on demand.
//!
//! No rule of operations is decided here: like any store it enforces the version, the bounds and the permanent
//! ids, in that order. Each call lets other futures of the task run first, so that calls that are joined race.
//!
//! [`Fault`] is what a test makes of the next commits. The one worth most is [`Fault::LandsLate`]:
//! the answer is lost, reads still show the old row, and the next commit finds the change landed. A
//! caller that reads once and takes the old row for a verdict passes all tests but those.
//!
//! One lock, never held across an await: a call is a transaction. Not here: durability, and speed.

mod book;
mod commands;
mod edits;
mod faults;
mod journal;
mod judge;
mod ports;
mod restores;
mod statistics;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_domain::credential::{ApiKey, Credential};
use holdfast_domain::ledger::{BalanceChange, Posting};
use holdfast_domain::limits::Counter;
use holdfast_domain::operation::{Lease, Node, Operation, SealedResult};
use holdfast_domain::ports::LedgerSource;
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::restore::Restore;
use holdfast_domain::statistics::{
    BreakerReport, RefusalHour, RefusedRequest, RouteFailure, RouteHour, RouteHourKey,
};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, CredentialId, Incarnation, Micros, NodeAddress, NodeName, OperationId, PostingId,
    Timestamp, WalletId,
};

pub use self::book::WalletEntry;
pub use self::faults::Fault;
use self::faults::Faults;
use crate::sample;

/// Store that keeps everything in memory.
///
/// ```
/// use holdfast_domain::conduct::{ClaimOutcome, Conduct};
/// use holdfast_testkit::{Fault, MemoryJournal, NoPause, sample};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), holdfast_domain::conduct::ClaimError> {
/// let journal = MemoryJournal::with_funds(1_000);
/// let conduct = Conduct { journal: &journal, pause: &NoPause, orphan_grace: None };
///
/// // The claim is committed, and the store's answer to that is lost: it is offered again, and found.
/// journal.fail_next([Fault::Landed]);
/// let claim = sample::claim().hold(100).build();
/// assert!(matches!(conduct.claim(&sample::order(&claim)).await?, ClaimOutcome::Mine(..)));
/// assert_eq!(journal.offers(), 2);
/// assert_eq!(journal.wallet(sample::WALLET).unwrap().held.get(), 100);
/// # Ok(())
/// # }
/// ```
pub struct MemoryJournal {
    state: Mutex<JournalState>,
}

/// Rows of all tables, and the faults to come.
struct JournalState {
    now: Timestamp,
    operations: BTreeMap<OperationId, StoredOperation>,
    wallets: Vec<Wallet>,
    lines: Vec<WalletEntry>,
    postings: BTreeMap<PostingId, Posting>,
    counters: BTreeMap<(ApiKeyId, Counter, Timestamp), i64>,
    nodes: BTreeMap<NodeName, Lease>,
    addresses: BTreeMap<Incarnation, NodeAddress>,
    api_keys: Vec<ApiKey>,
    /// Edits of limits of a wallet's API keys.
    limits_revisions: BTreeMap<WalletId, u64>,
    restores: Vec<Restore>,
    credentials: BTreeMap<CredentialId, Credential>,
    prices: BTreeMap<PriceVersionId, PriceVersion>,
    /// Rings of refused requests, each request with its slot, oldest first.
    refusals: Vec<(u32, RefusedRequest)>,
    refusal_hours: BTreeMap<RefusalHour, u64>,
    route_hours: BTreeMap<RouteHourKey, RouteHour>,
    /// Failures of each route, the newest first.
    route_failures: BTreeMap<Arc<str>, Vec<RouteFailure>>,
    /// Breakers by the name of a node, with the process that reported them.
    route_states: BTreeMap<NodeName, (Node, Vec<BreakerReport>)>,
    faults: Faults,
}

struct StoredOperation {
    operation: Operation,
    result: Option<SealedResult>,
}

impl MemoryJournal {
    /// Empty journal, at [`sample::NOW`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            state: Mutex::new(JournalState {
                now: sample::NOW,
                operations: BTreeMap::new(),
                wallets: Vec::new(),
                lines: Vec::new(),
                postings: BTreeMap::new(),
                counters: BTreeMap::new(),
                nodes: BTreeMap::new(),
                addresses: BTreeMap::new(),
                api_keys: Vec::new(),
                limits_revisions: BTreeMap::new(),
                restores: Vec::new(),
                credentials: BTreeMap::new(),
                prices: BTreeMap::new(),
                refusals: Vec::new(),
                refusal_hours: BTreeMap::new(),
                route_hours: BTreeMap::new(),
                route_failures: BTreeMap::new(),
                route_states: BTreeMap::new(),
                faults: Faults::default(),
            }),
        }
    }

    /// Journal with [`sample::WALLET`] in it, with this much available.
    #[must_use]
    pub fn with_funds(micros: i64) -> Self {
        let journal = Self::new();
        {
            let mut state = journal.state();
            state.wallets.push(Wallet {
                id: sample::WALLET,
                name: "sample".to_owned(),
                currency: sample::usd(),
                available: Micros::ZERO,
                held: Micros::ZERO,
                suspended_at: None,
            });
            state.deposit(sample::WALLET, Micros::new(micros));
        }
        journal
    }

    /// The clock. Most calls of a port move it by a microsecond: no two of their readings are
    /// equal.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.state().now
    }

    /// Turns the clock on.
    pub fn advance(&self, span: Duration) {
        let mut state = self.state();
        state.now = state.now.after(span);
    }

    /// Sets the clock.
    pub fn set_now(&self, now: Timestamp) {
        self.state().now = now;
    }

    /// Sets the fates of the next commits that are offered, in this order.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state().faults.next.extend(faults);
    }

    /// The next so many reads of operations fail.
    pub fn fail_loads(&self, n: u32) {
        self.state().faults.loads = n;
    }

    /// Breaks a wallet's row: no change that moves its money is taken until it is repaired.
    pub fn break_wallet(&self, wallet: WalletId) {
        self.state().faults.broken.insert(wallet);
    }

    /// Repairs a broken wallet's row.
    pub fn repair_wallet(&self, wallet: WalletId) {
        self.state().faults.broken.remove(&wallet);
    }

    /// Loses all that was committed of a running operation, as a failover may that was not synchronous.
    pub fn lose_operation(&self, operation: OperationId) {
        let mut state = self.state();
        let Some(StoredOperation { operation: row, .. }) = state.operations.remove(&operation)
        else {
            return;
        };
        state.lines.retain(
            |line| !matches!(line.entry.source, LedgerSource::Operation(of, _) if of == operation),
        );
        // As if the claim had never been: its funds are available again.
        state.add(row.wallet, BalanceChange { available: row.hold, held: row.hold.negated() });
    }

    /// Results that are larger are refused from now on.
    pub fn set_result_bytes_max(&self, bytes: usize) {
        self.state().faults.result_bytes_max = Some(bytes);
    }

    /// Number of commits that were offered, lost ones among them.
    #[must_use]
    pub fn offers(&self) -> u64 {
        self.state().faults.offers
    }

    /// Every operation, by id.
    #[must_use]
    pub fn operations(&self) -> Vec<Operation> {
        self.state().operations.values().map(|row| row.operation.clone()).collect()
    }

    /// Operation of this id.
    #[must_use]
    pub fn operation(&self, id: OperationId) -> Option<Operation> {
        self.state().operations.get(&id).map(|row| row.operation.clone())
    }

    /// A wallet as it stands.
    #[must_use]
    pub fn wallet(&self, id: WalletId) -> Option<Wallet> {
        self.state().wallet(id).cloned()
    }

    /// The whole book, in the order in which it was written.
    #[must_use]
    pub fn lines(&self) -> Vec<WalletEntry> {
        self.state().lines.clone()
    }

    /// A counter of an API key in the window that a moment falls into.
    #[must_use]
    pub fn counter(&self, api_key: ApiKeyId, counter: Counter, at: Timestamp) -> i64 {
        let window = (api_key, counter, counter.window(at));
        self.state().counters.get(&window).copied().unwrap_or(0)
    }

    /// Never held across an await. A test that panicked has not half-written anything.
    fn state(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryJournal {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryJournal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("MemoryJournal")
            .field("now", &state.now)
            .field("operations", &state.operations.len())
            .field("lines", &state.lines)
            .finish_non_exhaustive()
    }
}

impl JournalState {
    fn tick(&mut self) -> Timestamp {
        // Never twice the same: a law that compares moments would pass by chance.
        self.now = self.now.after(Duration::from_micros(1));
        self.now
    }

    /// The credentials of an API key end then, unless they end before.
    fn end_credentials(&mut self, api_key: ApiKeyId, at: Timestamp) {
        for credential in self.credentials.values_mut().filter(|of| of.api_key == api_key) {
            credential.ends_at = Some(credential.ends_at.map_or(at, |ends_at| ends_at.min(at)));
        }
    }

    fn wallet(&self, id: WalletId) -> Option<&Wallet> {
        self.wallets.iter().find(|wallet| wallet.id == id)
    }
}
