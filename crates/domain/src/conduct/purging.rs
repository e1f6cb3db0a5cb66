//! Purging: deletes results past their time, a few a commit, while the database's clock is believed.
//!
//! A deleted result does not come back. The clocks are compared before every commit, not once for all: a database
//! whose clock was set a year ahead would else delete everything that there is (`clocks.rs`).

use std::time::Duration;

use super::clocks::{ClockPair, ClockSkew};
use crate::ports::{Journal, Unavailable};

/// Results that one commit deletes: few enough not to hold up others.
const RESULTS_PER_COMMIT: u32 = 256;
/// Commits of one purge; what is left over is for the next one.
const COMMITS_MAX: u32 = 64;

/// Purges of one process, one after another.
#[derive(Debug, Default)]
pub struct Purges {
    clocks: Option<ClockPair>,
}

/// Outcome of one purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PurgeOutcome {
    /// Results that were deleted.
    pub deleted: u64,
    /// False if the purge met its limit: more may be left. True also for a skew, which leaves all.
    pub is_all: bool,
    /// Skew of the two clocks, because of which deletion stopped.
    pub skew: Option<ClockSkew>,
    /// True if the reading of the clocks before showed a skew, too.
    pub is_known_skew: bool,
}

impl Purges {
    /// Time between two purges, once one has found no more rows to delete.
    pub const INTERVAL: Duration = Duration::from_secs(60);

    /// Deletes the results of operations that ended longer than `age` ago. `own` reads a clock of this process that no
    /// hand sets, since any moment. Cancel safe: each commit stands by itself.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] if the store does not work; what was deleted stays deleted.
    pub async fn run(
        &mut self,
        journal: &dyn Journal,
        age: Duration,
        own: impl Fn() -> Duration + Send,
    ) -> Result<PurgeOutcome, Unavailable> {
        let mut outcome =
            PurgeOutcome { deleted: 0, is_all: false, skew: None, is_known_skew: false };
        for _commit in 0..COMMITS_MAX {
            let now = journal.clock().await?;
            // Read after the database's: the time between the two looks like the database being behind, by a round
            // trip, which is far within the tolerance.
            let own = own();
            let before = self.clocks;
            let seen = before.map_or(ClockPair::begin(now, own), |before| before.observe(now, own));
            self.clocks = Some(seen);
            outcome.skew = seen.skew();
            outcome.is_known_skew = before.is_some_and(|before| before.skew().is_some());
            let deleted = match outcome.skew {
                Some(_) => 0,
                None => journal.purge(age, RESULTS_PER_COMMIT).await?,
            };
            outcome.deleted = outcome.deleted.saturating_add(deleted);
            outcome.is_all = deleted == 0;
            if outcome.is_all {
                break;
            }
        }
        Ok(outcome)
    }
}
