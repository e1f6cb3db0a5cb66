//! `credentials`: the names and ends of the credentials of API keys. The verifier is not a column here: no list
//! needs it, and a derived `Debug` would print it.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "credentials")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: Vec<u8>,
    pub api_key_id: Vec<u8>,
    pub server_secret: Vec<u8>,
    pub created_at: i64,
    pub ends_at: Option<i64>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {
    #[sea_orm(
        belongs_to = "super::api_key::Entity",
        from = "Column::ApiKeyId",
        to = "super::api_key::Column::Id"
    )]
    ApiKey,
}

impl ActiveModelBehavior for ActiveModel {}
