//! Values as operators write them: texts, spans, counts, exact decimals, moments, secrets. A value
//! that cannot be read is a mistake of its line; values that must fit together are judged by the
//! tables.
//!
//! | written | read as |
//! |---|---|
//! | `"30s"` | a span: a whole number and `ms`, `s`, `m` or `h` |
//! | `1_024` | a count, within the bounds of its key |
//! | `0.25` | millionths, taken from the digits: a float could not hold each of them |
//! | `2026-01-01T00:00:00Z` | a moment, in microseconds of UTC |
//! | `"${NAME}"` | a secret, with the value of an environment variable in it |
//! | `"${file:/run/secrets/key}"` | a secret, with the content of a file in it |
//!
//! Bounds are printed in the spelling that the key takes, so that they can be copied into the file.

use std::ops::RangeInclusive;
use std::time::Duration;

use holdfast_domain::Timestamp;
use holdfast_domain::debug_as;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};
use toml::de::DeValue;

use crate::document::Field;

/// Millionths in one.
const MILLION: u64 = 1_000_000;

/// A text that came out of the environment or may be a secret. It never prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn expose(&self) -> &str {
        &self.0
    }
}

debug_as!(Secret: "Secret(…)");

/// A moment that prices begin at, and how it is spelled in the name of a price version: in UTC, so
/// that one moment has one name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigTimestamp {
    pub(crate) at: Timestamp,
    pub(crate) text: String,
}

impl<'d> Field<'d> {
    /// A text.
    pub(crate) fn text(&self) -> Option<&'d str> {
        if let DeValue::String(text) = self.value {
            Some(text)
        } else {
            self.expected("a text in quotes");
            None
        }
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self) -> Option<bool> {
        if let DeValue::Boolean(flag) = self.value {
            Some(*flag)
        } else {
            self.expected("true or false, without quotes");
            None
        }
    }

    /// A text that `parse` turns into a value; the error goes on from the key's name.
    pub(crate) fn parse<T, E: std::fmt::Display>(
        &self,
        parse: impl FnOnce(&'d str) -> Result<T, E>,
    ) -> Option<T> {
        match parse(self.text()?) {
            Ok(value) => Some(value),
            Err(error) => {
                self.mistake(format_args!("is {error}"));
                None
            }
        }
    }

    /// A whole number within bounds.
    pub(crate) fn count(&self, bounds: RangeInclusive<u64>) -> Option<u64> {
        let DeValue::Integer(integer) = self.value else {
            self.expected("a whole number without quotes, like 1_024");
            return None;
        };
        // TOML has hexadecimal, octal and binary integers too. A number below zero or beyond 64 bits is no
        // count, and its mistake shows the bounds like that of any other number.
        let count = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let fits = count.filter(|count| bounds.contains(count));
        if fits.is_none() {
            let (least, most) = (bounds.start(), bounds.end());
            self.mistake(format_args!("must be from {least} to {most}"));
        }
        fits
    }

    /// A size or a count that this machine can address.
    pub(crate) fn size(&self, bounds: RangeInclusive<u32>) -> Option<usize> {
        let (least, most) = bounds.into_inner();
        usize::try_from(self.count(u64::from(least)..=u64::from(most))?).ok()
    }

    /// A span of time: a whole number and `ms`, `s`, `m` or `h`.
    pub(crate) fn span(&self, bounds: RangeInclusive<Duration>) -> Option<Duration> {
        let DeValue::String(text) = self.value else {
            self.expected("a span of time in quotes, with ms, s, m or h, like \"30s\"");
            return None;
        };
        let Some(span) = parse_span(text) else {
            self.mistake(
                "is not a span of time: write a whole number with ms, s, m or h, like \"30s\"",
            );
            return None;
        };
        if bounds.contains(&span) {
            return Some(span);
        }
        let (least, most) = (spell_span(*bounds.start()), spell_span(*bounds.end()));
        self.mistake(format_args!("must be from {least} to {most}"));
        None
    }

    /// A decimal of at most six places, as whole millionths: read from its spelling, so that what
    /// is written is what counts.
    pub(crate) fn millionths(&self, bounds: RangeInclusive<u64>) -> Option<u64> {
        let millionths = match self.value {
            DeValue::Float(float) => parse_millionths(float.as_str()),
            DeValue::Integer(integer) if integer.radix() == 10 => {
                parse_millionths(integer.as_str())
            }
            DeValue::Integer(_)
            | DeValue::String(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => {
                self.expected("a decimal like 1.0");
                return None;
            }
        };
        let Some(millionths) = millionths else {
            self.mistake("is not a plain decimal with at most six places, like 0.25");
            return None;
        };
        if bounds.contains(&millionths) {
            return Some(millionths);
        }
        let (least, most) = (spell_millionths(*bounds.start()), spell_millionths(*bounds.end()));
        self.mistake(format_args!("must be from {least} to {most}"));
        None
    }

    /// A date, a time of day and an offset.
    pub(crate) fn moment(&self) -> Option<ConfigTimestamp> {
        let moment = match self.value {
            DeValue::Datetime(datetime) => parse_moment(&datetime.to_string()),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Array(_)
            | DeValue::Table(_) => None,
        };
        if moment.is_none() {
            self.mistake("must be a moment without quotes, like 2026-01-01T00:00:00Z");
        }
        moment
    }

    /// A secret, in which variables and files may stand. A secret without them is noted: readers of the
    /// configuration can read it.
    pub(crate) fn secret(&self) -> Option<Secret> {
        let secret = self.expanded()?;
        if !self.text()?.contains("${") {
            self.note_literal_secret();
        }
        Some(secret)
    }

    /// A text in which `${NAME}` stands for an environment variable, and `${file:PATH}` for the content of a
    /// file. The text need not be a secret, and is treated like one.
    pub(crate) fn expanded(&self) -> Option<Secret> {
        let mut rest = self.text()?;
        let mut whole = String::new();
        let mut missing = false;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else {
                self.mistake("has a `${` without a `}`: write ${NAME}");
                return None;
            };
            if let Some(path) = name.strip_prefix("file:") {
                whole.push_str(before);
                match self.secret_file(path) {
                    Some(secret) => whole.push_str(&secret),
                    None => missing = true,
                }
                rest = after;
                continue;
            }
            if !is_variable_name(name) {
                self.mistake(
                    "has a `${…}` that names no environment variable: names are of letters, digits and \
                     underscores, like ${HOLDFAST_SECRET}",
                );
                return None;
            }
            whole.push_str(before);
            // The loop goes on after a missing variable, so that each of them is named in one run.
            match self.variable(name) {
                Some(value) => whole.push_str(&value),
                None => {
                    missing = true;
                    self.mistake(format_args!(
                        "needs the environment variable {name}, which is not set: set it in the \
                        environment of holdfast"
                    ));
                }
            }
            rest = after;
        }
        whole.push_str(rest);
        (!missing).then_some(Secret(whole))
    }

    /// Several secrets.
    pub(crate) fn secrets(&self) -> Option<Vec<(Self, Secret)>> {
        let with_secret = |item: Self| item.secret().map(|secret| (item, secret));
        Some(self.items()?.into_iter().filter_map(with_secret).collect())
    }

    /// Several values, each by the result of `read`; `None` if one is a mistake.
    pub(crate) fn each<T>(&self, read: impl Fn(&Self) -> Option<T>) -> Option<Vec<T>> {
        let read: Vec<_> = self.items()?.iter().map(read).collect();
        read.into_iter().collect()
    }

    fn items(&self) -> Option<Vec<Self>> {
        let DeValue::Array(items) = self.value else {
            self.expected("an array of texts, in brackets: [\"…\"]");
            return None;
        };
        Some(items.iter().map(|item| self.item(item)).collect())
    }
}

/// `A_Z0`: what shells let a variable be called. Anything else is a mistake, not a name to look up.
fn is_variable_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn parse_span(text: &str) -> Option<Duration> {
    let digits =
        text.len().saturating_sub(text.trim_start_matches(|c| char::is_ascii_digit(&c)).len());
    let (count, unit) = text.split_at_checked(digits)?;
    let count: u64 = count.parse().ok()?;
    let millis = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return None,
    };
    // Checked: a span that wraps round would be a short one.
    count.checked_mul(millis).map(Duration::from_millis)
}

fn spell_span(span: Duration) -> String {
    let millis = span.as_millis();
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let whole = units.into_iter().find(|(unit, _)| millis > 0 && millis.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{millis}ms"), |(unit, name)| format!("{}{name}", millis / unit))
}

/// Millionths of a decimal of at most six places, without an exponent.
pub(crate) fn parse_millionths(text: &str) -> Option<u64> {
    let text = text.strip_prefix('+').unwrap_or(text);
    let (units, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    // Zeros beyond the sixth place have no effect; any other digit there would be lost.
    let fraction = fraction.trim_end_matches('0');
    if units.is_empty() || !digits(units) || !digits(fraction) || fraction.len() > 6 {
        return None;
    }
    let units: u64 = units.parse().ok()?;
    let fraction: u64 = format!("{fraction:0<6}").parse().ok()?;
    units.checked_mul(MILLION)?.checked_add(fraction)
}

fn spell_millionths(millionths: u64) -> String {
    let text = format!("{}.{:06}", millionths / MILLION, millionths % MILLION);
    let text = text.trim_end_matches('0');
    if text.ends_with('.') { format!("{text}0") } else { text.to_owned() }
}

/// A moment as it is written in the name of a price version.
pub(crate) fn spell_moment(at: Timestamp) -> String {
    let nanos = i128::from(at.as_micros()).saturating_mul(1_000);
    let moment = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok();
    moment.and_then(|moment| moment.format(&Rfc3339).ok()).unwrap_or_else(|| "?".to_owned())
}

fn parse_moment(text: &str) -> Option<ConfigTimestamp> {
    // A date without an offset does not parse: whose midnight it means would be a guess.
    let moment = OffsetDateTime::parse(text, &Rfc3339).ok()?.to_offset(UtcOffset::UTC);
    let micros = i64::try_from(moment.unix_timestamp_nanos().div_euclid(1_000)).ok()?;
    // Nanoseconds are cut: the text is part of a price version's id, and must mean what `at` means.
    let whole = moment.replace_microsecond(moment.microsecond()).ok()?;
    Some(ConfigTimestamp { at: Timestamp::from_micros(micros), text: whole.format(&Rfc3339).ok()? })
}
