//! The period of a report: two moments of the address, one hour, day or month (`on`), or a preset.

use holdfast_domain::Timestamp;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::limits::Counter;

use super::address_with;
use crate::failure::Failure;
use crate::kit::ask::SentFields;
use crate::kit::cell::Link;
use crate::kit::moment::{self, day_after, day_of, days_before, hour_after};
use crate::kit::section::Choices;

pub(super) const FROM: &str = "from";
pub(super) const TO: &str = "to";
pub(super) const ON: &str = "on";
pub(super) const PRESET: &str = "period";

/// Presets, the one without an address of its own among them.
const PRESETS: [(&str, &str); 6] = [
    ("today", "Today"),
    ("7d", "7 days"),
    (DEFAULT, "30 days"),
    ("month", "This month"),
    ("last_month", "Last month"),
    ("all", "All time"),
];
const DEFAULT: &str = "30d";

/// Reads the period, which is the last 30 days if the address names none.
pub(super) fn read(query: &SentFields, now: Timestamp) -> Result<Period, Failure> {
    let (from, to) = (moment::read(query, FROM)?, moment::read(query, TO)?);
    if from.is_some() || to.is_some() {
        return Ok(Period { from, to });
    }
    if let Some(text) = query.get(ON) {
        return on(text)
            .ok_or_else(|| Failure::field(ON, "Write an hour, a day or a month in UTC."));
    }
    let (today, month) = (day_of(now), Counter::SpendMonth.window(now));
    let since = |from| Period { from: Some(from), to: None };
    Ok(match query.get(PRESET).unwrap_or(DEFAULT) {
        "today" => since(today),
        "7d" => since(days_before(today, 6)),
        DEFAULT => since(days_before(today, 29)),
        "month" => since(month),
        "last_month" => {
            let before = Counter::SpendMonth.window(days_before(month, 1));
            Period { from: Some(before), to: Some(month) }
        }
        "all" => Period::default(),
        _unknown => return Err(Failure::field(PRESET, "Choose one of the periods.")),
    })
}

/// The hour (`2026-11-28T14`), the day or the month of this text.
fn on(text: &str) -> Option<Period> {
    let whole = match text.len() {
        7 => format!("{text}-01T00:00:00Z"),
        10 => format!("{text}T00:00:00Z"),
        13 => format!("{text}:00:00Z"),
        _other => return None,
    };
    let from = holdfast_wire::api::moment(&whole)?;
    let to = match text.len() {
        7 => Counter::SpendMonth.window_end(from),
        10 => Some(day_after(from)),
        _hour => Some(hour_after(from)),
    };
    Some(Period { from: Some(from), to })
}

/// Links to the presets under the same filters.
pub(super) fn presets(query: &SentFields) -> Choices {
    let is_custom = [FROM, TO, ON].iter().any(|name| query.get(name).is_some());
    let chosen = query.get(PRESET).unwrap_or(DEFAULT);
    let link = |(value, label): (&str, &str)| {
        let href = address_with(query, &[FROM, TO, ON, PRESET], &[(PRESET, value)]);
        (Link::new(label, href), !is_custom && value == chosen)
    };
    Choices { label: "Period".to_owned(), links: PRESETS.map(link).to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(query: &str) -> Option<(String, String)> {
        let now = holdfast_wire::api::moment("2026-03-28T14:30:00Z").unwrap();
        let period = read(&SentFields::parse(query.as_bytes()), now).ok()?;
        let text = |at: Option<Timestamp>| at.map_or_else(String::new, moment::short);
        Some((text(period.from), text(period.to)))
    }

    #[test]
    fn a_period_is_a_preset_a_unit_of_time_or_two_moments() {
        for (query, from, to) in [
            ("", "2026-02-27", ""),
            ("period=30d", "2026-02-27", ""),
            ("period=7d", "2026-03-22", ""),
            ("period=today", "2026-03-28", ""),
            ("period=month", "2026-03-01", ""),
            ("period=last_month", "2026-02-01", "2026-03-01"),
            ("period=all", "", ""),
            ("on=2026-02", "2026-02-01", "2026-03-01"),
            ("on=2026-02-28", "2026-02-28", "2026-03-01"),
            ("on=2026-02-28T23", "2026-02-28T23:00", "2026-03-01"),
            ("on=2026-02&from=2026-01-05", "2026-01-05", ""),
            ("period=today&to=2026-01-05T10:00", "", "2026-01-05T10:00"),
        ] {
            assert_eq!(period(query), Some((from.to_owned(), to.to_owned())), "{query}");
        }
        for wrong in ["period=year", "on=2026", "on=2026-13", "from=soon"] {
            assert_eq!(period(wrong), None, "{wrong}");
        }
    }
}
