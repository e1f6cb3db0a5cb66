//! The database's clock beside this process's own, which no hand sets: deletions for good happen only while
//! both agree about how much time went by. A clock that was set wrong, and is right again within a day, causes
//! no deletion.
//!
//! A machine that slept looks the same from here: its own clock stood still meanwhile. So the database's
//! clock is believed again once it has been ahead, or behind, by the same time for a day, and until then
//! results are kept for longer than they must be. What a process finds at its start it believes.

use std::time::Duration;

use crate::Timestamp;

/// Microseconds by which both may drift apart between two looks, about a minute after each
/// other, and still agree: heartbeats are slow, and clocks are slewed.
const TOLERANCE_MICROS: i64 = 60_000_000;
/// Time for which a skew must have been the same until it is believed.
const BELIEVED_AFTER: Duration = Duration::from_secs(86_400);

/// Pair of readings: the database's clock and the own monotonic one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClockPair {
    /// Reading of the database's clock; while they are apart, the reading that was expected.
    database: Timestamp,
    /// Reading of the own clock at that moment, since an arbitrary start.
    own: Duration,
    apart: Option<ClockSkew>,
}

/// Skew between the two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockSkew {
    /// Microseconds by which the database's clock is ahead; negative if it is behind.
    pub by_micros: i64,
    /// Start of the skew, by the own clock.
    since: Duration,
}

impl ClockPair {
    /// Begins with readings that are believed as they are.
    pub(crate) const fn begin(database: Timestamp, own: Duration) -> Self {
        Self { database, own, apart: None }
    }

    /// Takes later readings, and compares how much time went by on each clock.
    #[must_use]
    pub(crate) fn observe(self, database: Timestamp, own: Duration) -> Self {
        let expected = self.database.after(own.saturating_sub(self.own));
        let by_micros = database.as_micros().saturating_sub(expected.as_micros());
        let is_near = |micros: i64| micros.saturating_abs() <= TOLERANCE_MICROS;
        if is_near(by_micros) {
            return Self::begin(database, own);
        }
        // The same skew as before, within the tolerance. A clock that jumps again is no more to be
        // believed than at first: its day begins anew.
        let as_before =
            self.apart.filter(|apart| is_near(by_micros.saturating_sub(apart.by_micros)));
        let since = as_before.map_or(own, |apart| apart.since);
        if own.saturating_sub(since) >= BELIEVED_AFTER {
            return Self::begin(database, own);
        }
        // The expected reading goes on: the next look is compared with the clock as it was right.
        Self { database: expected, own, apart: Some(ClockSkew { by_micros, since }) }
    }

    /// Skew, while there is one: no row may be deleted then.
    pub(crate) const fn skew(&self) -> Option<ClockSkew> {
        self.apart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-20T12:00:00Z
    const NOW: i64 = 1_795_176_000_000_000;
    const MINUTE: i64 = 60;
    const HOUR: i64 = 3_600;
    const DAY: i64 = 86_400;

    /// Checks a row of looks: seconds of the own clock since the start, seconds by which the
    /// database's is ahead, and whether something may be deleted then.
    #[track_caller]
    fn check(looks: &[(i64, i64, bool)]) {
        let at = |seconds: i64| {
            Timestamp::from_micros(NOW.saturating_add(seconds.saturating_mul(1_000_000)))
        };
        let mut clocks = ClockPair::begin(at(0), Duration::ZERO);
        for (own, ahead, may_delete) in looks {
            let since = Duration::from_secs(u64::try_from(*own).unwrap());
            clocks = clocks.observe(at(own.saturating_add(*ahead)), since);
            assert_eq!(clocks.skew().is_none(), *may_delete, "{own} s, {ahead} s ahead");
        }
    }

    #[test]
    fn clocks_that_agree_delete() {
        check(&[(60, 0, true), (120, 3, true), (HOUR, 60, true), (9 * DAY, 40, true)]);
    }

    #[test]
    fn clocks_that_drift_apart_slowly_agree() {
        let looks: Vec<_> = (1..3_000).map(|n| (n * MINUTE, n * 2, true)).collect();
        check(&looks);
    }

    #[test]
    fn a_clock_that_jumps_deletes_nothing_until_it_is_right_again() {
        for jump in [90, HOUR, 25 * HOUR, 400 * DAY, -90, -25 * HOUR] {
            check(&[
                (60, 0, true),
                (120, jump, false),
                (180, jump, false),
                (23 * HOUR, jump, false),
                (23 * HOUR + 60, 1, true),
                (23 * HOUR + 120, jump, false),
            ]);
        }
    }

    #[test]
    fn a_machine_that_slept_deletes_again_after_a_day() {
        let slept = 25 * HOUR;
        check(&[
            (60, slept, false),
            (DAY, slept, false),
            (DAY + 60, slept + 5, true),
            (DAY + 120, slept + 5, true),
        ]);
    }

    #[test]
    fn a_clock_that_jumps_again_and_again_is_not_believed() {
        check(&[
            (60, HOUR, false),
            (DAY, 2 * HOUR, false),
            (DAY + 60, 2 * HOUR, false),
            (2 * DAY - 60, 2 * HOUR, false),
            (2 * DAY, 2 * HOUR, true),
        ]);
    }
}
