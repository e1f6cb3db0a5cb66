//! Rates and tiers of a price version as columns: the rates one each, the tiers in one text, a line for
//! each tier: its threshold, then its rates in the order of the columns.

use holdfast_domain::price::{Tariff, Tier, UnitPrices};
use holdfast_domain::usage::MeterKind;

use super::{BadRow, Cells, of_kind};

/// Reads the rates and the tiers.
pub(super) fn read(cells: &mut Cells<'_>) -> Result<Tariff, BadRow> {
    let at = cells.next;
    let rates =
        cells.counts()?.and_then(|rates| UnitPrices::from_fn(|kind| of_kind(&rates, kind)).ok());
    let rates = rates.ok_or(BadRow::Value(at))?;
    cells.parse(|text: String| {
        let tiers = text.lines().map(tier).collect::<Option<_>>()?;
        // Checked as a configuration is: tiers out of order would charge by the wrong one.
        Tariff::with_tiers(rates, tiers).ok()
    })
}

/// The tiers as the text that [`read`] reads.
pub(crate) fn tiers_text(tariff: &Tariff) -> String {
    let tier = |tier: &Tier| {
        let rates = MeterKind::ALL.map(|kind| tier.rates.rate(kind).to_string()).join(" ");
        format!("{} {rates}", tier.above_prompt_tokens)
    };
    tariff.tiers().iter().map(tier).collect::<Vec<_>>().join("\n")
}

fn tier(line: &str) -> Option<Tier> {
    let numbers = line.split(' ').map(|number| number.parse().ok());
    let numbers = numbers.collect::<Option<Vec<u64>>>()?;
    let (above_prompt_tokens, rates) = numbers.split_first()?;
    let rates: &[u64; MeterKind::COUNT] = rates.try_into().ok()?;
    let rates = UnitPrices::from_fn(|kind| of_kind(rates, kind)).ok()?;
    Some(Tier { above_prompt_tokens: *above_prompt_tokens, rates })
}
