//! `usage_hours`: sums of what has finished, by hour, wallet, API key, model and route.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "usage_hours")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub wallet_id: Vec<u8>,
    #[sea_orm(primary_key)]
    pub hour: i64,
    #[sea_orm(primary_key)]
    pub api_key_id: Vec<u8>,
    #[sea_orm(primary_key)]
    pub model: String,
    #[sea_orm(primary_key)]
    pub route: String,
    pub completed: i64,
    pub refused: i64,
    pub abandoned: i64,
    pub estimated: i64,
    pub input: i64,
    pub cached_input: i64,
    pub cache_write: i64,
    pub audio_input: i64,
    pub output: i64,
    pub reasoning: i64,
    pub audio_output: i64,
    pub request: i64,
    pub image: i64,
    pub charge: i64,
    pub shortfall: i64,
    pub refunded: i64,
    pub exposure: i64,
    pub costs_excluded: i64,
    pub costed: i64,
    pub provider_cost: i64,
    pub margin: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
