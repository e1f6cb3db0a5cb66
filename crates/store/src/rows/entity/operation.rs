//! `operations`: one row a request key, with its hold, its usage record and its settlement.
//!
//! None of its relations is a foreign key, and none is missing in an intact ledger.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "operations")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub seq: i64,
    pub released: Option<i64>,
    pub price_version: String,
    #[sea_orm(unique)]
    pub id: Vec<u8>,
    pub api_key_id: Vec<u8>,
    pub request_key: Vec<u8>,
    pub wallet_id: Vec<u8>,
    pub model: String,
    pub server_secret: Vec<u8>,
    pub fingerprint_version: i64,
    pub contract: i64,
    pub fingerprint: Vec<u8>,
    pub body_digest: Vec<u8>,
    pub created_at: i64,
    pub generation: i64,
    pub hold: i64,
    pub reserved_counters: i64,
    pub reserved_tokens: i64,
    pub claim: Vec<u8>,
    pub node: String,
    pub incarnation: Vec<u8>,
    pub admitted_at: i64,
    pub deadline: i64,
    pub phase: String,
    pub version: i64,
    pub cancel_asked: i64,
    pub attempts: String,
    pub input: Option<i64>,
    pub cached_input: Option<i64>,
    pub cache_write: Option<i64>,
    pub audio_input: Option<i64>,
    pub output: Option<i64>,
    pub reasoning: Option<i64>,
    pub audio_output: Option<i64>,
    pub request: Option<i64>,
    pub image: Option<i64>,
    pub meters_source: Option<String>,
    pub charge: Option<i64>,
    pub shortfall: Option<i64>,
    pub provider_cost: Option<i64>,
    pub usage_reasons: Option<i64>,
    pub refusal: Option<String>,
    pub finished_at: Option<i64>,
    pub model_alias: Option<String>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::api_key::Entity",
        from = "Column::ApiKeyId",
        to = "super::api_key::Column::Id"
    )]
    ApiKey,
    #[sea_orm(
        belongs_to = "super::price::Entity",
        from = "Column::PriceVersion",
        to = "super::price::Column::PriceVersion"
    )]
    Price,
    #[sea_orm(
        belongs_to = "super::node::Entity",
        from = "Column::Node",
        to = "super::node::Column::Name"
    )]
    Node,
}

impl ActiveModelBehavior for ActiveModel {}
