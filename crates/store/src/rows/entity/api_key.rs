//! `api_keys`: who may spend what of a wallet.

use std::collections::BTreeSet;

use holdfast_domain::credential::{ApiKey, BalanceVisibility, Grant, UsageScope};
use holdfast_domain::limits::{Limits, SpendWindow};
use holdfast_domain::model::ModelPattern;
use holdfast_domain::{ApiKeyId, Micros, Timestamp, WalletId};

use crate::rows::spend_limit;

row! {
    "api_keys" as "k", key: ApiKey;
    listed { #[sea_orm(primary_key)] seq: i64 }
    made {
        id: ApiKeyId = key.id,
        wallet_id: WalletId = key.wallet,
        created_at: Timestamp = key.created_at,
    }
    set {
        name: String = key.name,
        external_id: Option<String> = key.external_id,
        requests_per_minute: Option<u64> = key.grant.limits.requests_per_minute,
        tokens_per_minute: Option<u64> = key.grant.limits.tokens_per_minute,
        concurrency: Option<u64> = key.grant.limits.concurrency,
        spend_micros: Option<Micros> = key.grant.limits.spend.map(|limit| limit.micros),
        spend_window: Option<SpendWindow> = key.grant.limits.spend.map(|limit| limit.window),
        models: Option<BTreeSet<ModelPattern>> = key.grant.models,
        balance: BalanceVisibility = key.grant.balance,
        usage: UsageScope = key.grant.usage,
        ends_at: Option<Timestamp> = key.grant.ends_at,
        edited: u32 = key.edited,
        suspended_at: Option<Timestamp> = key.suspended_at,
        revoked_at: Option<Timestamp> = key.revoked_at,
    }
    {
        let spend = spend_limit(spend_micros, spend_window);
        let limits = Limits { requests_per_minute, tokens_per_minute, concurrency, spend };
        let grant = Grant { limits, models, balance, usage, ends_at };
        let wallet = wallet_id;
        ApiKey { id, wallet, name, external_id, grant, edited, created_at, suspended_at, revoked_at }
    }
}
