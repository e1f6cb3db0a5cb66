//! The checkpointer: a thread with a connection of its own that copies committed pages from the log (WAL) into the
//! database file, every 50 ms while there are commits, so that no commit has to. PASSIVE never blocks the writer.
//!
//! Restart: SQLite restarts the log only when a commit finds all of it copied. While commits follow each other the
//! thread is always a few pages late, and the log would grow for ever. So if the log is long and *little is left of
//! it*, the writer copies the rest between two batches.
//!
//! Bound: the writer never copies more than little. When a reader of an hour ends, the pages of that hour are
//! copied by this thread, and no commit waits for them. If commits write as fast as the thread copies, "little" is
//! the rest that a pass cannot reduce: once a pass has no less to do than the one before it, waiting brings the end
//! no nearer.
//!
//! Measured with 5 million operations: 20-50 ms between passes brings the p99 of a transaction from 49 ms to 14 ms;
//! passes every 5 ms cost 3-8 us more a pair of commits, without a gain.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::connect::DatabaseFile;

/// Pause between two passes.
const EVERY: Duration = Duration::from_millis(50);
/// Pages from which on the log is to begin anew: some 64 MB, at 4 KiB a page.
const LONG: i64 = 16_000;
/// Pages that are little work: some 4 MB.
const FEW: i64 = 1_000;

/// The log as the thread saw it last.
#[derive(Debug, Default)]
pub(super) struct WalState {
    /// Counted up at every commit.
    commits: AtomicU64,
    /// Set by the thread and taken by the writer, which then copies what is left.
    is_nearly_done: AtomicBool,
}

impl WalState {
    pub(super) fn committed(&self) {
        // Relaxed: a count that is seen late delays a pass by 50 ms, and guards no other memory.
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    /// Copies the rest, if that is little and lets the log begin anew. Called by the writer, between two
    /// transactions.
    pub(super) fn finish(&self, connection: &Connection) {
        // A flag that is set in between is lost: the thread's next pass sets it again.
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
pub(super) struct Checkpointer {
    stop: Sender<Infallible>,
    thread: io::Result<JoinHandle<()>>,
}

impl Checkpointer {
    /// Checkpoints after commits until it is stopped.
    pub(super) fn start(file: DatabaseFile, log: Arc<WalState>) -> Self {
        let (stop, stopped) = mpsc::channel();
        let run = move || run(&file, &log, &stopped);
        let thread = thread::Builder::new().name("holdfast-checkpoint".to_owned()).spawn(run);
        if let Err(error) = &thread {
            tracing::error!(%error, "no thread for checkpoints: the log grows until the next start");
        }
        Self { stop, thread }
    }

    /// Completes when the thread has ended.
    pub(super) fn stop(self) {
        // The receiver sees that the sender is gone, and ends the loop within a pass.
        drop(self.stop);
        if self.thread.is_ok_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that checkpoints panicked");
        }
    }
}

fn run(file: &DatabaseFile, log: &WalState, stopped: &Receiver<Infallible>) {
    let (mut done, mut before, mut kept) = (0, CheckpointPass::default(), None);
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let now = log.commits.load(Ordering::Relaxed);
        if now == done {
            continue;
        }
        done = now;
        match checkpoint(file, kept.take()) {
            Ok((connection, pages)) => {
                let pass = CheckpointPass::after(before, pages);
                log.is_nearly_done.store(pass.is_nearly_done(before), Ordering::Relaxed);
                (before, kept) = (pass, Some(connection));
            }
            // The connection is gone with the error: the next commit has another one opened.
            Err(error) => tracing::warn!(%error, "a checkpoint failed"),
        }
    }
}

/// The connection that is still good after it.
fn checkpoint(
    file: &DatabaseFile,
    kept: Option<Connection>,
) -> rusqlite::Result<(Connection, WalPages)> {
    let connection = kept.map_or_else(|| file.open(), Ok)?;
    let pages = passive(&connection)?;
    Ok((connection, pages))
}

/// Pages in the log, and pages of it that are copied into the file.
#[derive(Debug, Default, Clone, Copy)]
struct WalPages {
    log: i64,
    carried: i64,
}

/// Result of one pass of the thread.
#[derive(Debug, Default, Clone, Copy)]
struct CheckpointPass {
    pages: WalPages,
    /// Pages that it carried over: about as much is written meanwhile.
    work: i64,
}

impl CheckpointPass {
    const fn after(before: Self, pages: WalPages) -> Self {
        // If the log has begun anew, all of it is this pass's.
        let begun = if pages.carried < before.pages.carried { 0 } else { before.pages.carried };
        Self { pages, work: pages.carried - begun }
    }

    /// True if the log is long and little of it is left. While passes get shorter, the thread
    /// gets there by itself, unless a reader keeps it from that.
    const fn is_nearly_done(self, before: Self) -> bool {
        let gets_no_nearer = before.has_all() && before.work > 0 && self.work >= before.work;
        self.pages.log >= LONG && self.has_all() && (self.work <= FEW || gets_no_nearer)
    }

    /// True if the pass reached the end of the log as it began, but for few pages.
    const fn has_all(self) -> bool {
        self.pages.log - self.pages.carried <= FEW
    }
}

fn passive(connection: &Connection) -> rusqlite::Result<WalPages> {
    connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| {
        Ok(WalPages { log: row.get(1)?, carried: row.get(2)? })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// True if the writer is to do the rest after the last of these passes.
    fn is_left_to_the_writer(passes: &[(i64, i64)]) -> bool {
        let mut before = CheckpointPass::default();
        let mut is_left = false;
        for &(log, carried) in passes {
            let pass = CheckpointPass::after(before, WalPages { log, carried });
            is_left = pass.is_nearly_done(before);
            before = pass;
        }
        is_left
    }

    #[test]
    fn the_writer_finishes_a_long_log_of_which_little_is_left() {
        assert!(is_left_to_the_writer(&[(15_500, 15_500), (16_000, 16_000)]));
        assert!(is_left_to_the_writer(&[(14_500, 14_500), (16_000, 15_100)]));
        assert!(!is_left_to_the_writer(&[(14_000, 14_000), (15_000, 15_000)]), "it is not long");
        assert!(!is_left_to_the_writer(&[(90_000, 90_000), (17_000, 1_000)]), "it began anew");
        assert!(!is_left_to_the_writer(&[(90_000, 90_000), (17_000, 17_000)]), "all of it is new");
    }

    #[test]
    fn the_writer_does_not_carry_over_what_a_long_read_has_kept() {
        let read = [(90_000, 10), (92_000, 10)];
        assert!(!is_left_to_the_writer(&read));
        // Just carried over, by a pass so long that much has been written beside it.
        let after = [read[0], read[1], (93_000, 93_000)];
        assert!(!is_left_to_the_writer(&after));
        let later = [after[0], after[1], after[2], (98_000, 98_000)];
        assert!(!is_left_to_the_writer(&later), "passes get shorter");
        assert!(is_left_to_the_writer(&[later[2], later[3], (98_900, 98_900)]));
    }

    #[test]
    fn a_log_that_grows_as_fast_as_it_is_carried_over_has_an_end() {
        for faster in [5_000, 7_000] {
            let grown = (20_000 + faster, 20_000 + faster);
            assert!(is_left_to_the_writer(&[(15_000, 15_000), (20_000, 20_000), grown]));
        }
    }
}
