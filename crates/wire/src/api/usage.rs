//! Views of usage for the holder of an API key: Holdfast's own, and OpenAI's pages of buckets.
//!
//! OpenAI's members that have no meaning here (projects, users, batches, tiers) are null. Amounts of
//! OpenAI's costs are decimals of the currency, spelled exactly from micros.
//!
//! No sum is computed here: a view has the sums of one report, which a store has made at one moment, so that
//! pages of buckets add up to the ledger.

use holdfast_domain::admin::report::{ModelUsage, UsageInterval};
use holdfast_domain::usage::MeterKind;
use holdfast_domain::{ApiKeyId, Currency, Micros, Timestamp, WalletId};
use serde::Serialize;

use super::{CountsView, rfc3339};
use crate::render::Raw;

/// Usage of an API key over a period.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageReportView {
    object: &'static str,
    api_key_id: String,
    /// Wallet, if the sums are of all its API keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    wallet_id: Option<String>,
    from: String,
    to: String,
    data: Vec<UsageIntervalView>,
}

impl UsageReportView {
    /// Shows the sums of an API key, or of its wallet, from one moment on, and before another.
    #[must_use]
    pub fn of(
        (api_key, wallet): (ApiKeyId, Option<WalletId>),
        [from, to]: [Timestamp; 2],
        data: Vec<UsageIntervalView>,
    ) -> Self {
        let [from, to] = [from, to].map(rfc3339);
        let (api_key_id, wallet_id) = (api_key.to_string(), wallet.map(|id| id.to_string()));
        Self { object: "usage", api_key_id, wallet_id, from, to, data }
    }
}

/// Sums of an hour, a day or a month.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UsageIntervalView {
    start: String,
    model: Option<String>,
    currency: String,
    completed: u64,
    refused: u64,
    abandoned: u64,
    estimated: u64,
    meters: CountsView,
    charge_micros: i64,
    refunded_micros: i64,
    /// True if a sum is more than a number can be; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

impl UsageIntervalView {
    /// Shows these sums; with the model if they are of one.
    #[must_use]
    pub fn of(usage: &ModelUsage, interval: UsageInterval, has_model: bool) -> Self {
        let start = rfc3339(usage.start);
        let shown = match interval {
            UsageInterval::Hour => format!("{}Z", first(&start, 19)),
            UsageInterval::Day => first(&start, 10),
            UsageInterval::Month => first(&start, 7),
        };
        Self {
            start: shown,
            model: has_model.then(|| usage.model.clone()),
            currency: usage.currency.to_string(),
            completed: usage.completed,
            refused: usage.refused,
            abandoned: usage.abandoned,
            estimated: usage.estimated,
            meters: CountsView(usage.meters),
            charge_micros: usage.charge.get(),
            refunded_micros: usage.refunded.get(),
            incomplete: usage.is_incomplete,
        }
    }
}

fn first(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}

/// A page of OpenAI's, of buckets.
#[derive(Debug, Clone, Serialize)]
pub struct PageView<T> {
    object: &'static str,
    data: Vec<BucketView<T>>,
    has_more: bool,
    next_page: Option<String>,
}

impl<T> PageView<T> {
    /// A page with the name of the next one, if there is one.
    #[must_use]
    pub const fn of(data: Vec<BucketView<T>>, next_page: Option<String>) -> Self {
        Self { object: "page", data, has_more: next_page.is_some(), next_page }
    }
}

/// Sums of one span of time, in Unix seconds.
#[derive(Debug, Clone, Serialize)]
pub struct BucketView<T> {
    object: &'static str,
    start_time: i64,
    end_time: i64,
    results: Vec<T>,
}

impl<T> BucketView<T> {
    /// A bucket with its results.
    #[must_use]
    pub const fn of([start_time, end_time]: [i64; 2], results: Vec<T>) -> Self {
        Self { object: "bucket", start_time, end_time, results }
    }
}

/// Usage of completions as OpenAI shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompletionsUsageView {
    object: &'static str,
    input_tokens: u64,
    output_tokens: u64,
    num_model_requests: u64,
    input_cached_tokens: u64,
    input_cache_write_tokens: u64,
    input_uncached_tokens: u64,
    input_audio_tokens: u64,
    output_audio_tokens: u64,
    project_id: Option<String>,
    user_id: Option<String>,
    api_key_id: Option<String>,
    model: Option<String>,
    batch: Option<bool>,
    service_tier: Option<String>,
    /// True if a sum is more than a number can be; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

impl CompletionsUsageView {
    /// Shows meters in OpenAI's words: its input includes what is read from caches and written to them,
    /// its output the reasoning. Requests are those that were answered.
    #[must_use]
    pub fn of(usage: &ModelUsage, api_key: Option<ApiKeyId>, has_model: bool) -> Self {
        let sum = |kinds: &[MeterKind]| {
            let all = MeterKind::ALL.into_iter().zip(usage.meters);
            let asked_for = all.filter(|(kind, _count)| kinds.contains(kind));
            asked_for.fold(0, |sum: u64, (_kind, count)| sum.saturating_add(count))
        };
        let uncached = [MeterKind::Input, MeterKind::AudioInput];
        let cached = [MeterKind::CachedInput, MeterKind::CacheWrite];
        let output = [MeterKind::Output, MeterKind::Reasoning, MeterKind::AudioOutput];
        Self {
            object: "organization.usage.completions.result",
            input_tokens: sum(&uncached).saturating_add(sum(&cached)),
            output_tokens: sum(&output),
            num_model_requests: usage.completed,
            input_cached_tokens: sum(&[MeterKind::CachedInput]),
            input_cache_write_tokens: sum(&[MeterKind::CacheWrite]),
            input_uncached_tokens: sum(&uncached),
            input_audio_tokens: sum(&[MeterKind::AudioInput]),
            output_audio_tokens: sum(&[MeterKind::AudioOutput]),
            project_id: None,
            user_id: None,
            api_key_id: api_key.map(|id| id.to_string()),
            model: has_model.then(|| usage.model.clone()),
            batch: None,
            service_tier: None,
            incomplete: usage.is_incomplete,
        }
    }
}

/// Costs as OpenAI shows them: charges less refunds.
#[derive(Debug, Clone, Serialize)]
pub struct CostView {
    object: &'static str,
    amount: AmountView,
    line_item: Option<String>,
    project_id: Option<String>,
    api_key_id: Option<String>,
    /// True if a sum is more than a number can be; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    incomplete: bool,
}

/// An amount as OpenAI spells it: a decimal, and a currency in small letters.
#[derive(Debug, Clone, Serialize)]
struct AmountView {
    value: Raw<String>,
    currency: String,
}

impl CostView {
    /// Shows an amount; with the model as its line if it is of one.
    #[must_use]
    pub fn of(
        (amount, currency): (Micros, Currency),
        api_key: Option<ApiKeyId>,
        model: Option<&str>,
        incomplete: bool,
    ) -> Self {
        // A decimal of two to six places is a number of JSON as it is spelled.
        let value = Raw(amount.to_string());
        Self {
            object: "organization.costs.result",
            amount: AmountView { value, currency: currency.to_string().to_ascii_lowercase() },
            line_item: model.map(str::to_owned),
            project_id: None,
            api_key_id: api_key.map(|id| id.to_string()),
            incomplete,
        }
    }
}
