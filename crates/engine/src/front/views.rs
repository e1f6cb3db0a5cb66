//! Views for callers besides completions: their operations, their wallet, the models.

use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::operation::{Operation, Phase, Situation, Snapshot, situation};
use holdfast_domain::ports::{CounterSnapshot, Durability, Unavailable};
use holdfast_domain::private::Private;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{OperationId, RequestKey, Timestamp};
use tokio::time::Instant;

use super::Front;
use crate::authentication::Caller;
use crate::results::{Content, ResultsFull};

/// Timeout of a probe of the store.
const PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Age up to which a verdict about the store serves later probes.
const REMEMBERED: Duration = Duration::from_millis(250);

/// Last verdict about the store, with its time. An async lock, held during the probe: requests that wait for it
/// share its verdict.
#[derive(Debug, Default)]
pub(crate) struct ReadinessCache(tokio::sync::Mutex<Option<(Instant, Readiness)>>);

/// Operation as its caller sees it: row, situation, content.
#[derive(Debug)]
pub struct OperationLookup {
    /// Row of the operation, after it was reconciled.
    pub operation: Operation,
    /// Situation, computed from phase and lease by the database's clock.
    pub situation: Situation,
    /// Content for this caller, if there is any.
    pub result: ResultState,
}

/// Account that pays for a caller, with the counters of its API key.
#[derive(Debug)]
pub struct Account {
    /// Wallet. Whether its balance may be shown is in the API key's grant.
    pub wallet: Wallet,
    /// Counters of the API key's limits.
    pub standing: CounterSnapshot,
}

/// Content of an operation, or the reason that there is none.
#[derive(Debug)]
pub enum ResultState {
    /// Exact bytes of the answer.
    Kept(Private<Bytes>),
    /// Deleted after its time.
    Expired,
    /// Sealed for another credential; only that one can open it.
    Sealed,
    /// No content in this phase.
    None,
}

/// Failure of a look-up.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// No such operation of this API key.
    #[error("there is no such operation")]
    NotFound,
    /// No such operation in a restored ledger, or one that was not run then: it may have run before the restore.
    #[error("the ledger was restored, and the key may have run before")]
    LedgerRestored {
        /// End of the window, from which on the key runs.
        until: Timestamp,
    },
    /// Content that does not open with the credential that sealed it; logged as an error.
    #[error("the operation's content does not open")]
    Unreadable(OperationId, Option<Box<UsageRecord>>),
    /// No room in time: the API key has as many bytes of results under way as it may.
    #[error("the API key has too many results on the way")]
    TooManyResults,
    /// No room in time: all API keys together have as many bytes under way as there may be.
    #[error("too many results are on the way")]
    Overloaded,
    /// Store not readable.
    #[error("the store could not be read")]
    Unavailable(#[source] Unavailable),
}

impl Front {
    /// Shows an operation of this API key; reconciles stale work as a retry would, and never starts a run. Cancel
    /// safe.
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

    /// Reads the row of an operation of this API key, and the moment of the read. Cancel safe.
    pub(crate) async fn operation(
        &self,
        caller: &Caller,
        request_key: RequestKey,
    ) -> Result<(Operation, Timestamp), LookupError> {
        let id = OperationId::of(caller.api_key.id, request_key);
        let snapshot =
            self.membership.reconcile_operation(id).await.map_err(LookupError::Unavailable)?;
        refuse_unknown(&snapshot, caller)?;
        let operation = snapshot.operation.ok_or(LookupError::NotFound)?;
        Ok((operation, snapshot.now))
    }

    /// Reads the caller's wallet and the counters of its API key. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the store does not work, or the wallet is gone.
    pub(crate) async fn account(&self, caller: &Caller) -> Result<Account, LookupError> {
        // Read anew: the cached caller knows the currency of its wallet, and no balance.
        let wallet = self.wallets.find(caller.api_key.wallet).await;
        let wallet = wallet.map_err(LookupError::Unavailable)?.ok_or(LookupError::NotFound)?;
        let standing = self.keys.counters(caller.api_key.id).await;
        Ok(Account { wallet, standing: standing.map_err(LookupError::Unavailable)? })
    }

    pub(crate) fn durability(&self) -> Durability {
        self.journal.durability()
    }

    /// Readiness for probes. However many come, the store is probed at most once in 250 ms, because they share the
    /// running probe and its verdict. Cancel safe.
    pub(crate) async fn readiness(&self) -> Readiness {
        let presumed = self.presumed_readiness();
        if presumed != Readiness::Ready {
            return presumed;
        }
        // Held across the probe on purpose: those who wait here find its verdict.
        let mut last = self.readable.0.lock().await;
        if let Some((at, verdict)) = *last
            && at.elapsed() < REMEMBERED
        {
            return verdict;
        }
        let probe = self.journal.clock();
        let verdict = match tokio::time::timeout(PROBE_TIMEOUT, probe).await {
            Ok(Ok(_)) => Readiness::Ready,
            Ok(Err(_)) | Err(_) => Readiness::Storage,
        };
        *last = Some((Instant::now(), verdict));
        verdict
    }
}

impl Front {
    pub(crate) fn presumed_readiness(&self) -> Readiness {
        if self.leaving.is_cancelled() || self.takes_nothing_new() {
            return Readiness::Draining;
        }
        if self.runner.has_lost_commits() {
            return Readiness::LostCommits;
        }
        // What cannot be written cannot be claimed: heartbeats are writes.
        if !self.membership.node.is_in_touch() {
            return Readiness::Storage;
        }
        Readiness::Ready
    }

    /// Shows a row to its caller, with its content if that opens. Cancel safe.
    pub(crate) async fn operation_lookup(
        &self,
        snapshot: Snapshot,
        caller: &Caller,
    ) -> Result<OperationLookup, LookupError> {
        refuse_unknown(&snapshot, caller)?;
        let Some(operation) = &snapshot.operation else { return Err(LookupError::NotFound) };
        let situation = situation(operation, snapshot.lease.as_ref(), snapshot.now);
        let result = match operation.phase {
            Phase::Completed { .. } | Phase::Refused { .. } => {
                match self.results.content(&*self.journal, &snapshot, operation, caller).await {
                    Content::Kept(body) => ResultState::Kept(Private(body)),
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

/// Refuses to say of a key without a row, or with an open one, that it did not run, within the window of a restore.
pub(super) fn refuse_unknown(snapshot: &Snapshot, caller: &Caller) -> Result<(), LookupError> {
    let operation = snapshot.operation.as_ref();
    let is_unknown = operation.is_none_or(|operation| operation.phase == Phase::Open);
    match caller.window_at(snapshot.now).filter(|_| is_unknown) {
        Some(until) => Err(LookupError::LedgerRestored { until }),
        None => Ok(()),
    }
}

/// Readiness of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// Takes requests.
    Ready,
    /// Drains, or is superseded: accepts no new request.
    Draining,
    /// Store silent, or the newest heartbeat not acknowledged.
    Storage,
    /// Store that has lost an acknowledged commit: not ready until another process starts.
    LostCommits,
}
