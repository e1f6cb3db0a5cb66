//! `audit`: the trail of administration.

use sea_orm::entity::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "audit")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub seq: i64,
    pub created_at: i64,
    pub actor: String,
    pub use_case: String,
    pub thing_kind: String,
    pub thing_id: Vec<u8>,
    pub request_key: Vec<u8>,
    pub digest: Vec<u8>,
    pub changes: String,
    pub reason: Option<String>,
    pub server_secret: Vec<u8>,
    pub mac: Vec<u8>,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
