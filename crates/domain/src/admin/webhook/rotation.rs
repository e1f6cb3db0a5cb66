//! Rotation of a webhook's secret: a new generation signs from that moment on, and the one before
//! it signs beside it for a day, so that a receiver can take the new one over when it likes.

use std::time::Duration;

use crate::Timestamp;

/// Time for which the generation before a rotation still signs.
const OVERLAP: Duration = Duration::from_secs(24 * 60 * 60);

/// Generations of a webhook's secret. The secrets themselves are derived and never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretGenerations {
    /// Number of the latest, one more at every rotation.
    pub current: u32,
    /// Moment of the last rotation; `None` if there was none.
    pub rotated_at: Option<Timestamp>,
}

impl SecretGenerations {
    /// Generations that sign at this moment, the latest first: one, or two for 24 hours after a
    /// rotation. A second rotation within that time retires the older one at once.
    pub fn signing(self, now: Timestamp) -> impl Iterator<Item = u32> {
        let is_recent = self.rotated_at.is_some_and(|at| now.since(at) < OVERLAP);
        let previous = self.current.checked_sub(1).filter(|_| is_recent);
        [Some(self.current), previous].into_iter().flatten()
    }
}
