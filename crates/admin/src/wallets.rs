//! `/wallets`: create, show, list, edit, suspend, resume and close.
//!
//! Handlers parse a request, call a use case and render its result. An edit may name the revision that it is based
//! on (`If-Match`, the number of edits): one that is out of date is refused. `null` in an edit removes a
//! setting, an absent member keeps it.
//!
//! Closing cannot be undone, so it has a dry run (`dry_run`). Handlers never touch a balance.

use holdfast_accounts::{Edit, ExternalId, Name, NewWallet, Outcome, Reference};
use holdfast_domain::Micros;
use holdfast_domain::admin::listing::WalletFilter;
use holdfast_domain::admin::{WalletPatch, WalletRecord};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, ChangeOutcome, Reply};
use crate::description::{ChangeHeader, DryRun, Errors, IfMatchHeader, WalletPath};
use crate::error::Problem;
use crate::page::{List, ListPages, ListParams, PageQuery};
use crate::request::{Caller, Change, ChangeBody, IfMatch};
use crate::value::schema::{CurrencyText, ExternalIdText, NameText, ReasonText};
use crate::value::{
    Moment, WalletStateLabel, WindowLabel, amount, edited_spend, parse, parse_some, present,
    sought, spend,
};

const KEY_SPEND: [&str; 2] = ["key_spend_micros", "key_spend_window"];

/// A wallet.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Wallet)]
pub(crate) struct WalletView {
    #[schema(format = "uuid")]
    id: String,
    /// Name, unique among all wallets.
    name: String,
    /// Id that an outer system has for it, unique among all wallets.
    external_id: Option<String>,
    currency: String,
    available_micros: i64,
    held_micros: i64,
    /// Threshold of `wallet.low`.
    low_balance_micros: Option<i64>,
    /// Upper bound on the spend of a key whose issuer is neither owner nor `holder_admin`.
    key_spend_micros: Option<i64>,
    key_spend_window: Option<WindowLabel>,
    state: WalletStateLabel,
    suspended_at: Option<Moment>,
    closed_at: Option<Moment>,
    created_at: Moment,
    /// Number of edits, which `If-Match` is compared with.
    edited: u32,
}

impl From<WalletRecord> for WalletView {
    fn from(record: WalletRecord) -> Self {
        let WalletRecord { wallet, .. } = &record;
        Self {
            id: wallet.id.to_string(),
            currency: wallet.currency.to_string(),
            available_micros: wallet.available.get(),
            held_micros: wallet.held.get(),
            low_balance_micros: record.low_balance.map(Micros::get),
            key_spend_micros: record.key_spend.map(|spend| spend.micros.get()),
            key_spend_window: record.key_spend.map(|spend| spend.window.into()),
            state: record.state().into(),
            suspended_at: wallet.suspended_at.map(Moment),
            closed_at: record.closed_at.map(Moment),
            created_at: Moment(record.created_at),
            edited: record.edited,
            external_id: record.external_id,
            name: record.wallet.name,
        }
    }
}

/// A wallet to be made.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WalletDraft {
    /// 1 to 64 printable characters, not like an id.
    #[schema(value_type = NameText)]
    name: String,
    /// ISO 4217, like `USD`.
    #[schema(value_type = CurrencyText)]
    currency: String,
    /// 1 to 128 printable characters.
    #[schema(value_type = Option<ExternalIdText>)]
    external_id: Option<String>,
    #[schema(minimum = 0, maximum = 1_000_000_000_000_000_u64)]
    low_balance_micros: Option<i64>,
    #[schema(minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    key_spend_micros: Option<i64>,
    key_spend_window: Option<WindowLabel>,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ChangeBody for WalletDraft {}

/// Edit of a wallet: what is absent stays as it is, and null removes.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::option_option, reason = "an edit tells absent from null")]
pub(crate) struct WalletEdit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameText>)]
    name: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ExternalIdText>)]
    external_id: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 0, maximum = 1_000_000_000_000_000_u64)]
    low_balance_micros: Option<Option<i64>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    key_spend_micros: Option<Option<i64>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<WindowLabel>)]
    key_spend_window: Option<Option<WindowLabel>>,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ChangeBody for WalletEdit {
    const NULLABLE: &'static [&'static str] =
        &["external_id", "low_balance_micros", "key_spend_micros", "key_spend_window"];
}

/// Closing of a wallet.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WalletClosing {
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ChangeBody for WalletClosing {
    const DRY_RUN: bool = true;
}

/// Filters of a list of wallets, and its page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WalletQuery {
    /// Filter by name.
    #[param(inline, value_type = Option<NameText>)]
    name: Option<String>,
    /// Filter by the id in an outer system.
    #[param(inline, value_type = Option<ExternalIdText>)]
    external_id: Option<String>,
    /// Wallets in this state.
    #[param(inline)]
    state: Option<WalletStateLabel>,
    /// Wallets with at least so much available.
    available_from_micros: Option<i64>,
    /// Wallets with less than this available.
    available_below_micros: Option<i64>,
}

#[utoipa::path(
    post, path = "/wallets", operation_id = "create_wallet", tag = "wallets",
    params(ChangeHeader), request_body = WalletDraft,
    responses((status = 201, description = "The wallet.", body = WalletView), Errors)
)]
/// Makes an empty wallet.
pub(crate) async fn create(
    caller: Caller,
    Change { request, body }: Change<WalletDraft>,
) -> Reply<WalletView> {
    let new = NewWallet {
        name: parse("name", &body.name)?,
        currency: parse("currency", &body.currency)?,
        settings: WalletPatch {
            name: None,
            external_id: Some(external_id(body.external_id.as_deref())?),
            low_balance: Some(threshold(body.low_balance_micros)?),
            key_spend: Some(spend(KEY_SPEND, body.key_spend_micros, body.key_spend_window)?),
        },
    };
    let made = caller.accounts().create_wallet(&caller.principal, &request, &new).await?;
    let edited = made.thing.edited;
    Ok(Answer::made(made.thing.into(), made.replayed).edited(edited))
}

#[utoipa::path(
    get, path = "/wallets", operation_id = "list_wallets", tag = "wallets", params(WalletQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<WalletView>), Errors)
)]
/// Lists wallets.
pub(crate) async fn list(
    caller: Caller,
    ListParams(query, page): ListParams<WalletQuery>,
) -> Reply<List<WalletView>> {
    let name = sought("name", query.name.as_deref(), Name::sought)?;
    let external_id = sought("external_id", query.external_id.as_deref(), ExternalId::sought)?;
    let bounds = [query.available_from_micros, query.available_below_micros];
    let bound_to = (&query.name, &query.external_id, query.state, bounds);
    let list = ListPages::new(&caller, "wallets", &bound_to)?;
    let page = list.request(&page)?;
    let [available_from, available_below] = bounds.map(|bound| bound.map(Micros::new));
    let filter = WalletFilter {
        name: name.map(|name| name.as_str().to_owned()),
        external_id: external_id.map(|id| id.as_str().to_owned()),
        state: query.state.map(Into::into),
        available_from,
        available_below,
        runs_low: false,
    };
    list.list(caller.accounts().wallets(&caller.principal, filter, page).await?).await
}

#[utoipa::path(
    get, path = "/wallets/{id}", operation_id = "show_wallet", tag = "wallets", params(WalletPath),
    responses((status = 200, description = "The wallet.", body = WalletView), Errors)
)]
/// Shows a wallet.
pub(crate) async fn show(caller: Caller) -> Reply<WalletView> {
    let record = caller.accounts().wallet(&caller.principal, &Reference::Id(caller.id()?)).await?;
    let edited = record.edited;
    Ok(Answer::of(WalletView::from(record)).edited(edited))
}

#[utoipa::path(
    patch, path = "/wallets/{id}", operation_id = "update_wallet", tag = "wallets",
    params(WalletPath, ChangeHeader, IfMatchHeader), request_body = WalletEdit,
    responses((status = 200, description = "The wallet.", body = WalletView), Errors)
)]
/// Edits a wallet.
pub(crate) async fn update(
    caller: Caller,
    IfMatch(expected): IfMatch,
    Change { request, body }: Change<WalletEdit>,
) -> Reply<WalletView> {
    let name: Option<Name> = parse_some("name", body.name.as_deref())?;
    let external_id = body.external_id.map(|id| external_id(id.as_deref())).transpose()?;
    let patch = WalletPatch {
        name: name.map(|name| name.as_str().to_owned()),
        external_id,
        low_balance: body.low_balance_micros.map(threshold).transpose()?,
        key_spend: edited_spend(KEY_SPEND, body.key_spend_micros, body.key_spend_window)?,
    };
    let id = Reference::Id(caller.id()?);
    let edit = Edit { patch, expected };
    let changed = caller.accounts().edit_wallet(&caller.principal, &request, &id, edit).await?;
    Ok(changed_wallet(changed))
}

#[utoipa::path(
    post, path = "/wallets/{id}/close", operation_id = "close_wallet", tag = "wallets",
    params(WalletPath, ChangeHeader, DryRun), request_body = Option<WalletClosing>,
    responses(
        (status = 200, description = "The wallet, or what it would be.", body = ChangeOutcome<WalletView>),
        Errors,
    )
)]
/// Closes an empty wallet for good, and revokes its API keys with it.
pub(crate) async fn close(
    caller: Caller,
    change: Change<WalletClosing>,
) -> Reply<ChangeOutcome<WalletView>> {
    let id = Reference::Id(caller.id()?);
    let closed = caller.accounts().close_wallet(&caller.principal, &change.request, &id).await?;
    let edited = closed.thing.edited;
    let mut view = WalletView::from(closed.thing);
    // A rehearsal leaves the wallet open, and shows it as it would be.
    view.state = WalletStateLabel::Closed;
    Ok(Answer::changed(view, closed.replayed).edited(edited).or_rehearsed(change.request.dry_run))
}

fn changed_wallet(changed: Outcome<WalletRecord>) -> Answer<WalletView> {
    let edited = changed.thing.edited;
    Answer::changed(changed.thing.into(), changed.replayed).edited(edited)
}

/// Reads a threshold: 0 is *empty*, and null is none.
fn threshold(micros: Option<i64>) -> Result<Option<Micros>, Problem> {
    match micros {
        None => Ok(None),
        // Zero is a threshold (the event of an empty wallet), and no other amount of this API.
        Some(0) => Ok(Some(Micros::ZERO)),
        Some(micros) => amount("low_balance_micros", micros).map(Some),
    }
}

/// Reads an external id, or none.
pub(crate) fn external_id(text: Option<&str>) -> Result<Option<String>, Problem> {
    let id: Option<ExternalId> = parse_some("external_id", text)?;
    Ok(id.map(|id| id.as_str().to_owned()))
}
