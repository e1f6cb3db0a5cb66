//! Price versions, kept for ever.

use std::collections::BTreeMap;

use async_trait::async_trait;
use holdfast_domain::Prices;
use holdfast_domain::ports::PinError;
use holdfast_domain::price::{PriceVersion, PriceVersionId};
use sea_orm::{Statement, Value};

use crate::rows::{FromCells, Row};
use crate::schema::Dialect;
use crate::store::Store;
use crate::transaction::exchange::Exchange;

/// Attempts to look versions up again after another process was faster.
const TRIES: u32 = 3;

#[async_trait]
impl Prices for Store {
    async fn pin(&self, versions: &[PriceVersion]) -> Result<(), PinError> {
        if versions.is_empty() {
            return Ok(());
        }
        let mut tries = TRIES;
        loop {
            tries -= 1;
            match self.try_exchange(pin(self.dialect(), versions.to_vec())).await {
                Ok(None) => return Ok(()),
                Ok(Some(other)) => return Err(PinError::Conflict(other)),
                // Another process has pinned it meanwhile: with these numbers, or with others.
                Err(error) if error.is_taken && tries > 0 => {}
                Err(error) => return Err(PinError::Unavailable(error.cause)),
            }
        }
    }
}

/// Keeps the unknown ones of these. If one contradicts a known version, returns its name and keeps none.
fn pin(
    dialect: Dialect,
    versions: Vec<PriceVersion>,
) -> Exchange<PriceVersion, Option<PriceVersionId>> {
    let places: Vec<_> = (1..=versions.len()).map(|at| format!("${at}")).collect();
    let (columns, places) = (PriceVersion::COLUMNS, places.join(", "));
    let sql = format!("SELECT {columns} FROM prices AS p WHERE p.price_version IN ({places})");
    let names: Vec<_> = versions.iter().map(|it| Value::from(it.id.as_str())).collect();
    let known = Statement::from_sql_and_values(dialect.backend(), sql, names);
    let judge = move |known: Vec<PriceVersion>, _now| {
        let mut known: BTreeMap<_, _> = known.into_iter().map(|it| (it.id.clone(), it)).collect();
        let mut inserts = Vec::new();
        for version in versions {
            match known.get(&version.id) {
                Some(same) if *same == version => {}
                Some(_other) => return (Vec::new(), Some(version.id)),
                // Twice in one configuration: the second must not differ from the first.
                None => {
                    inserts.push(version.insert(dialect));
                    known.insert(version.id.clone(), version);
                }
            }
        }
        (inserts, None)
    };
    Exchange::new(|_now| known, FromCells::from_cells, judge)
}
