//! Process: one incarnation of a node, until it crashes.
//!
//! A crash freezes the process: from then on no port of it returns, and no message of it arrives. That is what a killed
//! process looks like from outside. A dropped task would run its destructors, which a killed process does not. What
//! is left of it goes with the runtime at the end of the run.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use holdfast_domain::Timestamp;
use holdfast_domain::operation::Node;
use tokio::sync::watch;

/// Incarnation of a node.
#[derive(Debug)]
pub struct Process {
    /// Number of its slot, from zero.
    pub slot: usize,
    /// Number of the process in the whole run.
    pub number: u64,
    /// Node name and incarnation.
    pub node: Node,
    crashed: watch::Sender<bool>,
    /// True while the store cannot be reached from here.
    cut_off: AtomicBool,
    /// True while its heartbeats are lost on their way.
    is_deaf: AtomicBool,
    /// End of its lease, as the store last wrote it, in microseconds.
    lease_ends: AtomicI64,
}

impl Process {
    /// Living process.
    #[must_use]
    pub fn new(slot: usize, number: u64, node: Node) -> Arc<Self> {
        Arc::new(Self {
            slot,
            number,
            node,
            crashed: watch::Sender::new(false),
            cut_off: AtomicBool::new(false),
            is_deaf: AtomicBool::new(false),
            lease_ends: AtomicI64::new(i64::MAX),
        })
    }

    /// Ends it without notice.
    pub fn crash(&self) {
        self.crashed.send_replace(true);
    }

    /// True after its crash.
    #[must_use]
    pub fn is_crashed(&self) -> bool {
        *self.crashed.borrow()
    }

    /// Cuts it off from the store, or heals that.
    pub fn set_cut_off(&self, cut_off: bool) {
        self.cut_off.store(cut_off, Ordering::Relaxed);
    }

    /// True while the store cannot be reached from here.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    /// Loses its heartbeats on their way, or heals that.
    pub fn set_deaf(&self, is_deaf: bool) {
        self.is_deaf.store(is_deaf, Ordering::Relaxed);
    }

    /// True while its heartbeats are lost on their way.
    #[must_use]
    pub fn is_deaf(&self) -> bool {
        self.is_deaf.load(Ordering::Relaxed)
    }

    /// Notes the end of its lease.
    pub fn set_lease_end(&self, end: Timestamp) {
        self.lease_ends.store(end.as_micros(), Ordering::Relaxed);
    }

    /// True if its lease has ended by this moment.
    #[must_use]
    pub fn has_lapsed(&self, now: Timestamp) -> bool {
        self.lease_ends.load(Ordering::Relaxed) <= now.as_micros()
    }

    /// Completes with its crash.
    pub async fn end(&self) {
        let mut crashed = self.crashed.subscribe();
        // An error would be a sender that is gone, and this borrows it.
        drop(crashed.wait_for(|crashed| *crashed).await);
    }

    /// Completes at once while it lives, and never after its crash.
    pub async fn live(&self) {
        if self.is_crashed() {
            pending::<()>().await;
        }
    }
}
