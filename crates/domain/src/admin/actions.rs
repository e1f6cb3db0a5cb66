//! Actions of administration by family, and their judgement.
//!
//! A family is one file: its actions, the facts that each needs, and what follows. `row` and `decide` are its two lists;
//! those of this file only name the families.
//!
//! Order of a judgement: the request key first ([`replay`]), then the existence of the resource, then edits in
//! the meantime, then names, and then the rules of the resource itself. So a repetition is answered even if the
//! resource has changed since, and a refusal names the first cause that its sender can correct. Rules that time
//! or a setting changes are judged here for that reason: ends that pass, bounds that an operator moves.
//!
//! A change without a difference is done, with no write and no row of the audit log. Never in here: a clock or
//! a store but for [`Facts`], which are read before the judgement.

pub(super) mod admin_key;
pub(super) mod api_key;
pub(super) mod command;
mod event;
pub(super) mod job;
pub(super) mod note;
pub(super) mod person;
pub(super) mod posting;
pub(super) mod wallet;
pub(super) mod webhook;

use std::time::Duration;

use self::admin_key::AdminKeyAction;
use self::api_key::ApiKeyAction;
use self::command::{AccountCommand, RequestRecord};
use self::job::JobAction;
use self::note::Note;
use self::person::PersonAction;
use self::wallet::WalletAction;
use self::webhook::WebhookAction;
use super::{
    AccountEffect, AccountReceipt, AccountRefusal, BoundedKind, Facts, NewPosting, PersonRecord,
    ResourceId, UseCase,
};
use crate::Timestamp;
use crate::credential::CREDENTIALS_MAX;

/// Change that a command makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccountAction {
    /// A change of a wallet.
    Wallet(WalletAction),
    /// A change of API keys.
    ApiKey(ApiKeyAction),
    /// Money that no operation moves.
    Post(NewPosting),
    /// A change of a job.
    Job(JobAction),
    /// Only a row of the audit log.
    Note(Note),
    /// A change of an admin key.
    AdminKey(AdminKeyAction),
    /// A change of a person.
    Person(PersonAction),
    /// A change of a webhook.
    Webhook(WebhookAction),
}

/// New resource or secret of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Creation {
    /// No resource.
    Nothing,
    /// A resource whose id no other actor has chosen.
    Resource(ResourceId),
    /// A credential of a key, or a link of a person, that existed before: another offer may have made another one.
    Secret,
}

impl AccountAction {
    /// Use case of the action, and what it makes.
    #[must_use]
    pub fn row(&self) -> (UseCase, Creation) {
        match self {
            Self::Wallet(action) => action.row(),
            Self::ApiKey(action) => action.row(),
            Self::Post(new) => (posting::use_case(new), Creation::Nothing),
            Self::Job(action) => action.row(),
            Self::Note(note) => (note.use_case, Creation::Nothing),
            Self::AdminKey(action) => action.row(),
            Self::Person(action) => action.row(),
            Self::Webhook(action) => action.row(),
        }
    }
}

/// Answers a command whose request key is bound already. `person` is the one that it has invited.
///
/// # Errors
///
/// [`AccountRefusal::RequestKeyConflict`] if it is bound to another request, and
/// [`AccountRefusal::PersonEnded`] if the person that it has invited is unknown by now.
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
/// [`Facts::Error`]: a [`Rejection`](crate::admin::Rejection), of which only the event may be written, or the failure
/// of a read.
pub async fn decide<F: Facts>(
    command: &AccountCommand,
    facts: &mut F,
) -> Result<AccountEffect, F::Error> {
    match &command.action {
        AccountAction::Wallet(action) => action.decide(command, facts).await,
        AccountAction::ApiKey(action) => action.decide(command, facts).await,
        AccountAction::Post(new) => posting::decide(new, command, facts).await,
        AccountAction::Job(action) => action.decide(facts).await,
        AccountAction::Note(note) => Ok(note.effect()),
        AccountAction::AdminKey(action) => action.decide(command, facts).await,
        AccountAction::Person(action) => action.decide(command, facts).await,
        AccountAction::Webhook(action) => action.decide(command, facts).await,
    }
}

/// Refuses a request that may have been done before a restore and is lost: a repetition would book money or issue keys
/// once more.
async fn refuse_lost<F: Facts>(command: &AccountCommand, facts: &mut F) -> Result<(), F::Error> {
    if command.is_after_restore {
        return Ok(());
    }
    match facts.unknown_until().await? {
        Some(until) => Err(AccountRefusal::LedgerRestored { until }.into()),
        None => Ok(()),
    }
}

/// Refuses an edit of a resource that has changed since its actor saw it.
fn expect(expected: Option<u32>, edited: u32) -> Result<(), AccountRefusal> {
    match expected {
        Some(expected) if expected != edited => Err(AccountRefusal::EditConflict { edited }),
        Some(_) | None => Ok(()),
    }
}

/// Refuses an end in the past. Judged here and not by its reader: a repetition that comes after the end is
/// answered from its request key.
fn refuse_passed(ends_at: Option<Timestamp>, now: Timestamp) -> Result<(), AccountRefusal> {
    if ends_at.is_some_and(|end| end <= now) { Err(AccountRefusal::EndPassed) } else { Ok(()) }
}

/// Refuses so many new resources of a kind if the wallet would have more in force than the bound.
fn refuse_more(
    kind: BoundedKind,
    new: usize,
    bound: u32,
    in_force: u32,
) -> Result<(), AccountRefusal> {
    let new = u32::try_from(new).unwrap_or(u32::MAX);
    if in_force.saturating_add(new) > bound {
        return Err(AccountRefusal::BoundReached { kind, bound });
    }
    Ok(())
}

/// Refuses a further credential beside those in force. Without a grace those end, and there is room.
fn refuse_crowd(grace: Duration, credentials: u32) -> Result<(), AccountRefusal> {
    if !grace.is_zero() && credentials >= CREDENTIALS_MAX {
        return Err(AccountRefusal::TooManyCredentials);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
