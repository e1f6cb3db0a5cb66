//! The memory that answers take while they arrive, of one run and of all of them. It is counted by the bytes that
//! were read, whatever their content: a provider decides how much it sends, and the parsed answer grows with that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that one run may always hold: no short answer is cut for a long one.
const SHARE_MIN: usize = 1 << 20;
/// Step in bytes by which a run takes from the common counter, on which all runs contend.
const GRAIN: usize = 16 << 10;

/// Bytes of answers that all runs of this process hold together.
#[derive(Debug, Default)]
pub(crate) struct AnswerBytes(AtomicUsize);

/// Share of one run, given back by its drop.
#[derive(Debug)]
pub(crate) struct AnswerShare {
    all: Arc<AnswerBytes>,
    all_max: usize,
    read: AtomicUsize,
    taken: AtomicUsize,
}

impl AnswerBytes {
    /// True if `max` bytes or more are held.
    pub(crate) fn are_spent(&self, max: usize) -> bool {
        self.0.load(Ordering::Relaxed) >= max
    }

    /// Opens an empty share; all shares together may hold `all_max` bytes.
    pub(crate) fn share(self: &Arc<Self>, all_max: usize) -> AnswerShare {
        let (read, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        AnswerShare { all: Arc::clone(self), all_max, read, taken }
    }
}

impl AnswerShare {
    /// Counts bytes that were read; false if there is no room for them. The bytes count in either case, because
    /// they are in memory already.
    pub(crate) fn read(&self, bytes: usize) -> bool {
        let read = self.read.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let taken = self.taken.load(Ordering::Relaxed);
        if read <= taken {
            return true;
        }
        // In grains: the common counter is touched once in 16 KiB, not with every piece.
        let more = read.saturating_sub(taken).next_multiple_of(GRAIN);
        // One task reads for a run, so that the load above and this add do not race. Relaxed: the counters bound
        // memory roughly, and order no other access.
        self.taken.fetch_add(more, Ordering::Relaxed);
        let all = self.all.0.fetch_add(more, Ordering::Relaxed).saturating_add(more);
        read <= SHARE_MIN || all <= self.all_max
    }
}

impl Drop for AnswerShare {
    fn drop(&mut self) {
        self.all.0.fetch_sub(*self.taken.get_mut(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_has_read_is_held_until_it_ends() {
        let all = Arc::new(AnswerBytes::default());
        let (first, second) = (all.share(4 << 20), all.share(4 << 20));
        assert!(first.read(3 << 20) && !all.are_spent(4 << 20));
        assert!(second.read(1 << 20), "it is all there is");
        assert!(all.are_spent(4 << 20));
        assert!(!first.read(1), "it has more than everybody may have");
        let third = all.share(4 << 20);
        assert!(third.read(1 << 20), "a short answer is not cut for a long one");
        assert!(!third.read(1));
        drop(first);
        assert!(!all.are_spent(4 << 20) && third.read(1));
        drop((second, third));
        assert_eq!(all.0.load(Ordering::Relaxed), 0);
    }
}
