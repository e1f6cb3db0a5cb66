//! `/operations`: found, listed, shown, cancelled, reconciled; and `/held`, what those that run hold.
//!
//! A list is filtered by what an index leads to (wallet, API key, running, stale) and, within a bounded
//! window of those, by time, model, status and charge: so a page may be empty and lead on.
//!
//! Neither requests nor answers of the gateway's callers are ever shown, and what a role may not see of
//! an operation has no member at all (`view`).

mod view;

use holdfast_accounts::{OperationRecord, Outcome, Principal, Reference};
use holdfast_domain::admin::listing::{ChargeRange, OperationFilter, Period};
use holdfast_domain::{ApiKeyId, Currency, Micros, RequestKey, WalletId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use self::view::{OperationView, Sight};
use crate::answer::{Answer, Reply};
use crate::description::{ChangeHeader, Errors, OperationPath};
use crate::error::{Code, Problem};
use crate::offers::NoParams;
use crate::page::{List, ListPages, ListParams, PageQuery};
use crate::request::{Caller, Change, Params, ReasonBody};
use crate::value::schema::ReasonGiven;
use crate::value::{Moment, ScopeLabel, StatusLabel, model, parse, parse_some};

/// Filters of a list of operations, and its page. All filters apply.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct OperationQuery {
    /// Operations of this wallet.
    #[param(format = "uuid")]
    wallet_id: Option<String>,
    /// Operations of this API key.
    #[param(format = "uuid")]
    api_key_id: Option<String>,
    /// The operation that this `Idempotency-Key` of the API key is bound to; no other filter goes
    /// with the two.
    #[param(format = "uuid")]
    request_key: Option<String>,
    /// All operations, those that run, or those whose owner may be gone; all if absent.
    #[param(inline)]
    scope: Option<ScopeLabel>,
    /// First moment of creation.
    #[param(inline)]
    created_from: Option<Moment>,
    /// The moment after the last one of creation.
    #[param(inline)]
    created_to: Option<Moment>,
    /// Operations of this model.
    #[param(pattern = "^[a-z0-9][a-z0-9._-]{0,62}/[A-Za-z0-9][A-Za-z0-9._:-]{0,62}$")]
    model: Option<String>,
    /// Operations in this status.
    #[param(inline)]
    status: Option<StatusLabel>,
    /// Completed operations with at least this charge.
    #[param(minimum = 0)]
    charge_from_micros: Option<i64>,
    /// Completed operations with less than this charge.
    #[param(minimum = 0)]
    charge_to_micros: Option<i64>,
}

/// Part of a query that cursors are bound to.
#[derive(Serialize)]
struct Filters {
    wallet: Option<String>,
    api_key: Option<String>,
    scope: Option<ScopeLabel>,
    created: [Option<Moment>; 2],
    model: Option<String>,
    status: Option<StatusLabel>,
    charge: [Option<i64>; 2],
}

#[utoipa::path(
    get, path = "/operations", operation_id = "list_operations", tag = "operations",
    params(OperationQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<OperationView>), Errors)
)]
/// Lists operations, or finds one by its API key and request key.
pub(crate) async fn list(
    caller: Caller,
    ListParams(query, page): ListParams<OperationQuery>,
) -> Reply<List<OperationView>> {
    if let Some(request_key) = &query.request_key {
        return find(&caller, &query, &page, request_key).await;
    }
    let wallet: Option<WalletId> = parse_some("wallet_id", query.wallet_id.as_deref())?;
    let api_key: Option<ApiKeyId> = parse_some("api_key_id", query.api_key_id.as_deref())?;
    // All filters are in the cursor's binding: one that is left out would let a cursor be used
    // under another value of it, and rows would be skipped in silence.
    let filters = Filters {
        wallet: wallet.map(|id| id.to_string()),
        api_key: api_key.map(|id| id.to_string()),
        scope: query.scope,
        created: [query.created_from, query.created_to],
        model: query.model,
        status: query.status,
        charge: [query.charge_from_micros, query.charge_to_micros],
    };
    let list = ListPages::new(&caller, "operations", &filters)?;
    let page = list.request(&page)?;
    let [from, to] = filters.created.map(|moment| moment.map(|Moment(at)| at));
    let model = model(filters.model.as_deref())?;
    if filters.charge.iter().flatten().any(|micros| *micros < 0) {
        return Err(Problem::invalid(
            "charge_from_micros",
            "A charge is a whole number from 0 on.",
        ));
    }
    let [charge_from, charge_to] = filters.charge.map(|micros| micros.map(Micros::new));
    let filter = OperationFilter {
        scope: query.scope.map(Into::into).unwrap_or_default(),
        wallet,
        api_key,
        created: Period { from, to },
        model,
        status: query.status.map(Into::into),
        charge: ChargeRange { from: charge_from, to: charge_to },
    };
    let page = caller.accounts().operations(&caller.principal, filter, page).await?;
    let sight = Sight::of(caller.principal.role);
    list.list_as(page, move |row| OperationView::listed(row, sight)).await
}

/// Sum of what running operations hold.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Held)]
pub(crate) struct HeldView {
    currency: String,
    held_micros: i64,
}

#[utoipa::path(
    get, path = "/held", operation_id = "report_held", tag = "reports",
    responses((status = 200, description = "The sums, all of them.", body = List<HeldView>), Errors)
)]
/// Sums the holds of running operations, by currency; a currency without a hold has no row.
pub(crate) async fn held(
    caller: Caller,
    Params(NoParams {}): Params<NoParams>,
) -> Reply<List<HeldView>> {
    let held = caller.accounts().held(&caller.principal).await?;
    let view = |(currency, held): (Currency, Micros)| HeldView {
        currency: currency.to_string(),
        held_micros: held.get(),
    };
    Ok(Answer::of(List::whole(held.into_iter().map(view).collect())))
}

/// Finds the operation that a request key of an API key is bound to.
async fn find(
    caller: &Caller,
    query: &OperationQuery,
    page: &PageQuery,
    request_key: &str,
) -> Reply<List<OperationView>> {
    // Refused and not ignored: with another filter an empty list would not show which of the two
    // excluded the operation.
    let others = query.wallet_id.is_some()
        || query.scope.is_some()
        || query.created_from.is_some()
        || query.created_to.is_some()
        || query.model.is_some()
        || query.status.is_some()
        || query.charge_from_micros.is_some()
        || query.charge_to_micros.is_some()
        || page.cursor.is_some();
    let Some(api_key) = query.api_key_id.as_deref().filter(|_id| !others) else {
        let message = "Send request_key with api_key_id, and with no other filter.";
        return Err(Problem::invalid("request_key", message));
    };
    let api_key = Reference::Id(parse::<Uuid>("api_key_id", api_key)?);
    let request_key: RequestKey = parse("request_key", request_key)?;
    // Two use cases, one answer: an unknown API key, one out of reach and a request key without
    // operation are all an empty list, as for every other filter.
    let found = async {
        let id =
            caller.accounts().operation_id(&caller.principal, &api_key, None, request_key).await?;
        caller.accounts().operation(&caller.principal, id).await
    };
    match found.await.map_err(Problem::from) {
        Ok(record) => {
            let view = OperationView::shown(record, Sight::of(caller.principal.role));
            Ok(Answer::of(List::whole(vec![view])))
        }
        Err(missing) if missing.code() == Code::NotFound => Ok(Answer::of(List::whole(Vec::new()))),
        Err(failed) => Err(failed),
    }
}

#[utoipa::path(
    get, path = "/operations/{id}", operation_id = "show_operation", tag = "operations",
    params(OperationPath),
    responses((status = 200, description = "The operation.", body = OperationView), Errors)
)]
/// Shows an operation.
pub(crate) async fn show(caller: Caller) -> Reply<OperationView> {
    let record = caller.accounts().operation(&caller.principal, caller.id()?).await?;
    Ok(Answer::of(OperationView::shown(record, Sight::of(caller.principal.role))))
}

#[utoipa::path(
    post, path = "/operations/{id}/cancel", operation_id = "cancel_operation", tag = "operations",
    params(OperationPath, ChangeHeader), request_body = ReasonGiven,
    responses((status = 200, description = "The operation.", body = OperationView), Errors)
)]
/// Requests the end of a running operation, with a reason. An operation that has ended stays as it is.
pub(crate) async fn cancel(caller: Caller, change: Change<ReasonBody>) -> Reply<OperationView> {
    let id = caller.id()?;
    let ended = caller.accounts().cancel_operation(&caller.principal, &change.request, id).await?;
    Ok(changed_operation(&caller.principal, ended))
}

#[utoipa::path(
    post, path = "/operations/{id}/reconcile", operation_id = "reconcile_operation", tag = "operations",
    params(OperationPath, ChangeHeader), request_body = Option<ReasonBody>,
    responses((status = 200, description = "The operation.", body = OperationView), Errors)
)]
/// Ends an operation whose owner is gone, or settles a recorded one. Any other stays as it is.
pub(crate) async fn reconcile(caller: Caller, change: Change<ReasonBody>) -> Reply<OperationView> {
    let id = caller.id()?;
    let ended =
        caller.accounts().reconcile_operation(&caller.principal, &change.request, id).await?;
    Ok(changed_operation(&caller.principal, ended))
}

fn changed_operation(
    principal: &Principal,
    ended: Outcome<OperationRecord>,
) -> Answer<OperationView> {
    let view = OperationView::shown(ended.thing, Sight::of(principal.role));
    Answer::changed(view, ended.replayed)
}
