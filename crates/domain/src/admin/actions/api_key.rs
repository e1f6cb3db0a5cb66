//! Changes of API keys: issue, edit, suspend, resume, rotate, revoke.
//!
//! Each is judged over facts that are read under the locks of its transaction. The wallet's row is read before the
//! key's, because every command locks them in this order. A refusal writes no row of a key.
//!
//! An actor whose grants are bounded (`is_bounded`) hands out at most the wallet's `key_spend`. That holds for every
//! change that makes a key worth more: a new end, a further model, and the bearer that a rotation returns.
//!
//! Never: a limit that begins to count at zero although the key has spent; a credential that outlives its revoked key.

use std::collections::BTreeSet;
use std::time::Duration;

use super::event::api_key_event;
use super::{
    AccountCommand, Creation, expect, refuse_crowd, refuse_lost, refuse_more, refuse_passed,
};
use crate::admin::event::EventKind;
use crate::admin::field_change::{FieldChange, TrailFields as _, differences};
use crate::admin::{
    AccountEffect, AccountRefusal, AccountWrite, ApiKeyPatch, BoundedKind, Count, Facts, NameScope,
    ResourceId, UseCase, WalletRecord,
};
use crate::credential::{ApiKey, Credential, Grant, MODELS_MAX, NewApiKey};
use crate::limits::SpendLimit;
use crate::{ApiKeyId, WalletId};

/// Change of API keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApiKeyAction {
    /// Issue keys of one wallet, all or none.
    Issue {
        /// Wallet that pays.
        wallet: WalletId,
        /// The keys, each with its first credential.
        keys: Vec<(NewApiKey, Credential)>,
        /// True if the actor grants no more than the wallet's `key_spend`.
        is_bounded: bool,
    },
    /// Edit a key.
    Edit {
        /// The key.
        api_key: ApiKeyId,
        /// Wallet of the key, within which names are unique.
        wallet: WalletId,
        /// The edit.
        patch: ApiKeyPatch,
        /// Number of edits that the actor has seen, if that matters.
        expected: Option<u32>,
        /// True if the actor grants no more than the wallet's `key_spend`.
        is_bounded: bool,
    },
    /// Stop new runs of a key.
    Suspend(ApiKeyId),
    /// Let new runs of a key in.
    Resume(ApiKeyId),
    /// Add a credential to a key, and end its other ones after a grace.
    Rotate {
        /// The credential, which names its key.
        credential: Credential,
        /// Wallet of the key.
        wallet: WalletId,
        /// Time that the others stay.
        grace: Duration,
        /// True if the actor grants at most the wallet's `key_spend`.
        is_bounded: bool,
    },
    /// End a key for good.
    Revoke(ApiKeyId),
}

impl ApiKeyAction {
    pub(super) fn row(&self) -> (UseCase, Creation) {
        match self {
            Self::Issue { keys, .. } => {
                let first =
                    keys.first().map(|(key, _)| Creation::Resource(ResourceId::ApiKey(key.id)));
                (UseCase::ApiKeyIssue, first.unwrap_or(Creation::Nothing))
            }
            Self::Edit { .. } => (UseCase::ApiKeyUpdate, Creation::Nothing),
            Self::Suspend(_) => (UseCase::ApiKeySuspend, Creation::Nothing),
            Self::Resume(_) => (UseCase::ApiKeyResume, Creation::Nothing),
            Self::Rotate { .. } => (UseCase::ApiKeyRotate, Creation::Secret),
            Self::Revoke(_) => (UseCase::ApiKeyRevoke, Creation::Nothing),
        }
    }

    pub(super) async fn decide<F: Facts>(
        &self,
        command: &AccountCommand,
        facts: &mut F,
    ) -> Result<AccountEffect, F::Error> {
        let now = facts.now();
        match self {
            Self::Issue { wallet, keys, is_bounded } => {
                issue((*wallet, keys), *is_bounded, command, facts).await
            }
            Self::Edit { api_key, wallet, patch, expected, is_bounded } => {
                edit((*api_key, *wallet), (patch, *expected), *is_bounded, facts).await
            }
            Self::Suspend(id) => {
                let before = known(facts, *id).await?;
                Ok(changed(command, EventKind::ApiKeySuspended, &before, before.suspend(now)?))
            }
            Self::Resume(id) => {
                let before = known(facts, *id).await?;
                Ok(changed(command, EventKind::ApiKeyResumed, &before, before.resume()?))
            }
            Self::Rotate { credential, wallet, grace, is_bounded } => {
                let id = credential.api_key;
                let payer = if *is_bounded { facts.wallet(*wallet).await? } else { None };
                let before = facts.api_key(id).await?;
                let credentials = facts.count(Count::Credentials(id)).await?;
                let before = before.ok_or(AccountRefusal::NoApiKey)?;
                if before.has_ended(now) {
                    return Err(AccountRefusal::ApiKeyEnded.into());
                }
                if *is_bounded {
                    // The actor receives the bearer: a rotation hands out the key's limits as an issue does.
                    refuse_unbounded(payer.as_ref(), before.grant.limits.spend)?;
                }
                refuse_crowd(*grace, credentials)?;
                let others_end_at = now.after(*grace);
                let writes = vec![
                    // Before the new one is added, or it would end as well.
                    AccountWrite::EndCredentials(id, others_end_at),
                    AccountWrite::InsertCredential(credential.clone(), now),
                ];
                let changes = FieldChange::rotation(credential.id, others_end_at);
                let effect = AccountEffect::done(writes, ResourceId::ApiKey(id), changes);
                Ok(effect.with_event(|| api_key_event(command, EventKind::ApiKeyRotated, &before)))
            }
            Self::Revoke(id) => {
                let before = known(facts, *id).await?;
                let kind = EventKind::ApiKeyRevoked;
                let mut effect = changed(command, kind, &before, before.revoke(now));
                if !effect.writes.is_empty() {
                    // In one transaction: no credential of a revoked key outlives it.
                    effect.writes.push(AccountWrite::EndCredentials(*id, now));
                }
                Ok(effect)
            }
        }
    }
}

async fn known<F: Facts>(facts: &mut F, id: ApiKeyId) -> Result<ApiKey, F::Error> {
    Ok(facts.api_key(id).await?.ok_or(AccountRefusal::NoApiKey)?)
}

fn changed(
    command: &AccountCommand,
    kind: EventKind,
    before: &ApiKey,
    after: ApiKey,
) -> AccountEffect {
    AccountEffect::changed(before, after, AccountWrite::UpdateApiKey)
        .with_event(|| api_key_event(command, kind, before))
}

/// Refuses a key that could spend more than the wallet lets be granted.
fn refuse_unbounded(
    wallet: Option<&WalletRecord>,
    spend: Option<SpendLimit>,
) -> Result<(), AccountRefusal> {
    let wallet = wallet.ok_or(AccountRefusal::NoWallet)?;
    let most = wallet.key_spend.ok_or(AccountRefusal::KeySpendUnset)?;
    // Another window is never within: an amount of a day cannot be compared with one of a month.
    let is_within =
        spend.is_some_and(|spend| spend.window == most.window && spend.micros <= most.micros);
    if is_within { Ok(()) } else { Err(AccountRefusal::KeySpendExceeded(most)) }
}

fn refuse_long(grant: &Grant) -> Result<(), AccountRefusal> {
    let models = grant.models.as_ref().map_or(0, BTreeSet::len);
    if models > MODELS_MAX { Err(AccountRefusal::TooManyModels(models)) } else { Ok(()) }
}

async fn edit<F: Facts>(
    (id, payer): (ApiKeyId, WalletId),
    (patch, expected): (&ApiKeyPatch, Option<u32>),
    is_bounded: bool,
    facts: &mut F,
) -> Result<AccountEffect, F::Error> {
    let now = facts.now();
    let names = [patch.name.as_ref(), patch.external_id.iter().flatten().next()];
    let scope = NameScope::ApiKeys(payer, Some(id));
    let taken = facts.taken(scope, names.map(Vec::from_iter)).await?;
    // The wallet's row first, as each command locks it: the revision of its limits moves with every edit of a key, and
    // no run of the key may move counters that are seeded.
    let payer = facts.wallet(payer).await?;
    let before = known(facts, id).await?;
    expect(expected, before.edited)?;
    taken.refuse(names)?;
    refuse_passed(patch.ends_at.flatten(), now)?;
    let after = before.edit(patch)?;
    if after.grant.models != before.grant.models {
        // A list from before the bound stays, and does not keep the rest of its key from being edited.
        refuse_long(&after.grant)?;
    }
    if is_bounded {
        // The bound that the key has after it, whatever is edited: an end that is moved or a
        // model that is added makes an unbounded key worth more.
        refuse_unbounded(payer.as_ref(), after.grant.limits.spend)?;
    }
    let counters = after.grant.limits.seeded_since(&before.grant.limits);
    let has_other_limits = after.grant.limits != before.grant.limits;
    let mut effect = AccountEffect::changed(&before, after, AccountWrite::UpdateApiKey);
    // In the transaction of the edit: a counter that began at zero would let the key spend its new
    // limit once more.
    if has_other_limits {
        effect.writes.push(AccountWrite::SeedCounters(id, counters, now));
    }
    Ok(effect)
}

async fn issue<F: Facts>(
    (wallet, keys): (WalletId, &[(NewApiKey, Credential)]),
    is_bounded: bool,
    command: &AccountCommand,
    facts: &mut F,
) -> Result<AccountEffect, F::Error> {
    refuse_lost(command, facts).await?;
    let (now, bound) = (facts.now(), command.bounds.api_keys);
    let names = keys.iter().map(|(key, _)| &key.name).collect();
    let external_ids = keys.iter().filter_map(|(key, _)| key.external_id.as_ref()).collect();
    let scope = NameScope::ApiKeys(wallet, None);
    let mut taken = facts.taken(scope, [names, external_ids]).await?;
    let payer = facts.wallet(wallet).await?;
    let in_force = facts.count(Count::ApiKeys(wallet, bound)).await?;
    refuse_more(BoundedKind::ApiKeys, keys.len(), bound, in_force)?;
    let payer = payer.ok_or(AccountRefusal::NoWallet)?;
    payer.refuse_closed()?;
    for (new, _credential) in keys {
        refuse_passed(new.grant.ends_at, now)?;
        refuse_long(&new.grant)?;
        if is_bounded {
            refuse_unbounded(Some(&payer), new.grant.limits.spend)?;
        }
    }
    let mut effect = AccountEffect::default();
    for (new, credential) in keys {
        taken.refuse([Some(&new.name), new.external_id.as_ref()])?;
        // Two keys of one command have two names as well.
        taken.names.insert(new.name.clone());
        taken.external_ids.extend(new.external_id.clone());
        let made = new.clone().issued_at(now);
        effect.entries.push((made.thing(), differences(None, made.trail_fields())));
        effect.events.push(api_key_event(command, EventKind::ApiKeyIssued, &made));
        effect.writes.push(AccountWrite::InsertApiKey(made));
        effect.writes.push(AccountWrite::InsertCredential(credential.clone(), now));
    }
    Ok(effect)
}

#[cfg(test)]
mod tests;
