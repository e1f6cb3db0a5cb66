//! The smaller ports in memory: nodes, keys, wallets, prices.
//!
//! Calls that write take the state's lock once, so that calls that race are in some order and none
//! sees half of another. Names and ids are looked up under the same lock that writes them: of two
//! that take one name at once, the second is refused.
//!
//! Money moves nowhere in here. Wallets are made empty, and the journal fills them.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::credential::{ApiKey, Credential};
use holdfast_domain::ledger::Posting;
use holdfast_domain::limits::Counter;
use holdfast_domain::operation::{Lease, Node};
use holdfast_domain::ports::{
    CounterSnapshot, CreateError, HeartbeatOutcome, KnownCredential, LeaseMode, LedgerEntry,
    NewApiKey, PinError, RotateError, Rotation, Unavailable,
};
use holdfast_domain::price::PriceVersion;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, ApiKeys, CredentialId, Currency, Micros, NodeAddress, Nodes, PostingId, Prices,
    Timestamp, WalletId, Wallets,
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
        Ok(HeartbeatOutcome::Held { lease, now })
    }

    async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        step_back().await;
        self.state().nodes.retain(|_name, lease| lease.node != *node);
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
            Some(KnownCredential { credential, api_key, limits_revision, now })
        });
        Ok(known)
    }

    async fn issue(&self, key: &NewApiKey, credential: &Credential) -> Result<ApiKey, CreateError> {
        step_back().await;
        let mut state = self.state();
        let created_at = state.tick();
        if state.wallet(key.wallet).is_none() {
            return Err(CreateError::NoWallet);
        }
        let taken = state
            .api_keys
            .iter()
            .any(|k| k.id == key.id || k.wallet == key.wallet && k.name == key.name);
        if taken || state.credentials.contains_key(&credential.id) {
            return Err(CreateError::NameTaken);
        }
        let api_key = key.clone().issued_at(created_at);
        state.api_keys.push(api_key.clone());
        state.credentials.insert(credential.id, credential.clone());
        Ok(api_key)
    }

    async fn rotate(
        &self,
        credential: &Credential,
        grace: Duration,
    ) -> Result<Rotation, RotateError> {
        step_back().await;
        let mut state = self.state();
        let now = state.tick();
        let key = state.api_keys.iter().find(|key| key.id == credential.api_key);
        let api_key = key.ok_or(RotateError::NoKey)?.clone();
        if api_key.has_ended(now) {
            return Err(RotateError::Ended);
        }
        if state.credentials.contains_key(&credential.id) {
            return Err(RotateError::Taken);
        }
        let others_end_at = now.after(grace);
        // Before the new one is there: it is not one of the others.
        state.end_credentials(api_key.id, others_end_at);
        state.credentials.insert(credential.id, credential.clone());
        Ok(Rotation { api_key, others_end_at })
    }

    async fn counters(&self, api_key: ApiKeyId) -> Result<CounterSnapshot, Unavailable> {
        step_back().await;
        // Let go of at once: the readings below take the same lock, which nobody may take twice.
        let now = self.state().tick();
        let used = |counter| (counter, self.counter(api_key, counter, now));
        Ok(CounterSnapshot { counters: Counter::ALL.into_iter().map(used).collect(), now })
    }

    async fn revoke(&self, api_key: ApiKeyId) -> Result<Option<Timestamp>, Unavailable> {
        step_back().await;
        let mut state = self.state();
        let now = state.tick();
        state.end_credentials(api_key, now);
        let key = state.api_keys.iter_mut().find(|key| key.id == api_key);
        Ok(key.map(|key| *key.revoked_at.get_or_insert(now)))
    }
}

#[async_trait]
impl Wallets for MemoryJournal {
    async fn create(
        &self,
        id: WalletId,
        name: &str,
        currency: Currency,
    ) -> Result<Wallet, CreateError> {
        step_back().await;
        let mut state = self.state();
        if state.wallets.iter().any(|wallet| wallet.id == id || wallet.name == name) {
            return Err(CreateError::NameTaken);
        }
        let (available, held) = (Micros::ZERO, Micros::ZERO);
        let name = name.to_owned();
        let wallet = Wallet { id, name, currency, available, held, suspended_at: None };
        state.wallets.push(wallet.clone());
        Ok(wallet)
    }

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
