//! Periods of a chart in UTC, without gaps: hours to 2 days, days to 62, else months.

use holdfast_domain::Timestamp;
use holdfast_domain::admin::listing::Period;
use holdfast_domain::admin::report::{Group, GroupBy};
use holdfast_domain::limits::Counter;
use holdfast_wire::file::group_name;

use crate::kit::moment::{day_after, day_of, days_before, hour_after, hour_of};

/// Most periods of a chart. Of more months the last ones are drawn.
pub(crate) const PERIODS_MAX: usize = 62;

/// Length of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Hour,
    Day,
    Month,
}

/// Successive periods of one length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TimeAxis {
    pub(crate) step: Step,
    /// First moments of the periods, at least one.
    starts: Vec<Timestamp>,
}

impl Step {
    pub(crate) const fn of(from: Timestamp, to: Timestamp) -> Self {
        const DAY: i64 = 86_400_000_000;
        // From the beginning of the first day, which is drawn whole: 62 days from noon to noon
        // are 63.
        let span = to.as_micros().saturating_sub(day_of(from).as_micros());
        if to.as_micros().saturating_sub(from.as_micros()) <= 2 * DAY {
            Self::Hour
        } else if span <= 62 * DAY {
            Self::Day
        } else {
            Self::Month
        }
    }

    /// Step of a period, which ends now unless it has an end. All time has months.
    pub(crate) fn of_period(period: Period, now: Timestamp) -> Self {
        period.from.map_or(Self::Month, |from| Self::of(from, period.to.unwrap_or(now)))
    }

    pub(crate) const fn group_by(self) -> GroupBy {
        match self {
            Self::Hour => GroupBy::Hour,
            Self::Day => GroupBy::Day,
            Self::Month => GroupBy::Month,
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
        }
    }

    fn start(self, at: Timestamp) -> Timestamp {
        match self {
            Self::Hour => hour_of(at),
            Self::Day => day_of(at),
            Self::Month => Counter::SpendMonth.window(at),
        }
    }

    fn next(self, start: Timestamp) -> Option<Timestamp> {
        match self {
            Self::Hour => Some(hour_after(start)),
            Self::Day => Some(day_after(start)),
            Self::Month => Counter::SpendMonth.window_end(start),
        }
    }
}

impl TimeAxis {
    /// Periods from one moment to before another.
    pub(crate) fn new(step: Step, from: Timestamp, to: Timestamp) -> Self {
        // More months than are drawn are never walked over: a calendar begins long ago.
        let months = u32::try_from(PERIODS_MAX).unwrap_or(u32::MAX).saturating_mul(32);
        let first = step.start(from.max(days_before(to, months)));
        let periods = std::iter::successors(Some(first), |start| step.next(*start));
        let mut starts: Vec<_> = periods.take_while(|start| *start < to).collect();
        if starts.is_empty() {
            starts.push(first);
        }
        let left_out = starts.len().saturating_sub(PERIODS_MAX);
        starts.drain(..left_out);
        Self { step, starts }
    }

    /// True if periods after this moment are too early for the axis.
    pub(crate) fn is_cut(&self, from: Timestamp) -> bool {
        self.starts.first().is_some_and(|first| self.step.start(from) < *first)
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Number of the period of a moment.
    pub(crate) fn index(&self, at: Timestamp) -> Option<usize> {
        self.starts.binary_search(&self.step.start(at)).ok()
    }

    /// First moments of each period and of the one after it.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        self.starts.iter().map(|start| (*start, self.step.next(*start).unwrap_or(*start)))
    }

    /// Name of a period that starts then.
    pub(crate) fn name(&self, start: Timestamp) -> String {
        group_name(&match self.step {
            Step::Hour => Group::Hour(start),
            Step::Day => Group::Day(start),
            Step::Month => Group::Month(start),
        })
    }

    /// Shortest name of a period that starts then: `14:00`, `11-28`, `2026-11`.
    pub(crate) fn short_name(&self, start: Timestamp) -> String {
        let range = match self.step {
            Step::Hour => 11..16,
            Step::Day => 5..10,
            Step::Month => 0..7,
        };
        let exact = holdfast_wire::api::rfc3339(start);
        exact.get(range).unwrap_or(&exact).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        holdfast_wire::api::moment(text).unwrap()
    }

    #[test]
    fn the_step_follows_the_span_and_no_axis_has_more_than_62_periods() {
        for (from, to, step, count) in [
            ("2026-11-01T00:00:00Z", "2026-11-01T00:00:00Z", Step::Hour, 1),
            ("2026-11-01T00:00:00Z", "2026-11-03T00:00:00Z", Step::Hour, 48),
            ("2026-11-01T00:00:00Z", "2026-11-03T01:00:00Z", Step::Day, 3),
            ("2026-11-01T00:00:00Z", "2027-01-02T00:00:00Z", Step::Day, 62),
            ("2026-11-01T23:00:00Z", "2027-01-02T00:00:00Z", Step::Day, 62),
            ("2026-11-01T00:00:00Z", "2027-01-02T01:00:00Z", Step::Month, 3),
            ("1970-01-01T00:00:00Z", "2026-11-28T00:00:00Z", Step::Month, 62),
        ] {
            let axis = TimeAxis::new(Step::of(at(from), at(to)), at(from), at(to));
            assert_eq!((axis.step, axis.len()), (step, count), "{from} {to}");
            assert_eq!(axis.is_cut(at(from)), from.starts_with("1970"), "{from} {to}");
        }
    }

    #[test]
    fn a_moment_has_the_period_that_contains_it() {
        let axis = TimeAxis::new(Step::Day, at("2026-11-01T00:00:00Z"), at("2026-11-30T00:00:00Z"));
        assert_eq!(axis.index(at("2026-11-02T23:59:59Z")), Some(1));
        assert_eq!(
            (axis.index(at("2026-10-31T23:00:00Z")), axis.index(at("2026-11-30T00:00:00Z"))),
            (None, None)
        );
        let (start, end) = axis.spans().nth(1).unwrap();
        assert_eq!((axis.name(start), axis.short_name(end)), ("2026-11-02".into(), "11-03".into()));
    }
}
