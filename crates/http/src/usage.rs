//! Endpoints of usage, for the calling API key: Holdfast's own, and two of OpenAI's. They report only that key,
//! or its whole wallet if the key was issued so.
//!
//! Whole buckets, in UTC: OpenAI's `start_time` is moved back to the beginning of its bucket, and `end_time` to
//! the end of its own. A page contains only the start of the next one: it is good for any query whose buckets
//! begin there, too.
//!
//! Unknown parameters are refused and never ignored: an ignored filter would show too much.

mod query;

use std::collections::BTreeMap;

use holdfast_domain::admin::report::{HolderReports, ModelUsage, UsageRequest, UsageScope};
use holdfast_domain::credential::UsageScope as UsageGrant;
use holdfast_domain::{ApiKeyId, Micros, Timestamp, WalletId};
use holdfast_engine::Caller;
use holdfast_wire::api::{
    BucketView, CompletionsUsageView, CostView, PageView, UsageIntervalView, UsageReportView,
    render,
};
use http::{StatusCode, Uri};

use self::query::{BucketQuery, Group, OpenAiEndpoint, UsageQuery};
use crate::problem::Problem;
use crate::reply::{HttpResponse, json};
use crate::resources::unavailable;
use crate::route::UsageRoute;

/// A request for usage: the caller, its query, and the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsageCall<'a> {
    pub(crate) caller: &'a Caller,
    pub(crate) uri: &'a Uri,
    pub(crate) now: Timestamp,
}

impl UsageCall<'_> {
    /// The calling API key.
    const fn api_key(&self) -> ApiKeyId {
        self.caller.api_key.id
    }

    /// Wallet whose usage the caller reads; `None` if it is only that of its API key.
    const fn wallet(&self) -> Option<WalletId> {
        match self.caller.api_key.grant.usage {
            UsageGrant::Key => None,
            UsageGrant::Wallet => Some(self.caller.api_key.wallet),
        }
    }

    fn buckets(&self, endpoint: OpenAiEndpoint) -> Result<BucketQuery, Problem> {
        BucketQuery::read(endpoint, self.uri, (self.api_key(), self.wallet()), self.now)
    }
}

/// Answers on one of the routes of usage.
pub(crate) async fn answer(
    route: UsageRoute,
    reports: &dyn HolderReports,
    request: UsageCall<'_>,
) -> Result<HttpResponse, Problem> {
    match route {
        UsageRoute::Own => usage(reports, request).await,
        UsageRoute::Completions => completions(reports, request).await,
        UsageRoute::Costs => costs(reports, request).await,
    }
}

/// `GET /v1/usage`
async fn usage(
    reports: &dyn HolderReports,
    request: UsageCall<'_>,
) -> Result<HttpResponse, Problem> {
    let UsageQuery { interval, by_model, from, to } = UsageQuery::read(request.uri, request.now)?;
    let wallet = request.wallet();
    let scope = wallet.map_or(UsageScope::ApiKey(request.api_key()), UsageScope::Wallet);
    let found = read(reports, UsageRequest { scope, interval, from, to }).await?;
    let mut sums = BTreeMap::new();
    for usage in found {
        let model = if by_model { usage.model.clone() } else { String::new() };
        add(&mut sums, (usage.start, model, usage.currency.to_string()), usage);
    }
    let data = sums.values().map(|usage| UsageIntervalView::of(usage, interval, by_model));
    let view = UsageReportView::of((request.api_key(), wallet), [from, to], data.collect());
    Ok(json(StatusCode::OK, render(&view)))
}

/// `GET /v1/organization/usage/completions`
async fn completions(
    reports: &dyn HolderReports,
    request: UsageCall<'_>,
) -> Result<HttpResponse, Problem> {
    let query = request.buckets(OpenAiEndpoint::Completions)?;
    let api_key = query.has(Group::ApiKey).then_some(request.api_key());
    let has_model = query.has(Group::Model);
    let page = buckets(reports, &query).await?;
    let page = page.map(|usage| CompletionsUsageView::of(usage, api_key, has_model));
    Ok(json(StatusCode::OK, render(&page)))
}

/// `GET /v1/organization/costs`
async fn costs(
    reports: &dyn HolderReports,
    request: UsageCall<'_>,
) -> Result<HttpResponse, Problem> {
    let query = request.buckets(OpenAiEndpoint::Costs)?;
    let api_key = query.has(Group::ApiKey).then_some(request.api_key());
    let has_model = query.has(Group::Model);
    let page = buckets(reports, &query).await?;
    let page = page.map(|usage| {
        // What is left of the charges; a refund is never larger than its charge.
        let amount = usage.charge.minus(usage.refunded).unwrap_or(Micros::ZERO);
        let model = has_model.then_some(usage.model.as_str());
        CostView::of((amount, usage.currency), api_key, model, usage.is_incomplete)
    });
    Ok(json(StatusCode::OK, render(&page)))
}

/// Sums of the buckets of a page, in their order.
struct Buckets {
    buckets: Vec<([i64; 2], Vec<ModelUsage>)>,
    next_page: Option<String>,
}

/// The requested page. A bucket without a finished operation has no results.
async fn buckets(reports: &dyn HolderReports, query: &BucketQuery) -> Result<Buckets, Problem> {
    let (scope, interval) = (query.scope(), query.interval());
    let [first, end] = query.page().map(seconds);
    let found = read(reports, UsageRequest { scope, interval, from: first, to: end }).await?;
    let mut sums = BTreeMap::new();
    for usage in found.into_iter().filter(|usage| query.has_model(&usage.model)) {
        let model = if query.has(Group::Model) { usage.model.clone() } else { String::new() };
        add(&mut sums, (usage.start, model, usage.currency.to_string()), usage);
    }
    let mut buckets: Vec<_> = query.buckets().map(|bucket| (bucket, Vec::new())).collect();
    // The buckets are in the order of their starts: each is found without a look at all of them.
    for usage in sums.into_values() {
        let place = buckets.binary_search_by_key(&usage.start, |([start, _], _)| seconds(*start));
        if let Some((_, results)) = place.ok().and_then(|place| buckets.get_mut(place)) {
            results.push(usage);
        }
    }
    Ok(Buckets { buckets, next_page: query.next_page() })
}

impl Buckets {
    fn map<T>(self, view: impl Fn(&ModelUsage) -> T) -> PageView<T> {
        let bucket = |(span, usages): ([i64; 2], Vec<ModelUsage>)| {
            BucketView::of(span, usages.iter().map(&view).collect())
        };
        PageView::of(self.buckets.into_iter().map(bucket).collect(), self.next_page)
    }
}

async fn read(
    reports: &dyn HolderReports,
    request: UsageRequest,
) -> Result<Vec<ModelUsage>, Problem> {
    reports.usage(request).await.map_err(|error| unavailable(&error))
}

/// Interval, model and currency of sums; no model if they are of all.
type SumKey = (Timestamp, String, String);

fn add(sums: &mut BTreeMap<SumKey, ModelUsage>, key: SumKey, more: ModelUsage) {
    let Some(sum) = sums.get_mut(&key) else {
        sums.insert(key, more);
        return;
    };
    let mut is_saturated = sum.is_incomplete || more.is_incomplete;
    let mut plus = |count: &mut u64, more: u64| {
        let added = count.checked_add(more);
        is_saturated |= added.is_none();
        *count = added.unwrap_or(u64::MAX);
    };
    plus(&mut sum.completed, more.completed);
    plus(&mut sum.refused, more.refused);
    plus(&mut sum.abandoned, more.abandoned);
    plus(&mut sum.estimated, more.estimated);
    sum.meters.iter_mut().zip(more.meters).for_each(|(count, more)| plus(count, more));
    let mut total = |amount: Micros, more: Micros| {
        let added = amount.plus(more);
        is_saturated |= added.is_none();
        added.unwrap_or(Micros::MAX)
    };
    sum.charge = total(sum.charge, more.charge);
    sum.refunded = total(sum.refunded, more.refunded);
    sum.is_incomplete = is_saturated;
}

fn seconds(unix: i64) -> Timestamp {
    Timestamp::from_micros(unix.saturating_mul(1_000_000))
}
