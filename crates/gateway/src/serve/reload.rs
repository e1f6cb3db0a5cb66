//! Reload: takes another configuration while the process runs, on SIGHUP and when its file has
//! changed. It is taken as a whole or not at all. A request ends under the models, prices and limits that
//! it read when it began: each of its two parts, the listener's and the engine's, is read once.
//!
//! The file's stamp is compared twice a second. A changed file is read once two looks in a row
//! agree, because an editor may be halfway through it; SIGHUP does not wait for that.
//!
//! Every step that can fail comes first: reading, building of providers, the prices in the database. Then the
//! parts are replaced without an await between them, so no end of the task can split them. A mistake of the
//! file waits for another file; after a failure of the store the reload is repeated after `AGAIN`. Settings
//! that cannot be replaced keep their value, and the log names them.
//!
//! Reading and building run on blocking threads: the file may be on a network that hangs.

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use metrics::counter;
use tokio::signal::unix::Signal;
use tokio::task::JoinError;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::app::App;
use super::{prices, start};
use crate::telemetry;
use holdfast_bootstrap::database;
use holdfast_cli::failure::CommandFailure;
use holdfast_config::{Change, Config, FileStamp};

/// Between two looks at the file. One that has changed is read once it has been at rest for as
/// long, so that it is seldom seen half-written.
const LOOK: Duration = Duration::from_millis(500);

/// Between two attempts if the store did not work.
const AGAIN: Duration = Duration::from_secs(5);

const APPLIED: &str = "applied";
const UNCHANGED: &str = "unchanged";
const REFUSED: &str = "refused";
const OUTCOMES: [&str; 3] = [APPLIED, UNCHANGED, REFUSED];

/// The running configuration, and the parts that a reload of it replaces.
pub(super) struct Reloader {
    file: PathBuf,
    running: Config,
    /// Stamp of the file, taken before it was read last.
    read: Option<FileStamp>,
    /// Moment of another attempt on the same file, after a failure of the store.
    again: Option<Instant>,
    app: Arc<App>,
}

impl Reloader {
    /// `None` if there is no file to read another configuration from.
    pub(super) fn new(app: &Arc<App>) -> Option<Self> {
        let running = app.config.clone();
        let file = running.file.clone()?;
        for outcome in OUTCOMES {
            // Its first is seen as a change then.
            count_reload(outcome, 0);
        }
        let read = running.stamp;
        Some(Self { file, running, read, again: None, app: Arc::clone(app) })
    }

    /// Reloads changes until `end`, which waits for no reload: one that is given up has changed only the prices
    /// that the store knows.
    pub(super) async fn run(mut self, mut hangup: Signal, end: CancellationToken) {
        let watching = async {
            while AssertUnwindSafe(self.watch(&mut hangup)).catch_unwind().await.is_err() {
                count_reload(REFUSED, 1);
                tracing::error!("a reload panicked: the configuration that runs stays");
            }
        };
        tokio::select! {
            () = watching => {}
            () = end.cancelled() => {}
        }
    }

    /// Takes what changes, for ever. Cancel safe.
    async fn watch(&mut self, hangup: &mut Signal) {
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut last = self.read;
        loop {
            let asked = tokio::select! {
                asked = hangup.recv() => asked.is_some(),
                _ = ticks.tick() => false,
            };
            // Before the file is read: what is written meanwhile is another look.
            let file = self.file.clone();
            let look = run_blocking(move || FileStamp::of(&file).ok()).await;
            let is_due =
                look != self.read || self.again.is_some_and(|again| again <= Instant::now());
            // Two equal stamps in a row: the writer of the file has stopped for as long as `LOOK`.
            if asked || (is_due && look == last) {
                (self.read, self.again) = (look, None);
                self.reload().await;
            }
            last = look;
        }
    }

    async fn reload(&mut self) {
        let outcome = match self.try_reload().await {
            Ok(change) if change.is_nothing() => UNCHANGED,
            Ok(_) => APPLIED,
            Err(CommandFailure::Failed(error)) => {
                // The file is good: without this, its unchanged stamp would end the attempts.
                self.again = Some(Instant::now() + AGAIN);
                let file = self.file.display();
                tracing::warn!(%file, "not reloaded yet, tried again in {AGAIN:?}: {error:#}");
                REFUSED
            }
            Err(failure) => {
                self.log_refusal(&failure);
                REFUSED
            }
        };
        count_reload(outcome, 1);
    }

    /// Reads, builds and pins first, then replaces: no part changes before the last step that can fail, and
    /// there is no await from then on. A [`CommandFailure::Failed`] is no fault of the file.
    async fn try_reload(&mut self) -> Result<Change, CommandFailure> {
        let file = self.file.clone();
        let next = run_blocking(move || holdfast_config::load_again(&file)).await?;
        let change = self.running.change_to(&next);
        log_change(&change);
        start::warn_of_exposure(&next);
        // Settings that are kept have had their warnings; no part has to be built for them.
        if change.is_nothing() {
            if change.kept.is_empty() {
                let file = self.file.display();
                tracing::info!(%file, "nothing to reload: the file has the settings in force");
            }
            return Ok(change);
        }
        let (before, providers) = (self.app.engine.serving(), self.running.providers.clone());
        let made = run_blocking(move || {
            let serving = start::serving(&next, Some((&providers, &before)))?;
            let filter = telemetry::filter(&next.log.level)?;
            anyhow::Ok((next, serving, filter))
        });
        let (next, serving, filter) = made.await.map_err(CommandFailure::Usage)?;
        prices::pin(&next, &self.app.store).await?;
        // From here on no step fails and none awaits.
        self.running.take(next);
        let app = &self.app;
        app.engine.replace_serving(serving);
        // Of what runs: the proxies that are believed stay.
        app.live.replace(start::listening(&self.running));
        app.engine.keep_results(self.running.retention.results);
        app.engine.keep_statistics(self.running.retention.statistics);
        app.receivers.allowed.replace(&self.running.webhooks.allow);
        database::keep_events(&app.store, &self.running.retention);
        app.log.set(filter);
        app.settings.publish(&self.running);
        tracing::info!(
            file = %self.file.display(),
            models_added = join_names(&change.added),
            models_removed = join_names(&change.removed),
            models_changed = join_names(&change.changed),
            settings = join_names(&change.taken),
            "configuration reloaded"
        );
        Ok(change)
    }

    /// Every mistake has a line of its own.
    fn log_refusal(&self, failure: &CommandFailure) {
        let message = failure.message().unwrap_or_default();
        for line in message.lines() {
            tracing::error!("not reloaded: {line}");
        }
        tracing::error!(
            file = %self.file.display(),
            "the configuration was not reloaded and the one that runs stays: mend the file, or send \
             SIGHUP to have it read again"
        );
    }
}

/// Runs work that may wait for a file system, for as long as that takes, apart from the tasks that serve.
/// Panics if the work does. Given up, it goes on, and its result is dropped.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(value) => value,
        Err(Ok(panic)) => resume_unwind(panic),
        // The work never began, because the runtime ends: so does the task that waits here.
        Err(Err(_cancelled)) => std::future::pending().await,
    }
}

/// Names with commas between, for a field of the log; `None` leaves the field out.
fn join_names(names: &[String]) -> Option<String> {
    (!names.is_empty()).then(|| names.join(", "))
}

fn count_reload(outcome: &'static str, times: u64) {
    counter!("holdfast_config_reloads_total", "outcome" => outcome).increment(times);
}

/// Warns of what is not taken, and of what was probably not meant.
fn log_change(change: &Change) {
    for setting in &change.kept {
        tracing::warn!(
            setting,
            "this setting keeps its value while the process runs: start it again to change it"
        );
    }
    for (model, contract) in &change.same_contract {
        tracing::warn!(
            model = %model,
            contract,
            "the model changes under the same contract: increase `contract`, so that callers can \
            recognize the change"
        );
    }
}
