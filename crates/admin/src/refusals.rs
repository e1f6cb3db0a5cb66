//! `/refusals`: requests of callers that were refused, newest first, and their numbers by the hour.
//!
//! The list has the newest of each API key; the numbers have all. A flood of refusals would otherwise push those of
//! every other key out of the list, and cost a row each.
//!
//! A row names no prompt, and no model that the configuration does not have: both are the caller's text, which may
//! contain a secret.

use holdfast_accounts::{AccountsError, REFUSAL_HOURS_MAX};
use holdfast_domain::admin::listing::{Page, Period};
use holdfast_domain::admin::{HourlyRefusals, RefusalFilter};
use holdfast_domain::statistics::RefusedRequest;
use holdfast_domain::{ApiKeyId, Micros, RequestId, WalletId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Reply};
use crate::description::Errors;
use crate::error::Problem;
use crate::page::{List, ListPages, ListParams, PageQuery};
use crate::request::{Caller, Params};
use crate::value::{Moment, parse, parse_some};

/// Filters of a list of refused requests, and its page. All filters apply.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RefusalQuery {
    /// The request that was answered with this `x-request-id`.
    #[param(format = "uuid")]
    request_id: Option<String>,
    /// Requests of this wallet.
    #[param(format = "uuid")]
    wallet_id: Option<String>,
    /// Requests of this API key.
    #[param(format = "uuid")]
    api_key_id: Option<String>,
    /// Requests that were refused with this error code.
    #[param(pattern = "^[a-z_]{1,64}$")]
    code: Option<String>,
    /// First moment of refusal.
    #[param(inline)]
    from: Option<Moment>,
    /// The moment after the last one of refusal.
    #[param(inline)]
    to: Option<Moment>,
}

/// Filters of the numbers by the hour. All filters apply.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RefusalHourQuery {
    /// Requests of this wallet.
    #[param(format = "uuid")]
    wallet_id: Option<String>,
    /// Requests of this API key.
    #[param(format = "uuid")]
    api_key_id: Option<String>,
    /// Requests that were refused with this error code.
    #[param(pattern = "^[a-z_]{1,64}$")]
    code: Option<String>,
    /// Hours that begin at this moment or later.
    #[param(inline)]
    from: Option<Moment>,
    /// Hours that begin before this moment.
    #[param(inline)]
    to: Option<Moment>,
}

/// Request that was refused.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Refusal)]
pub(crate) struct RefusalView {
    /// Value of `x-request-id` in its answer.
    #[schema(format = "uuid")]
    request_id: String,
    refused_at: Moment,
    #[schema(format = "uuid")]
    wallet_id: String,
    #[schema(format = "uuid")]
    api_key_id: String,
    /// Error code, like `insufficient_funds`.
    code: String,
    /// HTTP status.
    status: u16,
    /// Model; null if the request named none of the configuration.
    model: Option<String>,
    /// Amount that the request might have cost, in micros of the wallet's currency; null unless money was missing.
    wanted_micros: Option<i64>,
    /// Amount that was left of the balance or of the limit at that time; null if it was not read.
    available_micros: Option<i64>,
}

/// Number of refused requests of an hour.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RefusalHour)]
pub(crate) struct RefusalHourView {
    /// Beginning of the hour.
    hour: Moment,
    /// Error code.
    code: String,
    /// Number of all requests that were refused with it, listed or not.
    count: u64,
}

impl From<RefusedRequest> for RefusalView {
    fn from(request: RefusedRequest) -> Self {
        let shortage = request.shortage;
        Self {
            request_id: request.id.to_string(),
            refused_at: Moment(request.at),
            wallet_id: request.wallet.to_string(),
            api_key_id: request.api_key.to_string(),
            code: request.code.into_owned(),
            status: request.status,
            model: request.model.map(|model| model.as_str().to_owned()),
            wanted_micros: shortage.map(|shortage| shortage.wanted.get()),
            available_micros: shortage.and_then(|shortage| shortage.available).map(Micros::get),
        }
    }
}

impl From<HourlyRefusals> for RefusalHourView {
    fn from(HourlyRefusals { hour, code, count }: HourlyRefusals) -> Self {
        Self { hour: Moment(hour), code, count }
    }
}

#[utoipa::path(
    get, path = "/refusals", operation_id = "list_refusals", tag = "operations", params(RefusalQuery, PageQuery),
    responses((status = 200, description = "A page.", body = List<RefusalView>), Errors)
)]
/// Lists requests that were refused: of each API key the newest 100, and of each error code the newest 10. They are
/// a second old; an API key that is refused more than 25 times a second with one code has only its newest listed.
pub(crate) async fn list(
    caller: Caller,
    ListParams(query, page): ListParams<RefusalQuery>,
) -> Reply<List<RefusalView>> {
    if let Some(id) = &query.request_id {
        let id = id.clone();
        return find(&caller, query, &id).await;
    }
    let RefusalQuery { wallet_id, api_key_id, code, from, to, request_id: _ } = query;
    let cursor_filters = (&wallet_id, &api_key_id, &code, [from, to]);
    let list = ListPages::new(&caller, "refusals", &cursor_filters)?;
    let page = list.request(&page)?;
    let filter = filter([&wallet_id, &api_key_id], code, [from, to])?;
    let page: Page<RefusedRequest> =
        caller.accounts().refused_requests(&caller.principal, filter, page).await?;
    list.list(page).await
}

#[utoipa::path(
    get, path = "/refusals/hours", operation_id = "count_refusals", tag = "operations", params(RefusalHourQuery),
    responses(
        (status = 200, description = "The hours, newest first, all of them.", body = List<RefusalHourView>), Errors
    )
)]
/// Counts all refused requests by hour and error code, for as long as `retention.statistics` keeps hours.
pub(crate) async fn hours(
    caller: Caller,
    Params(query): Params<RefusalHourQuery>,
) -> Reply<List<RefusalHourView>> {
    let RefusalHourQuery { wallet_id, api_key_id, code, from, to } = query;
    let filter = filter([&wallet_id, &api_key_id], code, [from, to])?;
    let hours = caller.accounts().refusal_hours(&caller.principal, filter).await?;
    // One row more than the bound was read. A report cut there would show sums that are too low,
    // without a mark.
    if u32::try_from(hours.len()).is_ok_and(|rows| rows > REFUSAL_HOURS_MAX) {
        let message = format!(
            "This report has more than {REFUSAL_HOURS_MAX} rows: send a shorter period, or a code."
        );
        return Err(Problem::invalid("from", message));
    }
    Ok(Answer::of(List::whole(hours.into_iter().map(Into::into).collect())))
}

fn filter(
    [wallet, api_key]: [&Option<String>; 2],
    code: Option<String>,
    period: [Option<Moment>; 2],
) -> Result<RefusalFilter, Problem> {
    let wallet: Option<WalletId> = parse_some("wallet_id", wallet.as_deref())?;
    let api_key: Option<ApiKeyId> = parse_some("api_key_id", api_key.as_deref())?;
    let is_code = |code: &String| {
        (1..=64).contains(&code.len())
            && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    if !code.as_ref().is_none_or(is_code) {
        return Err(Problem::invalid(
            "code",
            "An error code has 1 to 64 small letters and underscores.",
        ));
    }
    let [from, to] = period.map(|moment| moment.map(|Moment(at)| at));
    Ok(RefusalFilter { wallet, api_key, code, period: Period { from, to } })
}

/// Finds a request by its id.
async fn find(caller: &Caller, query: RefusalQuery, id: &str) -> Reply<List<RefusalView>> {
    let RefusalQuery { request_id: _, wallet_id, api_key_id, code, from, to } = query;
    let filter = filter([&wallet_id, &api_key_id], code, [from, to])?;
    let id: RequestId = parse("request_id", id)?;
    let found = match caller.accounts().refused_request(&caller.principal, id).await {
        Ok(request) => Some(request),
        Err(AccountsError::NotFound(_)) => None,
        Err(failed) => return Err(failed.into()),
    };
    // The other filters still apply: a request of another wallet must not appear under a wallet's
    // filter.
    let rows = found.into_iter().filter(|request| filter.admits(request));
    Ok(Answer::of(List::whole(rows.map(Into::into).collect())))
}
