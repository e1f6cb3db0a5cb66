//! Exact decimal numbers, so that `1`, `1.0` and `1e0` are one value and no float is ever involved.
//!
//! A float would make one request of two whose numbers round to the same bits, and send a provider
//! another number than the caller wrote. So a number is kept as sign, digits and
//! power of ten, without trailing zeros, and spelled in one way. More than 34 significant digits,
//! or a power beyond ±400, is refused and never rounded.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// Decimal number `±digits × 10^exponent` without trailing zeros in its digits; zero has no sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal {
    negative: bool,
    digits: u128,
    exponent: i16,
}

/// Significant digits that are kept; a longer number is refused, never rounded.
const DIGITS_MAX: usize = 34;
/// The largest power of ten, either way.
const EXPONENT_MAX: u32 = 400;

impl Decimal {
    /// Sign (true: negative), digits and power of ten: equal numbers have equal parts.
    #[must_use]
    pub const fn parts(&self) -> (bool, u128, i16) {
        (self.negative, self.digits, self.exponent)
    }

    /// The value as a whole number; `None` if it is not one or does not fit.
    #[must_use]
    pub fn to_integer(&self) -> Option<i128> {
        // A negative exponent is a fraction: the digits have no trailing zero that would cancel it.
        let scale = 10_u128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        let magnitude = i128::try_from(self.digits.checked_mul(scale)?).ok()?;
        if self.negative { magnitude.checked_neg() } else { Some(magnitude) }
    }

    /// True if it lies within these whole numbers, both included.
    #[must_use]
    pub fn is_within(&self, low: i32, high: i32) -> bool {
        self.compare(low) != Ordering::Less && self.compare(high) != Ordering::Greater
    }

    /// Compares with a small whole number, exactly.
    fn compare(&self, whole: i32) -> Ordering {
        let other_negative = whole < 0;
        if self.negative != other_negative {
            return if self.negative { Ordering::Less } else { Ordering::Greater };
        }
        let magnitude = self.compare_magnitude(u128::from(whole.unsigned_abs()));
        if self.negative { magnitude.reverse() } else { magnitude }
    }

    fn compare_magnitude(&self, other: u128) -> Ordering {
        let power = 10_u128.checked_pow(u32::from(self.exponent.unsigned_abs()));
        if self.exponent >= 0 {
            // Where the product does not fit, it is larger than any i32: zero's exponent is zero.
            match power.and_then(|power| self.digits.checked_mul(power)) {
                Some(scaled) => scaled.cmp(&other),
                None => Ordering::Greater,
            }
        } else {
            // Where the other side does not fit, the digits (below 10^34) are smaller.
            match power.and_then(|power| other.checked_mul(power)) {
                Some(scaled) => self.digits.cmp(&scaled),
                None if other == 0 => self.digits.cmp(&0),
                None => Ordering::Less,
            }
        }
    }
}

impl FromStr for Decimal {
    type Err = BadDecimal;

    /// Reads a JSON number. The grammar is the JSON parser's business: this takes what it accepts.
    fn from_str(lexeme: &str) -> Result<Self, BadDecimal> {
        let (negative, rest) =
            lexeme.strip_prefix('-').map_or((false, lexeme), |rest| (true, rest));
        let (mantissa, power) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return Err(BadDecimal);
        }
        let (digits, trimmed) = significant(whole.bytes().chain(fraction.bytes()))?;
        // Of any sign and power: one zero.
        if digits == 0 {
            return Ok(Self { negative: false, digits, exponent: 0 });
        }
        // `1.50e3` = 15 × 10^(3 - 2 + 1): the power, less the fraction, plus the trimmed zeros.
        let length = |length: usize| i32::try_from(length).map_err(|_huge| BadDecimal);
        let power: i32 = power.parse().map_err(|_huge| BadDecimal)?;
        let exponent =
            power.saturating_sub(length(fraction.len())?).saturating_add(length(trimmed)?);
        if exponent.unsigned_abs() > EXPONENT_MAX {
            return Err(BadDecimal);
        }
        let exponent = i16::try_from(exponent).map_err(|_impossible| BadDecimal)?;
        Ok(Self { negative, digits, exponent })
    }
}

/// The number that these digits spell without the zeros at its end, and how many those are.
fn significant(spelled: impl Iterator<Item = u8>) -> Result<(u128, usize), BadDecimal> {
    let (mut digits, mut n_digits, mut n_zeros) = (0_u128, 0_usize, 0_usize);
    for byte in spelled {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(BadDecimal);
        }
        if digit == 0 {
            n_zeros = n_zeros.saturating_add(1);
            continue;
        }
        // Zeros before the first other digit say nothing.
        let before = if digits == 0 { 0 } else { n_zeros };
        n_digits = n_digits.saturating_add(before).saturating_add(1);
        if n_digits > DIGITS_MAX {
            return Err(BadDecimal);
        }
        // 34 digits are below 2^113, so that none of these checks fails: the bound above refuses
        // first.
        let shift = u32::try_from(before).ok().and_then(|zeros| zeros.checked_add(1));
        let scaled = shift
            .and_then(|shift| 10_u128.checked_pow(shift))
            .and_then(|scale| digits.checked_mul(scale))
            .and_then(|scaled| scaled.checked_add(u128::from(digit)));
        digits = scaled.ok_or(BadDecimal)?;
        n_zeros = 0;
    }
    Ok((digits, n_zeros))
}

impl fmt::Display for Decimal {
    /// A JSON number; one spelling for each value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        let shift = self.exponent.unsigned_abs();
        let (width, shift) = (usize::from(shift), u32::from(shift));
        // The same number in the narrower type is spelled several times as fast.
        let few = u64::try_from(self.digits).ok();
        let n_digits = self.digits.checked_ilog10().unwrap_or(0).saturating_add(1);
        if self.exponent >= 0 && n_digits.saturating_add(shift) <= 20 {
            return match few {
                Some(few) => write!(f, "{sign}{few}{:0<width$}", ""),
                None => write!(f, "{sign}{}{:0<width$}", self.digits, ""),
            };
        }
        if self.exponent < 0 && shift <= 20 {
            let split = |few: u64| {
                let scale = 10_u64.checked_pow(shift)?;
                few.checked_div(scale).zip(few.checked_rem(scale))
            };
            if let Some((whole, fraction)) = few.and_then(split) {
                return write!(f, "{sign}{whole}.{fraction:0width$}");
            }
            // A power of at most 20 always fits.
            let scale = 10_u128.saturating_pow(shift);
            let split = self.digits.checked_div(scale).zip(self.digits.checked_rem(scale));
            if let Some((whole, fraction)) = split {
                return write!(f, "{sign}{whole}.{fraction:0width$}");
            }
        }
        write!(f, "{sign}{}e{}", self.digits, self.exponent)
    }
}

/// A number with too many digits or too large a power of ten to keep exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a number of at most 34 significant digits")]
pub struct BadDecimal;

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(lexeme: &str, shown: &str) {
        assert_eq!(lexeme.parse::<Decimal>().unwrap().to_string(), shown);
    }

    #[test]
    fn every_value_has_one_spelling() {
        for same in ["1", "1.0", "1e0", "10e-1", "0.1e1", "1.000"] {
            check(same, "1");
        }
        for zero in ["0", "-0", "-0.0", "0e9", "0.000e-7"] {
            check(zero, "0");
        }
        check("0.70", "0.7");
        check("-1.5E+1", "-15");
        check("1e-25", "1e-25");
        check("12e30", "12e30");
        check("123456789012345678901", "123456789012345678901e0");
        check("12345678901234567890", "12345678901234567890");
        check("18446744073709551616", "18446744073709551616");
        check("1234567890123456789.012345678901234", "1234567890123456789.012345678901234");
        check("-0.00000000000000000012", "-0.00000000000000000012");
        check("1e-20", "0.00000000000000000001");
        check("1e-21", "1e-21");
        check("1e19", "10000000000000000000");
        check("000100.00", "100");
        check("10.01", "10.01");
    }

    #[test]
    fn ranges_are_exact() {
        let within = |lexeme: &str| lexeme.parse::<Decimal>().unwrap().is_within(-2, 2);
        for inside in ["2", "-2", "2.0", "0", "1e-400", "-1.9999999999999999999999999999"] {
            assert!(within(inside), "{inside}");
        }
        for outside in ["2.0000000000000000000000000000001", "-2.1", "3", "1e400", "-1e39"] {
            assert!(!within(outside), "{outside}");
        }
    }

    #[test]
    fn ranges_may_end_at_zero() {
        let within =
            |lexeme: &str, low, high| lexeme.parse::<Decimal>().unwrap().is_within(low, high);
        for (lexeme, above, below) in
            [("0", true, true), ("1e-400", true, false), ("-1e-400", false, true)]
        {
            assert_eq!(within(lexeme, 0, 2), above, "{lexeme}");
            assert_eq!(within(lexeme, -2, 0), below, "{lexeme}");
        }
    }

    #[test]
    fn whole_numbers_are_told_apart() {
        let whole = |lexeme: &str| lexeme.parse::<Decimal>().unwrap().to_integer();
        assert_eq!(whole("1e2"), Some(100));
        assert_eq!(whole("-9223372036854775808"), Some(i128::from(i64::MIN)));
        assert_eq!(whole("1.5"), None);
        assert_eq!(whole("1e400"), None);
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        assert!("1".repeat(34).parse::<Decimal>().is_ok());
        for bad in ["", "-", "x", "1e401", "1e-2147483648", "1e99999999999", &"1".repeat(35)] {
            assert_eq!(bad.parse::<Decimal>(), Err(BadDecimal), "{bad}");
        }
    }
}
