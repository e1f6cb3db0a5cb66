//! Price versions, kept for ever.

use holdfast_domain::price::{PriceVersion, PriceVersionId};
use holdfast_domain::usage::MeterKind;
use rusqlite::Statement;

use super::write_task::WriteError;
use crate::rows::{self, Cells, tariff};

pub(super) const PRICE: &str = "SELECT price_version, currency, input, cached_input, cache_write,
    audio_input, output, reasoning, audio_output, request, image, tiers
    FROM prices WHERE price_version = ?1";
pub(super) const KEEP_PRICE: &str = "INSERT INTO prices (price_version, currency, input,
    cached_input, cache_write, audio_input, output, reasoning, audio_output, request, image, tiers)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";

/// The price version of this name, by [`PRICE`].
pub(super) fn find_price(
    statement: &mut Statement<'_>,
    id: &PriceVersionId,
) -> Result<Option<PriceVersion>, WriteError> {
    let mut found = statement.query([id.as_str()])?;
    match found.next()? {
        Some(row) => Ok(Some(rows::price(&mut Cells::written(row))?)),
        None => Ok(None),
    }
}

/// Keeps one by [`KEEP_PRICE`].
pub(super) fn keep_price(
    statement: &mut Statement<'_>,
    price: &PriceVersion,
) -> rusqlite::Result<usize> {
    let rates = MeterKind::ALL.map(|kind| rows::signed(price.tariff.rates().rate(kind)));
    let [input, cached, written, heard, output, reasoning, spoken, request, image] = rates;
    let (id, currency) = (price.id.as_str(), price.currency.as_str());
    let tiers = tariff::tiers_text(&price.tariff);
    statement.execute((
        id, currency, input, cached, written, heard, output, reasoning, spoken, request, image,
        tiers,
    ))
}
