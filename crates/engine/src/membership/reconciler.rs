//! Reconciler: brings operations that others left to rest, and deletes results past their time.
//!
//! ```text
//! every heartbeat: due rows, if it reports any, SCAN_BATCH at a time ─► reaped or settled, or they stay due
//!                  notices ─► outbox
//! every Purges::INTERVAL: clocks agree? ─► old results and old hours of statistics deleted, a few a commit
//! ```
//!
//! Every process has one, and they need no leader: each change is a guarded write, and the second of two that race
//! has no effect. A retry or a look-up that meets stale work does the same inline, so that no caller waits for a
//! pass.
//!
//! - Rows that cannot come to rest yet stay due, and come first again. Each pass reads as many more as stand, up to
//!   [`STANDING_MAX`], so that they do not keep newer ones from being tried.
//! - It reaps by the rules of the domain and never calls work *not run*: a dead owner proves nothing of what it
//!   sent.

use std::collections::HashSet;
use std::sync::Arc;

use holdfast_domain::admin::event::stuck;
use holdfast_domain::conduct::{ClockSkew, PurgeOutcome, Purges};
use holdfast_domain::operation::Phase;
use holdfast_domain::ports::{PendingWork, Unavailable, WorkKind};
use holdfast_domain::{ErrorChain, OperationId};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::Membership;
use super::stuck_detector::StuckDetector;

/// Operations that one pass tries, past those that cannot come to rest yet.
const SCAN_BATCH: u32 = 64;
/// Operations that cannot come to rest, beyond which no pass goes.
const STANDING_MAX: u32 = 1_024;

impl Membership {
    /// Reconciles and purges until the background ends, even if the store does not answer.
    pub(crate) async fn reconcile(self: Arc<Self>) {
        tokio::select! {
            biased;
            () = self.reconcile_for_ever() => {}
            () = self.background.cancelled() => {}
        }
    }

    /// Loop of passes and purges. Cancel safe: work that is half done is found again by any process.
    async fn reconcile_for_ever(&self) {
        let mut reports = self.pending.subscribe();
        // The first pass does not wait for a heartbeat.
        reports.mark_changed();
        let mut purged: Option<Instant> = None;
        let begun = Instant::now();
        let mut purges = Purges::default();
        let mut watch = StuckDetector::default();
        loop {
            let pending = self.next_report(&mut reports).await;
            let passed = if pending.has(WorkKind::Due) {
                self.reconcile_once().await
            } else {
                Ok(HashSet::new())
            };
            let looked = match passed {
                Ok(standing) => self.notice_stuck(&mut watch, &standing).await,
                Err(error) => Err(error),
            };
            if let Err(error) = looked {
                tracing::warn!(error = %ErrorChain(&error), "reconciling failed");
            }
            if let Err(error) = self.notices.write_to(&*self.events).await {
                tracing::warn!(error = %ErrorChain(&error), "events were not written yet");
            }
            if purged.is_none_or(|at| at.elapsed() >= Purges::INTERVAL) {
                match purges.run(&*self.journal, self.retention(), || begun.elapsed()).await {
                    Ok(outcome) => {
                        log_purge(&outcome);
                        self.purge_statistics(&outcome).await;
                        // Else more results become old in a minute than one purge may delete.
                        if outcome.is_all {
                            purged = Some(Instant::now());
                        }
                    }
                    Err(error) => {
                        // Counts as a purge: a store that fails does not get another one with every heartbeat.
                        purged = Some(Instant::now());
                        tracing::warn!(error = %ErrorChain(&error), "deleting old results failed");
                    }
                }
            }
        }
    }

    /// Waits for the report of the next heartbeat. Heartbeats that do not come back report no work and prove no rest:
    /// after two of them every row is read.
    async fn next_report(&self, reports: &mut watch::Receiver<PendingWork>) -> PendingWork {
        match timeout(self.heartbeat.saturating_mul(2), reports.changed()).await {
            Ok(Ok(())) => *reports.borrow_and_update(),
            // The sender is a field of this.
            Ok(Err(_closed)) => PendingWork::ALL,
            Err(_elapsed) => PendingWork::ALL,
        }
    }

    /// Deletes old hours of statistics, unless the clock that their age is judged by is not believed.
    async fn purge_statistics(&self, purge: &PurgeOutcome) {
        if purge.skew.is_some() || !purge.is_all {
            return;
        }
        if let Err(error) = self.statistics.purge().await {
            tracing::warn!(error = %ErrorChain(&error), "deleting old statistics failed");
        }
    }

    /// Tries all due operations once. Rows that cannot come to rest yet stay due and come first, so that each pass
    /// is wider by their count. Returns those that stand.
    async fn reconcile_once(&self) -> Result<HashSet<OperationId>, Unavailable> {
        let mut standing = HashSet::new();
        let mut refused: usize = 0;
        while let Some(limit) = batch_limit(standing.len()) {
            let due = self.journal.due(limit).await?;
            let is_all = u32::try_from(due.len()).is_ok_and(|found| found < limit);
            for id in due {
                if standing.contains(&id) {
                    continue;
                }
                match self.try_to_rest(id).await {
                    RestOutcome::Rests => continue,
                    RestOutcome::Stands => {}
                    // Counted, and logged once a pass: one line, however many rows are refused.
                    RestOutcome::Refused => refused = refused.saturating_add(1),
                }
                standing.insert(id);
            }
            // Fewer than requested: no row is due behind them.
            if is_all {
                break;
            }
        }
        if refused > 0 {
            tracing::error!(
                operations = refused,
                "the store refuses to settle or release: run `holdfast ledger verify`"
            );
        }
        Ok(standing)
    }

    /// Notes the operations that have been due for too long.
    async fn notice_stuck(
        &self,
        watch: &mut StuckDetector,
        standing: &HashSet<OperationId>,
    ) -> Result<(), Unavailable> {
        for id in watch.look(standing, Instant::now()) {
            let Some(operation) = self.journal.load(id).await?.operation else { continue };
            match &operation.phase {
                Phase::Leased | Phase::Recorded(_) => self.notices.note(stuck(&operation)),
                // It has come to rest since the read.
                Phase::Open
                | Phase::Completed { .. }
                | Phase::Refused { .. }
                | Phase::Abandoned { .. } => {}
            }
        }
        Ok(())
    }

    /// Tries to bring one operation to rest; a failure is logged, and keeps no other from its turn.
    async fn try_to_rest(&self, id: OperationId) -> RestOutcome {
        let snapshot = match self.reconcile_operation(id).await {
            Ok(snapshot) => snapshot,
            Err(error) => {
                tracing::warn!(operation.id = %id, error = %ErrorChain(&error), "an operation was not reconciled");
                return RestOutcome::Stands;
            }
        };
        let Some(operation) = snapshot.operation else { return RestOutcome::Rests };
        match &operation.phase {
            Phase::Leased if snapshot.now > operation.deadline => RestOutcome::Refused,
            Phase::Leased => RestOutcome::Stands,
            Phase::Recorded(_) => RestOutcome::Refused,
            phase @ (Phase::Open
            | Phase::Completed { .. }
            | Phase::Refused { .. }
            | Phase::Abandoned { .. }) => {
                self.metrics.reconciled(phase.label());
                RestOutcome::Rests
            }
        }
    }
}

/// Logs a purge that deleted rows, or met a skew of the clocks.
fn log_purge(purge: &PurgeOutcome) {
    if purge.deleted > 0 {
        tracing::info!(results = purge.deleted, "deleted old results");
    }
    if let Some(skew) = purge.skew {
        log_skew(skew, purge.is_known_skew);
    }
}

/// Logs a skew: as an error once for each jump, and quietly from then on.
fn log_skew(apart: ClockSkew, is_known: bool) {
    let ahead_s = apart.by_micros / 1_000_000;
    if is_known {
        tracing::debug!(ahead_s, "the database's clock has jumped: nothing is deleted");
        return;
    }
    tracing::error!(
        ahead_s,
        "the database's clock has jumped: old results are kept until it is right again, or has been so \
         for a day"
    );
}

/// Outcome for one due operation.
enum RestOutcome {
    /// Open or ended: at rest.
    Rests,
    /// Not to be reaped yet, or the store does not work.
    Stands,
    /// Refused by the store, although it may be settled or reaped.
    Refused,
}

/// Count of due operations to read, past those that stand; `None` if too many stand.
fn batch_limit(standing: usize) -> Option<u32> {
    let standing = u32::try_from(standing).ok().filter(|standing| *standing <= STANDING_MAX)?;
    Some(standing.saturating_add(SCAN_BATCH))
}
