//! `audit_addresses`: network addresses beside the trail, kept for a while.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit_addresses")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub audit_seq: i64,
    pub address: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
