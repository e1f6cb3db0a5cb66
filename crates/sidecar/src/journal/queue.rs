//! Queue between the calls and the journal's writer. Many calls share a transaction, and few wake
//! the writer: a wake costs a call more than its row does.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, thread};

use tokio::sync::oneshot;

use crate::journal::NotWritten;
use crate::table::Change;

/// The longest that an end waits for others to be written with.
const LATE: Duration = Duration::from_millis(100);

/// Change for the writer, and who waits for it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) change: Change,
    pub(super) written: Option<oneshot::Sender<()>>,
}

/// Changes on their way to the writer.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    news: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    entries: Vec<Entry>,
    /// Somebody waits for one of them.
    is_awaited: bool,
    /// Nobody reads any more, or nothing comes any more.
    is_closed: bool,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a change. The writer is woken by the first that it has to know of, not by each.
    pub(super) fn push(&self, entry: Entry) -> Result<(), NotWritten> {
        let is_news = {
            let mut state = self.lock();
            if state.is_closed {
                return Err(NotWritten);
            }
            let is_awaited = entry.written.is_some();
            let is_news = state.entries.is_empty() || (is_awaited && !state.is_awaited);
            state.is_awaited |= is_awaited;
            state.entries.push(entry);
            is_news
        };
        if is_news {
            self.news.notify_one();
        }
        Ok(())
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.news.notify_one();
    }
}

/// The writer's end of the queue. Without it nobody waits: an entry that is dropped tells its caller.
pub(super) struct QueueReader(pub(super) Arc<Queue>);

impl QueueReader {
    /// All that has come, once there is something, and where nobody waits for it what comes soon;
    /// `None` once it is closed and empty.
    pub(super) fn take(&self) -> Option<Vec<Entry>> {
        let queue = &self.0;
        let is_idle = |state: &mut QueueState| state.entries.is_empty() && !state.is_closed;
        let state = queue.news.wait_while(queue.lock(), is_idle);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        let is_patient = |state: &mut QueueState| !state.is_awaited && !state.is_closed;
        drop(queue.news.wait_timeout_while(state, LATE, is_patient));
        // On a busy core the calls that are ready by now come into the same transaction.
        thread::yield_now();
        let mut state = queue.lock();
        state.is_awaited = false;
        let entries = mem::take(&mut state.entries);
        (!entries.is_empty()).then_some(entries)
    }
}

impl Drop for QueueReader {
    fn drop(&mut self) {
        self.0.close();
        self.0.lock().entries.clear();
    }
}
