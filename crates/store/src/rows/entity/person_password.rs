//! `person_passwords`: who has one. Never the hash: no list has a use for it.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "person_passwords")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub person_id: Vec<u8>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
