//! The charge of an operation, explained: its meters by its price, line by line, to the last digit.
//!
//! Lines are exact, in millionths of a micro; their sum is rounded up once, to a whole micro. So the lines of a
//! table add up to its charge, for all prices. The part beyond the hold is not charged.

use holdfast_domain::billing::UsageRecord;
use holdfast_domain::price::PriceVersion;
use holdfast_domain::{Currency, Micros};

use crate::kit::{Cell, Table, grouped, money};

texts! { #[template(path = "pages/operation.txt")] PriceLinesText {
    Sum = "sum",
    Rounded = "rounded",
    Shortfall = "shortfall",
    Breakdown { above: Option<u64> } = "breakdown",
} }

/// Millionths of a micro in one unit of a currency.
const UNIT: u128 = 1_000_000_000_000;

/// The lines, their sum, and how it becomes the charge.
pub(crate) fn table(price: &PriceVersion, usage: &UsageRecord) -> Table {
    let currency = price.currency;
    let meters = &usage.metered.meters;
    let mut rows = Vec::new();
    let mut sum = 0_u128;
    for line in price.tariff.applied(meters).lines(meters) {
        let amount = line.millionths();
        sum = sum.saturating_add(amount);
        let rate = Micros::saturating_from(u128::from(line.rate));
        let per = if line.kind.per_million() { "per 1M" } else { "each" };
        rows.push(vec![
            Cell::text(line.kind.label().replace('_', " ")),
            Cell::count(line.units),
            Cell::Money(format!("{} {per}", money(rate, currency))),
            Cell::Money(exact(sum_text(amount), currency)),
        ]);
    }
    let total = |what: &str, amount: String| {
        vec![Cell::text(what), Cell::text(""), Cell::text(""), Cell::Money(amount)]
    };
    let cost = price.tariff.cost(meters);
    rows.push(total(&PriceLinesText::Sum.to_string(), exact(sum_text(sum), currency)));
    rows.push(total(&PriceLinesText::Rounded.to_string(), money(cost, currency)));
    if usage.shortfall > Micros::ZERO {
        let beyond = money(usage.shortfall.negated(), currency);
        rows.push(total(&PriceLinesText::Shortfall.to_string(), beyond));
    }
    rows.push(total("Charge", money(usage.charge, currency)));
    let head = ["Meter", "Units", "Price", "Amount"];
    let above = price.tariff.tier(meters).map(|tier| tier.above_prompt_tokens);
    let title = PriceLinesText::Breakdown { above }.to_string();
    Table::new(&title, &head, rows, "").keep(&["Units", "Amount"])
}

/// Millionths of a micro in decimal units: at least two digits behind the dot, without trailing zeros beyond.
fn sum_text(millionths: u128) -> String {
    let (units, fraction) = (millionths / UNIT, millionths % UNIT);
    let fraction = format!("{fraction:012}");
    let (cents, rest) = fraction.split_at(2);
    format!("{units}.{cents}{}", rest.trim_end_matches('0'))
}

fn exact(amount: String, currency: Currency) -> String {
    format!("{} {currency}", grouped(&amount))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_written_to_its_last_digit() {
        for (millionths, text) in [
            (0, "0.00"),
            (1, "0.000000000001"),
            (1_500_000, "0.0000015"),
            (12 * UNIT + UNIT / 4, "12.25"),
        ] {
            assert_eq!(sum_text(millionths), text);
        }
    }
}
