//! `wallets`: who pays.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "wallets")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub seq: i64,
    pub created_at: i64,
    pub external_id: Option<String>,
    pub low_balance: Option<i64>,
    pub key_spend: Option<i64>,
    pub key_spend_window: Option<String>,
    pub edited: i64,
    pub closed_at: Option<i64>,
    #[sea_orm(unique)]
    pub id: Vec<u8>,
    #[sea_orm(unique)]
    pub name: String,
    pub currency: String,
    pub available: i64,
    pub held: i64,
    pub suspended_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
