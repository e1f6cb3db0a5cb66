//! The judgement of commands: a pure function of the command and the facts.
//!
//! Order: the request key first ([`replay`]), then whether the thing is there, then whether it was
//! edited meanwhile, then names, and then the rules of the thing itself. So a repetition is answered
//! whatever has become of the thing, and a refusal names the first cause that its sender can mend.
//! Whatever time or a setting changes is judged here for that reason: ends that pass, bounds that
//! somebody moves.
//!
//! A change that changes nothing is done, with no write and no row of the trail. Never in here: a
//! look at a clock or a store; what is not in the facts was not read under the locks.

mod person;
mod post;
mod webhook;

use std::collections::BTreeSet;
use std::time::Duration;

use self::post::post;

use super::command::{
    AccountAction, AccountCommand, AccountEffect, AccountFacts, AccountReceipt, AccountWrite,
    RequestRecord,
};
use super::field_change::{FieldChange, differences};
use super::refusal::AccountRefusal;
use super::thing::Thing;
use super::{
    AdminCredential, AdminKey, ApiKeyPatch, BoundedKind, PersonAction, PersonRecord, Reach, Role,
    WalletBounds, WalletRecord,
};
use crate::admin::job_state::JobState;
use crate::credential::{ApiKey, CREDENTIALS_MAX, Credential, Grant, MODELS_MAX, NewApiKey};
use crate::limits::SpendLimit;
use crate::{AdminKeyId, ApiKeyId, JobId, Micros, OperationId, Timestamp, WalletId};

/// Answers a command whose request key is bound already. `person` is the one that it has invited.
///
/// # Errors
///
/// [`AccountRefusal::RequestKeyConflict`] where it is bound to another request, and
/// [`AccountRefusal::PersonEnded`] where nobody can say any more whom it has invited.
pub fn replay(
    record: &RequestRecord,
    command: &AccountCommand,
    person: Option<&PersonRecord>,
) -> Result<AccountReceipt, AccountRefusal> {
    if !record.is_of(&command.request) {
        return Err(AccountRefusal::RequestKeyConflict);
    }
    // The digest outlives the person, and has nothing of the address: it is compared with theirs.
    if let AccountAction::Person(PersonAction::Invite { new, email, .. }) = &command.action {
        let invited = person.map(|record| &record.person);
        let invited = invited.filter(|person| person.email.is_some());
        let invited = invited.ok_or(AccountRefusal::PersonEnded)?;
        // The name of a person from before the request stays, whatever name an invitation has.
        let is_of_request = invited.created_at == record.at;
        let has_other_name = is_of_request && invited.name != new.name;
        if invited.email.as_ref() != Some(email) || has_other_name {
            return Err(AccountRefusal::RequestKeyConflict);
        }
    }
    Ok(AccountReceipt { things: record.things.clone(), at: record.at, replayed: true })
}

/// Judges a command whose request key is not bound yet.
///
/// # Errors
///
/// An [`AccountRefusal`]: nothing may be written.
pub fn decide(
    command: &AccountCommand,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    use AccountAction as Action;
    match &command.action {
        Action::CreateWallet(record) => create_wallet(record, facts),
        Action::EditWallet { patch, expected, .. } => {
            let before = wallet(facts)?;
            expect(*expected, before.edited)?;
            let names = [patch.name.as_ref(), patch.external_id.as_ref().and_then(Option::as_ref)];
            refuse_taken(names, facts)?;
            Ok(wallet_effect(before, before.edit(patch)?))
        }
        Action::SuspendWallet(_) => {
            let before = wallet(facts)?;
            Ok(wallet_effect(before, before.suspend(facts.now)?))
        }
        Action::ResumeWallet(_) => {
            let before = wallet(facts)?;
            Ok(wallet_effect(before, before.resume()?))
        }
        Action::CloseWallet(id) => close_wallet(*id, facts),
        Action::Post(new) => post(new, facts),
        Action::IssueApiKeys { keys, is_bounded, .. } => {
            issue_api_keys(keys, *is_bounded, command.bounds, facts)
        }
        Action::EditApiKey { patch, expected, is_bounded, .. } => {
            edit_api_key(patch, *expected, *is_bounded, facts)
        }
        Action::SuspendApiKey(_) => {
            let before = api_key(facts)?;
            Ok(api_key_effect(before, before.suspend(facts.now)?))
        }
        Action::ResumeApiKey(_) => {
            let before = api_key(facts)?;
            Ok(api_key_effect(before, before.resume()?))
        }
        Action::RotateApiKey { credential, grace, is_bounded, .. } => {
            rotate_api_key(credential, *grace, *is_bounded, facts)
        }
        Action::RevokeApiKey(id) => revoke_api_key(*id, facts),
        Action::AskOperation { operation, .. } => {
            // Whether it can still end is the operation's own judgement, after this row.
            let asked = FieldChange::set("asked", "true");
            Ok(AccountEffect::done(Vec::new(), Thing::Operation(*operation), vec![asked]))
        }
        Action::StartJob { job, kind, since } => start_job(*job, kind, since.as_ref(), facts),
        Action::CancelJob(job) => cancel_job(*job, facts),
        Action::ExcludeCosts { first, operations } => Ok(exclude_costs(*first, *operations)),
        Action::NoteRead(_use_case, thing) => Ok(note(*thing, FieldChange::set("read", "true"))),
        Action::NoteFailedSignIns { person, attempts } => {
            let thing = person.map_or(Thing::Unknown, Thing::Person);
            Ok(note(thing, FieldChange::set("failed_attempts", attempts)))
        }
        Action::IssueAdminKey(key, credential) => {
            issue_admin_key(key, credential, command.bounds, facts)
        }
        Action::RotateAdminKey { credential, grace } => rotate_admin_key(credential, *grace, facts),
        Action::RevokeAdminKey(id) => revoke_admin_key(*id, facts),
        Action::Person(action) => person::decide(command, action, facts),
        Action::Webhook(action) => {
            webhook::decide(action, &facts.webhook, command.bounds.webhooks, facts.now)
        }
    }
}

fn close_wallet(id: WalletId, facts: &AccountFacts) -> Result<AccountEffect, AccountRefusal> {
    let before = wallet(facts)?;
    let mut effect = wallet_effect(before, before.close(facts.now)?);
    if !effect.writes.is_empty() {
        effect.writes.push(AccountWrite::RevokeApiKeysOf(id, facts.now));
        let revoked = facts.api_keys.iter().map(|key| {
            let changes = ApiKey::changes(Some(key), &key.revoke(facts.now));
            (Thing::ApiKey(key.id), changes)
        });
        effect.also = revoked.collect();
    }
    Ok(effect)
}

fn start_job(
    id: JobId,
    kind: &'static str,
    since: Option<&String>,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    if let Some(pending) = facts.pending_job {
        return Err(AccountRefusal::JobPending(pending));
    }
    let fields = vec![("kind", Some(kind.to_owned())), ("since", since.cloned())];
    let queued = AccountWrite::QueueJob(id, kind, since.cloned(), facts.now);
    Ok(AccountEffect::done(vec![queued], Thing::Job(id), differences(None, fields)))
}

fn cancel_job(id: JobId, facts: &AccountFacts) -> Result<AccountEffect, AccountRefusal> {
    match facts.job.ok_or(AccountRefusal::NoJob)? {
        JobState::Queued => {
            let [before, after] = [JobState::Queued, JobState::Cancelled].map(JobState::label);
            let change = FieldChange {
                field: "state".to_owned(),
                before: Some(before.to_owned()),
                after: Some(after.to_owned()),
            };
            let writes = vec![AccountWrite::CancelJob(id, facts.now)];
            Ok(AccountEffect::done(writes, Thing::Job(id), vec![change]))
        }
        JobState::Cancelled => Ok(AccountEffect::done(Vec::new(), Thing::Job(id), Vec::new())),
        JobState::Running | JobState::Done | JobState::Failed => Err(AccountRefusal::JobStarted),
    }
}

/// An audit row about what changes nothing.
fn note(thing: Thing, noted: FieldChange) -> AccountEffect {
    AccountEffect::done(Vec::new(), thing, vec![noted])
}

/// The row alone: the sums are corrected after it.
fn exclude_costs(first: OperationId, operations: u64) -> AccountEffect {
    let excluded = FieldChange::set("costs_excluded", operations);
    AccountEffect::done(Vec::new(), Thing::Operation(first), vec![excluded])
}

fn wallet(facts: &AccountFacts) -> Result<&WalletRecord, AccountRefusal> {
    facts.wallet.as_ref().ok_or(AccountRefusal::NoWallet)
}

fn api_key(facts: &AccountFacts) -> Result<&ApiKey, AccountRefusal> {
    facts.api_key.as_ref().ok_or(AccountRefusal::NoApiKey)
}

fn admin_key(facts: &AccountFacts) -> Result<&AdminKey, AccountRefusal> {
    facts.admin_key.as_ref().ok_or(AccountRefusal::NoAdminKey)
}

/// Refuses an edit of something that has changed since its actor saw it.
fn expect(expected: Option<u32>, edited: u32) -> Result<(), AccountRefusal> {
    match expected {
        Some(expected) if expected != edited => Err(AccountRefusal::EditConflict { edited }),
        Some(_) | None => Ok(()),
    }
}

/// Refuses a name or an external id, in this order, that another thing has.
fn refuse_taken(
    [name, external_id]: [Option<&String>; 2],
    facts: &AccountFacts,
) -> Result<(), AccountRefusal> {
    if let Some(name) = name.filter(|name| facts.taken_names.contains(*name)) {
        return Err(AccountRefusal::NameTaken(name.clone()));
    }
    if let Some(id) = external_id.filter(|id| facts.taken_external_ids.contains(*id)) {
        return Err(AccountRefusal::ExternalIdTaken(id.clone()));
    }
    Ok(())
}

/// Refuses an end that is not to come. Judged here and not where it was read: a repetition that
/// comes after the end is answered from its request key.
fn refuse_passed(ends_at: Option<Timestamp>, facts: &AccountFacts) -> Result<(), AccountRefusal> {
    if ends_at.is_some_and(|end| end <= facts.now) {
        return Err(AccountRefusal::EndPassed);
    }
    Ok(())
}

/// Refuses a key that could spend more than the wallet lets be granted.
fn refuse_unbounded(
    wallet: &WalletRecord,
    spend: Option<SpendLimit>,
) -> Result<(), AccountRefusal> {
    let most = wallet.key_spend.ok_or(AccountRefusal::KeySpendUnset)?;
    let is_within =
        spend.is_some_and(|spend| spend.window == most.window && spend.micros <= most.micros);
    if is_within { Ok(()) } else { Err(AccountRefusal::KeySpendExceeded(most)) }
}

/// Refuses so many new things of a kind if the wallet would have more in force than the bound.
pub(super) fn refuse_more(
    kind: BoundedKind,
    new: usize,
    bound: u32,
    facts: &AccountFacts,
) -> Result<(), AccountRefusal> {
    let new = u32::try_from(new).unwrap_or(u32::MAX);
    if facts.in_force.saturating_add(new) > bound {
        return Err(AccountRefusal::BoundReached { kind, bound });
    }
    Ok(())
}

/// Refuses a further credential beside those in force. Without a grace those end, and there is room.
fn refuse_crowd(grace: Duration, facts: &AccountFacts) -> Result<(), AccountRefusal> {
    if !grace.is_zero() && facts.credentials >= CREDENTIALS_MAX {
        return Err(AccountRefusal::TooManyCredentials);
    }
    Ok(())
}

fn refuse_long(grant: &Grant) -> Result<(), AccountRefusal> {
    let models = grant.models.as_ref().map_or(0, BTreeSet::len);
    if models > MODELS_MAX { Err(AccountRefusal::TooManyModels(models)) } else { Ok(()) }
}

fn create_wallet(
    record: &WalletRecord,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    refuse_taken([Some(&record.wallet.name), record.external_id.as_ref()], facts)?;
    let mut made = record.clone();
    made.created_at = facts.now;
    made.edited = 0;
    (made.wallet.available, made.wallet.held) = (Micros::ZERO, Micros::ZERO);
    let (id, changes) = (made.wallet.id, WalletRecord::changes(None, &made));
    Ok(AccountEffect::done(vec![AccountWrite::InsertWallet(made)], Thing::Wallet(id), changes))
}

fn wallet_effect(before: &WalletRecord, after: WalletRecord) -> AccountEffect {
    let thing = Thing::Wallet(before.wallet.id);
    if *before == after {
        return AccountEffect::done(Vec::new(), thing, Vec::new());
    }
    let changes = WalletRecord::changes(Some(before), &after);
    AccountEffect::done(vec![AccountWrite::UpdateWallet(after)], thing, changes)
}

fn api_key_effect(before: &ApiKey, after: ApiKey) -> AccountEffect {
    let thing = Thing::ApiKey(before.id);
    if *before == after {
        return AccountEffect::done(Vec::new(), thing, Vec::new());
    }
    let changes = ApiKey::changes(Some(before), &after);
    AccountEffect::done(vec![AccountWrite::UpdateApiKey(after)], thing, changes)
}

/// An edit, with the seeds of the counters that begin to count with it, where it changes limits.
fn edit_effect(before: &ApiKey, after: ApiKey, now: Timestamp) -> AccountEffect {
    let counters = after.grant.limits.seeded_since(&before.grant.limits);
    let has_other_limits = after.grant.limits != before.grant.limits;
    let mut effect = api_key_effect(before, after);
    if has_other_limits {
        effect.writes.push(AccountWrite::SeedCounters(before.id, counters, now));
    }
    effect
}

fn edit_api_key(
    patch: &ApiKeyPatch,
    expected: Option<u32>,
    is_bounded: bool,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    let before = api_key(facts)?;
    expect(expected, before.edited)?;
    let names = [patch.name.as_ref(), patch.external_id.as_ref().and_then(Option::as_ref)];
    refuse_taken(names, facts)?;
    refuse_passed(patch.ends_at.flatten(), facts)?;
    let after = before.edit(patch)?;
    if after.grant.models != before.grant.models {
        // A list from before the bound stays, and does not keep the rest of its key from being edited.
        refuse_long(&after.grant)?;
    }
    if is_bounded {
        // The bound that the key has after it, whatever is edited: an end that is moved or a
        // model that is added makes an unbounded key worth more.
        refuse_unbounded(wallet(facts)?, after.grant.limits.spend)?;
    }
    Ok(edit_effect(before, after, facts.now))
}

fn issue_api_keys(
    keys: &[(NewApiKey, Credential)],
    is_bounded: bool,
    bounds: WalletBounds,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    refuse_more(BoundedKind::ApiKeys, keys.len(), bounds.api_keys, facts)?;
    let payer = wallet(facts)?;
    payer.refuse_closed()?;
    for (new, _credential) in keys {
        refuse_passed(new.grant.ends_at, facts)?;
        refuse_long(&new.grant)?;
        if is_bounded {
            refuse_unbounded(payer, new.grant.limits.spend)?;
        }
    }
    let (mut writes, mut entries) = (Vec::new(), Vec::new());
    let mut facts = facts.clone();
    for (new, credential) in keys {
        refuse_taken([Some(&new.name), new.external_id.as_ref()], &facts)?;
        // Two keys of one command have two names as well.
        facts.taken_names.insert(new.name.clone());
        facts.taken_external_ids.extend(new.external_id.clone());
        let made = new.clone().issued_at(facts.now);
        entries.push((Thing::ApiKey(made.id), ApiKey::changes(None, &made)));
        writes.push(AccountWrite::InsertApiKey(made));
        writes.push(AccountWrite::InsertCredential(credential.clone(), facts.now));
    }
    Ok(AccountEffect { writes, entries, also: Vec::new(), was_done: false })
}

fn rotate_api_key(
    credential: &Credential,
    grace: Duration,
    is_bounded: bool,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    let before = api_key(facts)?;
    if before.has_ended(facts.now) {
        return Err(AccountRefusal::ApiKeyEnded);
    }
    if is_bounded {
        // The actor receives the bearer: a rotation hands out the key's limits as an issue does.
        refuse_unbounded(wallet(facts)?, before.grant.limits.spend)?;
    }
    refuse_crowd(grace, facts)?;
    let others_end_at = facts.now.after(grace);
    let writes = vec![
        // Before the new one is added, or it would end as well.
        AccountWrite::EndCredentials(before.id, others_end_at),
        AccountWrite::InsertCredential(credential.clone(), facts.now),
    ];
    let changes = vec![
        FieldChange::set("credential_id", credential.id),
        FieldChange::set("others_end_at", others_end_at.as_micros()),
    ];
    Ok(AccountEffect::done(writes, Thing::ApiKey(before.id), changes))
}

fn revoke_api_key(id: ApiKeyId, facts: &AccountFacts) -> Result<AccountEffect, AccountRefusal> {
    let before = api_key(facts)?;
    let mut effect = api_key_effect(before, before.revoke(facts.now));
    if !effect.writes.is_empty() {
        // In one transaction: no credential of a revoked key outlives it.
        effect.writes.push(AccountWrite::EndCredentials(id, facts.now));
    }
    Ok(effect)
}

fn issue_admin_key(
    key: &AdminKey,
    credential: &AdminCredential,
    bounds: WalletBounds,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    if key.reach != Reach::All {
        refuse_more(BoundedKind::AdminKeys, 1, bounds.admin_keys, facts)?;
    }
    let (mut writes, mut also) = (Vec::new(), Vec::new());
    if let Some(namesake) = &facts.namesake {
        if !namesake.has_ended(facts.now) {
            return Err(AccountRefusal::NameTaken(key.name.clone()));
        }
        // Nobody can use it any more: it is revoked, so that the name has one holder.
        let ended = AdminKey { revoked_at: Some(facts.now), ..namesake.clone() };
        let changes = AdminKey::changes(Some(namesake), &ended);
        also.push((Thing::AdminKey(namesake.id), changes));
        writes.push(AccountWrite::UpdateAdminKey(ended));
        writes.push(AccountWrite::EndAdminCredentials(namesake.id, facts.now));
    }
    refuse_passed(key.ends_at, facts)?;
    let made = AdminKey { created_at: facts.now, revoked_at: None, ..key.clone() };
    let changes = AdminKey::changes(None, &made);
    let thing = Thing::AdminKey(made.id);
    writes.push(AccountWrite::InsertAdminKey(made));
    writes.push(AccountWrite::InsertAdminCredential(credential.clone(), facts.now));
    Ok(AccountEffect { also, ..AccountEffect::done(writes, thing, changes) })
}

fn rotate_admin_key(
    credential: &AdminCredential,
    grace: Duration,
    facts: &AccountFacts,
) -> Result<AccountEffect, AccountRefusal> {
    let before = admin_key(facts)?;
    if before.has_ended(facts.now) {
        return Err(AccountRefusal::AdminKeyEnded);
    }
    refuse_crowd(grace, facts)?;
    let others_end_at = facts.now.after(grace);
    let writes = vec![
        AccountWrite::EndAdminCredentials(before.id, others_end_at),
        AccountWrite::InsertAdminCredential(credential.clone(), facts.now),
    ];
    let changes = vec![
        FieldChange::set("credential_id", credential.id),
        FieldChange::set("others_end_at", others_end_at.as_micros()),
    ];
    Ok(AccountEffect::done(writes, Thing::AdminKey(before.id), changes))
}

fn revoke_admin_key(id: AdminKeyId, facts: &AccountFacts) -> Result<AccountEffect, AccountRefusal> {
    let before = admin_key(facts)?;
    let thing = Thing::AdminKey(id);
    if before.revoked_at.is_some() {
        return Ok(AccountEffect::done(Vec::new(), thing, Vec::new()));
    }
    // An owner's key without an end is followed by another one without: those that have an end go by
    // themselves, and then nobody could issue a key.
    let others =
        if before.ends_at.is_none() { facts.other_lasting_owners } else { facts.other_owners };
    if before.role == Role::Owner && !before.has_ended(facts.now) && others == 0 {
        return Err(AccountRefusal::LastOwner);
    }
    let after = AdminKey { revoked_at: Some(facts.now), ..before.clone() };
    let changes = AdminKey::changes(Some(before), &after);
    let writes =
        vec![AccountWrite::UpdateAdminKey(after), AccountWrite::EndAdminCredentials(id, facts.now)];
    Ok(AccountEffect::done(writes, thing, changes))
}

#[cfg(test)]
mod tests;
