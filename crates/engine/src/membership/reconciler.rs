//! Reconciler: brings operations that others left to rest, and deletes results past their time.
//!
//! ```text
//! every heartbeat: due rows, OPERATIONS_PER_LOOK at a time ─► reaped or settled, or they stand
//!                  what was noticed ─► told
//! every PURGE_EVERY: clocks agree? ─► RESULTS_PER_PURGE a commit, PURGES_MAX commits
//! ```
//!
//! Every process has one, and they need no leader: each change is a guarded write, of two that race one changes
//! nothing. A retry or a look-up that meets stale work does the same inline, so that nobody waits for a look.
//!
//! - Rows that cannot come to rest yet stay due, and come first again. Each look asks for as many more as stand, up to
//!   [`STANDING_MAX`], so that they do not keep newer ones from being tried.
//! - It reaps by what the domain allows and never calls work *not run*: a dead owner proves nothing of what it sent.
//! - What is deleted does not come back. The clocks are looked at before every commit of a purge, not once for all: a
//!   database whose clock was set a year ahead would else delete everything that there is ([`ClockPair`]).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::event::stuck;
use holdfast_domain::conduct::{ClockPair, ClockSkew};
use holdfast_domain::operation::Phase;
use holdfast_domain::ports::Unavailable;
use holdfast_domain::{ErrorChain, OperationId};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Membership;
use super::stuck_watch::StuckWatch;

/// Operations that one look tries, past those that cannot come to rest yet.
const OPERATIONS_PER_LOOK: u32 = 64;
/// Operations that cannot come to rest, beyond which no look goes.
const STANDING_MAX: u32 = 1_024;
/// Results that one commit deletes: few enough not to hold up others.
const RESULTS_PER_PURGE: u32 = 256;
/// Commits of one purge; what is left over is for the next look.
const PURGES_MAX: u32 = 64;
/// Interval between two purges, once one has found nothing more to delete.
const PURGE_EVERY: Duration = Duration::from_secs(60);

impl Membership {
    /// Reconciles and purges until the background ends, even where the store does not answer.
    pub(crate) async fn reconcile(self: Arc<Self>) {
        tokio::select! {
            () = self.reconcile_for_ever() => {}
            () = self.background.cancelled() => {}
        }
    }

    /// Loop of looks and purges. Cancel safe: work that is half done is found again by any process.
    async fn reconcile_for_ever(&self) {
        let mut ticks = interval(self.heartbeat);
        // A look that took long is not made up for: a store that is slow already would get a burst of them.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut purged: Option<Instant> = None;
        let begun = Instant::now();
        let mut clocks = None;
        let mut watch = StuckWatch::default();
        loop {
            ticks.tick().await;
            let looked = match self.reconcile_once().await {
                Ok(standing) => self.notice_stuck(&mut watch, &standing).await,
                Err(error) => Err(error),
            };
            if let Err(error) = looked {
                tracing::warn!(error = %ErrorChain(&error), "reconciling failed");
            }
            if let Err(error) = self.notices.tell(&*self.events).await {
                tracing::warn!(error = %ErrorChain(&error), "events were not written yet");
            }
            if purged.is_none_or(|at| at.elapsed() >= PURGE_EVERY) {
                match self.purge(begun, &mut clocks).await {
                    // More results become old in a minute than one purge may delete.
                    Ok(PurgeProgress::Some) => {}
                    Ok(PurgeProgress::All) => purged = Some(Instant::now()),
                    Err(error) => {
                        // Counts as a purge: a store that fails is not asked again with every heartbeat.
                        purged = Some(Instant::now());
                        tracing::warn!(error = %ErrorChain(&error), "deleting old results failed");
                    }
                }
            }
        }
    }

    /// Tries everything that is due once. Rows that cannot come to rest yet stay due and come
    /// first, so that each look is wider by their count. Returns those that stand.
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
                    // Counted, and told once a look: one line, however many rows are refused.
                    RestOutcome::Refused => refused = refused.saturating_add(1),
                }
                standing.insert(id);
            }
            // Fewer than were asked for: nothing is due behind them.
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
        watch: &mut StuckWatch,
        standing: &HashSet<OperationId>,
    ) -> Result<(), Unavailable> {
        for id in watch.look(standing, Instant::now()) {
            let Some(operation) = self.journal.load(id).await?.operation else { continue };
            match &operation.phase {
                Phase::Leased | Phase::Recorded(_) => self.notices.note(stuck(&operation)),
                // It has come to rest since the look.
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

    /// Deletes old results, and compares the clocks before each commit: a deletion is for good.
    async fn purge(
        &self,
        begun: Instant,
        clocks: &mut Option<ClockPair>,
    ) -> Result<PurgeProgress, Unavailable> {
        let age = self.retention();
        let mut all: u64 = 0;
        let mut left = PurgeProgress::Some;
        for _commit in 0..PURGES_MAX {
            let now = self.journal.clock().await?;
            // Read after the database's: the time between the two looks like the database being behind, by a round
            // trip, which is far within the tolerance.
            let own = begun.elapsed();
            let seen = clocks.map_or(ClockPair::begin(now, own), |before| before.observe(now, own));
            let is_known = clocks.is_some_and(|before| before.skew().is_some());
            *clocks = Some(seen);
            if let Some(apart) = seen.skew() {
                log_skew(apart, is_known);
                left = PurgeProgress::All;
                break;
            }
            let purged = self.journal.purge(age, RESULTS_PER_PURGE).await?;
            all = all.saturating_add(purged);
            if purged == 0 {
                left = PurgeProgress::All;
                break;
            }
        }
        if all > 0 {
            tracing::info!(results = all, "deleted old results");
        }
        Ok(left)
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

/// Progress of a purge.
enum PurgeProgress {
    /// No old result is left.
    All,
    /// Limit of one purge met; more may be left.
    Some,
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

/// Count of due operations to ask for, past those that stand; `None` where too many stand.
fn batch_limit(standing: usize) -> Option<u32> {
    let standing = u32::try_from(standing).ok().filter(|standing| *standing <= STANDING_MAX)?;
    Some(standing.saturating_add(OPERATIONS_PER_LOOK))
}
