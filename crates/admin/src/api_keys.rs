//! `/api_keys`: issue, show with counters, list, edit, suspend, resume, rotate and revoke.
//!
//! Handlers parse a request, call a use case and render its result. Paths and bodies accept only ids: after a
//! rename, a name would mean another key, and a repetition would change that one.
//!
//! The secret of a key is shown once, in the answer of the request that created the key. A repetition of that
//! request has `"key": null` and a `notice` with the way to get another secret.

mod body;
mod view;

use std::time::Duration;

use holdfast_accounts::{Edit, IssuedApiKey, KeyOrder, Name, Outcome, Reference};
use holdfast_domain::WalletId;
use holdfast_domain::admin::ApiKeyPatch;
use holdfast_domain::admin::listing::ApiKeyFilter;
use holdfast_domain::credential::ApiKey;
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

pub(crate) use self::body::{ApiKeyBulk, ApiKeyDraft, ApiKeyEdit};
pub(crate) use self::view::ApiKeyView;
use self::view::{IssuedKeyView, IssuedKeysView, ListedKeyView, ShownKeyView};
use crate::answer::{Answer, ChangeOutcome, Reply};
use crate::description::{AfterRestore, ApiKeyPath, ChangeHeader, DryRun, Errors, IfMatchHeader};
use crate::error::{Code, Problem};
use crate::page::{List, ListPages, ListParams, PageQuery};
use crate::request::{Caller, Change, IfMatch};
use crate::rotation_body::RotationBody;
use crate::value::schema::NameText;
use crate::value::{ApiKeyStateLabel, model, parse, parse_some, sought};

/// Time for the report of the month that a key is shown with.
const EXPOSURE_TIME: Duration = Duration::from_secs(1);

/// Filters of a list of API keys, and its page.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ApiKeyQuery {
    /// API keys of this name: one of a wallet at most.
    #[param(inline, value_type = Option<NameText>)]
    name: Option<String>,
    /// API keys of this wallet.
    #[param(format = "uuid")]
    wallet_id: Option<String>,
    /// API keys in this state. Those that are suspended are in force as well.
    #[param(inline)]
    state: Option<ApiKeyStateLabel>,
    /// API keys that may use the model of this public id.
    #[param(pattern = "^[a-z0-9][a-z0-9._-]{0,62}/[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$")]
    model: Option<String>,
}

/// Part of a query that cursors are bound to.
#[derive(Serialize)]
struct Filters {
    name: Option<String>,
    wallet: Option<String>,
    state: Option<ApiKeyStateLabel>,
    model: Option<String>,
}

#[utoipa::path(
    post, path = "/api_keys", operation_id = "issue_api_key", tag = "api_keys",
    params(ChangeHeader, AfterRestore), request_body = ApiKeyDraft,
    responses((status = 201, description = "The API key.", body = IssuedKeyView), Errors)
)]
/// Issues an API key; its secret is shown only in this answer.
pub(crate) async fn issue(
    caller: Caller,
    Change { request, body }: Change<ApiKeyDraft>,
) -> Reply<IssuedKeyView> {
    let wallet = Reference::Id(parse("wallet_id", &body.wallet_id)?);
    let order = body.into_order();
    let ends_at = caller.gate.end(order.ends_at, order.ends_in_seconds).await?;
    let orders = [order.order(ends_at)?];
    let issued =
        caller.accounts().issue_api_keys(&caller.principal, &request, &wallet, &orders).await?;
    let Outcome { thing, replayed } = issued;
    let key = thing.into_iter().next().ok_or_else(|| Problem::new(Code::InternalError))?;
    Ok(issued_answer(key, replayed))
}

#[utoipa::path(
    post, path = "/api_keys/bulk", operation_id = "issue_api_keys", tag = "api_keys",
    params(ChangeHeader, DryRun, AfterRestore), request_body = ApiKeyBulk,
    responses(
        (status = 201, description = "The API keys.", body = IssuedKeysView),
        (status = 200, description = "What they would be.", body = ChangeOutcome<IssuedKeysView>),
        Errors,
    )
)]
/// Issues 1 to 100 API keys of one wallet, all or none.
pub(crate) async fn issue_bulk(
    caller: Caller,
    Change { request, body }: Change<ApiKeyBulk>,
) -> Reply<ChangeOutcome<IssuedKeysView>> {
    let wallet = Reference::Id(parse("wallet_id", &body.wallet_id)?);
    let mut orders: Vec<KeyOrder> = Vec::with_capacity(body.keys.len());
    for key in &body.keys {
        orders.push(key.order(caller.gate.end(key.ends_at, key.ends_in_seconds).await?)?);
    }
    let issued =
        caller.accounts().issue_api_keys(&caller.principal, &request, &wallet, &orders).await?;
    let view = IssuedKeysView::new(issued.thing, issued.replayed);
    Ok(Answer::made(view, issued.replayed).or_rehearsed(request.dry_run))
}

#[utoipa::path(
    get, path = "/api_keys", operation_id = "list_api_keys", tag = "api_keys", params(ApiKeyQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<ListedKeyView>), Errors)
)]
/// Lists API keys with their credentials in force.
pub(crate) async fn list(
    caller: Caller,
    ListParams(query, page): ListParams<ApiKeyQuery>,
) -> Reply<List<ListedKeyView>> {
    let wallet: Option<WalletId> = parse_some("wallet_id", query.wallet_id.as_deref())?;
    let name = sought("name", query.name.as_deref(), Name::sought)?;
    let name = name.map(|name| name.as_str().to_owned());
    let model = model(query.model.as_deref())?;
    let filters = Filters {
        name: name.clone(),
        wallet: wallet.map(|id| id.to_string()),
        state: query.state,
        model: query.model,
    };
    let list = ListPages::new(&caller, "api_keys", &filters)?;
    let page = list.request(&page)?;
    let filter = ApiKeyFilter { name, wallet, state: query.state.map(Into::into), model };
    list.list(caller.accounts().api_keys(&caller.principal, filter, page).await?).await
}

#[utoipa::path(
    get, path = "/api_keys/{id}", operation_id = "show_api_key", tag = "api_keys", params(ApiKeyPath),
    responses((status = 200, description = "The API key.", body = ShownKeyView), Errors)
)]
/// Shows an API key with its counters.
pub(crate) async fn show(caller: Caller) -> Reply<ShownKeyView> {
    let record =
        caller.accounts().api_key(&caller.principal, &Reference::Id(caller.id()?), None).await?;
    // A report that is refused or that waits for others does not hide the key: an operator who is about to revoke
    // it reads it here.
    let exposure = caller.accounts().exposure(&caller.principal, &record);
    let exposure = tokio::time::timeout(EXPOSURE_TIME, exposure).await;
    let exposure = exposure.ok().and_then(std::result::Result::ok).flatten();
    let edited = record.api_key.edited;
    Ok(Answer::of(ShownKeyView::new(record, exposure)).edited(edited))
}

#[utoipa::path(
    patch, path = "/api_keys/{id}", operation_id = "update_api_key", tag = "api_keys",
    params(ApiKeyPath, ChangeHeader, IfMatchHeader), request_body = ApiKeyEdit,
    responses((status = 200, description = "The API key.", body = ApiKeyView), Errors)
)]
/// Edits an API key.
pub(crate) async fn update(
    caller: Caller,
    IfMatch(expected): IfMatch,
    Change { request, body }: Change<ApiKeyEdit>,
) -> Reply<ApiKeyView> {
    // A span is resolved here, after the digest was made of the body: a repetition has the same
    // digest, and its later moment is ignored.
    let ends_at = caller.gate.edited_end(body.ends_at, body.ends_in_seconds).await?;
    let patch = ApiKeyPatch { ends_at, ..body.patch()? };
    let id = Reference::Id(caller.id()?);
    let edit = Edit { patch, expected };
    let changed = caller.accounts().edit_api_key(&caller.principal, &request, &id, edit).await?;
    Ok(changed_key(changed))
}

#[utoipa::path(
    post, path = "/api_keys/{id}/rotate", operation_id = "rotate_api_key", tag = "api_keys",
    params(ApiKeyPath, ChangeHeader), request_body = Option<RotationBody>,
    responses((status = 200, description = "The API key.", body = IssuedKeyView), Errors)
)]
/// Adds a credential to an API key, and ends its other ones after a grace.
pub(crate) async fn rotate(
    caller: Caller,
    Change { request, body }: Change<RotationBody>,
) -> Reply<IssuedKeyView> {
    let grace = body.grace()?;
    let id = Reference::Id(caller.id()?);
    let rotated = caller.accounts().rotate_api_key(&caller.principal, &request, &id, grace).await?;
    let edited = rotated.thing.api_key.edited;
    let view = IssuedKeyView::new(rotated.thing, rotated.replayed);
    Ok(Answer::changed(view, rotated.replayed).edited(edited))
}

fn changed_key(changed: Outcome<ApiKey>) -> Answer<ApiKeyView> {
    let edited = changed.thing.edited;
    Answer::changed(changed.thing.into(), changed.replayed).edited(edited)
}

fn issued_answer(key: IssuedApiKey, replayed: bool) -> Answer<IssuedKeyView> {
    let edited = key.api_key.edited;
    Answer::made(IssuedKeyView::new(key, replayed), replayed).edited(edited)
}
