//! Write tasks: all writes other than changes of operations, which are administration, heartbeats and purges. Each
//! is a transaction of its own, on the writer's connection, between two batches.
//!
//! A task happens whether or not its caller waits for it. An error means that it did not happen, unless it is of
//! COMMIT: a repetition of the same command finds out.

use holdfast_domain::Timestamp;
use holdfast_domain::debug_as;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::clock::Clock;
use super::connect::{self, CLOCK, CONSTRAINT, DatabaseFile};
use crate::error::FileLost;
use crate::rows::BadRow;

type WriteFn = dyn FnOnce(&Connection, &Clock, &DatabaseFile) -> ConnectionState + Send;

/// A write that sends its own answer.
pub(super) struct WriteTask {
    run: Box<WriteFn>,
    /// Makes room when the task is done or dropped.
    _room: OwnedSemaphorePermit,
}

/// State of a connection after a task: good for the next one, or to be dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionState {
    Good,
    Broken,
}

/// An error of a write that did not happen, or whose COMMIT failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// SQLite refused it.
    #[error(transparent)]
    Sql(#[from] rusqlite::Error),
    /// Another program wrote a row that cannot be understood.
    #[error(transparent)]
    Row(#[from] BadRow),
    /// The file is another one than was opened.
    #[error(transparent)]
    File(#[from] FileLost),
    /// There was no connection for it, or the writer has ended.
    #[error("the writer did not get to it")]
    NotTried,
}

impl WriteError {
    /// SQLite's result code, if SQLite failed.
    pub(super) fn code(&self) -> Option<i32> {
        match self {
            Self::Sql(error) => error.sqlite_error().map(|error| error.extended_code),
            Self::Row(_) | Self::File(_) | Self::NotTried => None,
        }
    }

    /// SQLite's result code without what extends it.
    pub(super) fn primary_code(&self) -> Option<i32> {
        self.code().map(|code| code & 0xff)
    }

    /// True if a row was refused because another one has its name or id.
    pub(super) fn is_taken(&self) -> bool {
        use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE};
        let taken = [SQLITE_CONSTRAINT_UNIQUE, SQLITE_CONSTRAINT_PRIMARYKEY];
        self.code().is_some_and(|code| taken.contains(&code))
    }

    /// True if a row was refused, or one that is kept cannot be understood.
    pub(super) fn is_misfit(&self) -> bool {
        match self {
            Self::Row(_) => true,
            Self::Sql(_) => self.primary_code() == Some(CONSTRAINT),
            Self::File(_) | Self::NotTried => false,
        }
    }
}

debug_as!(WriteTask: "WriteTask");

impl WriteTask {
    /// A transaction that does this; what came of it goes to `to`.
    pub(super) fn new<T: Send + 'static>(
        work: impl FnOnce(&Transaction<'_>, Timestamp) -> Result<T, WriteError> + Send + 'static,
        to: oneshot::Sender<Result<T, WriteError>>,
        room: OwnedSemaphorePermit,
    ) -> Self {
        let run = |connection: &Connection, clock: &Clock, file: &DatabaseFile| {
            let outcome = transaction(connection, clock, file, work);
            // A row that was refused proves no fault of the connection. Any other failure may be of the file, and a
            // new connection checks that first.
            let is_sound = match &outcome {
                Ok(_) => true,
                Err(error) => error.primary_code() == Some(CONSTRAINT),
            };
            // Without autocommit a transaction is still open: its ROLLBACK has failed.
            let kept = if is_sound && connection.is_autocommit() {
                ConnectionState::Good
            } else {
                ConnectionState::Broken
            };
            if to.send(outcome).is_err() {
                tracing::trace!("the sender of a write task went away");
            }
            kept
        };
        Self { run: Box::new(run), _room: room }
    }

    pub(super) fn run(
        self,
        connection: &Connection,
        clock: &Clock,
        file: &DatabaseFile,
    ) -> ConnectionState {
        (self.run)(connection, clock, file)
    }
}

fn transaction<T>(
    connection: &Connection,
    clock: &Clock,
    file: &DatabaseFile,
    work: impl FnOnce(&Transaction<'_>, Timestamp) -> Result<T, WriteError>,
) -> Result<T, WriteError> {
    // Rolled back if it is dropped; a connection on which that fails is not used again.
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let now = transaction.query_row(&format!("SELECT {CLOCK}"), [], |row| row.get(0))?;
    // In the transaction: the copy may have ended since the file was opened.
    if file.lock.is_none() && connect::is_copied(&transaction)? {
        return Err(FileLost::Copied(file.path.clone()).into());
    }
    let value = work(&transaction, clock.stamp(Timestamp::from_micros(now)))?;
    if file.lock.is_none() {
        // Beside a process that serves: what is not its log would be lost, or ruin the file.
        file.check()?;
    }
    transaction.commit()?;
    // Before the answer: a log without a name is lost with this process.
    file.check()?;
    Ok(value)
}
