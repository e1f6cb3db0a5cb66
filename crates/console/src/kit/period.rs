//! The period of a report or a list: two moments of the address, one hour, day or month (`on`), or a preset.

use holdfast_domain::Timestamp;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::limits::Counter;

use crate::failure::Failure;
use crate::kit::moment::{self, day_after, day_of, days_before, hour_after};
use crate::kit::{AFTER, Choices, Link, SentFields, with_query};

pub(crate) const FROM: &str = "from";
pub(crate) const TO: &str = "to";
pub(crate) const ON: &str = "on";
pub(crate) const PRESET: &str = "period";

/// Presets, and their names.
const PRESETS: [(&str, &str); 6] = [
    ("today", "Today"),
    ("7d", "7 days"),
    ("30d", "30 days"),
    ("month", "This month"),
    ("last_month", "Last month"),
    ("all", "All time"),
];

/// Periods of a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeriodChoice {
    /// Address of the page.
    pub(crate) path: &'static str,
    /// Preset of an address that names no period.
    pub(crate) default: &'static str,
}

impl PeriodChoice {
    /// Reads the period.
    pub(crate) fn read(self, query: &SentFields, now: Timestamp) -> Result<Period, Failure> {
        let (from, to) = (moment::read(query, FROM)?, moment::read(query, TO)?);
        // Before a preset: the filter form carries the preset along with the moments that were
        // written.
        if from.is_some() || to.is_some() {
            return Ok(Period { from, to });
        }
        if let Some(text) = query.get(ON) {
            return on(text)
                .ok_or_else(|| Failure::field(ON, "Write an hour, a day or a month in UTC."));
        }
        let (today, month) = (day_of(now), Counter::SpendMonth.window(now));
        let since = |from| Period { from: Some(from), to: None };
        Ok(match query.get(PRESET).unwrap_or(self.default) {
            "today" => since(today),
            "7d" => since(days_before(today, 6)),
            "30d" => since(days_before(today, 29)),
            "month" => since(month),
            "last_month" => {
                let before = Counter::SpendMonth.window(days_before(month, 1));
                Period { from: Some(before), to: Some(month) }
            }
            "all" => Period::default(),
            _unknown => return Err(Failure::field(PRESET, "Choose one of the periods.")),
        })
    }

    /// Links to the presets under the same filters.
    pub(crate) fn links(self, query: &SentFields) -> Choices {
        let is_custom = [FROM, TO, ON].iter().any(|name| query.get(name).is_some());
        let chosen = query.get(PRESET).unwrap_or(self.default);
        let link = |(value, label): (&str, &str)| {
            let href = altered(self.path, query, &[FROM, TO, ON, PRESET], &[(PRESET, value)]);
            (Link::new(label, href), !is_custom && value == chosen)
        };
        Choices { label: "Period".to_owned(), links: PRESETS.map(link).to_vec() }
    }
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

/// A path with the parameters of a query, without some of them and with others. A page of the list is left out: the
/// rows are others then.
pub(crate) fn altered(
    path: &str,
    query: &SentFields,
    without: &[&str],
    with: &[(&str, &str)],
) -> String {
    let kept = query.iter().filter(|(name, _)| !without.contains(name) && *name != AFTER);
    let params = with.iter().copied().chain(kept).map(|(name, value)| (name, Some(value)));
    with_query(path, &params.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(query: &str) -> Option<(String, String)> {
        let now = holdfast_wire::api::moment("2026-03-28T14:30:00Z").unwrap();
        let choice = PeriodChoice { path: "/usage", default: "30d" };
        let period = choice.read(&SentFields::parse(query.as_bytes()), now).ok()?;
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
