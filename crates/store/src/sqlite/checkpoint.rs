//! Carries committed pages from the log into the database file, a little at a time, so that no commit
//! has to do it. PASSIVE never stands in the writer's way; the writer's own checkpoint is the
//! backstop, and then finds next to nothing to do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sea_orm::{ConnectionTrait, DatabaseConnection};
use tokio_util::sync::CancellationToken;

const EVERY: Duration = Duration::from_millis(50);

/// Checkpoints after commits until the store closes.
pub(crate) async fn run(
    pool: DatabaseConnection,
    commits: Arc<AtomicU64>,
    closing: CancellationToken,
) {
    let mut done = 0;
    while closing.run_until_cancelled(tokio::time::sleep(EVERY)).await.is_some() {
        let now = commits.load(Ordering::Relaxed);
        if now == done {
            continue;
        }
        done = now;
        if let Err(error) = pool.execute_unprepared("PRAGMA wal_checkpoint(PASSIVE)").await {
            tracing::warn!(%error, "a checkpoint failed");
        }
    }
}
