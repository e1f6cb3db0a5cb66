//! Work that takes milliseconds, off the runtime's workers.
//!
//! A worker that renders a page of a megabyte serves no other task meanwhile: no completion, no probe. So pages and
//! lists are rendered on blocking threads, of which a process has enough for all requests that it lets in.

use tokio::task::JoinError;

/// Does work on a blocking thread. Dropping the future does not end the work.
///
/// # Errors
///
/// A [`JoinError`] if the work panicked, or the process ends.
pub async fn off_workers<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    // Not bounded here: the requests are, and each renders one answer.
    tokio::task::spawn_blocking(work).await
}
