//! The right to serve a database, in a program without SQLite. A server distinguishes its processes by the leases
//! of their nodes, so there is no lock to take.

use crate::error::{FileLost, LockError};
use crate::schema::url::DatabaseUrl;

/// The right to serve a database. Without a file, no other process can hold it.
#[derive(Debug)]
pub struct ServeLock(());

impl ServeLock {
    /// Takes the lock of the database at this URL.
    ///
    /// # Errors
    ///
    /// None: a server has the database.
    pub const fn take(_url: &DatabaseUrl) -> Result<Self, LockError> {
        Ok(Self(()))
    }

    /// Never completes: a server has the database.
    pub async fn lost(&self) -> FileLost {
        std::future::pending().await
    }
}

pub(crate) const fn check_unserved(
    _: &DatabaseUrl,
    _: Option<&ServeLock>,
) -> Result<(), LockError> {
    Ok(())
}
