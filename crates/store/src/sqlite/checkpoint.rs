//! Carries committed pages from the log into the database file, a little at a time, so that no commit
//! has to do it: on a thread and a connection of its own. PASSIVE never stands in the writer's way; the
//! writer's own checkpoint is the backstop, and then finds next to nothing to do.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::connect::File;

const EVERY: Duration = Duration::from_millis(50);

/// The thread that checkpoints.
#[derive(Debug)]
pub(super) struct Checkpoints {
    stop: Sender<Infallible>,
    thread: io::Result<JoinHandle<()>>,
}

impl Checkpoints {
    /// Checkpoints after commits until it is stopped.
    pub(super) fn start(file: File, commits: Arc<AtomicU64>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let run = move || run(&file, &commits, &stopped);
        let thread = thread::Builder::new().name("holdfast-checkpoint".to_owned()).spawn(run);
        if let Err(error) = &thread {
            tracing::error!(%error, "no thread for checkpoints: commits will make them");
        }
        Self { stop, thread }
    }

    /// Completes when nothing of it runs any more.
    pub(super) fn stop(self) {
        drop(self.stop);
        if self.thread.is_ok_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that checkpoints panicked");
        }
    }
}

fn run(file: &File, commits: &AtomicU64, stopped: &Receiver<Infallible>) {
    let (mut done, mut kept) = (0, None);
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let now = commits.load(Ordering::Relaxed);
        if now == done {
            continue;
        }
        done = now;
        match checkpoint(file, kept.take()) {
            Ok(connection) => kept = Some(connection),
            Err(error) => tracing::warn!(%error, "a checkpoint failed"),
        }
    }
}

/// The connection that is still good after it.
fn checkpoint(file: &File, kept: Option<Connection>) -> rusqlite::Result<Connection> {
    let connection = kept.map_or_else(|| file.open(), Ok)?;
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_progress| Ok(()))?;
    Ok(connection)
}
