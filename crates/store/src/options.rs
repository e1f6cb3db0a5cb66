//! Settings of a store, and bounds that are no settings.

use std::sync::Arc;
use std::time::Duration;

use crate::lock::ServeLock;
use crate::schema::url::DatabaseUrl;
use crate::transaction::event::SharedInterest;

/// The longest time by which an operation may have been created before one with a lower number. A
/// batch on a server reads the clock, then takes its numbers in another statement, while other batches
/// do the same: the timeouts between the two bound it (`postgres::session` asserts that).
pub(crate) const CREATION_DISORDER: Duration = Duration::from_secs(30);

/// Connections for the short reads that every caller and every probe waits for.
pub(crate) const GLANCES: u32 = 2;
/// Connections for audits, made when the first one begins.
pub(crate) const AUDITS: u32 = 1;
/// The connection of the summing, which continues during reports.
pub(crate) const SUMMING: u32 = 1;
/// Limit of a statement that a caller waits for, and of each of a list or a report. A server enforces it.
pub(crate) const READ_STATEMENT: Duration = Duration::from_secs(10);
/// Limit of a statement of an audit, which goes through all there is. A server enforces it.
pub(crate) const AUDIT_STATEMENT: Duration = Duration::from_secs(15 * 60);

/// Settings with which a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Address of the database: a file of SQLite, or a server of PostgreSQL.
    pub url: DatabaseUrl,
    /// Commits that may wait for the writer; a claim beyond that is `Overloaded`.
    pub commit_queue: usize,
    /// Connections that read.
    pub readers: u32,
    /// The largest sealed result that a load brings along, in bytes; of a larger one it returns the length. A
    /// bound serves only a process that limits its concurrent reads.
    pub result_bytes_max: usize,
    /// Longest wait of a write while another process has what it needs, before it is `Unavailable`.
    pub busy_timeout: Duration,
    /// The right to serve the file, for the one process that has it: only that one folds the log into the file at
    /// its end, and it holds the file to be the one that was opened.
    pub lock: Option<Arc<ServeLock>>,
    /// Interest in events; all of them, until [`Store::list_events`](crate::Store::list_events) and
    /// [`Store::send_events`](crate::Store::send_events) narrow it.
    pub interest: SharedInterest,
}

impl Options {
    /// The usual settings, for a database at this URL.
    #[must_use]
    pub fn new(url: DatabaseUrl) -> Self {
        Self {
            url,
            commit_queue: 4_096,
            readers: 4,
            result_bytes_max: usize::MAX,
            busy_timeout: Duration::from_secs(5),
            lock: None,
            interest: SharedInterest::default(),
        }
    }
}
