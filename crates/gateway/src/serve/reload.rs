//! Takes another configuration while the process runs: on SIGHUP, and when its file has changed. It is
//! taken as a whole or not at all, and a request that has begun ends under the one that it began with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_engine::Engine;
use holdfast_http::Current;
use holdfast_store::Store;
use metrics::counter;
use tokio::signal::unix::Signal;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::start;
use crate::config::{self, Change, Config, Stamp};
use crate::failure::Failure;
use crate::telemetry::{self, LogLevel};

/// Between two looks at the file. One that has changed is read once it has been at rest for as long,
/// so that it is seldom seen half-written.
const LOOK: Duration = Duration::from_millis(500);

const APPLIED: &str = "applied";
const UNCHANGED: &str = "unchanged";
const REFUSED: &str = "refused";
const OUTCOMES: [&str; 3] = [APPLIED, UNCHANGED, REFUSED];

/// What runs, and the parts of it that can be replaced.
pub(super) struct Reloader {
    pub(super) file: PathBuf,
    pub(super) running: Config,
    pub(super) store: Store,
    pub(super) engine: Arc<Engine>,
    pub(super) current: Arc<Current>,
    pub(super) log: LogLevel,
}

impl Reloader {
    /// Takes what changes until `end`. Not cancel safe: a reload that has begun is to be finished.
    pub(super) async fn watch(mut self, mut hangup: Signal, end: CancellationToken) {
        let mut ticks = tokio::time::interval(LOOK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut read = self.running.stamp;
        let mut last = read;
        loop {
            let asked = tokio::select! {
                asked = hangup.recv() => asked.is_some(),
                _ = ticks.tick() => false,
                () = end.cancelled() => return,
            };
            // Before the file is read: what is written meanwhile is another look.
            let look = Stamp::of(&self.file).ok();
            if asked || (look != read && look == last) {
                read = look;
                self.reload().await;
            }
            last = look;
        }
    }

    async fn reload(&mut self) {
        let outcome = match self.try_reload().await {
            Ok(change) if change.is_nothing() => UNCHANGED,
            Ok(_) => APPLIED,
            Err(failure) => {
                self.refused(&failure);
                REFUSED
            }
        };
        counted(outcome, 1);
    }

    /// Nothing is changed before the last thing that can fail has gone well.
    async fn try_reload(&mut self) -> Result<Change, Failure> {
        let next = config::load(Some(&self.file))?;
        let change = self.running.change_to(&next);
        tell(&change);
        if change.is_nothing() {
            if change.kept.is_empty() {
                let file = self.file.display();
                tracing::info!(%file, "nothing to reload: the file says what runs");
            }
            return Ok(change);
        }
        let before = self.current.get();
        let serving = start::serving(&next, Some((&self.running, &before.offer)))?;
        let told = telemetry::filter(&next.log.level)?;
        start::pin_prices(&next, &self.store).await?;
        self.running.take(next);
        self.current.replace(serving);
        self.engine.keep_results(self.running.retention.results);
        self.log.set(told);
        tracing::info!(
            file = %self.file.display(),
            models_added = %change.added.join(", "),
            models_removed = %change.removed.join(", "),
            models_changed = %change.changed.join(", "),
            settings = %change.taken.join(", "),
            "configuration reloaded"
        );
        Ok(change)
    }

    /// Every mistake has a line of its own.
    fn refused(&self, failure: &Failure) {
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

/// Has every outcome counted from zero, so that its first is seen as a change.
pub(super) fn begin_counting() {
    for outcome in OUTCOMES {
        counted(outcome, 0);
    }
}

fn counted(outcome: &'static str, times: u64) {
    counter!("holdfast_config_reloads_total", "outcome" => outcome).increment(times);
}

/// Warns of what is not taken, and of what was probably not meant.
fn tell(change: &Change) {
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
            "the model promises something else under the same contract: count `contract` up, so that \
             callers can tell"
        );
    }
}
