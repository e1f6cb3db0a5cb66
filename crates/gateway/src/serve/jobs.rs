//! Runner of jobs: does one at a time, a page at a time, and keeps each page as a step.
//!
//! ```text
//! reported: claim ─▶ page ─▶ keep ─▶ pause, as long as the page took ─▶ page ─▶ ... ─▶ finish
//!                     │       ╰─ another process has the job: left to it
//!                     ╰─ every RENEW: the lease is renewed
//! ```
//!
//! A heartbeat reports that a job may be claimed. Every process has a runner, and they need no leader. A job whose
//! process has died is claimed by another one when its lease has ended, and goes on after the last page that was kept;
//! a process that ends in order gives its job back at once.
//!
//! - It takes at most half of the time of one processor, and the one connection that the store has
//!   for audits.
//! - A database that does not answer ends a turn and never the job: the lease ends, and another process claims
//!   it again. A job fails if its row cannot be continued by any process.

use std::pin::pin;
use std::time::Duration;

use holdfast_domain::ErrorChain;
use holdfast_domain::admin::Jobs as _;
use holdfast_domain::admin::job::{Job, JobEnding, JobKind, JobStep};
use holdfast_domain::operation::Node;
use holdfast_domain::ports::{PendingWork, Unavailable, WorkKind};
use holdfast_store::Store;
use holdfast_store::verify::{
    AuditOptions, AuditPage, AuditPosition, BadAuditPosition, BadReport, Verification,
};
use tokio::sync::watch;
use tokio::time::{Instant, interval_at, sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Time without a report after which the runner looks for a job by itself.
const LOOK: Duration = Duration::from_secs(5);
/// Lease of a job.
const LEASE: Duration = Duration::from_secs(60);
/// Interval between two renewals during a page.
const RENEW: Duration = Duration::from_secs(20);
/// Shortest pause after a page.
const PAUSE: Duration = Duration::from_millis(5);

/// Runner of jobs in a process that serves.
#[derive(Debug)]
pub(super) struct JobRunner {
    pub(super) store: Store,
    pub(super) owner: Node,
    /// Reports of the heartbeats.
    pub(super) pending: watch::Receiver<PendingWork>,
    pub(super) options: AuditOptions,
}

/// Ending of a turn at a job before the job's own.
#[derive(Debug, thiserror::Error)]
enum TurnError {
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error("another process has claimed the job")]
    Lost,
    #[error("the place of the job cannot be read")]
    Place(#[from] BadAuditPosition),
    #[error("the report of the job cannot be read")]
    Report(#[from] BadReport),
}

impl JobRunner {
    /// Does jobs until `shutdown`.
    pub(super) async fn run(mut self, shutdown: CancellationToken) {
        loop {
            let report = tokio::select! {
                report = timeout(LOOK, self.pending.changed()) => report,
                () = shutdown.cancelled() => return,
            };
            match report {
                Ok(Ok(())) if !self.pending.borrow_and_update().has(WorkKind::Job) => continue,
                Ok(Ok(())) => {}
                // The engine is gone: the process ends.
                Ok(Err(_closed)) => return shutdown.cancelled().await,
                // Heartbeats that do not come back prove no rest: it looks by itself.
                Err(_elapsed) => {}
            }
            if let Err(error) = self.run_one(&shutdown).await {
                tracing::warn!(error = %ErrorChain(&error), "a job was left for a later turn");
            }
        }
    }

    /// Does the next job, if there is one.
    async fn run_one(&self, shutdown: &CancellationToken) -> Result<(), TurnError> {
        let Some(job) = self.store.claim(&self.owner, LEASE).await? else { return Ok(()) };
        tracing::info!(job.id = %job.id, kind = job.kind.label(), "a job goes on");
        let (id, mut step) = (job.id, job.step.clone());
        let turn = match job.kind {
            JobKind::Verification => self.verify(&job, &mut step, shutdown).await,
        };
        match turn {
            Ok(Some(ending)) => {
                let ended = self.store.finish(id, &self.owner, &step, ending).await?;
                let state = ended.ok_or(TurnError::Lost)?.state;
                tracing::info!(job.id = %id, state = state.label(), "a job has ended");
                Ok(())
            }
            // Given back: the next process that looks continues it.
            Ok(None) => self.keep(&job, &step, Duration::ZERO).await,
            Err(error @ (TurnError::Place(_) | TurnError::Report(_))) => {
                self.store.finish(id, &self.owner, &step, JobEnding::Failed).await?;
                Err(error)
            }
            Err(error @ (TurnError::Unavailable(_) | TurnError::Lost)) => Err(error),
        }
    }

    /// Audits the ledger from a step on; `None` if `shutdown` came first.
    async fn verify(
        &self,
        job: &Job,
        step: &mut JobStep,
        shutdown: &CancellationToken,
    ) -> Result<Option<JobEnding>, TurnError> {
        let mut place: Option<AuditPosition> = step.place.as_deref().map(str::parse).transpose()?;
        let report = step.report.as_deref().map(Verification::from_json).transpose()?;
        let mut found = report.unwrap_or_default();
        loop {
            let begun = Instant::now();
            let page = tokio::select! {
                page = self.page(job, step, place) => page?,
                () = shutdown.cancelled() => return Ok(None),
            };
            found.add(page.found);
            *step = JobStep {
                done: page.progress.done,
                of: page.progress.of,
                place: page.next.as_ref().map(|next| next.to_string().into()),
                report: Some(found.to_json().into()),
            };
            let Some(next) = page.next else { return Ok(Some(JobEnding::Done)) };
            self.keep(job, step, LEASE).await?;
            place = Some(next);
            tokio::select! {
                () = sleep(begun.elapsed().max(PAUSE)) => {}
                () = shutdown.cancelled() => return Ok(None),
            }
        }
    }

    /// Checks a page, and renews the lease as long as that takes.
    async fn page(
        &self,
        job: &Job,
        step: &JobStep,
        place: Option<AuditPosition>,
    ) -> Result<AuditPage, TurnError> {
        let options = AuditOptions { since: job.since, ..self.options.clone() };
        let mut page = pin!(self.store.verify_page(options, place));
        let mut renewals = interval_at(Instant::now() + RENEW, RENEW);
        loop {
            tokio::select! {
                page = &mut page => return Ok(page?),
                _ = renewals.tick() => self.keep(job, step, LEASE).await?,
            }
        }
    }

    async fn keep(&self, job: &Job, step: &JobStep, lease: Duration) -> Result<(), TurnError> {
        let kept = self.store.keep(job.id, &self.owner, step, lease).await?;
        kept.map(drop).ok_or(TurnError::Lost)
    }
}

#[cfg(test)]
mod tests {
    use holdfast_domain::admin::audit::TrailHead;
    use holdfast_domain::admin::job::JobState;
    use holdfast_domain::{Currency, JobId, NodeName};
    use holdfast_store::verify::{Mismatch, Subject};
    use holdfast_store::{DatabaseUrl, Options, migrate};
    use holdfast_testkit::{Commands as _, sample};
    use tempfile::TempDir;

    use super::*;

    /// A runner on a book with a wallet.
    struct World {
        runner: JobRunner,
        _folder: TempDir,
    }

    impl World {
        async fn new() -> Self {
            let folder = TempDir::new().unwrap();
            let url = format!("sqlite://{}", folder.path().join("holdfast.db").display());
            let url = DatabaseUrl::parse(&url).unwrap();
            migrate::up(&url).await.unwrap();
            let store = Store::open(Options::new(url)).await.unwrap();
            store.create_wallet(sample::fresh(), "acme", Currency::USD).await.unwrap();
            let name = NodeName::try_from("one").unwrap();
            let owner = Node { name, incarnation: sample::fresh() };
            let options = AuditOptions::keeping(Duration::ZERO);
            let (_heartbeat, pending) = watch::channel(PendingWork::ALL);
            Self { runner: JobRunner { store, owner, pending, options }, _folder: folder }
        }

        async fn start(&self) -> JobId {
            let id = sample::fresh();
            self.runner.store.start(id, JobKind::Verification, None).await.unwrap();
            id
        }

        /// Leaves this step behind, as a process that has died.
        async fn leave(&self, id: JobId, step: &JobStep) {
            let name = NodeName::try_from("dead").unwrap();
            let dead = Node { name, incarnation: sample::fresh() };
            self.runner.store.claim(&dead, LEASE).await.unwrap().unwrap();
            self.runner.store.keep(id, &dead, step, Duration::ZERO).await.unwrap().unwrap();
        }

        async fn job(&self, id: JobId) -> Job {
            self.runner.store.job(id).await.unwrap().unwrap()
        }

        /// A turn with time to spare.
        async fn turn(&self) -> Result<(), TurnError> {
            self.runner.run_one(&CancellationToken::new()).await
        }
    }

    fn report(job: &Job) -> Verification {
        Verification::from_json(job.step.report.as_deref().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn a_queued_job_is_done_page_by_page() {
        let world = World::new().await;
        let id = world.start().await;
        world.turn().await.unwrap();
        let job = world.job(id).await;
        assert_eq!((job.state, job.step.place.clone()), (JobState::Done, None));
        assert_eq!(report(&job), Verification { wallets: 1, ..Verification::default() });
        world.turn().await.unwrap();
        assert_eq!(world.job(id).await, job, "nothing is left to do");
    }

    #[tokio::test]
    async fn a_trail_that_no_longer_goes_through_a_head_is_reported() {
        let world = World::new().await;
        for (since, count) in [(TrailHead::EMPTY, 0), (TrailHead { seq: 7, mac: [9; 32] }, 1)] {
            let id: JobId = sample::fresh();
            let kind = JobKind::Verification;
            world.runner.store.start(id, kind, Some(since)).await.unwrap();
            world.turn().await.unwrap();
            let found = report(&world.job(id).await);
            assert_eq!(found.mismatches.len(), count, "{since}: {found:?}");
        }
    }

    #[tokio::test]
    async fn a_job_goes_on_after_what_a_dead_process_has_kept() {
        let world = World::new().await;
        let id = world.start().await;
        let mismatch = Mismatch { subject: Subject::Ledger, sentence: "it is torn".to_owned() };
        let found =
            Verification { operations: 7, mismatches: vec![mismatch], ..Verification::default() };
        let place = Some("wallets:0:1".into());
        let report_before = Some(found.to_json().into());
        world.leave(id, &JobStep { done: 7, of: 7, place, report: report_before }).await;
        world.turn().await.unwrap();
        let job = world.job(id).await;
        assert_eq!(job.state, JobState::Done);
        // What the dead one has found stays, and no page of it is read again.
        assert_eq!(report(&job), Verification { wallets: 1, ..found });
    }

    #[tokio::test]
    async fn a_process_that_ends_gives_its_job_back_with_its_step() {
        let world = World::new().await;
        let id = world.start().await;
        let shutdown = CancellationToken::new();
        shutdown.cancel();
        let step = JobStep { done: 1, of: 2, place: Some("wallets:0:1".into()), report: None };
        world.leave(id, &step).await;
        // Either a page of it was done by then, or none.
        world.runner.run_one(&shutdown).await.unwrap();
        let job = world.job(id).await;
        assert_eq!(job.state, JobState::Running);
        world.turn().await.unwrap();
        assert_eq!(world.job(id).await.state, JobState::Done, "its lease has ended");
    }

    #[tokio::test]
    async fn a_job_that_nobody_can_go_on_from_fails() {
        let world = World::new().await;
        for (place, report) in [(Some("nowhere"), None), (None, Some("torn"))] {
            let id = world.start().await;
            let [place, report] = [place, report].map(|text: Option<&str>| text.map(Into::into));
            let step = JobStep { done: 1, of: 2, place, report };
            world.leave(id, &step).await;
            world.turn().await.unwrap_err();
            let job = world.job(id).await;
            assert_eq!((job.state, job.step), (JobState::Failed, step));
        }
    }

    #[tokio::test]
    async fn a_job_of_somebody_else_is_not_kept() {
        let world = World::new().await;
        let id = world.start().await;
        world.leave(id, &JobStep::default()).await;
        let job = world.job(id).await;
        let lost = world.runner.keep(&job, &JobStep::default(), LEASE).await;
        assert!(matches!(lost, Err(TurnError::Lost)), "{lost:?}");
    }
}
