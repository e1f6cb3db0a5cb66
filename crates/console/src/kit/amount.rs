//! Numbers of reports as text: amounts with a fixed number of decimals, shares and differences in percent.
//!
//! Never: a float. Every number is rounded once, from micros.

use holdfast_domain::{Currency, Micros};

use crate::kit::{grouped, money};

const MICROS_PER_CENT: u64 = 10_000;

/// An amount with six decimals and without its currency: `1,250.000000`.
pub(crate) fn exact(amount: Micros) -> String {
    let sign = if amount < Micros::ZERO { "-" } else { "" };
    let all = format!("{:07}", amount.get().unsigned_abs());
    let (units, fraction) = all.split_at(all.len().saturating_sub(6));
    grouped(&format!("{sign}{units}.{fraction}"))
}

/// The same with its currency: `1,250.000000 USD`.
pub(crate) fn exact_money(amount: Micros, currency: Currency) -> String {
    format!("{} {currency}", exact(amount))
}

/// An amount with two decimals and its currency, rounded half away from zero: `1,250.00 USD`. Less than a cent has all
/// its decimals, as it would look like zero.
pub(crate) fn cents(amount: Micros, currency: Currency) -> String {
    let micros = amount.get().unsigned_abs();
    if micros < MICROS_PER_CENT {
        return money(amount, currency);
    }
    // Of the absolute amount: both signs round away from zero.
    let cents = micros.saturating_add(MICROS_PER_CENT / 2) / MICROS_PER_CENT;
    let sign = if amount < Micros::ZERO { "-" } else { "" };
    let number = grouped(&format!("{sign}{}.{:02}", cents / 100, cents % 100));
    format!("{number} {currency}")
}

/// A share in percent with one decimal: `20.6 %`. None of a whole that is not above zero.
pub(crate) fn percent(part: i64, whole: i64) -> Option<String> {
    let mille = rounded(i128::from(part).saturating_mul(1_000), whole)?;
    let sign = if mille < 0 { "-" } else { "" };
    Some(format!("{sign}{}.{} %", mille.unsigned_abs() / 10, mille.unsigned_abs() % 10))
}

/// Difference to an earlier value in percent: `+12 %`, or `no change` if it rounds to zero. None to a value that is not above zero.
pub(crate) fn difference(now: i64, before: i64) -> Option<String> {
    let change = i128::from(now).saturating_sub(i128::from(before)).saturating_mul(100);
    let change = rounded(change, before)?;
    Some(match change {
        0 => "no change".to_owned(),
        -999..=999 => format!("{change:+} %"),
        1_000.. => "more than +999 %".to_owned(),
        ..-999 => "less than -999 %".to_owned(),
    })
}

/// A quotient, rounded half away from zero.
fn rounded(part: i128, whole: i64) -> Option<i128> {
    let whole = i128::from(whole);
    // Division cuts towards zero: half of the divisor, with the sign of the part, makes it round.
    let half = if part < 0 { -whole / 2 } else { whole / 2 };
    (whole > 0).then(|| part.saturating_add(half) / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_fixed_decimals_and_round_half_away_from_zero() {
        assert_eq!(exact(Micros::new(1_250_000_000)), "1,250.000000");
        assert_eq!(exact(Micros::new(-15)), "-0.000015");
        for (micros, shown) in [
            (1_250_005_000, "1,250.01 USD"),
            (1_250_004_999, "1,250.00 USD"),
            (-15_000, "-0.02 USD"),
            (-15, "-0.000015 USD"),
            (9_999, "0.009999 USD"),
            (0, "0.00 USD"),
        ] {
            assert_eq!(cents(Micros::new(micros), Currency::USD), shown);
        }
    }

    #[test]
    fn shares_and_differences_are_of_a_positive_whole() {
        assert_eq!(percent(206, 1_000).as_deref(), Some("20.6 %"));
        assert_eq!(percent(-5, 1_000).as_deref(), Some("-0.5 %"));
        assert_eq!(percent(i64::MAX, 1).as_deref(), Some("922337203685477580700.0 %"));
        assert_eq!((percent(1, 0), difference(1, 0), difference(1, -3)), (None, None, None));
        assert_eq!(difference(112, 100).as_deref(), Some("+12 %"));
        assert_eq!(difference(1, 3).as_deref(), Some("-67 %"));
        assert_eq!(difference(5_000, 1).as_deref(), Some("more than +999 %"));
        assert_eq!(difference(-5_000, 1).as_deref(), Some("less than -999 %"));
        assert_eq!(difference(1_001, 1_000).as_deref(), Some("no change"));
    }
}
