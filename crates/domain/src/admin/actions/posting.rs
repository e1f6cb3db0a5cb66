//! The judgement of postings.

use super::event::{deposit_conflict, posted};
use super::{AccountCommand, refuse_lost};
use crate::admin::field_change::{FieldChange, differences};
use crate::admin::{
    AccountEffect, AccountRefusal, AccountWrite, DepositReference, Facts, KnownPosting, NewPosting,
    RefundableOperation, Rejection, ResourceId, UseCase, WalletRecord,
};
use crate::ledger::{Posting, PostingKind};
use crate::{Micros, Timestamp};

/// Facts of a posting.
#[derive(Debug, Default)]
struct PostingFacts {
    /// Posting of the same id.
    known: Option<KnownPosting>,
    wallet: Option<WalletRecord>,
    /// Deposit of the same reference.
    referenced: Option<Posting>,
    /// Operation of a refund.
    operation: Option<RefundableOperation>,
    /// The actor's refunds of this day, if an allowance bounds them.
    refunded_today: Option<Micros>,
}

pub(super) const fn use_case(new: &NewPosting) -> UseCase {
    match new.posting.kind {
        PostingKind::Deposit => UseCase::PostingDeposit,
        PostingKind::Refund(_) => UseCase::PostingRefund,
        PostingKind::Adjustment(_) => UseCase::PostingAdjust,
    }
}

pub(super) async fn decide<F: Facts>(
    new: &NewPosting,
    command: &AccountCommand,
    facts: &mut F,
) -> Result<AccountEffect, F::Error> {
    let (now, wallet) = (facts.now(), new.posting.wallet);
    let read = PostingFacts {
        known: facts.posting(new).await?,
        wallet: facts.wallet(wallet).await?,
        referenced: facts.referenced(new).await?,
        // After the lock of the wallet that paid: no other refund comes between.
        operation: match new.posting.kind {
            PostingKind::Refund(operation) => facts.refundable(operation).await?,
            PostingKind::Deposit | PostingKind::Adjustment(_) => None,
        },
        refunded_today: match new.allowance {
            Some(_) => Some(facts.refunded_today(wallet).await?),
            None => None,
        },
    };
    if read.known.is_none() && read.referenced.is_none() {
        refuse_lost(command, facts).await?;
    }
    Ok(post(new, &read, now)?)
}

/// Judges a posting: its id first, then its currency and its reference, then the money. What it may be spelled
/// like comes after its reference: a payment that was booked before the rule is answered, under any request key.
fn post(
    new: &NewPosting,
    facts: &PostingFacts,
    now: Timestamp,
) -> Result<AccountEffect, Rejection> {
    let posting = &new.posting;
    if let Some(known) = &facts.known {
        // All that was asked, the reference too: one that is not compared would pass for booked.
        return if known.is_all_of(new) && refuse_currency(new, facts).is_ok() {
            Ok(AccountEffect::already_done(ResourceId::Posting(known.posting.id)))
        } else {
            Err(AccountRefusal::PostingConflict(known.posting.clone()).into())
        };
    }
    refuse_currency(new, facts)?;
    if let Some(known) = &facts.referenced {
        let agrees = known.wallet == posting.wallet && known.amount == posting.amount;
        return if agrees {
            Ok(AccountEffect::already_done(ResourceId::Posting(known.id)))
        } else {
            let refusal = AccountRefusal::ExternalReferenceConflict(known.id);
            Err(Rejection { refusal, event: deposit_conflict(new, known).map(Box::new) })
        };
    }
    let reference = new.details.reference.as_ref();
    if let Some(field) = reference.and_then(DepositReference::unbookable) {
        return Err(AccountRefusal::ReferenceNotAscii(field).into());
    }
    let wallet = facts.wallet.as_ref().ok_or(AccountRefusal::NoWallet)?;
    wallet.refuse_closed()?;
    if let PostingKind::Refund(_) = posting.kind {
        refuse_overrefund(posting, facts)?;
    }
    if let Some(allowance) = new.allowance {
        // Read after the head's lock: no other refund of the actor comes between. Unread, nothing is left.
        let refunded = facts.refunded_today.unwrap_or(allowance);
        let left = allowance.minus(refunded).unwrap_or(Micros::ZERO).max(Micros::ZERO);
        if posting.amount > left {
            return Err(AccountRefusal::AllowanceSpent { allowance, left }.into());
        }
    }
    let writes = vec![
        AccountWrite::SetAvailable(posting.wallet, available_after(wallet, posting.amount)?),
        AccountWrite::InsertPosting(new.clone(), now),
    ];
    let effect = AccountEffect::done(writes, ResourceId::Posting(posting.id), changes(new));
    Ok(AccountEffect { events: posted(new, wallet, facts.operation), ..effect })
}

/// Refuses an amount in another currency than the wallet's. Its reference does not matter: it is not the payment that
/// was booked under it.
fn refuse_currency(new: &NewPosting, facts: &PostingFacts) -> Result<(), AccountRefusal> {
    let wallet = facts.wallet.as_ref().map(|wallet| wallet.wallet.currency);
    match (new.currency, wallet) {
        (Some(named), Some(wallet)) if named != wallet => {
            Err(AccountRefusal::CurrencyMismatch { wallet, named })
        }
        (Some(_) | None, Some(_) | None) => Ok(()),
    }
}

/// Judged before the wallet's room, so that the two refusals are distinct.
fn refuse_overrefund(posting: &Posting, facts: &PostingFacts) -> Result<(), AccountRefusal> {
    let operation = facts.operation.as_ref().ok_or(AccountRefusal::NoOperation)?;
    let charge = operation.charge.ok_or(AccountRefusal::NothingCharged)?;
    // The store has read both under the lock of the wallet that paid, which every refund takes.
    let left = charge.minus(operation.refunded).unwrap_or(Micros::ZERO);
    if posting.wallet != operation.wallet {
        return Err(AccountRefusal::NoOperation);
    }
    if posting.amount > left {
        return Err(AccountRefusal::RefundTooLarge { charge, left });
    }
    Ok(())
}

fn available_after(wallet: &WalletRecord, amount: Micros) -> Result<Micros, AccountRefusal> {
    let available = wallet.wallet.available;
    let after = available.plus(amount).ok_or(AccountRefusal::WalletFull)?;
    if after < Micros::ZERO {
        return Err(AccountRefusal::InsufficientFunds { available });
    }
    // Both amounts of a wallet fit one number, or its statement could not be added up.
    let whole = after.plus(wallet.wallet.held).ok_or(AccountRefusal::WalletFull)?;
    // What takes from a wallet that has more, from before the bound, brings it nearer.
    if amount > Micros::ZERO && whole > Micros::BALANCE_MAX {
        return Err(AccountRefusal::WalletFull);
    }
    if amount.get().unsigned_abs() > Micros::POSTING_MAX.get().unsigned_abs() {
        return Err(AccountRefusal::PostingTooLarge);
    }
    Ok(after)
}

/// Fields that the trail has of a posting.
fn changes(new: &NewPosting) -> Vec<FieldChange> {
    let NewPosting { posting, details, .. } = new;
    let fields = posting.trail_fields().into_iter().chain(details.trail_fields(posting)).collect();
    differences(None, fields)
}

#[cfg(test)]
mod tests;
