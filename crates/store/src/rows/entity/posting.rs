//! `postings`: money that moves without an operation running.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "postings")]
pub struct Model {
    #[sea_orm(primary_key)]
    pub seq: i64,
    pub created_at: i64,
    #[sea_orm(unique)]
    pub id: Vec<u8>,
    pub wallet_id: Vec<u8>,
    pub amount: i64,
    pub kind: String,
    pub operation_id: Option<Vec<u8>>,
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
