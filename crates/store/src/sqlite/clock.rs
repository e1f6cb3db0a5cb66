//! SQLite's clock as this process sees it: it counts milliseconds, so transactions within one are distinguished by
//! microseconds that are added here, and no read sees an earlier moment than a write before it was given.
//!
//! A clock that was set back by up to `SET_BACK_MICROS` stands still here until it has caught up. One that was set
//! back further is followed at once: moments that stood still for an hour would be wrong for longer than moments
//! that go back once.

use std::sync::atomic::{AtomicI64, Ordering};

use holdfast_domain::Timestamp;

/// Microseconds by which the clock may be behind the last write before it counts as set back.
const SET_BACK_MICROS: i64 = 1_000_000;

/// The last moment that was given to a write.
#[derive(Debug)]
pub(crate) struct Clock(AtomicI64);

impl Default for Clock {
    fn default() -> Self {
        Self(AtomicI64::new(i64::MIN))
    }
}

impl Clock {
    /// A moment for a write: SQLite's, and later than that of the write before. Only the writer calls it.
    pub(crate) fn stamp(&self, now: Timestamp) -> Timestamp {
        let now = self.at_least(now, 1);
        // Release, with the Acquire of reads: no read that starts later sees an earlier moment.
        self.0.store(now.as_micros(), Ordering::Release);
        now
    }

    /// A moment for a read: SQLite's, and not before the last write's.
    pub(crate) fn read(&self, now: Timestamp) -> Timestamp {
        self.at_least(now, 0)
    }

    fn at_least(&self, now: Timestamp, after: i64) -> Timestamp {
        let last = self.0.load(Ordering::Acquire);
        let now = now.as_micros();
        let was_set_back = now.saturating_add(SET_BACK_MICROS) < last;
        Timestamp::from_micros(if was_set_back { now } else { now.max(last.saturating_add(after)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_writes_are_told_apart_and_reads_are_not_before_them() {
        let clock = Clock::default();
        let at = Timestamp::from_micros;
        assert_eq!(clock.read(at(5_000)), at(5_000));
        assert_eq!(clock.stamp(at(5_000)), at(5_000));
        assert_eq!(clock.stamp(at(5_000)), at(5_001));
        assert_eq!(clock.read(at(5_000)), at(5_001));
        assert_eq!(clock.stamp(at(6_000)), at(6_000));
    }

    #[test]
    fn a_clock_that_was_set_back_is_followed() {
        let clock = Clock::default();
        let at = Timestamp::from_micros;
        clock.stamp(at(3_600_000_000));
        assert_eq!(clock.stamp(at(1_000_000)), at(1_000_000));
        assert_eq!(clock.read(at(1_000_000)), at(1_000_000));
    }
}
