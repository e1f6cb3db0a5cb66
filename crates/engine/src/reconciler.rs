//! The reconciler: brings other processes' left work to rest, a few rows at a time, and deletes
//! results that have been kept long enough.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::OperationId;
use holdfast_domain::conduct::Conduct;
use holdfast_domain::operation::{Phase, Snapshot};
use holdfast_domain::ports::Unavailable;
use metrics::counter;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::Engine;
use crate::options::Options;

/// Operations that one look brings to rest.
const OPERATIONS_PER_LOOK: u32 = 64;
/// Results that one commit deletes: few enough not to hold up others.
const RESULTS_PER_PURGE: u32 = 256;
/// Commits of one purge.
const PURGES_MAX: u32 = 64;
/// Between two purges.
const PURGE_EVERY: Duration = Duration::from_secs(60);

impl Engine {
    /// What carries this process's decisions to the journal.
    pub(crate) fn conduct(&self) -> Conduct<'_> {
        let grace = self.options.orphan_grace;
        Conduct {
            journal: &*self.ports.journal,
            pause: &self.pause,
            orphan_grace: self.node.believes_dead_leases().then_some(grace),
        }
    }

    /// Reconciles one operation for a caller that waits: not for ever, where the store does not say
    /// whether it committed. Cancel safe.
    pub(crate) async fn reconciled(&self, id: OperationId) -> Result<Snapshot, Unavailable> {
        let conduct = self.conduct();
        tokio::time::timeout(Options::COMMIT_WAIT, conduct.reconcile(id))
            .await
            .unwrap_or_else(|elapsed| Err(Unavailable(elapsed.into())))
    }

    /// Reconciles and purges until the background ends. Cancel safe.
    pub(crate) async fn reconcile(self: Arc<Self>) {
        let mut ticks = interval(self.options.heartbeat);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut purged: Option<Instant> = None;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = self.background.cancelled() => return,
            }
            if let Err(error) = self.reconcile_once().await {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "reconciling failed");
            }
            if purged.is_none_or(|at| at.elapsed() >= PURGE_EVERY) {
                purged = Some(Instant::now());
                if let Err(error) = self.purge().await {
                    let error: &dyn std::error::Error = &error;
                    tracing::warn!(error, "deleting old results failed");
                }
            }
        }
    }

    /// Looks once, and again as long as a whole batch came to rest.
    async fn reconcile_once(&self) -> Result<(), Unavailable> {
        loop {
            let due = self.ports.journal.due(OPERATIONS_PER_LOOK).await?;
            let mut rested: usize = 0;
            for id in &due {
                let snapshot = self.conduct().reconcile(*id).await?;
                let Some(operation) = snapshot.operation else { continue };
                match &operation.phase {
                    Phase::Leased => {}
                    Phase::Recorded(_) => {
                        tracing::error!(
                            operation.id = %id,
                            wallet.id = %operation.wallet,
                            "settlement is refused by the store: run `holdfast ledger verify`"
                        );
                    }
                    phase @ (Phase::Open
                    | Phase::Completed { .. }
                    | Phase::Refused { .. }
                    | Phase::Abandoned { .. }) => {
                        rested = rested.saturating_add(1);
                        counter!("holdfast_reconciled_total", "phase" => phase.label())
                            .increment(1);
                        tracing::info!(operation.id = %id, phase = phase.label(), "reconciled");
                    }
                }
            }
            if rested == 0 || rested < due.len() {
                return Ok(());
            }
        }
    }

    async fn purge(&self) -> Result<(), Unavailable> {
        let age = self.options.results;
        let mut all: u64 = 0;
        for _commit in 0..PURGES_MAX {
            let purged = self.ports.journal.purge(age, RESULTS_PER_PURGE).await?;
            all = all.saturating_add(purged);
            if purged < u64::from(RESULTS_PER_PURGE) {
                break;
            }
        }
        if all > 0 {
            tracing::info!(results = all, "deleted old results");
        }
        Ok(())
    }
}
