//! Amounts and moments: whole micros of a currency, whole microseconds of UTC. Never a float.
//!
//! An amount knows no currency: that is its wallet's, fixed at creation, and amounts of two wallets
//! never meet. A moment is the database's, never a process's own: clocks of nodes are not compared.

use crate::debug_as;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Millionths of a wallet's currency. Arithmetic is checked: an overflow is an answer, not a wrap.
///
/// ```
/// use holdfast_domain::Micros;
///
/// let price: Micros = "0.002".parse()?;
/// assert_eq!((price.get(), price.to_string()), (2_000, "0.002".to_owned()));
/// assert_eq!(Micros::MAX.plus(price), None);
/// # Ok::<(), holdfast_domain::money::BadAmount>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(i64);

impl Micros {
    /// No money.
    pub const ZERO: Self = Self(0);
    /// The largest amount.
    pub const MAX: Self = Self(i64::MAX);

    /// The largest balance of a wallet, held funds included: each program that reads JSON reads it exactly.
    pub const BALANCE_MAX: Self = Self((1 << 53) - 1);
    /// The largest amount of one posting.
    pub const POSTING_MAX: Self = Self(1_000_000_000_000_000);

    /// Amount of this many micros.
    #[must_use]
    pub const fn new(micros: i64) -> Self {
        Self(micros)
    }

    /// The number of micros.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The sum, or `None` if it does not fit.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        self.0.checked_add(other.0).map(Self)
    }

    /// The difference, or `None` if it does not fit.
    #[must_use]
    pub fn minus(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// The amount with its sign turned.
    #[must_use]
    pub fn negated(self) -> Self {
        // Only `i64::MIN` has no counterpart: it becomes the largest amount.
        Self(self.0.saturating_neg())
    }

    /// Nearest amount to a number that may not fit: [`Micros::MAX`].
    #[must_use]
    pub fn saturating_from(micros: u128) -> Self {
        i64::try_from(micros).map_or(Self::MAX, Self)
    }
}

impl fmt::Display for Micros {
    /// Decimal units with two to six decimals: `10.00`, `0.000015`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        // Seven digits at least: one unit and six decimals, of which trailing zeros go but for two.
        let all = format!("{:07}", self.0.unsigned_abs());
        let (units, fraction) = all.split_at(all.len().saturating_sub(6));
        let (cents, rest) = fraction.split_at(2);
        write!(f, "{sign}{units}.{cents}{}", rest.trim_end_matches('0'))
    }
}

impl FromStr for Micros {
    type Err = BadAmount;

    /// Reads decimal units with at most six decimals: `10`, `10.00`, `-0.000015`.
    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
        // By digits, never through a float: 0.1 is 100,000 micros and nothing near it.
        let (units, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let numeric = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !numeric(units) || !numeric(fraction) || fraction.len() > 6 {
            return Err(BadAmount::Unreadable);
        }
        // Padded to micros, so that one checked parse decides whether it fits.
        let all = format!("{sign}{units}{fraction:0<6}");
        all.parse().map(Self).map_err(|_overflow| BadAmount::TooLarge)
    }
}

/// A text that is not an amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadAmount {
    /// Text of another form.
    #[error("not an amount: write units with at most six decimals, like 10.00")]
    Unreadable,
    /// More units than an amount can have.
    #[error("too large for an amount: at most {}", Micros::MAX)]
    TooLarge,
}

/// An ISO 4217 code: three capital letters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// US dollars.
    pub const USD: Self = Self(*b"USD");

    /// The code as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Only ASCII capitals get in, so the fallback is never seen.
        str::from_utf8(&self.0).unwrap_or("???")
    }
}

impl FromStr for Currency {
    type Err = BadCurrency;

    fn from_str(text: &str) -> Result<Self, BadCurrency> {
        let code: [u8; 3] = text.as_bytes().try_into().map_err(|_length| BadCurrency)?;
        if code.iter().all(u8::is_ascii_uppercase) { Ok(Self(code)) } else { Err(BadCurrency) }
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

debug_as!(Currency as it: "Currency({it})");

/// A text that is not a currency code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a currency code: write three capital letters, like USD")]
pub struct BadCurrency;

/// A moment: microseconds since 1970-01-01T00:00:00Z, by the database's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Moment this many microseconds after the epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds after the epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Whole seconds after the epoch, as OpenAI's `created` counts.
    #[must_use]
    pub const fn as_seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    /// Time since an earlier moment; zero if this one is not later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        let micros = self.0.saturating_sub(earlier.0);
        Duration::from_micros(u64::try_from(micros).unwrap_or(0))
    }

    /// The moment this much later; the end of time if that does not fit.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(i64::try_from(span.as_micros()).map_or(i64::MAX, |span| self.0.saturating_add(span)))
    }

    /// The moment this much earlier; the beginning of time if that does not fit.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(i64::try_from(span.as_micros()).map_or(i64::MIN, |span| self.0.saturating_sub(span)))
    }
}
