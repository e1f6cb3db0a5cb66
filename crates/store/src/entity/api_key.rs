//! `api_keys`: who may spend what of a wallet.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "api_keys")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub seq: i64,
    #[sea_orm(unique)]
    pub id: Vec<u8>,
    pub wallet_id: Vec<u8>,
    pub name: String,
    pub requests_per_minute: Option<i64>,
    pub tokens_per_minute: Option<i64>,
    pub concurrency: Option<i64>,
    pub spend_micros: Option<i64>,
    pub spend_window: Option<String>,
    pub models: Option<String>,
    pub balance: String,
    pub ends_at: Option<i64>,
    pub created_at: i64,
    pub revoked_at: Option<i64>,
    pub external_id: Option<String>,
    pub usage: String,
    pub edited: i64,
    pub suspended_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
