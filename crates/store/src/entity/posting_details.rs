//! `posting_details`: what postings say beside their money.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "posting_details")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub posting_id: Vec<u8>,
    pub source: Option<String>,
    pub external_reference: Option<String>,
    pub reason: Option<String>,
    pub note: Option<String>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
