//! Edits of limits: a counter that begins to count is set to what the operations of the API key make of its window.

use holdfast_domain::limits::Counter;
use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::{ApiKeyId, Timestamp, WalletId};

use super::{JournalState, MemoryJournal};

impl MemoryJournal {
    /// Revision of the limits of this wallet's API keys.
    #[must_use]
    pub fn limits_revision(&self, wallet: WalletId) -> u64 {
        self.state().limits_revision(wallet)
    }

    /// Sets a counter of the window of now, as an edit that counts wrongly would.
    pub fn set_counter(&self, api_key: ApiKeyId, counter: Counter, used: i64) {
        let mut state = self.state();
        let window = (api_key, counter, counter.window(state.now));
        state.counters.insert(window, used);
    }
}

impl JournalState {
    pub(super) fn limits_revision(&self, wallet: WalletId) -> u64 {
        self.limits_revisions.get(&wallet).copied().unwrap_or(0)
    }

    pub(super) fn seed(&mut self, api_key: ApiKeyId, counter: Counter, now: Timestamp) {
        let start = counter.window(now);
        let mut used: i64 = 0;
        for row in self.operations.values_mut().map(|row| &mut row.operation) {
            if row.api_key != api_key || counter.window(row.admitted_at) != start {
                continue;
            }
            used = used.saturating_add(left_by(row, counter));
            let reserved = row.reserved.with(counter);
            // With its bit its version moves: an ending that was judged before is judged again.
            if is_running(row) && reserved != row.reserved {
                row.reserved = reserved;
                row.version = row.version.next();
            }
        }
        self.counters.insert((api_key, counter, start), used);
    }
}

fn is_running(row: &Operation) -> bool {
    matches!(row.phase, Phase::Leased | Phase::Recorded(_))
}

/// True if T3 gave back what the operation reserved.
fn is_given_back(row: &Operation) -> bool {
    row.phase == Phase::Open || row.is_cancelled_open()
}

/// Amount that an operation leaves in a counter.
fn left_by(row: &Operation, counter: Counter) -> i64 {
    let whole = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
    match (counter, &row.phase) {
        (Counter::Concurrency, _) => i64::from(is_running(row)),
        (Counter::Requests, _) if is_given_back(row) => i64::from(row.generation > 1),
        (Counter::Requests, _) => 1,
        (Counter::Tokens, _) if is_given_back(row) => 0,
        (Counter::Tokens, Phase::Completed { usage, .. }) => {
            let meters = &usage.metered.meters;
            whole(meters.prompt_tokens().saturating_add(meters.completion_tokens()))
        }
        (Counter::Tokens, _) => whole(row.reserved.tokens()),
        (_, Phase::Completed { usage, .. }) => usage.charge.get(),
        (_, Phase::Leased | Phase::Recorded(_)) => row.hold.get(),
        (_, Phase::Open | Phase::Refused { .. } | Phase::Abandoned { .. }) => 0,
    }
}
