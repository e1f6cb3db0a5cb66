//! The smaller ports, with what can be wrong about them.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::credential::{ApiKey, Credential, Grant};
use holdfast_domain::ledger::Posting;
use holdfast_domain::limits::{Counter, CounterReadings, Limits};
use holdfast_domain::operation::{Node, Phase};
use holdfast_domain::ports::{
    CounterSnapshot, CreateError, HeartbeatOutcome, KnownCredential, LeaseMode, LedgerEntry,
    NewApiKey, PinError, RotateError, Rotation, Unavailable,
};
use holdfast_domain::price::PriceVersion;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, ApiKeys, CredentialId, Currency, NodeAddress, Nodes, PostingId, Prices, Timestamp,
    WalletId, Wallets,
};

use holdfast_testkit::laws::{LimitEdits, Lists};
use holdfast_testkit::sample;

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
        self.inner.heartbeat(node, lease, entry).await
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
impl LimitEdits for BrokenJournal {
    async fn edit_limits(&self, api_key: ApiKeyId, limits: Limits) {
        self.inner.edit_limits(api_key, limits).await;
        let Some(spend) = limits.spend.filter(|_limit| self.has(Defect::SeedsGoByEndings)) else {
            return;
        };
        let (counter, now) = (spend.window.counter(), self.inner.now());
        let mut used = 0;
        for row in self.inner.operations().into_iter().filter(|row| row.api_key == api_key) {
            let at = row.phase.finished_at().unwrap_or(row.admitted_at);
            let amount = match &row.phase {
                Phase::Leased | Phase::Recorded(_) => row.hold.get(),
                Phase::Completed { usage, .. } => usage.charge.get(),
                Phase::Open | Phase::Refused { .. } | Phase::Abandoned { .. } => 0,
            };
            used += if counter.window(at) == counter.window(now) { amount } else { 0 };
        }
        self.inner.set_counter(api_key, counter, used);
    }

    fn turn(&self, span: Duration) -> bool {
        self.inner.turn(span)
    }
}

#[async_trait]
impl ApiKeys for BrokenJournal {
    async fn credential(&self, id: CredentialId) -> Result<Option<KnownCredential>, Unavailable> {
        let mut known = self.inner.credential(id).await?;
        if let Some(KnownCredential { credential, api_key, .. }) = &mut known {
            if self.has(Defect::LimitsAreForgotten) {
                api_key.grant = Grant::default();
            }
            if self.has(Defect::CredentialsOutliveKeys) {
                credential.ends_at = None;
            }
        }
        Ok(known)
    }

    async fn issue(&self, key: &NewApiKey, credential: &Credential) -> Result<ApiKey, CreateError> {
        if self.has(Defect::KeysMakeWallets) {
            self.make(key.wallet).await;
        }
        let listed = self.inner.all_api_keys().await;
        let seems_free = !listed.iter().any(|known| known.name == key.name);
        let issued = self.inner.issue(key, credential).await;
        let is_given_again = self.has(Defect::NamesOfKeysRepeat)
            || (self.has(Defect::NamesOfKeysRace) && seems_free);
        if matches!(issued, Err(CreateError::NameTaken)) && is_given_again {
            let name = format!("{}, {}", key.name, key.id);
            return self.inner.issue(&NewApiKey { name, ..key.clone() }, credential).await;
        }
        issued
    }

    async fn rotate(
        &self,
        credential: &Credential,
        grace: Duration,
    ) -> Result<Rotation, RotateError> {
        let old_ones = Duration::from_secs(1 << 40);
        let given = if self.has(Defect::OldCredentialsStay) { old_ones } else { grace };
        let mut rotated = self.inner.rotate(credential, given).await;
        let others_end_at = self.inner.now().after(grace);
        match &mut rotated {
            Ok(rotation) if self.has(Defect::OldCredentialsStay) => {
                rotation.others_end_at = others_end_at;
            }
            Err(RotateError::Ended) if self.has(Defect::EndedKeysAreRotated) => {
                let listed = self.inner.all_api_keys().await;
                let api_key = listed.into_iter().find(|key| key.id == credential.api_key).unwrap();
                return Ok(Rotation { api_key, others_end_at });
            }
            Err(RotateError::Taken) if self.has(Defect::RefusedRotationsEnd) => {
                let another = Credential { id: sample::fresh(), ..credential.clone() };
                self.inner.rotate(&another, grace).await.unwrap();
            }
            Ok(_)
            | Err(
                RotateError::NoKey
                | RotateError::Ended
                | RotateError::Taken
                | RotateError::Unavailable(_),
            ) => {}
        }
        rotated
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

    async fn revoke(&self, api_key: ApiKeyId) -> Result<Option<Timestamp>, Unavailable> {
        let since = self.inner.revoke(api_key).await?;
        let now = self.inner.now();
        Ok(if self.has(Defect::RevokingAgainCounts) { since.map(|_first| now) } else { since })
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
    async fn create(
        &self,
        id: WalletId,
        name: &str,
        currency: Currency,
    ) -> Result<Wallet, CreateError> {
        let created = self.inner.create(id, name, currency).await;
        if matches!(created, Err(CreateError::NameTaken)) && self.has(Defect::NamesOfWalletsRepeat)
        {
            return self.inner.create(id, &format!("{name}, {id}"), currency).await;
        }
        created
    }

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
