//! The trail beside serving: refused attempts are written in batches, and its head is logged, so that
//! a log which is kept elsewhere shows a trail that was written anew.

use std::time::Duration;

use holdfast_accounts::Accounts;
use holdfast_domain::Administration as _;
use holdfast_store::Store;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// Interval between two writes of refused attempts, however many there are.
const WRITE_EVERY: Duration = Duration::from_secs(5);
/// Interval between two lines of the log that name the head.
const LOG_EVERY: Duration = Duration::from_secs(3_600);

/// Writes and logs until the process ends, even where the store does not answer.
pub(super) async fn run(store: Store, accounts: Accounts, shutdown: CancellationToken) {
    let mut writes = interval_at(Instant::now() + WRITE_EVERY, WRITE_EVERY);
    let mut heads = interval_at(Instant::now() + LOG_EVERY, LOG_EVERY);
    for ticks in [&mut writes, &mut heads] {
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    loop {
        tokio::select! {
            _tick = writes.tick() => write(&accounts).await,
            _tick = heads.tick() => log_head(&store).await,
            () = shutdown.cancelled() => break,
        }
    }
    // Those since the last write.
    write(&accounts).await;
}

async fn write(accounts: &Accounts) {
    match accounts.write_refused().await {
        Ok(refused) => {
            for it in refused {
                let (actor, use_case) = (it.actor.to_string(), it.use_case.label());
                let attempts = it.attempts;
                tracing::warn!(actor, use_case, attempts, "administration was refused");
            }
        }
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(
                error,
                "refused attempts were not written: they wait for the next write"
            );
        }
    }
}

async fn log_head(store: &Store) {
    match store.trail_head().await {
        Ok(head) => tracing::info!(%head, "the head of the trail"),
        Err(error) => {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, "the head of the trail was not read");
        }
    }
}
