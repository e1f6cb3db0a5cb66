//! The smaller ports in memory: nodes, keys, wallets, prices.
//!
//! Calls that write take the state's lock once, so that calls that race are in some order and none
//! sees half of another. Wallets and keys are made by commands, and money moves nowhere in here.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::credential::ApiKey;
use holdfast_domain::ledger::Posting;
use holdfast_domain::limits::Counter;
use holdfast_domain::operation::{Lease, Node};
use holdfast_domain::ports::{
    CounterSnapshot, HeartbeatOutcome, KnownCredential, LeaseMode, LedgerEntry, PinError,
    Unavailable,
};
use holdfast_domain::price::PriceVersion;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, ApiKeys, CredentialId, NodeAddress, Nodes, PostingId, Prices, WalletId, Wallets,
};

use super::MemoryJournal;
use crate::join::step_back;
use crate::laws::Lists;

#[async_trait]
impl Nodes for MemoryJournal {
    async fn heartbeat(
        &self,
        node: &Node,
        lease: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable> {
        step_back().await;
        let mut state = self.state();
        let now = state.tick();
        let row = state.nodes.get(&node.name);
        let is_mine = row.is_some_and(|row| row.node == *node);
        let may = match entry {
            LeaseMode::Take => true,
            // At its very end a lease is not live any more, so the name is free.
            LeaseMode::TakeExpired => is_mine || row.is_none_or(|row| row.ends_at <= now),
            LeaseMode::Renew => is_mine,
        };
        if !may {
            return Ok(HeartbeatOutcome::Lost { lease: row.cloned(), now });
        }
        let lease = Lease { node: node.clone(), ends_at: now.after(lease) };
        state.nodes.insert(node.name.clone(), lease.clone());
        let pending = state.pending(node, now);
        Ok(HeartbeatOutcome::Held { lease, now, pending })
    }

    async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        step_back().await;
        let mut state = self.state();
        state.nodes.retain(|_name, lease| lease.node != *node);
        state.route_states.retain(|_name, (owner, _breakers)| owner != node);
        Ok(())
    }

    async fn advertise(&self, node: &Node, address: &NodeAddress) -> Result<(), Unavailable> {
        step_back().await;
        let mut state = self.state();
        // Only over its own row: a process that has lost its name must not lead relays to itself.
        if state.nodes.get(&node.name).is_some_and(|row| row.node == *node) {
            state.addresses.insert(node.incarnation, address.clone());
        }
        Ok(())
    }

    async fn address(&self, node: &Node) -> Result<Option<NodeAddress>, Unavailable> {
        step_back().await;
        let state = self.state();
        let row = state.nodes.get(&node.name).filter(|row| row.node == *node);
        Ok(row.and_then(|row| state.addresses.get(&row.node.incarnation).cloned()))
    }
}

#[async_trait]
impl ApiKeys for MemoryJournal {
    async fn credential(&self, id: CredentialId) -> Result<Option<KnownCredential>, Unavailable> {
        step_back().await;
        let mut state = self.state();
        let now = state.tick();
        let credential = state.credentials.get(&id);
        let known = credential.and_then(|credential| {
            let api_key = state.api_keys.iter().find(|key| key.id == credential.api_key)?;
            let (credential, api_key) = (credential.clone(), api_key.clone());
            let limits_revision = state.limits_revision(api_key.wallet);
            let unknown_until = state.unknown_until(api_key.created_at);
            Some(KnownCredential { credential, api_key, limits_revision, unknown_until, now })
        });
        Ok(known)
    }

    async fn counters(&self, api_key: ApiKeyId) -> Result<CounterSnapshot, Unavailable> {
        step_back().await;
        // Released at once: the readings below take the same lock, which cannot be taken twice.
        let now = self.state().tick();
        let used = |counter| (counter, self.counter(api_key, counter, now));
        Ok(CounterSnapshot { counters: Counter::ALL.into_iter().map(used).collect(), now })
    }
}

#[async_trait]
impl Wallets for MemoryJournal {
    async fn find(&self, id: WalletId) -> Result<Option<Wallet>, Unavailable> {
        step_back().await;
        Ok(self.wallet(id))
    }

    async fn transfers(&self, id: WalletId, limit: u32) -> Result<Vec<LedgerEntry>, Unavailable> {
        step_back().await;
        let state = self.state();
        let of_wallet = state.lines.iter().filter(|line| line.wallet == id);
        let all: Vec<LedgerEntry> = of_wallet.map(|line| line.entry.clone()).collect();
        let skipped = all.len().saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(all.into_iter().skip(skipped).collect())
    }

    async fn posting(&self, id: PostingId) -> Result<Option<Posting>, Unavailable> {
        step_back().await;
        Ok(self.state().postings.get(&id).cloned())
    }
}

#[async_trait]
impl Lists for MemoryJournal {
    async fn all_api_keys(&self) -> Vec<ApiKey> {
        step_back().await;
        self.state().api_keys.clone()
    }

    async fn all_wallets(&self) -> Vec<Wallet> {
        step_back().await;
        self.state().wallets.clone()
    }
}

#[async_trait]
impl Prices for MemoryJournal {
    async fn pin(&self, versions: &[PriceVersion]) -> Result<(), PinError> {
        step_back().await;
        let mut state = self.state();
        let mut pinned = state.prices.clone();
        for version in versions {
            let known = pinned.entry(version.id.clone()).or_insert_with(|| version.clone());
            if known != version {
                return Err(PinError::Conflict(version.id.clone()));
            }
        }
        // All of them or none: a conflict has returned above, and changed a copy.
        state.prices = pinned;
        Ok(())
    }
}
