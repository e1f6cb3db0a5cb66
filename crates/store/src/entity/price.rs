//! `prices`: price versions, which never change.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "prices")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub price_version: String,
    pub currency: String,
    pub input: i64,
    pub cached_input: i64,
    pub cache_write: i64,
    pub audio_input: i64,
    pub output: i64,
    pub reasoning: i64,
    pub audio_output: i64,
    pub request: i64,
    pub image: i64,
    pub tiers: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
