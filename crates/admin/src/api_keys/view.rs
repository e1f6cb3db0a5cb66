//! API keys in answers: as they are listed, shown with counters, and issued.
//!
//! | answer | beyond the key |
//! |---|---|
//! | of a list | identifiers of the credentials in force |
//! | of one key | counters of the current windows, and the exposure for roles that see costs |
//! | of the request that issued or rotated it | the secret, once |
//!
//! A repetition has `"key": null` and a notice with the way to another secret, because the store has a verifier only.
//!
//! Never in a view: a secret outside the answer that created it, or in a `Debug`.

use holdfast_accounts::{ApiKeyRecord, IssuedApiKey};
use holdfast_domain::Micros;
use holdfast_domain::admin::listing::{ApiKeyListing, LiveCredential};
use holdfast_domain::credential::{ApiKey, Bearer};
use holdfast_domain::debug_as;
use holdfast_domain::limits::Counter;
use holdfast_domain::model::ModelPattern;
use holdfast_domain::ports::CounterSnapshot;
use serde::Serialize;
use utoipa::ToSchema;

use crate::value::{BalanceLabel, Moment, UsageLabel, WindowLabel};

/// An API key, without any secret.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub(crate) struct ApiKeyView {
    #[schema(format = "uuid")]
    id: String,
    #[schema(format = "uuid")]
    wallet_id: String,
    /// Name, unique within the wallet.
    name: String,
    /// Id that an outer system has for it, unique within the wallet.
    external_id: Option<String>,
    requests_per_minute: Option<u64>,
    tokens_per_minute: Option<u64>,
    concurrency: Option<u64>,
    spend_micros: Option<i64>,
    spend_window: Option<WindowLabel>,
    /// Models that it may use; null is all of them.
    models: Option<Vec<String>>,
    balance: BalanceLabel,
    usage: UsageLabel,
    /// Moment from which it is not accepted.
    ends_at: Option<Moment>,
    created_at: Moment,
    suspended_at: Option<Moment>,
    revoked_at: Option<Moment>,
    /// Number of edits, which `If-Match` is compared with.
    edited: u32,
}

impl From<ApiKey> for ApiKeyView {
    fn from(key: ApiKey) -> Self {
        let (grant, limits) = (&key.grant, &key.grant.limits);
        let texts = |entries: &std::collections::BTreeSet<ModelPattern>| {
            entries.iter().map(|entry| entry.as_str().to_owned()).collect()
        };
        Self {
            id: key.id.to_string(),
            wallet_id: key.wallet.to_string(),
            requests_per_minute: limits.requests_per_minute,
            tokens_per_minute: limits.tokens_per_minute,
            concurrency: limits.concurrency,
            spend_micros: limits.spend.map(|spend| spend.micros.get()),
            spend_window: limits.spend.map(|spend| spend.window.into()),
            models: grant.models.as_ref().map(texts),
            balance: grant.balance.into(),
            usage: grant.usage.into(),
            ends_at: grant.ends_at.map(Moment),
            created_at: Moment(key.created_at),
            suspended_at: key.suspended_at.map(Moment),
            revoked_at: key.revoked_at.map(Moment),
            edited: key.edited,
            name: key.name,
            external_id: key.external_id,
        }
    }
}

/// An API key in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ListedApiKey)]
pub(crate) struct ListedKeyView {
    #[serde(flatten)]
    api_key: ApiKeyView,
    /// Credentials in force, oldest first.
    credentials: Vec<CredentialView>,
}

/// Credential of an API key, without what its bearer is checked by.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Credential)]
struct CredentialView {
    /// Beginning of the bearer's text, by which one credential is recognized among others.
    id: String,
    created_at: Moment,
    ends_at: Option<Moment>,
}

impl From<ApiKeyListing> for ListedKeyView {
    fn from(listing: ApiKeyListing) -> Self {
        let view = |credential: LiveCredential| CredentialView {
            // The readable half: its holder can see in a program's settings which credential it
            // uses.
            id: Bearer::prefix(credential.id),
            created_at: Moment(credential.created_at),
            ends_at: credential.ends_at.map(Moment),
        };
        let credentials = listing.credentials.into_iter().map(view).collect();
        Self { api_key: listing.api_key.into(), credentials }
    }
}

/// An API key with its counters.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKeyWithCounters)]
pub(crate) struct ShownKeyView {
    #[serde(flatten)]
    api_key: ApiKeyView,
    /// Readings of its counters in the windows of now.
    counters: Vec<CounterView>,
    /// Holds of its refused and abandoned operations of this month (UTC): the upper bound of their cost to the
    /// operator. Not for support and holders, and missing if the sum takes longer than a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    exposure_micros: Option<i64>,
}

/// Reading of a counter.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Counter)]
struct CounterView {
    counter: String,
    /// Requests, tokens, operations or micros.
    used: i64,
    /// First moment of its window; null if it has no window.
    window_start: Option<Moment>,
    /// Moment at which it begins anew.
    resets_at: Option<Moment>,
}

impl ShownKeyView {
    pub(super) fn new(record: ApiKeyRecord, exposure: Option<Micros>) -> Self {
        let ApiKeyRecord { api_key, counters: CounterSnapshot { counters, now } } = record;
        let view = |counter: Counter| {
            let end = counter.window_end(now);
            Some(CounterView {
                counter: counter.label().to_owned(),
                used: counters.used(counter)?,
                window_start: end.map(|_end| Moment(counter.window(now))),
                resets_at: end.map(Moment),
            })
        };
        let counters = Counter::ALL.into_iter().filter_map(view).collect();
        let exposure_micros = exposure.map(Micros::get);
        Self { api_key: api_key.into(), counters, exposure_micros }
    }
}

/// An API key that was issued or rotated.
#[derive(Serialize, ToSchema)]
#[schema(as = IssuedApiKey)]
pub(crate) struct IssuedKeyView {
    /// Text that its holder sends, shown only in this answer; null if an earlier request created the key.
    key: Option<String>,
    /// Remedy if `key` is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    notice: Option<&'static str>,
    /// Moment at which the other credentials end at the latest, after a rotation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    previous_ends_at: Option<Moment>,
    #[serde(flatten)]
    api_key: ApiKeyView,
}

const SHOWN_BEFORE: &str = "An earlier request with this Idempotency-Key made the key, and its secret was told \
    then. If that answer was lost, POST /admin/v1/api_keys/{id}/rotate with a new Idempotency-Key and \
    `grace_seconds` 0 for another one.";

impl IssuedKeyView {
    pub(super) fn new(issued: IssuedApiKey, replayed: bool) -> Self {
        Self {
            key: issued.bearer.map(|bearer| bearer.expose()),
            notice: replayed.then_some(SHOWN_BEFORE),
            previous_ends_at: issued.others_end_at.map(Moment),
            api_key: issued.api_key.into(),
        }
    }
}

debug_as!(IssuedKeyView as it: "IssuedKeyView({:?})", it.api_key);

/// API keys that were issued together, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = IssuedApiKeys)]
pub(crate) struct IssuedKeysView {
    data: Vec<IssuedKeyView>,
}

impl IssuedKeysView {
    pub(super) fn new(issued: Vec<IssuedApiKey>, replayed: bool) -> Self {
        let view = |issued| IssuedKeyView::new(issued, replayed);
        Self { data: issued.into_iter().map(view).collect() }
    }
}
