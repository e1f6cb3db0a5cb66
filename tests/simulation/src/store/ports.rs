//! Ports of one process: each call travels to the store and back, or fails on its way.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::admin::EventOutbox;
use holdfast_domain::admin::event::NewEvent;
use holdfast_domain::ledger::Posting;
use holdfast_domain::operation::{Node, Receipt, Transition};
use holdfast_domain::ports::{
    AdditionError, CommitError, CounterSnapshot, HeartbeatOutcome, KnownCredential, LeaseMode,
    LeasedOperation, LedgerEntry, Unavailable,
};
use holdfast_domain::statistics::{BreakerReport, RefusalBatch, RouteFailure, RouteHour};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, ApiKeys, CredentialId, Journal, NodeAddress, Nodes, OperationId, PostingId, Snapshot,
    Statistics, Timestamp, WalletId, Wallets,
};
use tokio::time::sleep;

use super::{StorePort, injected, place};
use crate::chance::Draws;
use crate::defect::Defect;
use crate::step::Step;

impl StorePort {
    /// Way of a call to the store; an error if it is not served.
    pub(super) async fn arrive(
        &self,
        kind: &'static str,
        object: [u8; 16],
    ) -> Result<Draws, Unavailable> {
        self.process.live().await;
        let mut draws = self.store.draws(self.process.number, kind, object);
        sleep(draws.latency()).await;
        self.process.live().await;
        if self.process.is_cut_off() {
            // Some calls find out at once, others by a timeout of the connection.
            sleep(draws.millis(0, 2_000)).await;
            return Err(Unavailable(injected()));
        }
        if self.store.is_down() {
            if draws.permille(300) {
                self.store.wait_up().await;
            }
            sleep(draws.millis(0, 500)).await;
            return Err(Unavailable(injected()));
        }
        if draws.permille(self.store.rates().reads) {
            return Err(Unavailable(injected()));
        }
        self.store.turn_clock();
        Ok(draws)
    }

    /// Way of an answer back to its process.
    pub(super) async fn depart(&self, draws: &mut Draws) -> Result<(), Unavailable> {
        sleep(draws.latency()).await;
        self.process.live().await;
        if draws.permille(self.store.rates().reads) { Err(Unavailable(injected())) } else { Ok(()) }
    }
}

#[async_trait]
impl Journal for StorePort {
    async fn load(&self, operation: OperationId) -> Result<Snapshot, Unavailable> {
        let mut draws = self.arrive("load", operation.to_bytes()).await?;
        let loaded = self.store.journal.load(operation).await?;
        self.depart(&mut draws).await?;
        Ok(loaded)
    }

    async fn clock(&self) -> Result<Timestamp, Unavailable> {
        let mut draws = self.arrive("clock", place(0)).await?;
        let now = self.store.journal.clock().await?;
        self.depart(&mut draws).await?;
        Ok(now)
    }

    async fn commit(&self, change: Arc<Transition>) -> Result<Receipt, CommitError> {
        self.send_commit(change).await
    }

    async fn due(&self, limit: u32) -> Result<Vec<OperationId>, Unavailable> {
        let mut draws = self.arrive("due", place(0)).await?;
        let due = self.store.journal.due(limit).await?;
        self.depart(&mut draws).await?;
        Ok(due)
    }

    async fn leased_to(&self, node: &Node) -> Result<Vec<LeasedOperation>, Unavailable> {
        let mut draws = self.arrive("leased", place(0)).await?;
        let leased = self.store.journal.leased_to(node).await?;
        self.depart(&mut draws).await?;
        Ok(leased)
    }

    async fn purge(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        let mut draws = self.arrive("purge", place(0)).await?;
        let is_old = |row: &holdfast_domain::Operation| {
            let ended = row.phase.finished_at();
            ended.is_some_and(|ended| ended.after(age) < self.store.journal.now())
        };
        let old: Vec<_> = self.store.journal.operations().into_iter().filter(is_old).collect();
        let purged = self.store.journal.purge(age, limit).await?;
        if purged > 0 {
            self.store.recorder.note(format_args!("n{}: purged {purged}", self.process.slot));
            (0..purged).for_each(|_result| self.store.reach(Step::Purge));
            if self.store.defect == Some(Defect::RowPurged) {
                old.iter().for_each(|row| self.store.journal.lose_operation(row.id));
            }
        }
        self.depart(&mut draws).await?;
        Ok(purged)
    }
}

#[async_trait]
impl Nodes for StorePort {
    async fn heartbeat(
        &self,
        node: &Node,
        lease: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable> {
        let mut draws = self.arrive("heartbeat", place(0)).await?;
        if self.process.is_deaf() {
            return Err(Unavailable(injected()));
        }
        let outcome = self.store.journal.heartbeat(node, lease, entry).await?;
        if let HeartbeatOutcome::Held { lease, .. } = &outcome {
            self.process.set_lease_end(lease.ends_at);
        }
        if entry == LeaseMode::Renew && matches!(outcome, HeartbeatOutcome::Lost { .. }) {
            self.store.recorder.note(format_args!("n{}: superseded", self.process.slot));
            self.store.reach(Step::Superseded);
        }
        self.depart(&mut draws).await?;
        Ok(outcome)
    }

    async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        let mut draws = self.arrive("leave", place(0)).await?;
        self.store.journal.leave(node).await?;
        self.depart(&mut draws).await
    }

    async fn advertise(&self, node: &Node, address: &NodeAddress) -> Result<(), Unavailable> {
        let mut draws = self.arrive("advertise", place(0)).await?;
        self.store.journal.advertise(node, address).await?;
        self.depart(&mut draws).await
    }

    async fn address(&self, node: &Node) -> Result<Option<NodeAddress>, Unavailable> {
        let mut draws = self.arrive("address", place(0)).await?;
        let address = self.store.journal.address(node).await?;
        self.depart(&mut draws).await?;
        Ok(address)
    }
}

#[async_trait]
impl ApiKeys for StorePort {
    async fn credential(&self, id: CredentialId) -> Result<Option<KnownCredential>, Unavailable> {
        let mut draws = self.arrive("credential", id.to_bytes()).await?;
        let known = self.store.journal.credential(id).await?;
        self.depart(&mut draws).await?;
        Ok(known)
    }

    async fn counters(&self, api_key: ApiKeyId) -> Result<CounterSnapshot, Unavailable> {
        let mut draws = self.arrive("counters", place(0)).await?;
        let counters = self.store.journal.counters(api_key).await?;
        self.depart(&mut draws).await?;
        Ok(counters)
    }
}

#[async_trait]
impl Wallets for StorePort {
    async fn find(&self, id: WalletId) -> Result<Option<Wallet>, Unavailable> {
        let mut draws = self.arrive("wallet", place(0)).await?;
        let wallet = self.store.journal.find(id).await?;
        self.depart(&mut draws).await?;
        Ok(wallet)
    }

    async fn transfers(&self, id: WalletId, limit: u32) -> Result<Vec<LedgerEntry>, Unavailable> {
        Wallets::transfers(&self.store.journal, id, limit).await
    }

    async fn posting(&self, id: PostingId) -> Result<Option<Posting>, Unavailable> {
        self.store.journal.posting(id).await
    }
}

#[async_trait]
impl EventOutbox for StorePort {
    async fn record(&self, _events: &[NewEvent]) -> Result<(), Unavailable> {
        let mut draws = self.arrive("events", place(0)).await?;
        self.depart(&mut draws).await
    }
}

#[async_trait]
impl Statistics for StorePort {
    async fn add_refusals(&self, refusals: Arc<RefusalBatch>) -> Result<(), AdditionError> {
        let mut draws = self.arrive("statistics", place(0)).await?;
        self.store.journal.add_refusals(refusals).await?;
        Ok(self.depart(&mut draws).await?)
    }

    async fn add_route_hours(&self, hours: Arc<Vec<RouteHour>>) -> Result<(), AdditionError> {
        let mut draws = self.arrive("statistics", place(1)).await?;
        self.store.journal.add_route_hours(hours).await?;
        Ok(self.depart(&mut draws).await?)
    }

    async fn add_route_failures(
        &self,
        failures: Arc<Vec<RouteFailure>>,
    ) -> Result<(), AdditionError> {
        let mut draws = self.arrive("statistics", place(2)).await?;
        self.store.journal.add_route_failures(failures).await?;
        Ok(self.depart(&mut draws).await?)
    }

    async fn set_route_states(
        &self,
        node: &Node,
        breakers: &[BreakerReport],
    ) -> Result<(), Unavailable> {
        let mut draws = self.arrive("statistics", place(3)).await?;
        self.store.journal.set_route_states(node, breakers).await?;
        self.depart(&mut draws).await
    }

    async fn purge_hours(&self, age: Duration, limit: u32) -> Result<u64, Unavailable> {
        let mut draws = self.arrive("statistics", place(4)).await?;
        let purged = self.store.journal.purge_hours(age, limit).await?;
        self.depart(&mut draws).await?;
        Ok(purged)
    }
}
