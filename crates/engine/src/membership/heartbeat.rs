//! Heartbeat: renews this node's row, and reads the operations that are leased to it.
//!
//! ```text
//! every heartbeat (4 s): renew the lease ─┬─ held ─► operations leased here, if any: cancel, or disown
//!                                         │          work that waits ─► the tasks that do it
//!                                         ├─ lost ─► superseded: take nothing new, drain
//!                                         └─ failed ► try again after RETRY, at most 1 s
//! ```
//!
//! One write for each process, not for each operation, however many run. The answer names the work that waits in
//! the shared rows ([`PendingWork`]), so that a process at rest reads no other row. A heartbeat ends claims in two ways:
//!
//! - *Cancel*: a request to any process marks the row; the owner finds the mark here and stops the run.
//! - *Disown*: a claim on a row that no task of this process runs. It must be seen at two heartbeats, because a
//!   claim may be committed before its task is back to report it. As *not run* only if the task is known to have
//!   died before it sent a byte; else as outcome unknown: no charge, and it never runs again.
//!
//! An acknowledgement that took longer than the lease has no value, and is not waited for. A silent commit of a
//! disowned claim must not keep the next heartbeat waiting: the reading is cut after one heartbeat.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::operation::{Disown, SendStatus};
use holdfast_domain::ports::{
    HeartbeatOutcome, LeaseMode, LeasedOperation, PendingWork, Unavailable, WorkKind,
};
use holdfast_domain::{ClaimId, ErrorChain, OperationId};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::Membership;
use crate::authentication::Authentication;

/// Wait after a heartbeat that failed, at most.
const RETRY: Duration = Duration::from_secs(1);

impl Membership {
    /// Sends heartbeats until the background ends, even if the store does not answer.
    pub(crate) async fn beat(self: Arc<Self>, authentication: Arc<Authentication>) {
        let mut ticks = interval(self.heartbeat);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Claims that were seen once without a task: the task of a fresh claim may not be back yet.
        let mut suspects = HashMap::new();
        loop {
            tokio::select! {
                // In a fixed order, here and in every other place: simulated time repeats a run to the same poll.
                biased;
                _ = ticks.tick() => {}
                () = self.background.cancelled() => return,
            }
            // Here because it comes every few seconds: secrets leave memory when they are too old.
            authentication.evict_expired();
            let beaten = tokio::select! {
                biased;
                beaten = self.beat_once(&mut suspects) => beaten,
                () = self.background.cancelled() => return,
            };
            if let Err(error) = beaten {
                self.node.on_heartbeat_failure();
                // A failure that was for a moment leaves the process unready for no longer.
                ticks.reset_after(RETRY.min(self.heartbeat));
                tracing::warn!(error = %ErrorChain(&error), "heartbeat failed");
            }
        }
    }

    async fn beat_once(
        &self,
        suspects: &mut HashMap<OperationId, ClaimId>,
    ) -> Result<(), Unavailable> {
        let node = self.node.node();
        // Before it is sent: the lease may begin at any moment from here on.
        let sent = Instant::now();
        let beat = self.nodes.heartbeat(node, self.node.length(), LeaseMode::Renew);
        // What is acknowledged later than this has ended already: the next one may fare better.
        let beat = timeout(self.node.length(), beat).await;
        match beat.unwrap_or_else(|elapsed| Err(Unavailable(elapsed.into())))? {
            HeartbeatOutcome::Held { lease, now, pending } => {
                self.node.on_heartbeat(sent, lease, now);
                self.pending.send_replace(pending);
                if !pending.has(WorkKind::Leased) {
                    suspects.clear();
                    return Ok(());
                }
            }
            HeartbeatOutcome::Lost { .. } => {
                // Its row reports no work, and what it drains is not done yet.
                self.pending.send_replace(PendingWork::ALL);
                if !self.node.superseded.is_cancelled() {
                    tracing::error!(node = %node.name, "superseded by another process: draining");
                }
                self.node.superseded.cancel();
                return Ok(());
            }
        }
        // A commit without a verdict must not keep the next heartbeat waiting.
        let tended = timeout(self.heartbeat, self.tend_leased(suspects)).await;
        tended.unwrap_or_else(|_elapsed| {
            tracing::warn!("claims without a task were not given up in time");
            Ok(())
        })
    }

    /// Stops the tasks that a request to any process has cancelled, and disowns claims that were
    /// leased here without a task at this heartbeat and the last.
    async fn tend_leased(
        &self,
        suspects: &mut HashMap<OperationId, ClaimId>,
    ) -> Result<(), Unavailable> {
        let node = self.node.node();
        let leased = self.journal.leased_to(node).await?;
        for asked in leased.iter().filter(|leased| leased.cancel_asked) {
            self.running.cancel(asked.operation, asked.claim);
        }
        let mut seen = HashMap::new();
        for LeasedOperation { operation, claim, .. } in leased {
            let Some(sent) = self.running.send_evidence(operation, claim) else { continue };
            // The same claim at two heartbeats: another claim of the same operation is a new run.
            if suspects.get(&operation) == Some(&claim) {
                self.disown(operation, Disown { claim, sent }).await?;
            } else {
                seen.insert(operation, claim);
            }
        }
        *suspects = seen;
        Ok(())
    }

    async fn disown(&self, operation: OperationId, disown: Disown) -> Result<(), Unavailable> {
        let found = self.conduct().disown(operation, disown).await?;
        let moved = found.moved;
        self.found(found);
        if moved {
            let not_run = disown.sent == SendStatus::Never;
            tracing::warn!(operation.id = %operation, not_run, "gave up a claim without a task");
        }
        Ok(())
    }
}
