//! `/deposits`, `/adjustments`, `/refunds`: money that no operation moves.
//!
//! The id of a posting is its `Idempotency-Key`, for every sender: on every interface, with any admin key, the same
//! key is the same posting. A deposit has a second permanent key, its source with its external reference: a payment
//! from outside is booked once, under any key.
//!
//! Amounts are integer micros. Handlers make no decision: bounds of balances and charges are judged in the
//! transaction that moves the money.

use holdfast_accounts::{
    ExternalId, Note, Outcome, PostingOrder, PostingRecord, Reference, Request, Source,
};
use holdfast_domain::admin::listing::{PostingFilter, PostingList, PostingListing};
use holdfast_domain::admin::{DepositReference, PostingDetails};
use holdfast_domain::ledger::PostingKind;
use holdfast_domain::{Currency, Micros, OperationId, WalletId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ChangeOutcome, Rehearsal, Reply};
use crate::description::{
    AdjustmentPath, AfterRestore, ChangeHeader, DepositPath, DryRun, Errors, RefundPath,
};
use crate::error::{Code, Problem};
use crate::page::{List, ListPages, ListParams, PageQuery};
use crate::request::{Caller, Change, ChangeBody};
use crate::value::schema::{CurrencyText, NoteText, PaymentReferenceText, ReasonText, SourceText};
use crate::value::{Moment, parse, parse_some};
use crate::wallets::WalletView;

/// A deposit, an adjustment or a refund.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Posting)]
pub(crate) struct PostingView {
    #[serde(flatten)]
    posting: PostingRowView,
    /// The wallet after the posting.
    wallet: WalletView,
}

impl From<PostingRecord> for PostingView {
    fn from(PostingRecord { listing, wallet }: PostingRecord) -> Self {
        Self { posting: listing.into(), wallet: wallet.into() }
    }
}

/// A posting with its details besides the money.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ListedPosting)]
pub(crate) struct PostingRowView {
    /// The `Idempotency-Key` of its request.
    #[schema(format = "uuid")]
    id: String,
    kind: String,
    #[schema(format = "uuid")]
    wallet_id: String,
    /// Amount that was added, or, below zero, taken.
    amount_micros: i64,
    /// Operation that was refunded.
    #[schema(format = "uuid")]
    operation_id: Option<String>,
    reason: Option<String>,
    note: Option<String>,
    /// System that a deposit's payment came through.
    source: Option<String>,
    /// Id of the payment there.
    external_reference: Option<String>,
    /// Actor, as in the audit log: `local`, `admin_key:<id>` or `person:<id>`. Null for holders, and if the audit
    /// log has no row of it.
    actor: Option<String>,
    created_at: Moment,
}

impl From<PostingListing> for PostingRowView {
    fn from(listing: PostingListing) -> Self {
        let PostingListing { posting, details, actor, created_at } = listing;
        let (operation, reason) = match posting.kind {
            PostingKind::Deposit => (None, details.reason),
            PostingKind::Refund(operation) => (Some(operation.to_string()), details.reason),
            // Its reason is part of the posting's kind, not of the details.
            PostingKind::Adjustment(ref reason) => (None, Some(reason.clone())),
        };
        let (source, external_reference) = details
            .reference
            .map(|reference| (reference.source, reference.external_reference))
            .unzip();
        Self {
            id: posting.id.to_string(),
            kind: posting.kind.label().to_owned(),
            wallet_id: posting.wallet.to_string(),
            amount_micros: posting.amount.get(),
            operation_id: operation,
            reason,
            note: details.note,
            source,
            external_reference,
            actor: actor.map(|actor| actor.to_string()),
            created_at: Moment(created_at),
        }
    }
}

/// Filter of a list of postings, and its page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PostingQuery {
    /// Postings of this wallet.
    #[param(format = "uuid")]
    wallet_id: Option<String>,
}

/// A deposit to be made.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DepositDraft {
    #[schema(format = "uuid")]
    wallet_id: String,
    #[schema(minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    amount_micros: i64,
    /// System that the payment came through, like `stripe`: 1 to 32 ASCII characters without blanks. Upper
    /// and lower case are one name.
    #[schema(value_type = SourceText)]
    source: String,
    /// Id of the payment there, unique for ever with its `source`: 1 to 128 ASCII characters without blanks.
    #[schema(value_type = PaymentReferenceText)]
    external_reference: String,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
    /// Note, like the number of an invoice: 1 to 200 printable characters.
    #[schema(value_type = Option<NoteText>)]
    note: Option<String>,
    /// Currency of the amount, which has to be the wallet's; it is not compared if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<CurrencyText>)]
    currency: Option<String>,
}

/// An adjustment to be made.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AdjustmentDraft {
    #[schema(format = "uuid")]
    wallet_id: String,
    /// Amount that is given, or, below zero, taken.
    amount_micros: i64,
    /// Reason, which is part of the posting: 1 to 200 printable characters.
    #[schema(value_type = ReasonText)]
    reason: String,
    #[schema(value_type = Option<NoteText>)]
    note: Option<String>,
    /// Currency of the amount, which has to be the wallet's; it is not compared if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<CurrencyText>)]
    currency: Option<String>,
}

/// A refund to be made.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefundDraft {
    #[schema(format = "uuid")]
    operation_id: String,
    /// Part of the operation's charge.
    #[schema(minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    amount_micros: i64,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
    #[schema(value_type = Option<NoteText>)]
    note: Option<String>,
    /// Currency of the amount, which has to be the wallet's; it is not compared if it is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<CurrencyText>)]
    currency: Option<String>,
}

impl ChangeBody for DepositDraft {
    const DRY_RUN: bool = true;
    const AFTER_RESTORE: bool = true;
}

impl ChangeBody for AdjustmentDraft {
    const DRY_RUN: bool = true;
    const AFTER_RESTORE: bool = true;
}

impl ChangeBody for RefundDraft {
    const DRY_RUN: bool = true;
    const AFTER_RESTORE: bool = true;
}

#[utoipa::path(
    post, path = "/deposits", operation_id = "create_deposit", tag = "postings",
    params(ChangeHeader, DryRun, AfterRestore), request_body = DepositDraft,
    responses(
        (status = 201, description = "The deposit.", body = PostingView),
        (status = 200, description = "What it would be.", body = Rehearsal<PostingView>),
        Errors,
    )
)]
/// Adds funds to a wallet.
pub(crate) async fn deposit(
    caller: Caller,
    Change { request, body }: Change<DepositDraft>,
) -> Reply<ChangeOutcome<PostingView>> {
    let source: Source = parse("source", &body.source)?;
    let reference: ExternalId = parse("external_reference", &body.external_reference)?;
    // As they were typed: a deposit of before the rule of normal forms is found by its own
    // spelling.
    let reference = DepositReference::new(source.as_typed(), reference.as_typed());
    let details = details(Some(reference), &request, body.note.as_deref())?;
    let wallet = wallet(&body.wallet_id)?;
    let currency: Option<Currency> = parse_some("currency", body.currency.as_deref())?;
    let order = PostingOrder { amount: Micros::new(body.amount_micros), currency, details };
    let made = caller.accounts().deposit(&caller.principal, &request, &wallet, order).await?;
    Ok(posted(&request, made))
}

#[utoipa::path(
    post, path = "/adjustments", operation_id = "create_adjustment", tag = "postings",
    params(ChangeHeader, DryRun, AfterRestore), request_body = AdjustmentDraft,
    responses(
        (status = 201, description = "The adjustment.", body = PostingView),
        (status = 200, description = "What it would be.", body = Rehearsal<PostingView>),
        Errors,
    )
)]
/// Gives to or takes from what is available, for a reason.
pub(crate) async fn adjust(
    caller: Caller,
    Change { request, body }: Change<AdjustmentDraft>,
) -> Reply<ChangeOutcome<PostingView>> {
    // Its reason is part of the posting's kind, not of the details.
    let details = PostingDetails { reason: None, ..details(None, &request, body.note.as_deref())? };
    let wallet = wallet(&body.wallet_id)?;
    let currency: Option<Currency> = parse_some("currency", body.currency.as_deref())?;
    let order = PostingOrder { amount: Micros::new(body.amount_micros), currency, details };
    let made = caller.accounts().adjust(&caller.principal, &request, &wallet, order).await?;
    Ok(posted(&request, made))
}

#[utoipa::path(
    post, path = "/refunds", operation_id = "create_refund", tag = "postings",
    params(ChangeHeader, DryRun, AfterRestore), request_body = RefundDraft,
    responses(
        (status = 201, description = "The refund.", body = PostingView),
        (status = 200, description = "What it would be.", body = Rehearsal<PostingView>),
        Errors,
    )
)]
/// Gives back a part of an operation's charge, to the wallet that paid.
pub(crate) async fn refund(
    caller: Caller,
    Change { request, body }: Change<RefundDraft>,
) -> Reply<ChangeOutcome<PostingView>> {
    let details = details(None, &request, body.note.as_deref())?;
    let operation: OperationId = parse("operation_id", &body.operation_id)?;
    let currency: Option<Currency> = parse_some("currency", body.currency.as_deref())?;
    let order = PostingOrder { amount: Micros::new(body.amount_micros), currency, details };
    let made = caller.accounts().refund(&caller.principal, &request, operation, order).await?;
    Ok(posted(&request, made))
}

#[utoipa::path(
    get, path = "/deposits/{id}", operation_id = "show_deposit", tag = "postings", params(DepositPath),
    responses((status = 200, description = "The deposit.", body = PostingView), Errors)
)]
/// Shows a deposit.
pub(crate) async fn show_deposit(caller: Caller) -> Reply<PostingView> {
    show(&caller, |kind| matches!(kind, PostingKind::Deposit)).await
}

#[utoipa::path(
    get, path = "/adjustments/{id}", operation_id = "show_adjustment", tag = "postings",
    params(AdjustmentPath),
    responses((status = 200, description = "The adjustment.", body = PostingView), Errors)
)]
/// Shows an adjustment.
pub(crate) async fn show_adjustment(caller: Caller) -> Reply<PostingView> {
    show(&caller, |kind| matches!(kind, PostingKind::Adjustment(_))).await
}

#[utoipa::path(
    get, path = "/refunds/{id}", operation_id = "show_refund", tag = "postings", params(RefundPath),
    responses((status = 200, description = "The refund.", body = PostingView), Errors)
)]
/// Shows a refund.
pub(crate) async fn show_refund(caller: Caller) -> Reply<PostingView> {
    show(&caller, |kind| matches!(kind, PostingKind::Refund(_))).await
}

#[utoipa::path(
    get, path = "/deposits", operation_id = "list_deposits", tag = "postings", params(PostingQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<PostingRowView>), Errors)
)]
/// Lists deposits.
pub(crate) async fn list_deposits(
    caller: Caller,
    params: ListParams<PostingQuery>,
) -> Reply<List<PostingRowView>> {
    list(&caller, PostingList::Deposits, params).await
}

#[utoipa::path(
    get, path = "/adjustments", operation_id = "list_adjustments", tag = "postings", params(PostingQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<PostingRowView>), Errors)
)]
/// Lists adjustments.
pub(crate) async fn list_adjustments(
    caller: Caller,
    params: ListParams<PostingQuery>,
) -> Reply<List<PostingRowView>> {
    list(&caller, PostingList::Adjustments, params).await
}

#[utoipa::path(
    get, path = "/refunds", operation_id = "list_refunds", tag = "postings", params(PostingQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<PostingRowView>), Errors)
)]
/// Lists refunds.
pub(crate) async fn list_refunds(
    caller: Caller,
    params: ListParams<PostingQuery>,
) -> Reply<List<PostingRowView>> {
    list(&caller, PostingList::Refunds, params).await
}

async fn list(
    caller: &Caller,
    postings: PostingList,
    ListParams(query, page): ListParams<PostingQuery>,
) -> Reply<List<PostingRowView>> {
    let wallet: Option<WalletId> = parse_some("wallet_id", query.wallet_id.as_deref())?;
    let bound_to = (postings.kind(), wallet.map(|id| id.to_string()));
    let list = ListPages::new(caller, "postings", &bound_to)?;
    let page = list.request(&page)?;
    let filter = PostingFilter { list: postings, wallet, operation: None };
    list.list(caller.accounts().postings(&caller.principal, filter, page).await?).await
}

/// Shows a posting, if it is of the kind of its path.
async fn show(caller: &Caller, is_kind: fn(&PostingKind) -> bool) -> Reply<PostingView> {
    let found = caller.accounts().posting(&caller.principal, caller.id()?).await?;
    // All kinds share one space of ids: a refund under `/deposits` would be booked by its reader as
    // money that came in.
    if is_kind(&found.listing.posting.kind) {
        Ok(Answer::of(found.into()))
    } else {
        Err(Problem::new(Code::NotFound))
    }
}

fn posted(request: &Request, made: Outcome<PostingRecord>) -> Answer<ChangeOutcome<PostingView>> {
    let view = PostingView::from(made.thing);
    Answer::made(view, made.replayed).or_rehearsed(request.dry_run)
}

fn wallet(id: &str) -> Result<Reference, Problem> {
    parse("wallet_id", id).map(Reference::Id)
}

fn details(
    reference: Option<DepositReference>,
    request: &Request,
    note: Option<&str>,
) -> Result<PostingDetails, Problem> {
    let note: Option<Note> = parse_some("note", note)?;
    Ok(PostingDetails {
        reference,
        reason: request.reason.as_ref().map(|reason| reason.as_str().to_owned()),
        note: note.map(|note| note.as_str().to_owned()),
    })
}
