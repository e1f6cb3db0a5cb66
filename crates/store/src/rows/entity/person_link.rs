//! `person_links`: the last link of each person, without the hash of its token.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "person_links")]
pub struct Model {
    #[sea_orm(unique)]
    pub id: Vec<u8>,
    #[sea_orm(primary_key, auto_increment = false)]
    pub person_id: Vec<u8>,
    pub purpose: String,
    pub role: Option<String>,
    pub wallet_id: Option<Vec<u8>>,
    pub expires_at: i64,
    pub used_at: Option<i64>,
    pub created_by: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
