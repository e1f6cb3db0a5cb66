//! `person_grants`: what people may.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "person_grants")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub seq: i64,
    pub person_id: Vec<u8>,
    pub role: String,
    pub wallet_id: Option<Vec<u8>>,
    pub granted_at: i64,
    pub granted_by: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
