//! `prices`: price versions, which never change.

use holdfast_domain::price::PriceVersion;
use holdfast_domain::usage::MeterKind;
use sea_orm::Iterable as _;
use sea_orm::entity::prelude::*;

use crate::rows::{self, BadRow, Cells, Columns, FromCells, Row, tariff};

#[derive(Debug, Clone, PartialEq, Eq, DeriveEntityModel)]
#[sea_orm(table_name = "prices")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub price_version: String,
    pub currency: String,
    pub input: i64,
    pub cached_input: i64,
    pub cache_write: i64,
    pub audio_input: i64,
    pub output: i64,
    pub reasoning: i64,
    pub audio_output: i64,
    pub request: i64,
    pub image: i64,
    pub tiers: String,
}

#[derive(Debug, Clone, Copy, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}

impl FromCells for PriceVersion {
    fn from_cells(cells: &mut Cells<'_>) -> Result<Self, BadRow> {
        rows::price(cells)
    }
}

impl Row for PriceVersion {
    const TABLE: &'static str = "prices";
    const COLUMNS: &'static str = rows::PRICE;

    fn columns(&self) -> [Columns; 2] {
        let rates = MeterKind::ALL.map(|kind| rows::signed(self.tariff.rates().rate(kind)).into());
        let names = [self.id.as_str(), self.currency.as_str()].map(Value::from);
        let values =
            names.into_iter().chain(rates).chain([tariff::tiers_text(&self.tariff).into()]);
        [Column::iter().map(|column| column.as_str()).zip(values).collect(), Vec::new()]
    }
}
