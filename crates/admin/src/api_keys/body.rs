//! Bodies that issue and edit API keys.
//!
//! Limits are flat members, named as in answers. In a body that issues, an absent member means no limit. In a body
//! that edits, an absent member keeps the limit and `null` removes it; a type of its own separates the two. A bound
//! on spend has two members, amount and window, which are given together or not at all.
//!
//! Unknown members are refused: a misspelled limit would not limit the key.

use holdfast_accounts::{KeyOrder, Name};
use holdfast_domain::Timestamp;
use holdfast_domain::admin::ApiKeyPatch;
use holdfast_domain::credential::Grant;
use holdfast_domain::limits::{CountLimit, Limits};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::error::Problem;
use crate::request::ChangeBody;
use crate::value::schema::{ExternalIdText, ModelPatternText, NameText, ReasonText};
use crate::value::{
    BalanceLabel, Moment, UsageLabel, WindowLabel, count, edited_spend, models, parse_some,
    present, spend,
};
use crate::wallets::external_id;

const SPEND: [&str; 2] = ["spend_micros", "spend_window"];

type Result<T> = std::result::Result<T, Problem>;

/// Makes the two bodies that issue keys of one list of members: serde refuses unknown members only if none are flattened.
/// `ApiKeyOrder` has the members, and `ApiKeyDraft` has them between `wallet_id` and `reason`.
macro_rules! orders {
    ($($(#[doc = $doc:literal])? $(#[schema $schema:tt])? $member:ident: $type:ty,)+) => {
        /// Limits and terms of a new API key, without its wallet.
        #[derive(Debug, Deserialize, Serialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct ApiKeyOrder {
            $($(#[doc = $doc])? $(#[schema $schema])? pub(super) $member: $type,)+
        }

        /// An API key to be issued.
        #[derive(Debug, Deserialize, Serialize, ToSchema)]
        #[serde(deny_unknown_fields)]
        pub(crate) struct ApiKeyDraft {
            /// Wallet that pays.
            #[schema(format = "uuid")]
            pub(super) wallet_id: String,
            $($(#[schema $schema])? $member: $type,)+
            /// Reason, required of all callers except the wallet's holder.
            #[schema(value_type = Option<ReasonText>)]
            reason: Option<String>,
        }

        impl ApiKeyDraft {
            /// The key without its wallet.
            pub(super) fn into_order(self) -> ApiKeyOrder {
                ApiKeyOrder { $($member: self.$member),+ }
            }
        }
    };
}

orders! {
    /// 1 to 64 printable characters, not like an id; generated if absent.
    #[schema(value_type = Option<NameText>)]
    name: Option<String>,
    #[schema(value_type = Option<ExternalIdText>)]
    external_id: Option<String>,
    #[schema(minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    requests_per_minute: Option<u64>,
    #[schema(minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    tokens_per_minute: Option<u64>,
    #[schema(minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    concurrency: Option<u64>,
    #[schema(minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    spend_micros: Option<i64>,
    spend_window: Option<WindowLabel>,
    /// Models that it may use; all models if absent.
    #[schema(value_type = Option<Vec<ModelPatternText>>, min_items = 1)]
    models: Option<Vec<String>>,
    balance: Option<BalanceLabel>,
    usage: Option<UsageLabel>,
    /// Moment from which it is not accepted.
    ends_at: Option<Moment>,
    /// The same in seconds from now; not both.
    #[schema(minimum = 1, maximum = 3_155_760_000_u64)]
    ends_in_seconds: Option<u64>,
}

impl ApiKeyOrder {
    /// The order of a key that ends at this moment.
    pub(super) fn order(&self, ends_at: Option<Timestamp>) -> Result<KeyOrder> {
        let limits = Limits {
            requests_per_minute: count("requests_per_minute", self.requests_per_minute)?,
            tokens_per_minute: count("tokens_per_minute", self.tokens_per_minute)?,
            concurrency: count("concurrency", self.concurrency)?,
            spend: spend(SPEND, self.spend_micros, self.spend_window)?,
        };
        let default = Grant::default();
        let grant = Grant {
            limits,
            models: self.models.as_deref().map(models).transpose()?,
            balance: self.balance.map_or(default.balance, Into::into),
            usage: self.usage.map_or(default.usage, Into::into),
            ends_at,
        };
        Ok(KeyOrder {
            name: parse_some("name", self.name.as_deref())?,
            external_id: parse_some("external_id", self.external_id.as_deref())?,
            grant,
        })
    }
}

impl ChangeBody for ApiKeyDraft {
    const AFTER_RESTORE: bool = true;
}

/// API keys of one wallet to be issued, all or none.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiKeyBulk {
    /// Wallet that pays.
    #[schema(format = "uuid")]
    pub(super) wallet_id: String,
    #[schema(min_items = 1, max_items = 100)]
    pub(super) keys: Vec<ApiKeyOrder>,
    /// Reason, required of all callers except the wallet's holder.
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ChangeBody for ApiKeyBulk {
    const DRY_RUN: bool = true;
    const AFTER_RESTORE: bool = true;
}

/// Edit of an API key: what is absent stays as it is, and null removes.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::option_option, reason = "an edit tells absent from null")]
pub(crate) struct ApiKeyEdit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<NameText>)]
    name: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ExternalIdText>)]
    external_id: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    requests_per_minute: Option<Option<u64>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    tokens_per_minute: Option<Option<u64>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>, minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    concurrency: Option<Option<u64>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<i64>, minimum = 1, maximum = 1_000_000_000_000_000_u64)]
    spend_micros: Option<Option<i64>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<WindowLabel>)]
    spend_window: Option<Option<WindowLabel>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<ModelPatternText>>, min_items = 1)]
    models: Option<Option<Vec<String>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    balance: Option<BalanceLabel>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<UsageLabel>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Moment>)]
    pub(super) ends_at: Option<Option<Moment>>,
    /// The end in seconds from now, instead of `ends_at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 3_155_760_000_u64)]
    pub(super) ends_in_seconds: Option<u64>,
    #[schema(value_type = Option<ReasonText>)]
    reason: Option<String>,
}

impl ApiKeyEdit {
    /// The edit without the end, which may depend on the database's clock.
    pub(super) fn patch(&self) -> Result<ApiKeyPatch> {
        let edited = |limit: CountLimit| {
            let to = match limit {
                CountLimit::RequestsPerMinute => self.requests_per_minute,
                CountLimit::TokensPerMinute => self.tokens_per_minute,
                CountLimit::Concurrency => self.concurrency,
            };
            to.map(|to| Ok((limit, count(limit.row().member, to)?)))
        };
        let counts = CountLimit::ALL.into_iter().filter_map(edited).collect::<Result<_>>()?;
        let name: Option<Name> = parse_some("name", self.name.as_deref())?;
        let external = self.external_id.as_ref().map(|id| external_id(id.as_deref()));
        let ids = self.models.as_ref().map(|ids| ids.as_deref().map(models).transpose());
        Ok(ApiKeyPatch {
            name: name.map(|name| name.as_str().to_owned()),
            external_id: external.transpose()?,
            counts,
            spend: edited_spend(SPEND, self.spend_micros, self.spend_window)?,
            models: ids.transpose()?,
            balance: self.balance.map(Into::into),
            usage: self.usage.map(Into::into),
            ends_at: None,
        })
    }
}

impl ChangeBody for ApiKeyEdit {
    const NULLABLE: &'static [&'static str] = &[
        "external_id",
        "requests_per_minute",
        "tokens_per_minute",
        "concurrency",
        "spend_micros",
        "spend_window",
        "models",
        "ends_at",
    ];
}
