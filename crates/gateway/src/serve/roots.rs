//! Roots of the ledger while serving: each process signs the roots of the days before today, unless another one has
//! done it. No other task waits for it.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::ErrorChain;
use holdfast_receipts::key::Signer;
use holdfast_store::Store;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tokio_util::sync::CancellationToken;

/// Interval between two tries. A day is signed within this time after its rows are settled.
const EVERY: Duration = Duration::from_secs(600);
/// Time of the first try: a start has enough to read.
const FIRST: Duration = Duration::from_secs(90);

/// Signs until the process ends.
pub(super) async fn run(store: Store, signer: Arc<Signer>, shutdown: CancellationToken) {
    tokio::select! {
        // Dropped between any two awaits: a root is written in one transaction, or not at all.
        () = sign_for_ever(&store, &signer) => {}
        () = shutdown.cancelled() => {}
    }
}

async fn sign_for_ever(store: &Store, signer: &Signer) {
    let mut ticks = interval_at(Instant::now() + FIRST, EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match store.sign_root(signer).await {
            // A long history has more of them.
            Ok(true) => ticks.reset_immediately(),
            Ok(false) => {}
            Err(error) => {
                tracing::error!(error = %ErrorChain(&error), "the root of the ledger was not signed");
            }
        }
    }
}
