//! The smaller ports, with what can be wrong about them.

use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::credential::{ApiKey, Credential};
use holdfast_domain::ledger::Posting;
use holdfast_domain::limits::Limits;
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{
    Beat, CreateError, Entry, KnownCredential, LedgerEntry, NewApiKey, PinError, Unavailable,
};
use holdfast_domain::price::PriceVersion;
use holdfast_domain::wallet::Wallet;
use holdfast_domain::{
    ApiKeyId, CredentialId, Currency, Keys, Nodes, PostingId, Prices, Timestamp, WalletId, Wallets,
};

use super::Broken;
use super::defect::Defect;

#[async_trait]
impl Nodes for Broken {
    async fn beat(&self, node: &Node, lease: Duration, entry: Entry) -> Result<Beat, Unavailable> {
        let entry = match entry {
            Entry::Take if self.has(Defect::TakingWaits) => Entry::TakeExpired,
            Entry::TakeExpired if self.has(Defect::LiveNamesAreTaken) => Entry::Take,
            Entry::Renew if self.has(Defect::LostRowsAreRenewed) => Entry::Take,
            Entry::TakeExpired if self.has(Defect::ExpiredNamesRace) => {
                match self.inner.beat(node, lease, Entry::Renew).await? {
                    Beat::Lost { lease: Some(other), now } if now < other.ends_at => Entry::Renew,
                    Beat::Lost { .. } | Beat::Held { .. } => Entry::Take,
                }
            }
            Entry::Take | Entry::TakeExpired | Entry::Renew => entry,
        };
        self.inner.beat(node, lease, entry).await
    }

    async fn leave(&self, node: &Node) -> Result<(), Unavailable> {
        if self.has(Defect::AnybodyLeaves)
            && let Beat::Lost { lease: Some(other), .. } =
                self.inner.beat(node, Duration::ZERO, Entry::Renew).await?
        {
            return self.inner.leave(&other.node).await;
        }
        self.inner.leave(node).await
    }
}

#[async_trait]
impl Keys for Broken {
    async fn credential(&self, id: CredentialId) -> Result<Option<KnownCredential>, Unavailable> {
        let mut known = self.inner.credential(id).await?;
        if let Some(KnownCredential { credential, api_key, .. }) = &mut known {
            if self.has(Defect::LimitsAreForgotten) {
                api_key.limits = Limits::default();
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
        let listed = Keys::list(&self.inner).await.unwrap();
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

    async fn revoke(&self, api_key: ApiKeyId) -> Result<Option<Timestamp>, Unavailable> {
        let since = self.inner.revoke(api_key).await?;
        let now = self.inner.now();
        Ok(if self.has(Defect::RevokingAgainCounts) { since.map(|_first| now) } else { since })
    }

    async fn list(&self) -> Result<Vec<ApiKey>, Unavailable> {
        Keys::list(&self.inner).await
    }
}

#[async_trait]
impl Wallets for Broken {
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

    async fn list(&self) -> Result<Vec<Wallet>, Unavailable> {
        let mut wallets = Wallets::list(&self.inner).await?;
        if self.has(Defect::WalletsAreListedBackwards) {
            wallets.reverse();
        }
        Ok(wallets)
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
impl Prices for Broken {
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
