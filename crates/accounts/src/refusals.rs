//! Counts of refused attempts, until they are written.
//!
//! A caller who is refused must not make the database write: the counts of all of them are kept here, and the
//! process writes them every few seconds ([`Accounts::write_refused`]), a row for each actor and use case.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_domain::admin::audit::RefusedAttempts;
use holdfast_domain::admin::{ActorId, UseCase};

use crate::{Accounts, Result};

/// Pairs that are counted between two writes; what comes beyond them is in the log of requests alone.
const PAIRS_MAX: usize = 1_024;

/// Counts that are not written yet. Taken out under the lock and written after it, so that no refusal waits for the
/// database.
#[derive(Debug, Default)]
pub(crate) struct RefusalCounts(Mutex<BTreeMap<(ActorId, UseCase), u64>>);

impl RefusalCounts {
    fn add(&self, actor: ActorId, use_case: UseCase, attempts: u64) {
        let mut counts = self.counts();
        // A full map still counts the pairs that it has: a flood of new ones must not stop their
        // figures.
        if counts.len() < PAIRS_MAX || counts.contains_key(&(actor, use_case)) {
            let count = counts.entry((actor, use_case)).or_insert(0);
            *count = count.saturating_add(attempts);
        }
    }

    fn take(&self) -> Vec<RefusedAttempts> {
        let taken = std::mem::take(&mut *self.counts());
        let refused = |((actor, use_case), attempts)| RefusedAttempts { actor, use_case, attempts };
        taken.into_iter().map(refused).collect()
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<(ActorId, UseCase), u64>> {
        // A map of counts is whole after a panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accounts {
    /// Counts an attempt that was refused for lack of a right.
    pub fn note_refused(&self, actor: ActorId, use_case: UseCase) {
        self.refusals.add(actor, use_case, 1);
    }

    /// Writes the attempts that were counted since the last time, and returns them.
    ///
    /// # Errors
    ///
    /// [`AccountsError::Unavailable`](crate::AccountsError::Unavailable): it is written with the next ones.
    pub async fn write_refused(&self) -> Result<Vec<RefusedAttempts>> {
        let refused = self.refusals.take();
        if refused.is_empty() {
            return Ok(refused);
        }
        if let Err(error) = self.book.count_refused(&refused).await {
            // Added to those since, which may have filled the map: the counts are statistics, and
            // the log of requests has each.
            for RefusedAttempts { actor, use_case, attempts } in refused {
                self.refusals.add(actor, use_case, attempts);
            }
            return Err(error.into());
        }
        Ok(refused)
    }
}
