//! `refusal_hours`: refused requests counted by hour, wallet, API key and code.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "refusal_hours")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub wallet_id: Vec<u8>,
    #[sea_orm(primary_key)]
    pub hour: i64,
    #[sea_orm(primary_key)]
    pub api_key_id: Vec<u8>,
    #[sea_orm(primary_key)]
    pub code: String,
    pub count: i64,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
