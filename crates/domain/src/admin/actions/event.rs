//! Events of commands, as the judgement of an action adds them to its effect.
//!
//! | action | event |
//! |---|---|
//! | deposit, adjustment | `wallet.credited`, `wallet.debited`; `wallet.low` if it took the wallet below its threshold |
//! | refund | `operation.refunded` |
//! | wallet suspended, resumed | the event of that name |
//! | wallet closed | `wallet.closed`, and `api_key.revoked` for each key that is revoked with it |
//! | API keys issued; one rotated, suspended, resumed, revoked | `api_key.…`, one for each key |
//! | deposit that is refused for its reference | `deposit.conflict`, once for a reference |
//!
//! A command that an earlier one has done, or that makes no difference, has no writes and so no event. A
//! receiver that keeps keys in step by their events needs no rule of its own for a closed wallet.
//!
//! Never in here: data that only the audit log may have (the actor, a digest), or a secret.

use super::AccountCommand;
use crate::admin::event::{EventData, EventKind, LowBalance, NewEvent};
use crate::admin::{NewPosting, RefundableOperation, WalletRecord};
use crate::credential::ApiKey;
use crate::ledger::{Posting, PostingKind};
use crate::{EventId, Micros, WalletId};

/// Event of a refusal: the only one without a change. A payment that is sent again with another amount or for
/// another wallet is a mistake outside, which no other part sees.
pub(super) fn deposit_conflict(new: &NewPosting, known: &Posting) -> Option<NewEvent> {
    let reference = new.details.reference.as_ref()?;
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

pub(super) fn wallet_event(
    command: &AccountCommand,
    kind: EventKind,
    wallet: &WalletRecord,
) -> NewEvent {
    let id = wallet.wallet.id;
    let data = EventData::default()
        .text("wallet_id", id)
        .text("name", &wallet.wallet.name)
        .opt_text("external_id", wallet.external_id.as_ref())
        .opt_text("reason", command.reason.as_ref());
    event(command, kind, (id, id.to_bytes()), data)
}

pub(super) fn api_key_event(command: &AccountCommand, kind: EventKind, key: &ApiKey) -> NewEvent {
    let data = EventData::default()
        .text("api_key_id", key.id)
        .text("wallet_id", key.wallet)
        .text("name", &key.name)
        .opt_text("external_id", key.external_id.as_ref())
        .opt_text("reason", command.reason.as_ref());
    event(command, kind, (key.wallet, key.id.to_bytes()), data)
}

/// Event of a resource of this wallet. A command is done once, and makes one change of a kind to each.
fn event(
    command: &AccountCommand,
    kind: EventKind,
    (wallet, thing): (WalletId, [u8; 16]),
    data: EventData,
) -> NewEvent {
    let actor = command.actor.to_string();
    // A repeated command is one event; one over several keys has an event for each.
    let parts = [actor.as_bytes(), &command.request.key.to_bytes(), &thing];
    NewEvent { id: EventId::of(kind.label(), &parts), kind, wallet: Some(wallet), data: data.0 }
}

/// Events of a posting that was made, with the wallet as it was before.
pub(super) fn posted(
    new: &NewPosting,
    before: &WalletRecord,
    refunded: Option<RefundableOperation>,
) -> Vec<NewEvent> {
    let (posting, wallet) = (&new.posting, &before.wallet);
    // A sum that does not fit was refused before, so the fallback is in no event.
    let after = wallet.available.plus(posting.amount).unwrap_or(Micros::MAX);
    let (kind, data) = match &posting.kind {
        PostingKind::Refund(operation) => {
            let refunded = refunded.map_or(Micros::ZERO, |operation| operation.refunded);
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
    let moved = NewEvent { id, kind, wallet: Some(wallet.id), data: data.0 };
    let low = before.low_balance.and_then(|threshold| {
        let low = LowBalance { wallet: wallet.id, available: after, held: wallet.held, threshold };
        low.event([wallet.available, wallet.held], posting.id.to_bytes())
    });
    std::iter::once(moved).chain(low).collect()
}
