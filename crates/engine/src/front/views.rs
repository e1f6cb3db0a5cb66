//! What callers may look at besides completions: their operations, their wallet, the models.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::operation::{Operation, Phase, Situation, Snapshot, situation};
use holdfast_domain::ports::{CounterSnapshot, Unavailable};
use holdfast_domain::usage::UsageRecord;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{OperationId, RequestKey};
use tokio::time::Instant;

use super::Front;
use crate::authentication::Caller;
use crate::results::{Content, ResultsFull};

/// How long a probe waits for the store.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a verdict about the store serves the probes that come after it.
const REMEMBERED: Duration = Duration::from_millis(250);

/// The last verdict about the store. A lock that may be held across an await: who waits for it wants the
/// verdict of the look that runs.
#[derive(Debug, Default)]
pub(crate) struct ReadinessCache(tokio::sync::Mutex<Option<(Instant, Readiness)>>);

/// An operation as its caller sees it.
#[derive(Debug)]
pub struct OperationLookup {
    /// The row.
    pub operation: Operation,
    /// Where it stands.
    pub situation: Situation,
    /// Its content.
    pub result: ResultState,
}

/// What a caller may know of who pays for it, and how much of that.
#[derive(Debug)]
pub struct Account {
    /// The wallet. Whether its balance may be told is the API key's grant.
    pub wallet: Wallet,
    /// What the API key's counters stand at.
    pub standing: CounterSnapshot,
}

/// What became of an operation's content.
pub enum ResultState {
    /// The exact bytes of the answer.
    Kept(Bytes),
    /// Deleted after its time.
    Expired,
    /// Another credential sealed it.
    Sealed,
    /// There is none.
    None,
}

impl fmt::Debug for ResultState {
    /// Without what was said.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kept(body) => write!(f, "Kept({} bytes)", body.len()),
            Self::Expired => f.write_str("Expired"),
            Self::Sealed => f.write_str("Sealed"),
            Self::None => f.write_str("None"),
        }
    }
}

/// Why a look-up showed nothing.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// This API key has no such operation.
    #[error("there is no such operation")]
    NotFound,
    /// Its content does not open with the credential that sealed it; told to the operator.
    #[error("the operation's content does not open")]
    Unreadable(OperationId, Option<Box<UsageRecord>>),
    /// So many bytes of results are on their way to this API key that this one found no room.
    #[error("the API key has too many results on the way")]
    TooManyResults,
    /// The same of all API keys together.
    #[error("too many results are on the way")]
    Overloaded,
    /// The store does not work.
    #[error("the store could not be read")]
    Unavailable(#[source] Unavailable),
}

impl Front {
    /// Shows an operation of this API key; reconciles stale work as a retry would, and never runs
    /// anything. Cancel safe.
    ///
    /// # Errors
    ///
    /// A [`LookupError`].
    pub(crate) async fn look_up(
        &self,
        caller: &Caller,
        request_key: RequestKey,
    ) -> Result<OperationLookup, LookupError> {
        let id = OperationId::of(caller.api_key.id, request_key);
        let snapshot =
            self.membership.reconcile_operation(id).await.map_err(LookupError::Unavailable)?;
        self.operation_lookup(snapshot, caller).await
    }

    /// The caller's wallet, and what the limits of its API key stand at. Cancel safe.
    ///
    /// # Errors
    ///
    /// Where the store does not work, or the wallet is gone.
    pub(crate) async fn account(&self, caller: &Caller) -> Result<Account, LookupError> {
        let wallet = self.wallets.find(caller.api_key.wallet).await;
        let wallet = wallet.map_err(LookupError::Unavailable)?.ok_or(LookupError::NotFound)?;
        let standing = self.keys.counters(caller.api_key.id).await;
        Ok(Account { wallet, standing: standing.map_err(LookupError::Unavailable)? })
    }

    /// Whether requests are taken. However many ask, the store is looked at a few times a second: they
    /// share the look that runs, and its verdict for a moment. Cancel safe.
    pub(crate) async fn readiness(&self) -> Readiness {
        if self.takes_nothing_new() {
            return Readiness::Draining;
        }
        if self.runner.has_lost_commits() {
            return Readiness::LostCommits;
        }
        // What cannot be written cannot be claimed: heartbeats are writes.
        if !self.membership.node.is_in_touch() {
            return Readiness::Storage;
        }
        let mut last = self.readable.0.lock().await;
        if let Some((at, verdict)) = *last
            && at.elapsed() < REMEMBERED
        {
            return verdict;
        }
        let probe = self.journal.clock();
        let verdict = match tokio::time::timeout(PATIENCE, probe).await {
            Ok(Ok(_)) => Readiness::Ready,
            Ok(Err(_)) | Err(_) => Readiness::Storage,
        };
        *last = Some((Instant::now(), verdict));
        verdict
    }
}

impl Front {
    /// An operation as its caller sees it. Cancel safe.
    pub(crate) async fn operation_lookup(
        &self,
        snapshot: Snapshot,
        caller: &Caller,
    ) -> Result<OperationLookup, LookupError> {
        let Some(operation) = &snapshot.operation else { return Err(LookupError::NotFound) };
        let situation = situation(operation, snapshot.lease.as_ref(), snapshot.now);
        let result = match operation.phase {
            Phase::Completed { .. } | Phase::Refused { .. } => {
                match self.results.content(&*self.journal, &snapshot, operation, caller).await {
                    Content::Kept(body) => ResultState::Kept(body),
                    Content::Expired => ResultState::Expired,
                    Content::Sealed => ResultState::Sealed,
                    Content::Broken => {
                        let usage = operation.phase.usage().cloned().map(Box::new);
                        return Err(LookupError::Unreadable(operation.id, usage));
                    }
                    Content::NoRoom(ResultsFull::ApiKey) => {
                        return Err(LookupError::TooManyResults);
                    }
                    Content::NoRoom(ResultsFull::Process) => return Err(LookupError::Overloaded),
                    Content::Unread(error) => return Err(LookupError::Unavailable(error)),
                }
            }
            Phase::Leased | Phase::Recorded(_) | Phase::Open | Phase::Abandoned { .. } => {
                ResultState::None
            }
        };
        Ok(OperationLookup { operation: operation.clone(), situation, result })
    }
}

/// Whether a process takes requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    Ready,
    /// It is about to stop.
    Draining,
    /// Its store does not answer.
    Storage,
    /// Its store has lost what it had committed: for good, until another process starts.
    LostCommits,
}
