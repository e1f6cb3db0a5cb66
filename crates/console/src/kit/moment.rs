//! Moments as forms and filters write them: `YYYY-MM-DDTHH:MM`, always in UTC.
//!
//! Never: a visitor's own time zone. The server does not know it, and a shared address means the same to everybody.

use holdfast_domain::Timestamp;
use holdfast_wire::api::{moment, rfc3339};

use crate::failure::Failure;
use crate::kit::SentFields;

const DAY_MICROS: i64 = 86_400_000_000;
const HOUR_MICROS: i64 = 3_600_000_000;

/// Reads an optional moment: a day, a minute of one, or a moment of RFC 3339.
pub(crate) fn read(fields: &SentFields, name: &str) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = fields.get(name) else { return Ok(None) };
    // Fields of browsers send no zone, and no seconds if they are zero.
    let spelled = match text.len() {
        16 => format!("{text}:00Z"),
        19 => format!("{text}Z"),
        _day_or_whole => text.to_owned(),
    };
    let bad = || Failure::field(name, "Write a moment in UTC, like 2026-11-01T09:00.");
    moment(&spelled).map(Some).ok_or_else(bad)
}

/// A moment as an address has it: a day if it is the first moment of one.
pub(crate) fn short(at: Timestamp) -> String {
    let text = written(at);
    text.strip_suffix("T00:00").map(str::to_owned).unwrap_or(text)
}

/// A moment as a field holds it.
pub(crate) fn written(at: Timestamp) -> String {
    rfc3339(at).get(..16).unwrap_or_default().to_owned()
}

/// A moment as people read it, to the second.
pub(crate) fn second(at: Timestamp) -> String {
    let read = rfc3339(at).get(..19).unwrap_or_default().replace('T', " ");
    format!("{read} UTC")
}

/// First moment of the UTC day.
pub(crate) const fn day_of(at: Timestamp) -> Timestamp {
    let micros = at.as_micros();
    Timestamp::from_micros(micros - micros.rem_euclid(DAY_MICROS))
}

/// The moment a day later.
pub(crate) const fn day_after(at: Timestamp) -> Timestamp {
    Timestamp::from_micros(at.as_micros().saturating_add(DAY_MICROS))
}

/// The moment so many days before.
pub(crate) fn days_before(at: Timestamp, days: u32) -> Timestamp {
    let span = DAY_MICROS.saturating_mul(i64::from(days));
    Timestamp::from_micros(at.as_micros().saturating_sub(span))
}

/// The first moment that is not in a period up to this one.
pub(crate) const fn moment_after(at: Timestamp) -> Timestamp {
    Timestamp::from_micros(at.as_micros().saturating_add(1))
}

/// First moment of the UTC hour.
pub(crate) const fn hour_of(at: Timestamp) -> Timestamp {
    let micros = at.as_micros();
    Timestamp::from_micros(micros - micros.rem_euclid(HOUR_MICROS))
}

/// The moment an hour later.
pub(crate) const fn hour_after(at: Timestamp) -> Timestamp {
    Timestamp::from_micros(at.as_micros().saturating_add(HOUR_MICROS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_what_it_wrote() {
        let fields = SentFields::parse(b"a=2026-11-01T09:30&b=2026-11-01&c=soon");
        let at = read(&fields, "a").unwrap().unwrap();
        assert_eq!(written(at), "2026-11-01T09:30");
        assert_eq!(read(&fields, "b").unwrap(), Some(day_of(at)));
        assert_eq!(written(hour_after(day_after(day_of(at)))), "2026-11-02T01:00");
        assert_eq!(read(&fields, "c").unwrap_err().field.as_deref(), Some("c"));
        assert_eq!(read(&fields, "d").unwrap(), None);
    }
}
