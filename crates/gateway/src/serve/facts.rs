//! Facts of the database as gauges: wallets below their threshold, what waits in the outbox, the last
//! verification. A task looks them up now and then, because a scrape must cost the database next to
//! nothing, however many scrape. They are the same at every gateway.

use std::time::Duration;

use holdfast_domain::ErrorChain;
use holdfast_store::Store;
use metrics::gauge;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::telemetry::as_float;

/// Interval between two looks.
const EVERY: Duration = Duration::from_secs(30);

/// Looks until the process ends, even where the store does not answer.
pub(super) async fn run(store: Store, shutdown: CancellationToken) {
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        tokio::select! {
            () = look(&store) => {}
            () = shutdown.cancelled() => return,
        }
    }
}

async fn look(store: &Store) {
    let facts = match store.facts().await {
        Ok(facts) => facts,
        Err(error) => {
            return tracing::warn!(
                error = %ErrorChain(&error),
                "facts of the database cannot be read: the last are shown"
            );
        }
    };
    gauge!("holdfast_wallets_below_threshold").set(as_float(facts.low_wallets));
    gauge!("holdfast_outbox_events").set(as_float(facts.events));
    gauge!("holdfast_outbox_deliveries").set(as_float(facts.deliveries));
    let verification = facts.verification;
    let ended = verification.map_or(0, |last| last.finished_at.as_micros() / 1_000_000);
    gauge!("holdfast_verification_finished_timestamp_seconds").set(as_float(ended));
    let mismatches = verification.map_or(0, |last| last.mismatches);
    gauge!("holdfast_verification_mismatches").set(as_float(mismatches));
}
