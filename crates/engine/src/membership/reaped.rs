//! Operations that this process has given up for their owners, until the remains of their runs at upstream gateways
//! are ended. Off the path: a look-up that reaps does not wait for it.

use holdfast_domain::operation::{Operation, Phase};
use tokio::sync::{Mutex, mpsc};

/// Operations that wait, at most; the cost of one more stays unknown.
const WAITING_MAX: usize = 1_024;

/// Reaped operations that wait for their end.
#[derive(Debug)]
pub(crate) struct ReapedOperations {
    waiting: mpsc::Sender<Operation>,
    next: Mutex<mpsc::Receiver<Operation>>,
}

impl Default for ReapedOperations {
    fn default() -> Self {
        let (waiting, next) = mpsc::channel(WAITING_MAX);
        Self { waiting, next: Mutex::new(next) }
    }
}

impl ReapedOperations {
    /// Takes a reconciled operation, if its run may go on at another gateway.
    pub(super) fn note(&self, operation: &Operation) {
        match operation.phase {
            Phase::Abandoned { .. } if !operation.is_cancelled_open() => {}
            Phase::Abandoned { .. }
            | Phase::Leased
            | Phase::Recorded(_)
            | Phase::Open
            | Phase::Completed { .. }
            | Phase::Refused { .. } => return,
        }
        // Never awaited: a look-up that reaps must not wait for a gateway that does not answer.
        if self.waiting.try_send(operation.clone()).is_err() {
            tracing::warn!(operation.id = %operation.id, "too many reaped operations: the run of one is not ended");
        }
    }

    /// The next of them. Cancel safe.
    pub(crate) async fn next(&self) -> Option<Operation> {
        // An async lock, held while it waits: a receiver needs `&mut`, and only one task takes operations.
        self.next.lock().await.recv().await
    }
}
