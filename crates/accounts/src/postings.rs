//! Postings: deposits, adjustments and refunds.
//!
//! The id of a posting is its request key. So the same request through any interface, under any key of any principal,
//! is the same posting: a payment is credited once, even if its sender has changed its admin key since. The same id
//! with other contents is a conflict, and is answered with the posting that has it, if its wallet is in reach.
//!
//! Amounts, balances and the allowance of support are judged in the transaction that writes, after the request key
//! was found free: a repetition is answered even if a limit has changed since.
//!
//! Never in here: a change of a balance without a posting, or a name of an operator's actor for a holder.

use holdfast_domain::admin::listing::{Page, PageRequest, PostingFilter, PostingListing};
use holdfast_domain::admin::{
    AccountAction, AccountRefusal, NewPosting, PostingDetails, ResourceId, Role, UseCase,
    WalletRecord,
};
use holdfast_domain::ledger::{BadPosting, Posting, PostingKind};
use holdfast_domain::operation::Operation;
use holdfast_domain::{Currency, Micros, OperationId, PostingId, WalletId};
use metrics::counter;

use crate::{
    Accounts, AccountsError, Outcome, Principal, Reason, Reference, Request, ResourceKind, Result,
};

/// Begun with the other money of a model, by the engine.
const REFUNDS: &str = "holdfast_refund_micros_total";

/// A posting with the details beyond its money, and the current state of the wallet that it moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostingRecord {
    /// The posting. Its actor is hidden from principals that see only one wallet: people and keys of all
    /// wallets are the operator's.
    pub listing: PostingListing,
    /// The wallet.
    pub wallet: WalletRecord,
}

/// A posting to be made: its amount, and its details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostingOrder {
    /// Amount; of an adjustment it may be negative.
    pub amount: Micros,
    /// Currency of the amount; `None` if the order has none.
    pub currency: Option<Currency>,
    /// Reference and note.
    pub details: PostingDetails,
}

impl Accounts {
    /// Adds funds.
    pub async fn deposit(
        &self,
        principal: &Principal,
        request: &Request,
        wallet: &Reference,
        order: PostingOrder,
    ) -> Result<Outcome<PostingRecord>> {
        principal.authorize(UseCase::PostingDeposit)?;
        let wallet = self.reachable_wallet(principal, wallet).await?;
        let posting = posting(request, wallet.wallet.id, PostingKind::Deposit, order.amount)?;
        let new = NewPosting {
            posting,
            details: order.details,
            allowance: None,
            currency: order.currency,
        };
        self.post(principal, request, new).await
    }

    /// Gives to or takes from what is available, for a reason.
    pub async fn adjust(
        &self,
        principal: &Principal,
        request: &Request,
        wallet: &Reference,
        order: PostingOrder,
    ) -> Result<Outcome<PostingRecord>> {
        principal.authorize(UseCase::PostingAdjust)?;
        Self::want_reason(UseCase::PostingAdjust, request)?;
        let wallet = self.reachable_wallet(principal, wallet).await?;
        let reason = request.reason.as_ref().map_or("", Reason::as_str).to_owned();
        let kind = PostingKind::Adjustment(reason);
        let posting = posting(request, wallet.wallet.id, kind, order.amount)?;
        let new = NewPosting {
            posting,
            details: order.details,
            allowance: None,
            currency: order.currency,
        };
        self.post(principal, request, new).await
    }

    /// Gives back a part of what an operation was charged, to the wallet that paid.
    pub async fn refund(
        &self,
        principal: &Principal,
        request: &Request,
        operation: OperationId,
        order: PostingOrder,
    ) -> Result<Outcome<PostingRecord>> {
        principal.authorize(UseCase::PostingRefund)?;
        let missing = || AccountsError::NotFound(ResourceKind::Operation);
        let found = self.book.load(operation).await?.operation.ok_or_else(missing)?;
        principal.reach(found.wallet, ResourceKind::Operation)?;
        let posting = posting(request, found.wallet, PostingKind::Refund(operation), order.amount)?;
        // Judged with the command, unset ones too: a repetition is answered even if the setting has changed
        // since.
        let allowance = (principal.role == Role::Support).then(|| {
            let allowances = &self.support_refunds;
            allowances.get(&found.price.currency).copied().unwrap_or(Micros::ZERO)
        });
        let new =
            NewPosting { posting, details: order.details, allowance, currency: order.currency };
        let refunded = self.post(principal, request, new).await?;
        // Once per refund: counted for a repetition too, the metric would exceed the ledger.
        if !refunded.replayed && !request.dry_run {
            count_refund(&found, order.amount);
        }
        Ok(refunded)
    }

    /// The posting of this id.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`], for one of a wallet that is out of reach too.
    pub async fn posting(&self, principal: &Principal, id: PostingId) -> Result<PostingRecord> {
        let listing = self.posting_listing(principal, id).await?;
        let wallet = self.book.wallet_record(listing.posting.wallet).await?;
        let wallet = wallet.ok_or(AccountsError::NotFound(ResourceKind::Posting))?;
        Ok(PostingRecord { listing, wallet })
    }

    /// The posting of this id, with the details beyond its money.
    ///
    /// # Errors
    ///
    /// [`AccountsError::NotFound`], for one of a wallet that is out of reach too.
    pub async fn posting_listing(
        &self,
        principal: &Principal,
        id: PostingId,
    ) -> Result<PostingListing> {
        principal.authorize(UseCase::PostingRead)?;
        let missing = || AccountsError::NotFound(ResourceKind::Posting);
        let listing = self.book.posting_listing(id).await?.ok_or_else(missing)?;
        principal.reach(listing.posting.wallet, ResourceKind::Posting)?;
        Ok(seen_posting(principal, listing))
    }

    /// Postings of one kind, a page at a time.
    pub async fn postings(
        &self,
        principal: &Principal,
        filter: PostingFilter,
        page: PageRequest,
    ) -> Result<Page<PostingListing>> {
        principal.authorize(UseCase::PostingRead)?;
        let wallet = match (principal.only_wallet(), filter.wallet) {
            (Some(own), Some(requested)) if own != requested => {
                return Ok(Page::empty());
            }
            (own, requested) => own.or(requested),
        };
        let found = self.book.postings(PostingFilter { wallet, ..filter }, page).await?;
        Ok(found.map(|row| seen_posting(principal, row)))
    }

    async fn post(
        &self,
        principal: &Principal,
        request: &Request,
        new: NewPosting,
    ) -> Result<Outcome<PostingRecord>> {
        let offered = new.clone();
        let done = match self.change(principal, request, AccountAction::Post(new)).await {
            // The request key is the posting's id: the posting found is more precise than the conflict.
            Err(AccountsError::Refused(AccountRefusal::RequestKeyConflict)) => {
                let known = self.book.posting(offered.posting.id).await?;
                // The ids of all wallets are in one space: beyond the reach only the conflict is
                // shown, never another customer's payment.
                let known = known.filter(|known| principal.reach.covers(known.wallet));
                let conflict = AccountRefusal::RequestKeyConflict;
                let refusal = known.map_or(conflict, AccountRefusal::PostingConflict);
                return Err(AccountsError::Refused(refusal));
            }
            done => done?,
        };
        let missing = || AccountsError::NotFound(ResourceKind::Posting);
        let id =
            |thing: &ResourceId| if let ResourceId::Posting(id) = thing { Some(*id) } else { None };
        let id = done.things.iter().find_map(id);
        let listing = match self.book.posting_listing(id.ok_or_else(missing)?).await? {
            Some(listing) => listing,
            // Judged, and not made.
            None => PostingListing {
                posting: offered.posting,
                details: offered.details,
                actor: Some(principal.actor),
                created_at: done.at,
            },
        };
        let wallet = self.book.wallet_record(listing.posting.wallet).await?.ok_or_else(missing)?;
        let thing = PostingRecord { listing: seen_posting(principal, listing), wallet };
        Ok(Outcome { thing, replayed: done.replayed })
    }
}

/// A posting as far as this principal sees it.
fn seen_posting(principal: &Principal, listing: PostingListing) -> PostingListing {
    let actor = listing.actor.filter(|_| principal.only_wallet().is_none());
    PostingListing { actor, ..listing }
}

/// Counts a refund by the currency and the model of its operation.
fn count_refund(operation: &Operation, amount: Micros) {
    let currency = operation.price.currency.to_string();
    let labels = [("currency", currency), ("model", operation.model.to_string())];
    // A refund is always positive.
    counter!(REFUNDS, &labels).increment(u64::try_from(amount.get()).unwrap_or(0));
}

fn posting(
    request: &Request,
    wallet: WalletId,
    kind: PostingKind,
    amount: Micros,
) -> Result<Posting> {
    // One id for one request key on all interfaces: a payment that was credited over HTTP and is
    // repeated at the command line is the same posting.
    let id = PostingId::from_bytes(request.key.to_bytes());
    Posting::new(id, wallet, kind, amount).map_err(|BadPosting| AccountsError::Invalid {
        field: "amount_micros",
        message: "a deposit or refund is above zero, and an adjustment is not zero".to_owned(),
    })
}
