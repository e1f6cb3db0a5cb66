//! Queue between the calls and the journal's writer. Many calls share a transaction.
//!
//! ```text
//! a row that a call waits for  ─▶ push ─┐
//! an end, which none waits for ─▶ push ─┴─▶ entries ─▶ take (the writer): if a row is awaited, else after LATE
//! ```
//!
//! Waking: the writer is woken by the first change and by the first that a call waits for, so at most twice a
//! transaction, and not by each change of it.
//!
//! Order: the writer takes what was pushed in the order in which it was pushed.
//!
//! Closing: the writer writes the changes that wait once the sender is gone. Once the writer is gone no change
//! is taken in, and those that wait are dropped, which notifies their callers.
//!
//! Limits: [`BATCH_MAX`] changes are taken at once. A call goes on only once its row is kept, so that a slow disk
//! holds calls up. While a disk hangs, clients that hang up and retry add to what waits: beyond [`ROWS_MAX`] entries
//! a row is refused, and its call with it, and beyond [`ENTRIES_MAX`] an end is dropped. A lost end replays once.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{mem, thread};

use tokio::sync::oneshot;

use crate::journal::NotWritten;
use crate::table::TableChange;

/// The longest that an end waits for others to be written with.
const LATE: Duration = Duration::from_millis(100);
/// Changes of one transaction at most. One that fails is lost to all who wait for it.
const BATCH_MAX: usize = 512;

/// Entries that may wait when a row is added. More than there are connections, so that only a disk that hangs
/// refuses calls.
pub(super) const ROWS_MAX: usize = 8_192;
/// Entries that may wait when an end is added: as many ends as rows.
const ENTRIES_MAX: usize = 2 * ROWS_MAX;

/// Change for the writer, and who waits for it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) change: TableChange,
    pub(super) written: Option<oneshot::Sender<()>>,
}

#[derive(Debug, Default)]
struct QueueState {
    entries: VecDeque<Entry>,
    /// Entries that a call waits for.
    n_awaited: usize,
    /// Changes that were dropped since the queue was last empty.
    n_dropped: usize,
    /// The sender is gone: no more changes will come.
    is_over: bool,
    /// The receiver is gone: changes are refused.
    is_abandoned: bool,
}

#[derive(Debug, Default)]
struct Queue {
    state: Mutex<QueueState>,
    news: Condvar,
}

/// The end of the calls.
#[derive(Debug)]
pub(super) struct ChangeSender(Arc<Queue>);

/// The end of the writer: there is one.
pub(super) struct ChangeReceiver(Arc<Queue>);

/// The two ends of a queue.
pub(super) fn queue() -> (ChangeSender, ChangeReceiver) {
    let queue = Arc::<Queue>::default();
    (ChangeSender(Arc::clone(&queue)), ChangeReceiver(queue))
}

impl QueueState {
    /// Adds a change; true if the writer has to wake for it. A change that has no room is dropped, which
    /// notifies its caller.
    fn push(&mut self, entry: Entry) -> Result<bool, NotWritten> {
        if self.is_abandoned {
            return Err(NotWritten);
        }
        let is_awaited = entry.written.is_some();
        let room = if is_awaited { ROWS_MAX } else { ENTRIES_MAX };
        if self.entries.len() >= room {
            // One line until there is room again: while the disk hangs, each client that retries
            // would add one.
            if self.n_dropped == 0 {
                tracing::error!("the journal's disk does not keep up: calls are refused");
            }
            self.n_dropped = self.n_dropped.saturating_add(1);
            return Ok(false);
        }
        let is_news = self.entries.is_empty() || (is_awaited && self.n_awaited == 0);
        self.n_awaited += usize::from(is_awaited);
        self.entries.push_back(entry);
        Ok(is_news)
    }

    fn is_idle(&self) -> bool {
        self.entries.is_empty() && !self.is_over
    }

    /// True if the changes in the queue may wait for more.
    fn is_patient(&self) -> bool {
        self.n_awaited == 0 && !self.is_over
    }

    fn take(&mut self) -> Option<Vec<Entry>> {
        let n_taken = self.entries.len().min(BATCH_MAX);
        let taken: Vec<_> = self.entries.drain(..n_taken).collect();
        self.n_awaited -= taken.iter().filter(|entry| entry.written.is_some()).count();
        let n_dropped = if self.entries.is_empty() { mem::take(&mut self.n_dropped) } else { 0 };
        if n_dropped > 0 {
            tracing::warn!(n_dropped, "the journal's disk keeps up again");
        }
        (!taken.is_empty()).then_some(taken)
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ChangeSender {
    /// Adds a change; a refused change notifies its caller.
    pub(super) fn push(&self, entry: Entry) -> Result<(), NotWritten> {
        // The lock is released before `notify_one`, or the writer would wake only to wait for it.
        let is_news = self.0.lock().push(entry)?;
        if is_news {
            self.0.news.notify_one();
        }
        Ok(())
    }
}

impl Drop for ChangeSender {
    fn drop(&mut self) {
        // Under the lock: set between the writer's check and its sleep, `notify_one` below would
        // be lost.
        self.0.lock().is_over = true;
        self.0.news.notify_one();
    }
}

impl ChangeReceiver {
    /// Takes the changes that have come, at most [`BATCH_MAX`]. Blocks until there is one; if no call waits for
    /// it, up to [`LATE`] longer, for others. `None` at the end.
    pub(super) fn take(&self) -> Option<Vec<Entry>> {
        let Queue { news, .. } = &*self.0;
        let state = news.wait_while(self.0.lock(), |state| state.is_idle());
        let state = state.unwrap_or_else(PoisonError::into_inner);
        drop(news.wait_timeout_while(state, LATE, |state| state.is_patient()));
        // On a core that is busy, the calls that are ready by now come into the same transaction.
        thread::yield_now();
        self.0.lock().take()
    }
}

impl Drop for ChangeReceiver {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.is_abandoned = true;
        let left = mem::take(&mut state.entries);
        // Each drop wakes a caller, which must not happen under the lock.
        drop(state);
        drop(left);
    }
}

#[cfg(test)]
mod tests {
    use oneshot::error::TryRecvError;
    use uuid::Uuid;

    use super::*;
    use crate::table::Moment;

    fn change(number: u128) -> TableChange {
        TableChange::Remove { key: Uuid::from_u128(number), born: Moment(5) }
    }

    fn end(number: u128) -> Entry {
        Entry { change: change(number), written: None }
    }

    fn row(number: u128) -> (Entry, oneshot::Receiver<()>) {
        let (written, answer) = oneshot::channel();
        (Entry { change: change(number), written: Some(written) }, answer)
    }

    fn changes(taken: Option<Vec<Entry>>) -> Vec<TableChange> {
        taken.into_iter().flatten().map(|entry| entry.change).collect()
    }

    #[test]
    fn the_writer_is_woken_by_the_first_change_and_the_first_that_is_awaited() {
        let mut state = QueueState::default();
        let ((one, _one), (two, _two)) = (row(3), row(4));
        let entries = [(end(1), true), (end(2), false), (one, true), (two, false), (end(5), false)];
        for (entry, is_news) in entries {
            assert_eq!(state.push(entry), Ok(is_news));
        }
        assert_eq!(changes(state.take()), [1, 2, 3, 4, 5].map(change));
        let (three, _three) = row(6);
        assert_eq!(state.push(three), Ok(true));
    }

    #[test]
    fn what_is_awaited_waits_for_nothing_else() {
        let mut state = QueueState::default();
        assert!(state.is_idle());
        assert_eq!(state.push(end(1)), Ok(true));
        assert!(!state.is_idle() && state.is_patient());
        let (two, _two) = row(2);
        assert_eq!(state.push(two), Ok(true));
        assert!(!state.is_patient());
        assert_eq!(state.take().map(|taken| taken.len()), Some(2));
        assert!(state.is_idle() && state.is_patient());
        state.is_over = true;
        assert!(!state.is_idle() && !state.is_patient());
    }

    #[test]
    fn a_transaction_has_a_limit_and_what_is_left_over_is_still_awaited() {
        let mut state = QueueState::default();
        for _ in 0..BATCH_MAX {
            assert!(state.push(end(1)).is_ok());
        }
        let (last, _last) = row(2);
        assert_eq!(state.push(last), Ok(true));
        assert_eq!(state.take().map(|taken| taken.len()), Some(BATCH_MAX));
        assert!(!state.is_patient());
        assert_eq!(changes(state.take()), [change(2)]);
    }

    #[test]
    fn a_disk_that_hangs_bounds_what_waits_for_it() {
        let mut state = QueueState::default();
        let mut waiting = Vec::new();
        // Each client comes and hangs up, again and again.
        for number in 0..100_000 {
            let (entry, answer) = row(number);
            assert!(state.push(entry).is_ok() && state.push(end(number)).is_ok());
            waiting.push(answer);
        }
        assert_eq!(state.entries.len(), ENTRIES_MAX);
        let is_refused =
            |answer: &mut oneshot::Receiver<()>| answer.try_recv() == Err(TryRecvError::Closed);
        let n_kept = waiting.iter_mut().filter_map(|it| (!is_refused(it)).then_some(())).count();
        assert!(n_kept > 0 && n_kept <= ROWS_MAX, "{n_kept}");
        assert!(is_refused(waiting.last_mut().unwrap()));
        while state.take().is_some() {}
        let (entry, mut answer) = row(1);
        assert_eq!(state.push(entry), Ok(true));
        assert!(!is_refused(&mut answer), "there is room again");
    }

    #[test]
    fn what_came_before_the_end_is_taken() {
        let (sender, receiver) = queue();
        sender.push(end(1)).unwrap();
        drop(sender);
        assert_eq!(changes(receiver.take()), [change(1)]);
        assert!(receiver.take().is_none());
    }

    #[test]
    fn nobody_waits_for_a_writer_that_is_gone() {
        let (sender, receiver) = queue();
        let ((before, mut first), (after, mut second)) = (row(1), row(2));
        sender.push(before).unwrap();
        assert_eq!(first.try_recv(), Err(TryRecvError::Empty));
        drop(receiver);
        assert_eq!(first.try_recv(), Err(TryRecvError::Closed));
        assert_eq!(sender.push(after), Err(NotWritten));
        assert_eq!(second.try_recv(), Err(TryRecvError::Closed));
    }
}
