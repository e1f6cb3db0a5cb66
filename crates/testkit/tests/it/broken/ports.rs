//! The smaller ports, with what can be wrong about them.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::credential::{ApiKey, Grant};
use holdfast_domain::ledger::Posting;
use holdfast_domain::limits::{Counter, CounterReadings};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{
    CounterSnapshot, HeartbeatOutcome, KnownCredential, LeaseMode, LedgerEntry, PendingWork,
    PinError, Unavailable,
};
use holdfast_domain::price::PriceVersion;
use holdfast_domain::restore::{Restore, UnknownKeys};
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, ApiKeys, CredentialId, NodeAddress, Nodes, PostingId, Prices, Restores, Timestamp,
    WalletId, Wallets,
};
use holdfast_testkit::laws::Lists;

use super::BrokenJournal;
use super::defect::Defect;

#[async_trait]
impl Nodes for BrokenJournal {
    async fn heartbeat(
        &self,
        node: &Node,
        lease: Duration,
        entry: LeaseMode,
    ) -> Result<HeartbeatOutcome, Unavailable> {
        let entry = match entry {
            LeaseMode::Take if self.has(Defect::TakingWaits) => LeaseMode::TakeExpired,
            LeaseMode::TakeExpired if self.has(Defect::LiveNamesAreTaken) => LeaseMode::Take,
            LeaseMode::Renew if self.has(Defect::LostRowsAreRenewed) => LeaseMode::Take,
            LeaseMode::TakeExpired if self.has(Defect::ExpiredNamesRace) => {
                match self.inner.heartbeat(node, lease, LeaseMode::Renew).await? {
                    HeartbeatOutcome::Lost { lease: Some(other), now } if now < other.ends_at => {
                        LeaseMode::Renew
                    }
                    HeartbeatOutcome::Lost { .. } | HeartbeatOutcome::Held { .. } => {
                        LeaseMode::Take
                    }
                }
            }
            LeaseMode::Take | LeaseMode::TakeExpired | LeaseMode::Renew => entry,
        };
        let mut outcome = self.inner.heartbeat(node, lease, entry).await?;
        if let HeartbeatOutcome::Held { pending, .. } = &mut outcome
            && self.has(Defect::WorkIsNotReported)
        {
            *pending = PendingWork::NONE;
        }
        Ok(outcome)
    }

    async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        if self.has(Defect::AnybodyLeaves)
            && let HeartbeatOutcome::Lost { lease: Some(other), .. } =
                self.inner.heartbeat(node, Duration::ZERO, LeaseMode::Renew).await?
        {
            return self.inner.leave(&other.node).await;
        }
        self.inner.leave(node).await
    }

    async fn advertise(&self, node: &Node, address: &NodeAddress) -> Result<(), Unavailable> {
        self.inner.advertise(node, address).await
    }

    async fn address(&self, node: &Node) -> Result<Option<NodeAddress>, Unavailable> {
        if self.has(Defect::AddressesGoWithNames)
            && let HeartbeatOutcome::Lost { lease: Some(other), .. } =
                self.inner.heartbeat(node, Duration::ZERO, LeaseMode::Renew).await?
        {
            return self.inner.address(&other.node).await;
        }
        self.inner.address(node).await
    }
}

#[async_trait]
impl ApiKeys for BrokenJournal {
    async fn credential(&self, id: CredentialId) -> Result<Option<KnownCredential>, Unavailable> {
        let mut known = self.inner.credential(id).await?;
        if let Some(KnownCredential { credential, api_key, unknown_until, .. }) = &mut known {
            if self.has(Defect::WindowsAreForgotten) {
                *unknown_until = None;
            }
            if self.has(Defect::WindowsNeverEnd) {
                *unknown_until = Some(Timestamp::from_micros(i64::MAX));
            }
            if self.has(Defect::LimitsAreForgotten) {
                api_key.grant = Grant::default();
            }
            if self.has(Defect::CredentialsOutliveKeys) {
                credential.ends_at = None;
            }
            if self.has(Defect::RevokingAgainCounts) {
                let now = self.inner.now();
                api_key.revoked_at = api_key.revoked_at.map(|_first| now);
            }
        }
        Ok(known)
    }

    async fn counters(&self, api_key: ApiKeyId) -> Result<CounterSnapshot, Unavailable> {
        let CounterSnapshot { mut counters, now } = self.inner.counters(api_key).await?;
        let used = |tally: &CounterReadings, counter| tally.used(counter).unwrap_or(0);
        if self.has(Defect::StandingsHaveGaps) {
            let all = Counter::ALL.into_iter().map(|counter| (counter, used(&counters, counter)));
            counters = all.filter(|(_, used)| *used != 0).collect();
        }
        if self.has(Defect::StandingsAreMixedUp) {
            for key in self.inner.all_api_keys().await {
                let other = self.inner.counters(key.id).await?.counters;
                let both = |counter| (counter, used(&counters, counter).max(used(&other, counter)));
                counters = Counter::ALL.into_iter().map(both).collect();
            }
        }
        Ok(CounterSnapshot { counters, now })
    }
}

#[async_trait]
impl Restores for BrokenJournal {
    async fn declare(&self, unknown: UnknownKeys) -> Result<Restore, Unavailable> {
        let unknown = match unknown {
            // As a window of no length, which ends no other.
            UnknownKeys::Allow if self.has(Defect::AllowedWindowsStay) => {
                UnknownKeys::Refuse(Duration::ZERO)
            }
            UnknownKeys::Refuse(_) | UnknownKeys::Allow => unknown,
        };
        self.inner.declare(unknown).await
    }

    async fn open_window(&self) -> Result<Option<Restore>, Unavailable> {
        self.inner.open_window().await
    }
}

#[async_trait]
impl Lists for BrokenJournal {
    async fn all_api_keys(&self) -> Vec<ApiKey> {
        self.inner.all_api_keys().await
    }

    async fn all_wallets(&self) -> Vec<Wallet> {
        let mut wallets = self.inner.all_wallets().await;
        if self.has(Defect::WalletsAreListedBackwards) {
            wallets.reverse();
        }
        wallets
    }
}

#[async_trait]
impl Wallets for BrokenJournal {
    async fn find(&self, id: WalletId) -> Result<Option<Wallet>, Unavailable> {
        self.inner.find(id).await
    }

    async fn transfers(&self, id: WalletId, limit: u32) -> Result<Vec<LedgerEntry>, Unavailable> {
        if self.has(Defect::StatementsShowTheOldest) {
            let mut all = self.inner.transfers(id, u32::MAX).await?;
            all.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
            return Ok(all);
        }
        let mut entries = self.inner.transfers(id, limit).await?;
        if self.has(Defect::RestsAreNotListed) {
            entries.retain(|entry| entry.kind != "rest");
        }
        let kept = self.kept();
        let made_up = kept.entries.iter().filter(|(wallet, _)| *wallet == id);
        entries.extend(made_up.map(|(_, entry)| entry.clone()));
        Ok(entries)
    }

    async fn posting(&self, id: PostingId) -> Result<Option<Posting>, Unavailable> {
        self.inner.posting(id).await
    }
}

#[async_trait]
impl Prices for BrokenJournal {
    async fn pin(&self, versions: &[PriceVersion]) -> Result<(), PinError> {
        if self.has(Defect::PricesArePinnedByHalves) {
            for version in versions {
                self.inner.pin(std::slice::from_ref(version)).await?;
            }
        }
        match self.inner.pin(versions).await {
            Err(PinError::Conflict(_)) if self.has(Defect::PricesAreOverwritten) => Ok(()),
            pinned @ (Ok(()) | Err(PinError::Conflict(_) | PinError::Unavailable(_))) => pinned,
        }
    }
}
