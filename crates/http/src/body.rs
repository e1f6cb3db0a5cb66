//! Reading of request bodies, within three limits.
//!
//! - Size: a body larger than `bytes_max` is refused; unread, if `Content-Length` announces it.
//! - Time: the whole body has `time` to arrive, however steadily its bytes trickle in.
//! - Memory: the bodies of all requests share one [`BodyBudget`].
//!
//! A body reserves its share of the budget while it grows, and not beforehand: an announced
//! length is only the client's word. The first 64 KiB are free, so that ordinary requests never
//! touch the shared counter. The reservation is given back when the last clone of the [`Bytes`] that are
//! returned is dropped and the run of the request has ended, which keeps what it was read to: a request that
//! waits for the engine still counts. A body that is alone is always taken, or a budget smaller than one body
//! would refuse it for ever.
//!
//! One API key has half of the budget, so that its large bodies leave room for those of others.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use holdfast_domain::ApiKeyId;
use holdfast_wire::error::Code;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use crate::guarded_bytes::GuardedBytes;
use crate::problem::Problem;

/// Bytes up to which a body is not counted. Most bodies are smaller and cost no atomic.
const FREE: usize = 64 << 10;
/// Part of the budget that one API key may have: one of so many.
const KEY_PART: usize = 2;

/// Shared counter of the bytes of all bodies in memory. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyBudget(Arc<BodyCounts>);

/// Bytes of all counted bodies, and of those of each API key that has any.
#[derive(Debug, Default)]
struct BodyCounts {
    all: AtomicUsize,
    /// A std mutex: never held across an await, and touched only by bodies over the free part.
    of_keys: Mutex<HashMap<ApiKeyId, usize>>,
}

/// Reservation of one body in the [`BodyBudget`], in bytes. Dropping it gives them back.
#[derive(Debug)]
pub(crate) struct BodyReservation {
    room: BodyBudget,
    api_key: ApiKeyId,
    bytes: usize,
}

/// Body that was read, and its reservation, if it is large enough to have one.
#[derive(Debug)]
pub(crate) struct ReadBody {
    pub(crate) bytes: Bytes,
    pub(crate) reservation: Option<Arc<BodyReservation>>,
}

impl BodyCounts {
    /// Adds to the bytes of an API key: those that it had before.
    fn add_of_key(&self, api_key: ApiKeyId, more: usize) -> usize {
        let mut of_keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = of_keys.entry(api_key).or_insert(0);
        let before = *bytes;
        *bytes = before.saturating_add(more);
        before
    }

    fn give_back_of_key(&self, api_key: ApiKeyId, bytes: usize) {
        let mut of_keys = self.of_keys.lock().unwrap_or_else(PoisonError::into_inner);
        if let Entry::Occupied(mut of_key) = of_keys.entry(api_key) {
            let left = of_key.get().saturating_sub(bytes);
            if left == 0 {
                of_key.remove();
            } else {
                of_key.insert(left);
            }
        }
    }
}

impl BodyReservation {
    /// Raises the reservation to `bytes` in all. Refuses with `overloaded` if all bodies together would exceed `most`,
    /// with `too_many_operations` if those of the API key would exceed half of it. One body alone is always taken.
    fn grow_to(&mut self, bytes: usize, most: usize) -> Result<(), Problem> {
        let more = bytes.saturating_sub(self.bytes);
        if bytes <= FREE || more == 0 {
            return Ok(());
        }
        // Added before it is judged: of two bodies that race for the last bytes the later sees the
        // earlier. A race may refuse one too many, and never admits one.
        let others = self.room.0.all.fetch_add(more, Ordering::AcqRel).saturating_sub(self.bytes);
        let of_key = self.room.0.add_of_key(self.api_key, more).saturating_sub(self.bytes);
        // Set also on the way to a refusal, because `drop` subtracts exactly this.
        self.bytes = bytes;
        if of_key > 0 && of_key.saturating_add(bytes) > most / KEY_PART {
            return Err(Problem {
                message:
                    "This API key has as many bytes of requests in memory as it may: send the same \
                          request again when one of them has ended."
                        .into(),
                ..Problem::new(Code::TooManyOperations)
            });
        }
        if others > 0 && others.saturating_add(bytes) > most {
            return Err(Problem {
                message: "The process reads as many bytes of requests as it may: send the same \
                          request again after `retry-after`."
                    .into(),
                ..Problem::new(Code::Overloaded)
            });
        }
        Ok(())
    }
}

impl Drop for BodyReservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.room.0.all.fetch_sub(self.bytes, Ordering::AcqRel);
            self.room.0.give_back_of_key(self.api_key, self.bytes);
        }
    }
}

/// Unread body of a request, with the budget that it will be counted in.
pub(crate) struct Upload {
    incoming: Incoming,
    room: BodyBudget,
}

/// Limits of one read: bytes of this body, bytes of all bodies, and time until it is whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    /// API key that the body counts for.
    pub(crate) api_key: ApiKeyId,
    pub(crate) bytes_max: usize,
    /// Bytes of all counted bodies together: of those larger than the free part.
    pub(crate) in_memory: usize,
    pub(crate) time: Duration,
}

impl Upload {
    pub(crate) fn new(incoming: Incoming, room: &BodyBudget) -> Self {
        Self { incoming, room: room.clone() }
    }

    /// True if the body announces at most `bytes`. A chunked body announces no length.
    pub(crate) fn is_at_most(&self, bytes: usize) -> bool {
        let announced = self.incoming.size_hint().upper();
        announced.is_some_and(|all| usize::try_from(all).is_ok_and(|all| all <= bytes))
    }

    /// Reads the whole body. A body that announces itself as too large is refused unread.
    pub(crate) async fn read(self, limits: BodyLimits) -> Result<ReadBody, Problem> {
        let announced = self.incoming.size_hint().lower();
        if usize::try_from(announced).map_or(true, |announced| announced > limits.bytes_max) {
            return Err(Problem::too_large(limits.bytes_max));
        }
        let taken = BodyReservation { room: self.room, api_key: limits.api_key, bytes: 0 };
        match timeout(limits.time, collect(self.incoming, taken, limits)).await {
            Ok(read) => read,
            Err(_elapsed) => Err(Problem::new(Code::RequestTimeout)),
        }
    }
}

async fn collect(
    mut body: Incoming,
    mut taken: BodyReservation,
    limits: BodyLimits,
) -> Result<ReadBody, Problem> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| body_error(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        let bytes = read.len().saturating_add(data.len());
        if bytes > limits.bytes_max {
            return Err(Problem::too_large(limits.bytes_max));
        }
        taken.grow_to(bytes, limits.in_memory)?;
        // Bodies of one frame, which are most, are passed on without a copy. The reservation ends
        // here: a frame is no larger than the connection's read buffer.
        if read.is_empty() && body.is_end_stream() {
            return Ok(ReadBody { bytes: data, reservation: None });
        }
        read.extend_from_slice(&data);
    }
    let read = read.freeze();
    if taken.bytes == 0 {
        return Ok(ReadBody { bytes: read, reservation: None });
    }
    // The owner keeps the reservation: counted as long as a clone of it lives.
    let taken = Arc::new(taken);
    let bytes = Bytes::from_owner(GuardedBytes { bytes: read, held: Arc::clone(&taken) });
    Ok(ReadBody { bytes, reservation: Some(taken) })
}

/// Refusal of a body that breaks off, in which case no client reads the answer, or whose chunks are garbled:
/// the kind of the I/O error at the root of hyper's error marks the second.
fn body_error(error: &hyper::Error) -> Problem {
    use io::ErrorKind::{InvalidData, InvalidInput};
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    if !cause.is_some_and(|cause| matches!(cause.kind(), InvalidData | InvalidInput)) {
        return Problem::new(Code::RequestTimeout);
    }
    Problem {
        message: "The chunks of the body cannot be read: send each after its size in hexadecimal \
                  digits, and an empty one at the end."
            .into(),
        ..Problem::new(Code::InvalidJson)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 1_000_000;

    fn code(grown: Result<(), Problem>) -> Option<Code> {
        grown.err().map(|refused| refused.code)
    }

    #[test]
    fn an_api_key_has_half_of_the_budget_and_leaves_the_rest_to_others() {
        let room = BodyBudget::default();
        let of_key = |key| BodyReservation {
            room: room.clone(),
            api_key: ApiKeyId::from_u128(key),
            bytes: 0,
        };
        let (mut first, mut second) = (of_key(1), of_key(1));
        assert_eq!(code(first.grow_to(400_000, MOST)), None);
        assert_eq!(code(second.grow_to(FREE, MOST)), None, "the free part is not counted");
        assert_eq!(code(second.grow_to(200_000, MOST)), Some(Code::TooManyOperations));
        drop(second);
        let mut other = of_key(2);
        assert_eq!(code(other.grow_to(450_000, MOST)), None);
        let mut third = of_key(3);
        assert_eq!(code(third.grow_to(300_000, MOST)), Some(Code::Overloaded));
        drop(third);
        // Given back, it is there again; and one body alone is always taken.
        drop((first, other));
        assert!(room.0.of_keys.lock().unwrap().is_empty());
        let mut alone = of_key(1);
        assert_eq!(code(alone.grow_to(3 * MOST, MOST)), None);
    }
}
