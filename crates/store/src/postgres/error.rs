//! Errors of the server and of batches: what is certain after one, by its SQLSTATE. Every rule about a code is
//! here, so that two places never read one code differently.
//!
//! The codes, by the classes of PostgreSQL's manual (appendix A):
//!
//! | code | meaning | consequence |
//! |---|---|---|
//! | 22, 23 | the values, or the rows, do not fit | the batch is halved until it is one change |
//! | 23505, 40 | a row existed already; a lost race | the batch is read and judged again, `TRIES` times at most |
//! | 55P03 | a lock was waited for long enough | the changes of that wallet go aside |
//! | 25, 57 | a standby by now; an administrator, or a timeout, ends the session | the connection is given up |
//!
//! A code that is not in the table proves nothing about the change: it is a failure of the server, not a verdict.
//! Before COMMIT is sent every failure, also a wait that ends, means that the transaction was not committed. After
//! it only an answer of the server proves that ([`proves_no_commit`]), never a session that ends, nor the silence
//! of a connection: that is `Uncertain`, and must never be reported as undone.

use sea_orm::{DbErr, RuntimeErr};
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// Failure of a batch, by what is certain after it: all but `Uncertain` mean that the transaction was not
/// committed.
#[derive(Debug)]
pub(super) enum BatchError {
    /// A race: the rows may have changed. The batch is read and judged again.
    Changed(sqlx::Error),
    /// A verdict or a count that a remembered row may have misled. The rows are forgotten by now:
    /// the batch is read and judged again.
    Misled(sqlx::Error),
    /// A misfit: one of the changes, or a row that it touches, does not fit, and trying again comes
    /// to the same.
    Refused(sqlx::Error),
    /// A lock timeout: another process has a row, and keeps it.
    Locked(sqlx::Error),
    /// A failure of the server or the connection, before COMMIT was sent.
    Unavailable(sqlx::Error),
    /// COMMIT was sent and its answer is missing.
    Uncertain(sqlx::Error),
}

/// The rows are not the ones that were judged.
#[derive(Debug, thiserror::Error)]
#[error("{changed} rows were changed instead of {judged}")]
pub(super) struct RowCountMismatch {
    pub(super) changed: i64,
    pub(super) judged: i64,
}

impl BatchError {
    /// Before COMMIT was sent the server undoes the transaction.
    pub(super) fn before_commit(error: sqlx::Error) -> Self {
        // First: 23505 is of class 23, which would be a refusal.
        if is_race(&error) {
            Self::Changed(error)
        } else if is_refusal(&error) {
            Self::Refused(error)
        } else if is_locked(&error) {
            Self::Locked(error)
        } else {
            Self::Unavailable(error)
        }
    }

    /// Judges the answer to a COMMIT that was sent: uncertain unless the server proves that it has undone the
    /// transaction.
    pub(super) fn of_commit(error: sqlx::Error) -> Self {
        if proves_no_commit(&error) {
            Self::before_commit(error)
        } else {
            // A connection that went silent may have delivered COMMIT.
            Self::Uncertain(error)
        }
    }
}

/// True for a lost race: the server undid the transaction in favour of another one (40), or found a
/// row (23505) that was not there when it was read.
fn is_race(error: &sqlx::Error) -> bool {
    has_code(error, &["40", "23505"])
}

/// True if the server refused values (22) or rows (23), or holds a row that cannot be
/// understood.
pub(super) fn is_refusal(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_))
        || has_code(error, &["22", "23"])
}

/// True for a lock timeout (55P03): another process has kept a row for longer than the session waits.
fn is_locked(error: &sqlx::Error) -> bool {
    has_code(error, &["55P03"])
}

/// True if the statement changed another number of rows than was judged.
pub(super) fn is_row_mismatch(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Decode(error) if error.is::<RowCountMismatch>())
}

/// True if the server will not have this connection write any more: it is a standby by now (25), or an
/// administrator or a timeout ends its statements (57).
pub(super) fn is_lost(error: &sqlx::Error) -> bool {
    // 57 has the server's own `statement_timeout` among it (57014): that connection goes as well.
    has_code(error, &["25", "57"])
}

/// True for an error of the server whose SQLSTATE begins with one of these.
pub(super) fn has_code(error: &sqlx::Error, codes: &[&str]) -> bool {
    let state = error.as_database_error().and_then(|error| error.code());
    state.is_some_and(|state| codes.iter().any(|code| state.starts_with(code)))
}

/// True if a connection is of no use any more: the server does not answer, or is a standby by now (25), or ends the
/// connection's statements (57).
pub(super) fn is_broken(error: &sqlx::Error) -> bool {
    matches!(error, sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_))
        || is_lost(error)
}

/// True if the answer to a COMMIT that was sent proves that it was not committed: an error after which the session
/// goes on. Once a transaction is committed, the server raises none: a failure from there on ends the session
/// (FATAL) or the server (PANIC). 40003 means that it does not know, and 08 comes from a proxy whose server is
/// gone.
pub(super) fn proves_no_commit(error: &sqlx::Error) -> bool {
    let server_error = error.as_database_error();
    let server_error = server_error.and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    server_error.is_some_and(|server_error| server_error.severity() == PgSeverity::Error)
        && !has_code(error, &["08", "40003"])
}

/// True for a violated unique key: another row has that name or id.
pub(super) fn is_taken(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| error.is_unique_violation())
}

/// True for SQLSTATE 3D000: the server has no database of that name.
pub(crate) fn is_no_database(error: &DbErr) -> bool {
    let (DbErr::Conn(RuntimeErr::SqlxError(error)) | DbErr::Query(RuntimeErr::SqlxError(error))) =
        error
    else {
        return false;
    };
    error.as_database_error().and_then(|error| error.code()).is_some_and(|code| code == "3D000")
}
