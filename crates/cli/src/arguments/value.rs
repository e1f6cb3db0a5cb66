//! Values of command-line arguments: ids, amounts and moments. Names and reasons are the use cases' own
//! (`holdfast_accounts`), because every interface accepts the same ones.
//!
//! Each type is read by `FromStr`, so that clap refuses a bad argument before a command runs, and the command has
//! no check of its own. An error is one sentence, and describes the valid form.
//!
//! Amounts are decimals of a currency, read as whole micros; more than six places are refused, never rounded.

use std::str::FromStr;

use holdfast_domain::{Micros, OperationId, Timestamp};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

/// Funds to be moved: positive, at most six decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amount(Micros);

impl Amount {
    pub const fn micros(self) -> Micros {
        self.0
    }
}

impl FromStr for Amount {
    type Err = BadAmount;

    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let micros: Micros = text.parse().map_err(BadAmount::Unreadable)?;
        if micros > Micros::ZERO { Ok(Self(micros)) } else { Err(BadAmount::NotPositive) }
    }
}

/// Funds to be credited or, if it is negative, debited: not zero, at most six decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correction(Micros);

impl Correction {
    pub const fn micros(self) -> Micros {
        self.0
    }
}

impl FromStr for Correction {
    type Err = BadAmount;

    fn from_str(text: &str) -> Result<Self, BadAmount> {
        let micros: Micros = text.parse().map_err(BadAmount::Unreadable)?;
        // Refused before the ledger refuses it, with a sentence about this argument.
        if micros == Micros::ZERO { Err(BadAmount::Zero) } else { Ok(Self(micros)) }
    }
}

/// Failure to read an amount; an unreadable one has the reason in the words of `Micros`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadAmount {
    #[error("{0}")]
    Unreadable(holdfast_domain::money::BadAmount),
    #[error("an amount must be more than zero")]
    NotPositive,
    #[error("an amount must not be zero")]
    Zero,
}

/// A bound of a period: a date, which is its first moment in UTC, or a moment of RFC 3339.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeriodBound(Timestamp);

impl PeriodBound {
    pub const fn at(self) -> Timestamp {
        self.0
    }
}

impl FromStr for PeriodBound {
    type Err = BadMoment;

    fn from_str(text: &str) -> Result<Self, BadMoment> {
        let midnight = format!("{text}T00:00:00Z");
        let is_date = text.len() == "2026-11-01".len();
        let moment = OffsetDateTime::parse(if is_date { &midnight } else { text }, &Rfc3339);
        // Moments are whole microseconds: a finer one is rounded up to the next.
        // Rounded down, a period would begin with the rows of the microsecond before its bound.
        let micros = moment.map_err(BadMoment)?.unix_timestamp_nanos().saturating_add(999);
        // Years have four digits, so the fallback is never seen.
        Ok(Self(Timestamp::from_micros(
            i64::try_from(micros.div_euclid(1_000)).unwrap_or(i64::MAX),
        )))
    }
}

/// A text that is not a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a moment: write a date like 2026-11-01, or RFC 3339 like 2026-11-01T09:30:00Z")]
pub struct BadMoment(#[source] time::error::Parse);

/// Reads the id of a resource.
pub fn id(text: &str) -> Result<Uuid, BadId> {
    Uuid::try_parse(text).map_err(BadId)
}

/// A text that is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not an id: write a UUID as the lists show it, like 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11")]
pub struct BadId(#[source] uuid::Error);

/// Reads what names a posting.
pub fn posting_key(text: &str) -> Result<Uuid, BadPostingKey> {
    Uuid::try_parse(text).map_err(BadPostingKey)
}

/// A text that names no posting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a UUID: write one like 7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11, which `uuidgen` creates, or leave \
     --key out"
)]
pub struct BadPostingKey(#[source] uuid::Error);

/// Name of an operation: its id, the id of its completion, or a request key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationName(Uuid);

impl OperationName {
    const COMPLETION: &str = "chatcmpl_";

    pub fn operation(self) -> OperationId {
        OperationId::from(self.0)
    }

    pub const fn uuid(self) -> Uuid {
        self.0
    }
}

impl FromStr for OperationName {
    type Err = BadOperationName;

    fn from_str(text: &str) -> Result<Self, BadOperationName> {
        let id = Uuid::try_parse(text.strip_prefix(Self::COMPLETION).unwrap_or(text));
        id.map(Self).map_err(BadOperationName)
    }
}

/// A text that names no operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an id of an operation: write a UUID like 7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11, or the id of a \
     completion, chatcmpl_ and its 32 hexadecimal digits"
)]
pub struct BadOperationName(#[source] uuid::Error);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_positive_with_at_most_six_decimals() {
        for (text, micros) in [
            ("10", 10_000_000),
            ("10.00", 10_000_000),
            ("0.000001", 1),
            ("9223372036854.775807", i64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Amount(Micros::new(micros))), "{text}");
        }
        for bad in ["0", "0.00", "-1"] {
            assert_eq!(bad.parse::<Amount>(), Err(BadAmount::NotPositive), "{bad}");
        }
        for bad in ["", "1.", ".5", "1e3", "1,5", "1.0000001", "9223372036854.775808", "10 USD"] {
            assert!(matches!(bad.parse::<Amount>(), Err(BadAmount::Unreadable(_))), "{bad}");
        }
    }

    #[test]
    fn a_correction_goes_both_ways() {
        for (text, micros) in [("2.50", 2_500_000), ("-2.5", -2_500_000), ("-0.000001", -1)] {
            assert_eq!(text.parse(), Ok(Correction(Micros::new(micros))), "{text}");
        }
        for zero in ["0", "-0", "0.00", "-0.000000"] {
            assert_eq!(zero.parse::<Correction>(), Err(BadAmount::Zero), "{zero}");
        }
        for bad in ["", "-", "+1", "--1", "-1.0000001", "-9223372036854.775809"] {
            assert!(matches!(bad.parse::<Correction>(), Err(BadAmount::Unreadable(_))), "{bad}");
        }
    }

    #[test]
    fn a_moment_is_a_date_or_of_rfc_3339() {
        for (text, micros) in [
            ("1970-01-02", 86_400_000_000),
            ("1970-01-02T00:00:00Z", 86_400_000_000),
            ("1970-01-02T01:00:00.5+01:00", 86_400_500_000),
            ("1970-01-01T00:00:00.000001Z", 1),
            ("1970-01-01T00:00:00.000001001Z", 2),
            ("1969-12-31T23:59:59.9999995Z", 0),
        ] {
            assert_eq!(text.parse(), Ok(PeriodBound(Timestamp::from_micros(micros))), "{text}");
        }
        for bad in ["", "2026", "2026-02-30", "2026-11-1", "2026-11-01T00:00:00", "01.11.2026"] {
            assert!(bad.parse::<PeriodBound>().is_err(), "{bad}");
        }
    }

    #[test]
    fn an_operation_is_named_as_its_caller_saw_it() {
        let id: OperationId = "7f2c1a9e-5b7d-8c3e-9a51-0f8e6d2b4c11".parse().unwrap();
        for name in [id.to_string(), id.completion_id()] {
            assert_eq!(name.parse::<OperationName>().unwrap().operation(), id);
        }
    }
}
