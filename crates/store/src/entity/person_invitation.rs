//! `person_invitations`: the first invitation of each person for each wallet.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "person_invitations")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub person_id: Vec<u8>,
    #[sea_orm(primary_key, auto_increment = false)]
    pub wallet_id: Vec<u8>,
    pub name: Option<String>,
    pub invited_at: i64,
    pub invited_by: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
