//! The memory journal behind doors that a test can shut: ports that are down or hang, a clock that
//! follows tokio's, and rows that are read otherwise than they were written.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::EventOutbox;
use holdfast_domain::admin::event::NewEvent;
use holdfast_domain::credential::Credential;
use holdfast_domain::ledger::Posting;
use holdfast_domain::operation::{Lease, Node, Operation, Receipt, SealedResult, Transition};
use holdfast_domain::ports::{
    AdditionError, Cause, CommitError, CounterSnapshot, HeartbeatOutcome, KnownCredential,
    LeaseMode, LeasedOperation, LedgerEntry, Unavailable,
};
use holdfast_domain::statistics::{BreakerReport, RefusalBatch, RouteFailure, RouteHour};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, ApiKeys, CredentialId, Journal, Nodes, OperationId, PostingId, Snapshot, Statistics,
    Timestamp, WalletId, Wallets,
};
use holdfast_testkit::laws::Lists as _;
use holdfast_testkit::{Gate, MemoryJournal, sample};
use tokio::time::Instant;

type Alter = Arc<dyn Fn(&mut Snapshot) + Send + Sync>;

/// Every storage port of an engine.
pub(crate) struct Store {
    pub(crate) journal: MemoryJournal,
    started: Instant,
    /// Every port answers that it is unavailable.
    down: AtomicBool,
    /// Commits are lost and do not land.
    silent: AtomicBool,
    /// Commits panic.
    buggy: AtomicBool,
    commits: Mutex<Option<Gate>>,
    loads: Mutex<Option<Gate>>,
    /// Reads of operations.
    pub(crate) reads: AtomicUsize,
    beats: Mutex<Option<Gate>>,
    n_beats: AtomicUsize,
    wallets: Mutex<Option<Gate>>,
    alter: Mutex<Option<Alter>>,
    credentials: Mutex<HashMap<CredentialId, Credential>>,
    pub(crate) credential_reads: AtomicUsize,
    /// Results of nobody that are old enough to be deleted.
    pub(crate) old_results: AtomicU64,
    /// Events that were told, in their order.
    pub(crate) told: Mutex<Vec<NewEvent>>,
}

#[derive(Debug, thiserror::Error)]
#[error("the test shut this door")]
struct ClosedPort;

fn shut() -> Cause {
    Box::new(ClosedPort)
}

impl Store {
    pub(crate) fn with_funds(micros: i64) -> Arc<Self> {
        Arc::new(Self {
            journal: MemoryJournal::with_funds(micros),
            started: Instant::now(),
            down: AtomicBool::new(false),
            silent: AtomicBool::new(false),
            buggy: AtomicBool::new(false),
            commits: Mutex::default(),
            loads: Mutex::default(),
            reads: AtomicUsize::new(0),
            beats: Mutex::default(),
            n_beats: AtomicUsize::new(0),
            wallets: Mutex::default(),
            alter: Mutex::default(),
            credentials: Mutex::default(),
            credential_reads: AtomicUsize::new(0),
            old_results: AtomicU64::new(0),
            told: Mutex::default(),
        })
    }

    pub(crate) fn set_down(&self, down: bool) {
        self.down.store(down, Ordering::SeqCst);
    }

    pub(crate) fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::SeqCst);
    }

    pub(crate) fn set_buggy(&self, buggy: bool) {
        self.buggy.store(buggy, Ordering::SeqCst);
    }

    /// Commits from now on wait at the gate.
    pub(crate) fn hold_commits(&self) -> Gate {
        Self::hold(&self.commits)
    }

    /// Reads of operations from now on wait at the gate.
    pub(crate) fn hold_loads(&self) -> Gate {
        Self::hold(&self.loads)
    }

    /// How many heartbeats came.
    pub(crate) fn n_beats(&self) -> usize {
        self.n_beats.load(Ordering::Relaxed)
    }

    /// Heartbeats from now on wait at the gate.
    pub(crate) fn hold_beats(&self) -> Gate {
        Self::hold(&self.beats)
    }

    /// Heartbeats from now on pass. Those that wait go on waiting.
    pub(crate) fn let_beats_pass(&self) {
        *self.beats.lock().unwrap() = None;
    }

    /// Reads of wallets from now on wait at the gate.
    pub(crate) fn hold_wallets(&self) -> Gate {
        Self::hold(&self.wallets)
    }

    fn hold(door: &Mutex<Option<Gate>>) -> Gate {
        let gate = Gate::new();
        *door.lock().unwrap() = Some(gate.clone());
        gate
    }

    /// Rows are read like this from now on.
    pub(crate) fn alter(&self, alter: impl Fn(&mut Snapshot) + Send + Sync + 'static) {
        *self.alter.lock().unwrap() = Some(Arc::new(alter));
    }

    /// Adds a credential to an API key that has one: what a rotation does.
    pub(crate) fn add_credential(&self, credential: Credential) {
        self.credentials.lock().unwrap().insert(credential.id, credential);
    }

    pub(crate) fn wallet(&self) -> Wallet {
        self.journal.wallet(sample::WALLET).unwrap()
    }

    pub(crate) fn balances(&self) -> (i64, i64) {
        let wallet = self.wallet();
        (wallet.available.get(), wallet.held.get())
    }

    /// The only operation there is.
    pub(crate) fn operation(&self) -> Operation {
        let [operation] = <[Operation; 1]>::try_from(self.journal.operations()).unwrap();
        operation
    }

    pub(crate) fn phase(&self) -> &'static str {
        self.operation().phase.label()
    }

    /// The sealed content of an operation as it is stored.
    pub(crate) async fn sealed(&self, id: OperationId) -> Option<SealedResult> {
        self.journal.load(id).await.unwrap().result
    }

    /// How many transfers of a kind the book has.
    pub(crate) fn transfers(&self, kind: &str) -> usize {
        self.journal.lines().iter().filter(|line| line.entry.kind == kind).count()
    }

    /// Which process has a node's name.
    pub(crate) async fn lease_of(&self, name: &str) -> Option<Lease> {
        let nobody = sample::node(name);
        match self.journal.heartbeat(&nobody, Duration::ZERO, LeaseMode::Renew).await.unwrap() {
            HeartbeatOutcome::Lost { lease, .. } => lease,
            HeartbeatOutcome::Held { .. } => panic!("nobody has the name"),
        }
    }

    async fn enter(&self, door: &Mutex<Option<Gate>>) -> Result<(), Cause> {
        let gate = door.lock().unwrap().clone();
        if let Some(gate) = gate {
            gate.pass().await;
        }
        let now = sample::NOW.after(self.started.elapsed());
        if self.journal.now() < now {
            self.journal.set_now(now);
        }
        if self.down.load(Ordering::SeqCst) { Err(shut()) } else { Ok(()) }
    }

    async fn enter_open(&self) -> Result<(), Unavailable> {
        self.enter(&Mutex::new(None)).await.map_err(Unavailable)
    }
}

#[async_trait]
impl EventOutbox for Store {
    async fn record(&self, noticed: &[NewEvent]) -> Result<(), Unavailable> {
        self.told.lock().unwrap().extend(noticed.iter().cloned());
        Ok(())
    }
}

#[async_trait]
impl Statistics for Store {
    async fn add_refusals(&self, refusals: Arc<RefusalBatch>) -> Result<(), AdditionError> {
        self.enter_open().await?;
        self.journal.add_refusals(refusals).await
    }

    async fn add_route_hours(&self, hours: Arc<Vec<RouteHour>>) -> Result<(), AdditionError> {
        self.enter_open().await?;
        self.journal.add_route_hours(hours).await
    }

    async fn add_route_failures(
        &self,
        failures: Arc<Vec<RouteFailure>>,
    ) -> Result<(), AdditionError> {
        self.enter_open().await?;
        self.journal.add_route_failures(failures).await
    }

    async fn set_route_states(
        &self,
        node: &Node,
        breakers: &[BreakerReport],
    ) -> Result<(), Unavailable> {
        self.enter_open().await?;
        self.journal.set_route_states(node, breakers).await
    }

    async fn purge_hours(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        self.enter_open().await?;
        self.journal.purge_hours(age, limit).await
    }
}

#[async_trait]
impl Journal for Store {
    async fn load(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        self.enter(&self.loads).await.map_err(Unavailable)?;
        let mut snapshot = self.journal.load(operation).await?;
        // Not called under the lock: some of them panic.
        let alter = self.alter.lock().unwrap().clone();
        if let Some(alter) = alter {
            alter(&mut snapshot);
        }
        Ok(snapshot)
    }

    async fn result(&self, operation: OperationId) -> Result<Option<SealedResult>, Unavailable> {
        self.enter(&self.loads).await.map_err(Unavailable)?;
        self.journal.result(operation).await
    }

    async fn clock(&self) -> Result<Timestamp, Unavailable> {
        // At the gate of reads: a store that answers no read does not tell its clock either.
        self.enter(&self.loads).await.map_err(Unavailable)?;
        self.journal.clock().await
    }

    async fn commit(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        self.enter(&self.commits).await.map_err(CommitError::Unavailable)?;
        assert!(!self.buggy.load(Ordering::SeqCst), "a bug in the store");
        if self.silent.load(Ordering::SeqCst) {
            return Err(CommitError::Uncertain(shut()));
        }
        self.journal.commit(change).await
    }

    async fn due(&self, limit: u32) -> Result<Vec<OperationId>, Unavailable> {
        self.enter_open().await?;
        self.journal.due(limit).await
    }

    async fn leased_to(&self, node: &Node) -> Result<Vec<LeasedOperation>, Unavailable> {
        self.enter_open().await?;
        self.journal.leased_to(node).await
    }

    async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        self.enter_open().await?;
        let purged = self.journal.purge(age, limit).await?;
        let room = u64::from(limit).saturating_sub(purged);
        let old = self.old_results.load(Ordering::SeqCst);
        self.old_results.store(old.saturating_sub(room), Ordering::SeqCst);
        Ok(purged + old.min(room))
    }
}

#[async_trait]
impl Nodes for Store {
    async fn heartbeat(
        &self,
        node: &Node,
        lease: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable> {
        self.n_beats.fetch_add(1, Ordering::Relaxed);
        self.enter(&self.beats).await.map_err(Unavailable)?;
        self.journal.heartbeat(node, lease, entry).await
    }

    async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        self.enter(&self.beats).await.map_err(Unavailable)?;
        self.journal.leave(node).await
    }
}

#[async_trait]
impl ApiKeys for Store {
    async fn credential(&self, id: CredentialId) -> Result<Option<KnownCredential>, Unavailable> {
        self.credential_reads.fetch_add(1, Ordering::SeqCst);
        self.enter_open().await?;
        let added = self.credentials.lock().unwrap().get(&id).cloned();
        let Some(credential) = added else { return self.journal.credential(id).await };
        let keys = self.journal.all_api_keys().await;
        let api_key = keys.into_iter().find(|key| key.id == credential.api_key).unwrap();
        let limits_revision = self.journal.limits_revision(api_key.wallet);
        Ok(Some(KnownCredential {
            credential,
            api_key,
            limits_revision,
            unknown_until: None,
            now: self.journal.now(),
        }))
    }

    async fn counters(&self, api_key: ApiKeyId) -> Result<CounterSnapshot, Unavailable> {
        self.journal.counters(api_key).await
    }
}

#[async_trait]
impl Wallets for Store {
    async fn find(&self, id: WalletId) -> Result<Option<Wallet>, Unavailable> {
        self.enter(&self.wallets).await.map_err(Unavailable)?;
        self.journal.find(id).await
    }

    async fn transfers(&self, id: WalletId, limit: u32) -> Result<Vec<LedgerEntry>, Unavailable> {
        Wallets::transfers(&self.journal, id, limit).await
    }

    async fn posting(&self, id: PostingId) -> Result<Option<Posting>, Unavailable> {
        self.journal.posting(id).await
    }
}
