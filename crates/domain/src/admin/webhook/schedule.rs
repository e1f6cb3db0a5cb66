//! Schedule of the tries of one delivery: ten within about three days and a quarter.
//!
//! The pauses are those of Standard Webhooks. Short ones first, for a receiver that restarts; long ones after,
//! for one that needs repair.

use std::time::Duration;

/// Seconds before each try, counted from the end of the one before it. The first is made at once.
const PAUSES_S: [u32; 10] = [0, 5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];

/// Tries of a delivery, the first included.
pub const TRIES_MAX: usize = PAUSES_S.len();

/// Share of a pause that chance adds at most, in thousandths.
const JITTER_PER_MILLE: u64 = 200;

/// Pause before the next attempt of a delivery of which `failed` attempts have failed: at least that of the
/// schedule, and at most a fifth more, by 32 random bits. `None` if no attempt is left.
///
/// Never less than the schedule: a receiver that is overloaded was promised the pause. The jitter takes apart
/// attempts that failed together.
#[must_use]
pub fn pause_after(failed: u32, random: u32) -> Option<Duration> {
    let pause_s = *PAUSES_S.get(usize::try_from(failed).ok()?)?;
    // At most 17,280,000 milliseconds by 32 bits: this fits into 64.
    let jitter_ms = u64::from(pause_s).saturating_mul(JITTER_PER_MILLE);
    let jitter_ms = jitter_ms.saturating_mul(u64::from(random)) >> 32;
    let pause = Duration::from_secs(pause_s.into());
    Some(pause.saturating_add(Duration::from_millis(jitter_ms)))
}
