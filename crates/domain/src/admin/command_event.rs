//! Events of commands: a pure function of the command, what it was judged by, and what came of it.
//!
//! | action | event |
//! |---|---|
//! | deposit, adjustment | `wallet.credited`, `wallet.debited`; `wallet.low` where it took the wallet below its threshold |
//! | refund | `operation.refunded` |
//! | wallet suspended, resumed | the event of that name |
//! | wallet closed | `wallet.closed`, and `api_key.revoked` for each key that is revoked with it |
//! | API keys issued; one rotated, suspended, resumed, revoked | `api_key.…`, one for each key |
//! | deposit that is refused for its reference | `deposit.conflict`, once for a reference |
//!
//! A command that an earlier one has done, or that changes nothing, has no writes and so no event. A
//! receiver that keeps keys in step by their events needs no rule of its own for a closed wallet.
//!
//! Never in here: what only the trail may tell (the actor, a digest), or a secret.

use super::command::{AccountAction, AccountCommand, AccountEffect, AccountFacts, AccountWrite};
use super::posting::NewPosting;
use super::refusal::AccountRefusal;
use super::wallet::WalletRecord;
use crate::admin::event::{EventData, EventKind, LowBalance, NewEvent};
use crate::credential::ApiKey;
use crate::ledger::PostingKind;
use crate::{EventId, Micros, WalletId};

/// Events of a command that has this effect.
#[must_use]
pub fn events(
    command: &AccountCommand,
    facts: &AccountFacts,
    effect: &AccountEffect,
) -> Vec<NewEvent> {
    use AccountAction as Action;
    // Nothing is written: an earlier command has told it, or there is nothing to tell.
    if effect.writes.is_empty() {
        return Vec::new();
    }
    let of_wallet = |kind| facts.wallet.iter().map(|it| wallet_event(command, kind, it)).collect();
    let of_key = |kind| facts.api_key.iter().map(|it| api_key_event(command, kind, it)).collect();
    match &command.action {
        Action::SuspendWallet(_) => of_wallet(EventKind::WalletSuspended),
        Action::ResumeWallet(_) => of_wallet(EventKind::WalletResumed),
        Action::CloseWallet(_) => {
            let closed =
                facts.wallet.iter().map(|it| wallet_event(command, EventKind::WalletClosed, it));
            let revoked = EventKind::ApiKeyRevoked;
            let revoked = facts.api_keys.iter().map(|it| api_key_event(command, revoked, it));
            closed.chain(revoked).collect()
        }
        Action::Post(new) => facts.wallet.iter().flat_map(|it| posted(new, it, facts)).collect(),
        Action::IssueApiKeys { .. } => {
            let issued = effect.writes.iter().filter_map(|write| match write {
                AccountWrite::InsertApiKey(key) => Some(key),
                AccountWrite::InsertWallet(_)
                | AccountWrite::UpdateWallet(_)
                | AccountWrite::SetAvailable(..)
                | AccountWrite::InsertPosting(..)
                | AccountWrite::UpdateApiKey(_)
                | AccountWrite::SeedCounters(..)
                | AccountWrite::RevokeApiKeysOf(..)
                | AccountWrite::InsertCredential(..)
                | AccountWrite::EndCredentials(..)
                | AccountWrite::InsertAdminKey(_)
                | AccountWrite::UpdateAdminKey(_)
                | AccountWrite::InsertAdminCredential(..)
                | AccountWrite::EndAdminCredentials(..)
                | AccountWrite::Person(_)
                | AccountWrite::Webhook(_)
                | AccountWrite::QueueJob(..)
                | AccountWrite::CancelJob(..) => None,
            });
            issued.map(|key| api_key_event(command, EventKind::ApiKeyIssued, key)).collect()
        }
        Action::RotateApiKey { .. } => of_key(EventKind::ApiKeyRotated),
        Action::SuspendApiKey(_) => of_key(EventKind::ApiKeySuspended),
        Action::ResumeApiKey(_) => of_key(EventKind::ApiKeyResumed),
        Action::RevokeApiKey(_) => of_key(EventKind::ApiKeyRevoked),
        // Of an operation its own transition tells, whoever asked for it.
        Action::CreateWallet(_)
        | Action::EditWallet { .. }
        | Action::EditApiKey { .. }
        | Action::AskOperation { .. }
        | Action::IssueAdminKey(..)
        | Action::RotateAdminKey { .. }
        | Action::RevokeAdminKey(_)
        | Action::StartJob { .. }
        | Action::CancelJob(_)
        | Action::ExcludeCosts { .. }
        | Action::NoteRead(..)
        | Action::NoteFailedSignIns { .. }
        | Action::Person(_)
        | Action::Webhook(_) => Vec::new(),
    }
}

/// Event of a refusal: the one thing that is told although it did not happen. A payment that is sent
/// again with another amount or for another wallet is a mistake outside, which nobody else sees.
#[must_use]
pub fn refusal_event(
    command: &AccountCommand,
    facts: &AccountFacts,
    refusal: &AccountRefusal,
) -> Option<NewEvent> {
    let (AccountRefusal::ExternalReferenceConflict(_), AccountAction::Post(new)) =
        (refusal, &command.action)
    else {
        return None;
    };
    let (known, reference) = (facts.referenced.as_ref()?, new.details.reference.as_ref()?);
    let data = EventData::default()
        .text("source", &reference.source)
        .text("external_reference", &reference.external_reference)
        .text("deposit_id", known.id)
        .text("deposit_wallet_id", known.wallet)
        .micros("deposit_amount_micros", known.amount)
        .text("wallet_id", new.posting.wallet)
        .micros("amount_micros", new.posting.amount);
    let parts = [reference.source.as_bytes(), reference.external_reference.as_bytes()];
    let kind = EventKind::DepositConflict;
    // The operator's alone: the two wallets may be of two holders.
    Some(NewEvent { id: EventId::of(kind.label(), &parts), kind, wallet: None, data: data.0 })
}

fn wallet_event(command: &AccountCommand, kind: EventKind, wallet: &WalletRecord) -> NewEvent {
    let id = wallet.wallet.id;
    let data = EventData::default()
        .text("wallet_id", id)
        .text("name", &wallet.wallet.name)
        .opt_text("external_id", wallet.external_id.as_ref())
        .opt_text("reason", command.reason.as_ref());
    event(command, kind, (id, id.to_bytes()), data)
}

fn api_key_event(command: &AccountCommand, kind: EventKind, key: &ApiKey) -> NewEvent {
    let data = EventData::default()
        .text("api_key_id", key.id)
        .text("wallet_id", key.wallet)
        .text("name", &key.name)
        .opt_text("external_id", key.external_id.as_ref())
        .opt_text("reason", command.reason.as_ref());
    event(command, kind, (key.wallet, key.id.to_bytes()), data)
}

/// Event of a thing of this wallet. A command is done once, and does one thing of a kind to each.
fn event(
    command: &AccountCommand,
    kind: EventKind,
    (wallet, thing): (WalletId, [u8; 16]),
    data: EventData,
) -> NewEvent {
    let actor = command.actor.to_string();
    let parts = [actor.as_bytes(), &command.request.key.to_bytes(), &thing];
    NewEvent { id: EventId::of(kind.label(), &parts), kind, wallet: Some(wallet), data: data.0 }
}

/// Events of a posting that was made, with the wallet as it was before.
fn posted(new: &NewPosting, before: &WalletRecord, facts: &AccountFacts) -> Vec<NewEvent> {
    let (posting, wallet) = (&new.posting, &before.wallet);
    let after = wallet.available.plus(posting.amount).unwrap_or(Micros::MAX);
    let (kind, data) = match &posting.kind {
        PostingKind::Refund(operation) => {
            let refunded = facts.operation.map_or(Micros::ZERO, |operation| operation.refunded);
            let data = EventData::default()
                .text("operation_id", operation)
                .text("wallet_id", wallet.id)
                .text("posting_id", posting.id)
                .micros("amount_micros", posting.amount)
                .micros("refunded_micros", refunded.plus(posting.amount).unwrap_or(Micros::MAX))
                .micros("available_micros", after)
                .micros("held_micros", wallet.held)
                .text("currency", wallet.currency)
                .opt_text("reason", new.details.reason.as_ref());
            (EventKind::OperationRefunded, data)
        }
        PostingKind::Deposit | PostingKind::Adjustment(_) => {
            let reference = new.details.reference.as_ref();
            let reason = match &posting.kind {
                PostingKind::Adjustment(reason) => Some(reason),
                PostingKind::Deposit | PostingKind::Refund(_) => new.details.reason.as_ref(),
            };
            let data = EventData::default()
                .text("wallet_id", wallet.id)
                .text("posting_id", posting.id)
                .text("kind", posting.kind.label())
                .micros("amount_micros", posting.amount)
                .micros("available_micros", after)
                .micros("held_micros", wallet.held)
                .text("currency", wallet.currency)
                .opt_text("source", reference.map(|reference| &reference.source))
                .opt_text("external_reference", reference.map(|it| &it.external_reference))
                .opt_text("reason", reason);
            let is_added = posting.amount > Micros::ZERO;
            (if is_added { EventKind::WalletCredited } else { EventKind::WalletDebited }, data)
        }
    };
    // A posting is made once, whoever asks for it: its id tells its events from all others.
    let id = EventId::of(kind.label(), &[&posting.id.to_bytes()]);
    let told = NewEvent { id, kind, wallet: Some(wallet.id), data: data.0 };
    let low = before.low_balance.and_then(|threshold| {
        let low = LowBalance { wallet: wallet.id, available: after, held: wallet.held, threshold };
        low.event([wallet.available, wallet.held], posting.id.to_bytes())
    });
    std::iter::once(told).chain(low).collect()
}
