//! Carries committed pages from the log into the database file, a little at a time, so that no commit
//! has to do it: on a thread and a connection of its own. PASSIVE never stands in the writer's way.
//!
//! The log begins anew only when a commit finds all of it carried over, and while commits follow each other the
//! thread is always a few pages late. So where the log is long and *little is left of it*, the writer does the
//! rest between two batches. It never does more: when somebody who read for an hour ends, what all commits of that
//! hour have written is carried over by the thread, and no commit waits for it.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::connect::File;

const EVERY: Duration = Duration::from_millis(50);
/// Pages from which on the log is to begin anew: 64 MiB.
const LONG: i64 = 16_000;
/// Pages that are little work: 4 MiB.
const FEW: i64 = 1_000;

/// The log as the thread saw it last.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// Counted up at every commit.
    commits: AtomicU64,
    /// Whether the writer should carry over what is left.
    is_nearly_done: AtomicBool,
}

impl Log {
    pub(super) fn committed(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Carries the rest over, where that is little and makes the log begin anew. Of the writer, between two
    /// transactions.
    pub(super) fn finish(&self, connection: &Connection) {
        if self.is_nearly_done.load(Ordering::Relaxed) {
            self.is_nearly_done.store(false, Ordering::Relaxed);
            if let Err(error) = passive(connection) {
                tracing::warn!(%error, "the rest of a checkpoint failed");
            }
        }
    }
}

/// The thread that checkpoints.
#[derive(Debug)]
pub(super) struct Checkpoints {
    stop: Sender<Infallible>,
    thread: io::Result<JoinHandle<()>>,
}

impl Checkpoints {
    /// Checkpoints after commits until it is stopped.
    pub(super) fn start(file: File, log: Arc<Log>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let run = move || run(&file, &log, &stopped);
        let thread = thread::Builder::new().name("holdfast-checkpoint".to_owned()).spawn(run);
        if let Err(error) = &thread {
            tracing::error!(%error, "no thread for checkpoints: the log grows until the next start");
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

fn run(file: &File, log: &Log, stopped: &Receiver<Infallible>) {
    let (mut done, mut carried, mut kept) = (0, 0, None);
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let now = log.commits.load(Ordering::Relaxed);
        if now == done {
            continue;
        }
        done = now;
        match checkpoint(file, kept.take()) {
            Ok((connection, pages)) => {
                log.is_nearly_done.store(pages.is_nearly_done(carried), Ordering::Relaxed);
                (carried, kept) = (pages.carried, Some(connection));
            }
            Err(error) => tracing::warn!(%error, "a checkpoint failed"),
        }
    }
}

/// The connection that is still good after it.
fn checkpoint(file: &File, kept: Option<Connection>) -> rusqlite::Result<(Connection, Pages)> {
    let connection = kept.map_or_else(|| file.open(), Ok)?;
    let pages = passive(&connection)?;
    Ok((connection, pages))
}

/// How long the log is, and how much of it is carried over.
#[derive(Debug, Clone, Copy)]
struct Pages {
    log: i64,
    carried: i64,
}

impl Pages {
    /// Whether little is left for the writer, and the log is long. `before` is what had been carried over when this pass
    /// began: as long as a pass has much to do, much is written meanwhile. Much is measured by the length: a log that
    /// grows as fast as it is carried over must have an end, too.
    const fn is_nearly_done(self, before: i64) -> bool {
        let Self { log, carried } = self;
        let few = if log / 8 > FEW { log / 8 } else { FEW };
        let begun = if carried < before { 0 } else { before };
        log >= LONG && log - carried <= few && carried - begun <= few
    }
}

fn passive(connection: &Connection) -> rusqlite::Result<Pages> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        Ok(Pages { log: row.get(1)?, carried: row.get(2)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: i64, log: i64, carried: i64, expected: bool) {
        assert_eq!(Pages { log, carried }.is_nearly_done(before), expected);
    }

    #[test]
    fn the_writer_finishes_a_long_log_of_which_little_is_left() {
        check(15_500, 16_000, 16_000, true);
        check(14_500, 16_000, 15_100, true);
        check(14_000, 15_000, 15_000, false);
        // It began anew meanwhile, and is long again.
        check(90_000, 17_000, 1_000, false);
    }

    #[test]
    fn the_writer_does_not_carry_over_what_a_long_read_has_kept() {
        check(10, 92_000, 10, false);
        // Just carried over, by a pass so long that much has been written beside it.
        check(10, 92_000, 92_000, false);
        check(92_000, 94_000, 94_000, true);
    }

    #[test]
    fn a_log_that_grows_as_fast_as_it_is_carried_over_has_an_end() {
        let faster = 5_000;
        check(20_000, 20_000 + faster, 20_000 + faster, false);
        check(40_000, 40_000 + faster, 40_000 + faster, true);
    }
}
