//! Months of files and statements, in UTC: the one that an address names, and those beside it.

use holdfast_domain::Timestamp;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::limits::Counter;
use holdfast_wire::api;

use crate::failure::Failure;
use crate::kit::SentFields;

/// Parameter of a month.
pub(crate) const MONTH: &str = "month";

/// A month in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Month {
    pub(crate) start: Timestamp,
    pub(crate) end: Timestamp,
}

impl Month {
    /// The month that a moment falls into.
    pub(crate) fn of(at: Timestamp) -> Self {
        let counter = Counter::SpendMonth;
        Self { start: counter.window(at), end: counter.window_end(at).unwrap_or(at) }
    }

    /// The month of a query, or the present one.
    pub(crate) fn requested(query: &SentFields, now: Timestamp) -> Result<Self, Failure> {
        let Some(text) = query.get(MONTH) else { return Ok(Self::of(now)) };
        let first = api::moment(&format!("{text}-01")).filter(|_| text.len() == "2026-11".len());
        let bad = || Failure::field(MONTH, "Write a month like 2026-11.");
        first.map(Self::of).ok_or_else(bad)
    }

    pub(crate) fn before(self) -> Self {
        Self::of(Timestamp::from_micros(self.start.as_micros().saturating_sub(1)))
    }

    pub(crate) fn text(self) -> String {
        api::rfc3339(self.start).get(..7).unwrap_or_default().to_owned()
    }

    pub(crate) const fn period(self) -> Period {
        Period { from: Some(self.start), to: Some(self.end) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_follow_one_another_over_the_year() {
        let asked = |text: &str| {
            let query = SentFields::parse(format!("month={text}").as_bytes());
            Month::requested(&query, Timestamp::from_micros(0))
        };
        let january = asked("2027-01").unwrap();
        assert_eq!(january.before().text(), "2026-12");
        assert_eq!(Month::of(january.end).text(), "2027-02");
        assert_eq!(asked("").unwrap().text(), "1970-01");
        for bad in ["2027", "2027-13", "01-2027", "2027-1", "next"] {
            assert!(asked(bad).is_err(), "{bad}");
        }
    }
}
