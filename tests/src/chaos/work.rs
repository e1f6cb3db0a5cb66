//! Queue of requests: clients take from it until it is closed and empty.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Keys, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Work {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<usize>,
    /// Clients that wait for work.
    idle: usize,
    is_closed: bool,
}

/// Closes the work when it is dropped, also if a test ends early: no client waits for ever.
#[derive(Debug)]
pub(super) struct Closing<'a>(&'a Work);

impl Work {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds these at the end.
    pub(super) fn add(&self, keys: impl IntoIterator<Item = usize>) {
        self.state().queue.extend(keys);
        self.changed.notify_all();
    }

    /// The next one; `None` when there will be no more.
    pub(super) fn next(&self) -> Option<usize> {
        let mut state = self.state();
        loop {
            if let Some(at) = state.queue.pop_front() {
                return Some(at);
            }
            if state.is_closed {
                return None;
            }
            state.idle += 1;
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// True if so many clients are idle.
    pub(super) fn is_idle(&self, clients: usize) -> bool {
        let state = self.state();
        state.queue.is_empty() && state.idle == clients
    }

    /// True if fewer than so many are left to take.
    pub(super) fn is_short(&self, than: usize) -> bool {
        self.state().queue.len() < than
    }

    /// Closes it at the end of a scope.
    pub(super) fn closing(&self) -> Closing<'_> {
        Closing(self)
    }
}

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.state().is_closed = true;
        self.0.changed.notify_all();
    }
}
