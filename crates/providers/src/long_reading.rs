//! Readings that take longer than a worker of the runtime may: of a long answer, event or request.
//!
//! Such a reading runs on a blocking thread under one of few permits, because each may take many times its length in
//! memory. Short ones never come here: a thread costs more than they do.

use std::panic::resume_unwind;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

/// Length up to which an answer or an event is read by a worker of the runtime, in bytes: one byte may cost
/// some 50 ns, and other tasks of the worker must not wait for more.
pub(crate) const INLINE_BYTES_MAX: usize = 64 * 1024;

/// Permits to read a long answer or event: each reading may take many times its length in memory.
static LONG_READINGS: Semaphore = Semaphore::const_new(2);

/// Runs a long reading on a blocking thread, when a permit is free. The reading goes to its end, and keeps its
/// permit until then, even if its future is dropped.
pub(crate) async fn offload<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> T {
    let reading = begin(LONG_READINGS.acquire().await, read);
    match reading.await {
        Ok(read) => read,
        Err(ended) => match ended.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and this task with it.
            Err(_cancelled) => std::future::pending().await,
        },
    }
}

/// Runs a long reading if a permit is free at once; `None` without one, without an end within `limit`, and after a
/// panic. For readings that a call must never wait for.
pub(crate) async fn offload_at_once<T: Send + 'static>(
    limit: Duration,
    read: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let place = LONG_READINGS.try_acquire();
    if place.is_err() {
        return None;
    }
    match timeout(limit, begin(place, read)).await {
        Ok(Ok(read)) => Some(read),
        Ok(Err(_)) | Err(_) => None,
    }
}

/// Begins a reading. The permit goes along: a call that is dropped meanwhile cannot stop the thread, and must not let
/// another reading begin at the same time.
fn begin<T: Send + 'static, E: Send + 'static>(
    place: Result<SemaphorePermit<'static>, E>,
    read: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    spawn_blocking(move || {
        let read = read();
        drop(place);
        read
    })
}

/// Takes every permit, for tests of a busy process.
#[cfg(test)]
pub(crate) async fn take_permits() -> SemaphorePermit<'static> {
    LONG_READINGS.acquire_many(2).await.unwrap()
}
