//! Restores in memory: the rows that a store has, and the revision that a declaration moves.

use async_trait::async_trait;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::restore::{Restore, UnknownKeys};
use holdfast_domain::{Restores, Timestamp};

use super::{JournalState, MemoryJournal};
use crate::join::step_back;

#[async_trait]
impl Restores for MemoryJournal {
    async fn declare(&self, unknown: UnknownKeys) -> Result<Restore, Unavailable> {
        step_back().await;
        let mut state = self.state();
        let now = state.tick();
        if unknown == UnknownKeys::Allow {
            for restore in &mut state.restores {
                restore.unknown_until = restore.unknown_until.min(now.max(restore.restored_at));
            }
        }
        let restore = Restore { restored_at: now, unknown_until: now.after(unknown.window()) };
        state.restores.push(restore);
        let wallets: Vec<_> = state.wallets.iter().map(|wallet| wallet.id).collect();
        // As far as no lost edit can have come, and elsewhere at another restore of the same copy.
        let moved = u64::try_from(now.as_micros()).unwrap_or(0);
        for wallet in wallets {
            let revision = state.limits_revisions.entry(wallet).or_insert(0);
            *revision = revision.saturating_add(1).max(moved);
        }
        Ok(restore)
    }

    async fn open_window(&self) -> Result<Option<Restore>, Unavailable> {
        step_back().await;
        let state = self.state();
        let open = state.restores.iter().filter(|restore| restore.unknown_until > state.now);
        Ok(open.max_by_key(|restore| restore.unknown_until).copied())
    }
}

impl JournalState {
    /// End of the window that is open for an API key of this moment.
    pub(super) fn unknown_until(&self, created_at: Timestamp) -> Option<Timestamp> {
        let lost = self.restores.iter().filter(|restore| restore.restored_at >= created_at);
        lost.map(|restore| restore.unknown_until).filter(|until| *until > self.now).max()
    }
}
