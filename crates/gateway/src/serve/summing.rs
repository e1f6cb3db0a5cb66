//! Summing of usage while serving: finished operations become sums by the hour, so that a report reads few
//! rows. Each process does it, and needs no leader: of two that make one step, one has no effect
//! (`holdfast_store`'s summing has the reason). No other task waits for it, and a report is right without it.

use std::time::Duration;

use holdfast_domain::ErrorChain;
use holdfast_store::Store;
use holdfast_store::usage::SummingProgress;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use tokio_util::sync::CancellationToken;

/// Interval between two looks, once everything that is old enough is summed.
const EVERY: Duration = Duration::from_secs(60);
/// Pause between two steps: what is committed beside them goes first.
const PAUSE: Duration = Duration::from_millis(50);

/// Sums until the process ends, even if the store does not answer.
pub(super) async fn run(store: Store, shutdown: CancellationToken) {
    tokio::select! {
        // Dropped between any two awaits: a step that was sent is made or not, and the next process
        // goes on from there.
        () = sum_for_ever(&store) => {}
        () = shutdown.cancelled() => {}
    }
}

async fn sum_for_ever(store: &Store) {
    // Not at once: a start has enough to read.
    let mut ticks = interval_at(Instant::now() + EVERY, EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        loop {
            match store.sum_usage().await {
                Ok(SummingProgress::Step) => sleep(PAUSE).await,
                Ok(SummingProgress::Done) => break,
                Err(error) => {
                    tracing::warn!(error = %ErrorChain(&error), "usage was not summed: reports take longer");
                    break;
                }
            }
        }
    }
}
