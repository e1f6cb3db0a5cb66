//! `admin_keys`: who administers over the network.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "admin_keys")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub seq: i64,
    #[sea_orm(unique)]
    pub id: Vec<u8>,
    pub name: String,
    pub role: String,
    pub wallet_id: Option<Vec<u8>>,
    pub ends_at: Option<i64>,
    pub created_at: i64,
    pub created_by: String,
    pub revoked_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
