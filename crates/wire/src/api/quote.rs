//! A quote as its caller sees it: the hold, and the lines that it is the sum of.

use holdfast_domain::Micros;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::price::{PriceLine, PriceVersion};
use serde::Serialize;

/// The price of a body before it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct QuoteView {
    object: &'static str,
    model: String,
    contract: u32,
    currency: String,
    price_version: String,
    hold_micros: i64,
    lines: Vec<QuoteLineView>,
}

/// A line: its amount is `units` × `price_micros` / `per_units`. The sum is rounded up once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct QuoteLineView {
    kind: &'static str,
    units: u64,
    price_micros: u64,
    per_units: u64,
}

impl QuoteView {
    /// Shows a hold under this contract and price, without lines of zero.
    #[must_use]
    pub fn of(
        (model, contract): (&PublicModelId, u32),
        price: &PriceVersion,
        hold: Micros,
        lines: &[PriceLine],
    ) -> Self {
        let line = |line: &PriceLine| QuoteLineView {
            kind: line.kind.label(),
            units: line.units,
            price_micros: line.rate,
            per_units: if line.kind.per_million() { 1_000_000 } else { 1 },
        };
        Self {
            object: "quote",
            model: model.as_str().to_owned(),
            contract,
            currency: price.currency.to_string(),
            price_version: price.id.to_string(),
            hold_micros: hold.get(),
            lines: lines.iter().filter(|it| it.units > 0).map(line).collect(),
        }
    }
}
