//! Large results on their way to callers: how many bytes of them may be in memory at once, for an API key and for
//! the process.
//!
//! A load brings small results along and withholds the bytes of large ones. Those are read only once there is room
//! for them, so that memory is taken after it was counted, never before:
//!
//! ```text
//! load (length only) → room of the API key → room of the process → a place to read and open → reader
//! ```
//!
//! The API key's room comes first: a key that requests more than its share waits for itself, and keeps no room from
//! others meanwhile. Room is waited for a short while, first come, first served; a caller that was refused at once
//! would come back at once. It is given back with the last of the bytes, which is when the connection has written
//! them: [`Bytes`] carry it along.
//!
//! The answer of a run that has just ended is not among these: it is one copy for all who waited for it, and each
//! of them has its place among the requests of its API key until it is written.
//!
//! Megabytes are opened and rendered on a thread of their own, few at once: on a worker of the runtime they would
//! keep every other request waiting for that long.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use holdfast_domain::operation::{Operation, Snapshot};
use holdfast_domain::ports::{Journal, Unavailable};
use holdfast_domain::{ApiKeyId, ErrorChain};
use holdfast_failpoint::{Fault, is_broken};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use crate::authentication::Caller;
use crate::options::Options;
use crate::seal;

/// Wait of a result for room. Most are written within milliseconds.
const ROOM_WAIT: Duration = Duration::from_secs(5);
/// Results that are read, opened or rendered at once. Fewer than the connections that read: small results
/// are not kept waiting by large ones.
const OPENED_AT_ONCE: usize = 2;
/// Bytes of one semaphore permit.
const UNIT: usize = 1_024;

/// The bytes of large results that are in memory.
#[derive(Debug)]
pub(crate) struct ResultLimiter {
    per_key: u32,
    of_keys: KeyPlaces,
    in_process: u32,
    of_process: Arc<Semaphore>,
    opening: Semaphore,
}

/// Equal shares of API keys.
#[derive(Debug)]
pub(crate) struct KeyPlaces {
    per_key: usize,
    of_keys: Mutex<HashMap<ApiKeyId, Weak<Semaphore>>>,
}

impl KeyPlaces {
    /// Gives each API key this number of permits.
    pub(crate) fn new(per_key: usize) -> Self {
        Self { per_key, of_keys: Mutex::default() }
    }

    /// Share of one API key; forgotten once none of it is taken.
    pub(crate) fn of(&self, api_key: ApiKeyId) -> Arc<Semaphore> {
        let mut keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = keys.get(&api_key).and_then(Weak::upgrade) {
            return known;
        }
        // Only if a key is new: keys that read all the time do not search the others.
        keys.retain(|_key, places| places.strong_count() > 0);
        let places = Arc::new(Semaphore::new(self.per_key));
        keys.insert(api_key, Arc::downgrade(&places));
        places
    }
}

/// Cause of a result's finding no room in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResultsFull {
    /// Share of the API key is under way in full.
    ApiKey,
    /// Share of the process is under way in full.
    Process,
}

/// Content of an operation, as one caller may have it.
pub(crate) enum Content {
    /// Plaintext, opened.
    Kept(Bytes),
    /// Deleted after its time.
    Expired,
    /// Sealed by another credential.
    Sealed,
    /// Not to be opened with the credential that sealed it: a bug or tampering.
    Broken,
    /// Large, and without room in time.
    NoRoom(ResultsFull),
    /// The store does not work.
    Unread(Unavailable),
}

/// Permit for the bytes of one result, of both shares, until it is dropped.
#[derive(Debug)]
pub(crate) struct ResultPermit {
    _of_key: OwnedSemaphorePermit,
    _of_process: OwnedSemaphorePermit,
}

/// Bytes with the room that they take.
struct CountedBytes(
    Bytes,
    #[expect(dead_code, reason = "given back when it is dropped")] ResultPermit,
);

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl ResultPermit {
    /// Attaches the permit to the bytes: it is given back when their last reader drops them.
    pub(crate) fn attach(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(CountedBytes(bytes, self))
    }
}

impl ResultLimiter {
    /// Room for so many bytes.
    pub(crate) fn new(per_key: usize, in_process: usize) -> Self {
        let [per_key, in_process] = [per_key, in_process].map(units);
        Self {
            per_key,
            of_keys: KeyPlaces::new(to_bytes(per_key)),
            in_process,
            of_process: Arc::new(Semaphore::new(to_bytes(in_process))),
            opening: Semaphore::new(OPENED_AT_ONCE),
        }
    }

    /// Waits a while for room. A result that is larger than all there is takes all of it. Cancel safe.
    async fn acquire(&self, api_key: ApiKeyId, bytes: usize) -> Result<ResultPermit, ResultsFull> {
        let until = Instant::now() + ROOM_WAIT;
        let wait = |of: Arc<Semaphore>, all: u32, full: ResultsFull| async move {
            // At most all there is: a larger result would wait for room that can never be.
            let room = timeout_at(until, of.acquire_many_owned(units(bytes).min(all))).await;
            // Never closed.
            room.ok().and_then(Result::ok).ok_or(full)
        };
        let of_key = wait(self.of_keys.of(api_key), self.per_key, ResultsFull::ApiKey).await?;
        let of_process = Arc::clone(&self.of_process);
        let of_process = wait(of_process, self.in_process, ResultsFull::Process).await?;
        Ok(ResultPermit { _of_key: of_key, _of_process: of_process })
    }
}

/// Body of a replay.
fn replayed(mut body: Vec<u8>) -> Bytes {
    if is_broken(Fault::OtherBytesReplayed) {
        body.push(b' ');
    }
    body.into()
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
}

fn to_bytes(units: u32) -> usize {
    usize::try_from(units).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

impl ResultLimiter {
    /// A row's content for a caller: opened at once if the load brought it along. Cancel safe.
    pub(crate) async fn content(
        &self,
        journal: &dyn Journal,
        snapshot: &Snapshot,
        operation: &Operation,
        caller: &Caller,
    ) -> Content {
        let Some(result) = &snapshot.result else { return Content::Expired };
        // Compared before the cipher: it would fail as content that was tampered with does.
        if result.credential != caller.bearer.id {
            return Content::Sealed;
        }
        if result.withheld > 0 {
            // In a box: few results are large.
            return Box::pin(self.load_large(journal, operation, result.withheld, caller)).await;
        }
        let key = caller.bearer.secret.result_key(operation.id);
        match seal::open(&key, operation, result) {
            Ok(opened) => Content::Kept(replayed(opened.body.0)),
            Err(error) => {
                tracing::error!(operation.id = %operation.id, error = %ErrorChain(&error), "a result does not open");
                Content::Broken
            }
        }
    }

    /// Reads and opens the content that a load withheld, once there is room for it. Cancel safe.
    async fn load_large(
        &self,
        journal: &dyn Journal,
        operation: &Operation,
        bytes: usize,
        caller: &Caller,
    ) -> Content {
        let room = match self.acquire(caller.api_key.id, bytes).await {
            Ok(room) => room,
            Err(full) => return Content::NoRoom(full),
        };
        // Never closed.
        let place = self.opening.acquire().await;
        let result = match journal.result(operation.id).await {
            Ok(Some(result)) => result,
            // Purged meanwhile.
            Ok(None) => return Content::Expired,
            Err(error) => return Content::Unread(error),
        };
        let (id, key) = (operation.id, caller.bearer.secret.result_key(operation.id));
        let operation = operation.clone();
        let opened = on_thread(move || seal::open(&key, &operation, &result)).await;
        drop(place);
        match opened {
            Some(Ok(opened)) => Content::Kept(room.attach(opened.body.0.into())),
            Some(Err(error)) => {
                tracing::error!(operation.id = %id, error = %ErrorChain(&error), "a result does not open");
                Content::Broken
            }
            None => Content::Broken,
        }
    }

    /// Runs work on a large result that takes milliseconds off the runtime's workers. `None` if it panicked, which
    /// was logged. Cancel safe: dropped work goes on, and its result is dropped.
    pub(crate) async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        // Never closed.
        let _place = self.opening.acquire().await;
        on_thread(work).await
    }
}

/// True if a result is counted, and processed off the runtime.
#[must_use]
pub const fn is_large(bytes: usize) -> bool {
    bytes > Options::SMALL_RESULT
}

/// Runs work on a thread of its own. `None` if it panicked, which is logged. Dropped work goes on, and its result
/// is dropped.
pub(crate) async fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => {
            tracing::error!(error = %ErrorChain(&error), "work on a thread of its own did not end");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use holdfast_testkit::sample;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_key_that_asks_for_more_than_its_share_waits_for_itself_alone() {
        let results = ResultLimiter::new(10 * UNIT, 30 * UNIT);
        let [greedy, other] = [1, 2].map(ApiKeyId::from_u128);
        let first = results.acquire(greedy, 8 * UNIT).await.unwrap();
        let begun = Instant::now();
        assert_eq!(results.acquire(greedy, 8 * UNIT).await.unwrap_err(), ResultsFull::ApiKey);
        assert_eq!(begun.elapsed(), ROOM_WAIT);
        let _others = results.acquire(other, 10 * UNIT).await.unwrap();
        drop(first);
        assert_eq!(begun.elapsed(), ROOM_WAIT, "another key has room at once");
        let _again = results.acquire(greedy, 8 * UNIT).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn all_keys_together_have_what_the_process_has() {
        let results = ResultLimiter::new(10 * UNIT, 15 * UNIT);
        let _first = results.acquire(ApiKeyId::from_u128(1), 10 * UNIT).await.unwrap();
        let second = results.acquire(ApiKeyId::from_u128(2), 10 * UNIT).await;
        assert_eq!(second.unwrap_err(), ResultsFull::Process);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_larger_than_all_room_takes_all_of_it() {
        let results = ResultLimiter::new(10 * UNIT, 15 * UNIT);
        let all = results.acquire(sample::API_KEY, 100 * UNIT).await.unwrap();
        assert_eq!(results.acquire(sample::API_KEY, 1).await.unwrap_err(), ResultsFull::ApiKey);
        let held = all.attach(Bytes::from_static(b"answer"));
        let rest = held.slice(3..);
        drop(held);
        assert_eq!(results.acquire(sample::API_KEY, 1).await.unwrap_err(), ResultsFull::ApiKey);
        drop(rest);
        let _room = results.acquire(sample::API_KEY, 1).await.unwrap();
        assert_eq!(results.of_keys.of_keys.lock().unwrap().len(), 1);
    }
}
