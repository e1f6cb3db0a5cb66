//! `audit_addresses`: network addresses of audit log rows, kept for a while in a table of their own.

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
