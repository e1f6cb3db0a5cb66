//! Changes of admin keys.

use std::time::Duration;

use super::{AccountCommand, Creation, refuse_crowd, refuse_more, refuse_passed};
use crate::admin::field_change::{FieldChange, TrailFields as _};
use crate::admin::{
    AccountEffect, AccountRefusal, AccountWrite, AdminCredential, AdminKey, BoundedKind, Count,
    Facts, Reach, ResourceId, Role, UseCase,
};
use crate::{AdminKeyId, PersonId};

/// Change of an admin key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdminKeyAction {
    /// Issue one with its first credential.
    Issue(AdminKey, AdminCredential),
    /// Add a credential, and end the other ones after a grace.
    Rotate {
        /// The credential, which names its key.
        credential: AdminCredential,
        /// Time that the others stay.
        grace: Duration,
    },
    /// End one for good.
    Revoke(AdminKeyId),
}

impl AdminKeyAction {
    pub(super) const fn row(&self) -> (UseCase, Creation) {
        match self {
            Self::Issue(key, _) => {
                (UseCase::AdminKeyIssue, Creation::Resource(ResourceId::AdminKey(key.id)))
            }
            Self::Rotate { .. } => (UseCase::AdminKeyRotate, Creation::Secret),
            Self::Revoke(_) => (UseCase::AdminKeyRevoke, Creation::Nothing),
        }
    }

    pub(super) async fn decide<F: Facts>(
        &self,
        command: &AccountCommand,
        facts: &mut F,
    ) -> Result<AccountEffect, F::Error> {
        match self {
            Self::Issue(key, credential) => issue(key, credential, command, facts).await,
            Self::Rotate { credential, grace } => rotate(credential, *grace, facts).await,
            Self::Revoke(id) => revoke(*id, facts).await,
        }
    }
}

async fn issue<F: Facts>(
    key: &AdminKey,
    credential: &AdminCredential,
    command: &AccountCommand,
    facts: &mut F,
) -> Result<AccountEffect, F::Error> {
    let (now, bound) = (facts.now(), command.bounds.admin_keys);
    let namesake = facts.namesake(&key.name).await?;
    if let Reach::Wallet(wallet) = key.reach {
        let in_force = facts.count(Count::AdminKeys(wallet, bound)).await?;
        refuse_more(BoundedKind::AdminKeys, 1, bound, in_force)?;
    }
    let (mut writes, mut also) = (Vec::new(), Vec::new());
    if let Some(namesake) = namesake {
        if !namesake.has_ended(now) {
            return Err(AccountRefusal::NameTaken(key.name.clone()).into());
        }
        // Nobody can use it any more: it is revoked, so that the name has one holder.
        let ended = AdminKey { revoked_at: Some(now), ..namesake.clone() };
        also.push((namesake.thing(), namesake.changes(&ended)));
        writes.push(AccountWrite::UpdateAdminKey(ended));
        writes.push(AccountWrite::EndAdminCredentials(namesake.id, now));
    }
    refuse_passed(key.ends_at, now)?;
    let made = AdminKey { created_at: now, revoked_at: None, ..key.clone() };
    let mut effect = AccountEffect::created(made, AccountWrite::InsertAdminKey);
    writes.append(&mut effect.writes);
    writes.push(AccountWrite::InsertAdminCredential(credential.clone(), now));
    Ok(AccountEffect { also, writes, ..effect })
}

async fn rotate<F: Facts>(
    credential: &AdminCredential,
    grace: Duration,
    facts: &mut F,
) -> Result<AccountEffect, F::Error> {
    let (id, now) = (credential.admin_key, facts.now());
    let before = facts.admin_key(id).await?;
    let credentials = facts.count(Count::AdminCredentials(id)).await?;
    if before.ok_or(AccountRefusal::NoAdminKey)?.has_ended(now) {
        return Err(AccountRefusal::AdminKeyEnded.into());
    }
    refuse_crowd(grace, credentials)?;
    let others_end_at = now.after(grace);
    let writes = vec![
        // Before the new one is added, or it would end as well.
        AccountWrite::EndAdminCredentials(id, others_end_at),
        AccountWrite::InsertAdminCredential(credential.clone(), now),
    ];
    let changes = FieldChange::rotation(credential.id, others_end_at);
    Ok(AccountEffect::done(writes, ResourceId::AdminKey(id), changes))
}

async fn revoke<F: Facts>(id: AdminKeyId, facts: &mut F) -> Result<AccountEffect, F::Error> {
    let now = facts.now();
    let before = facts.admin_key(id).await?;
    let others = facts.owners((id, PersonId::from_u128(0))).await?;
    let before = before.ok_or(AccountRefusal::NoAdminKey)?;
    // Before the owners are counted: a repeated command must not be refused for its own effect.
    if before.revoked_at.is_some() {
        return Ok(AccountEffect::done(Vec::new(), ResourceId::AdminKey(id), Vec::new()));
    }
    // An owner's key without an end is followed by another one without: those that have an end go by
    // themselves, and then nobody could issue a key.
    let others = if before.ends_at.is_none() { others.lasting } else { others.all };
    if before.role == Role::Owner && !before.has_ended(now) && others == 0 {
        return Err(AccountRefusal::LastOwner.into());
    }
    let after = AdminKey { revoked_at: Some(now), ..before.clone() };
    let mut effect = AccountEffect::changed(&before, after, AccountWrite::UpdateAdminKey);
    // In one transaction: no credential of a revoked key outlives it.
    effect.writes.push(AccountWrite::EndAdminCredentials(id, now));
    Ok(effect)
}
