//! Process: one incarnation of a node, until it crashes.
//!
//! A crash freezes the process: from then on no port of it returns, and no message of it arrives. That is what a killed
//! process looks like from outside. A dropped task would run its destructors, which a killed process does not. What
//! is left of it goes with the runtime at the end of the run.

use std::future::pending;
use std::sync::Arc;

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
    cut_off: watch::Sender<bool>,
}

impl Process {
    /// Living process.
    #[must_use]
    pub fn new(slot: usize, number: u64, node: Node) -> Arc<Self> {
        let (crashed, cut_off) = (watch::Sender::new(false), watch::Sender::new(false));
        Arc::new(Self { slot, number, node, crashed, cut_off })
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
        self.cut_off.send_replace(cut_off);
    }

    /// True while the store cannot be reached from here.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        *self.cut_off.borrow()
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
