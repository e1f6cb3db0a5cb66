//! Changes of wallets.

use super::event::{api_key_event, wallet_event};
use super::{AccountCommand, Creation, expect};
use crate::admin::event::EventKind;
use crate::admin::field_change::TrailFields as _;
use crate::admin::{
    AccountEffect, AccountRefusal, AccountWrite, Facts, NameScope, ResourceId, UseCase,
    WalletPatch, WalletRecord,
};
use crate::{Micros, WalletId};

/// Change of a wallet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalletAction {
    /// Create one; its balance is empty, even if the record has another.
    Create(WalletRecord),
    /// Edit one.
    Edit {
        /// The wallet.
        wallet: WalletId,
        /// The edit.
        patch: WalletPatch,
        /// Number of edits that the actor has seen, if that matters.
        expected: Option<u32>,
    },
    /// Stop its new runs.
    Suspend(WalletId),
    /// Let its new runs in.
    Resume(WalletId),
    /// Close it if it is empty, and revoke its API keys with it.
    Close(WalletId),
}

impl WalletAction {
    pub(super) const fn row(&self) -> (UseCase, Creation) {
        match self {
            Self::Create(it) => {
                (UseCase::WalletCreate, Creation::Resource(ResourceId::Wallet(it.wallet.id)))
            }
            Self::Edit { .. } => (UseCase::WalletUpdate, Creation::Nothing),
            Self::Suspend(_) => (UseCase::WalletSuspend, Creation::Nothing),
            Self::Resume(_) => (UseCase::WalletResume, Creation::Nothing),
            Self::Close(_) => (UseCase::WalletClose, Creation::Nothing),
        }
    }

    pub(super) async fn decide<F: Facts>(
        &self,
        command: &AccountCommand,
        facts: &mut F,
    ) -> Result<AccountEffect, F::Error> {
        let now = facts.now();
        Ok(match self {
            Self::Create(record) => {
                let names = [Some(&record.wallet.name), record.external_id.as_ref()];
                let scope = NameScope::Wallets(record.wallet.id);
                facts.taken(scope, names.map(Vec::from_iter)).await?.refuse(names)?;
                let mut made = WalletRecord { created_at: now, edited: 0, ..record.clone() };
                // Money comes by postings only: a balance without one would unbalance the ledger.
                (made.wallet.available, made.wallet.held) = (Micros::ZERO, Micros::ZERO);
                AccountEffect::created(made, AccountWrite::InsertWallet)
            }
            Self::Edit { wallet, patch, expected } => {
                let names = [patch.name.as_ref(), patch.external_id.iter().flatten().next()];
                let scope = NameScope::Wallets(*wallet);
                let taken = facts.taken(scope, names.map(Vec::from_iter)).await?;
                let before = known(facts, *wallet).await?;
                expect(*expected, before.edited)?;
                taken.refuse(names)?;
                let after = before.edit(patch)?;
                AccountEffect::changed(&before, after, AccountWrite::UpdateWallet)
            }
            Self::Suspend(id) => {
                let before = known(facts, *id).await?;
                changed(command, EventKind::WalletSuspended, &before, before.suspend(now)?)
            }
            Self::Resume(id) => {
                let before = known(facts, *id).await?;
                changed(command, EventKind::WalletResumed, &before, before.resume()?)
            }
            Self::Close(id) => {
                let before = facts.wallet(*id).await?;
                let keys = facts.api_keys_of(*id).await?;
                let before = before.ok_or(AccountRefusal::NoWallet)?;
                let kind = EventKind::WalletClosed;
                let mut effect = changed(command, kind, &before, before.close(now)?);
                if !effect.writes.is_empty() {
                    // In one transaction: no key of a closed wallet stays in force.
                    effect.writes.push(AccountWrite::RevokeApiKeysOf(*id, now));
                    let revoked =
                        keys.iter().map(|key| (key.thing(), key.changes(&key.revoke(now))));
                    effect.also = revoked.collect();
                    let kind = EventKind::ApiKeyRevoked;
                    effect.events.extend(keys.iter().map(|key| api_key_event(command, kind, key)));
                }
                effect
            }
        })
    }
}

/// Reads a wallet, or refuses.
pub(super) async fn known<F: Facts>(facts: &mut F, id: WalletId) -> Result<WalletRecord, F::Error> {
    Ok(facts.wallet(id).await?.ok_or(AccountRefusal::NoWallet)?)
}

fn changed(
    command: &AccountCommand,
    kind: EventKind,
    before: &WalletRecord,
    after: WalletRecord,
) -> AccountEffect {
    AccountEffect::changed(before, after, AccountWrite::UpdateWallet)
        .with_event(|| wallet_event(command, kind, before))
}
