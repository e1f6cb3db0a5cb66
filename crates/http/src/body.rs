//! Reading of request bodies, within three limits.
//!
//! - Size: a body larger than `bytes_max` is refused; unread, where `Content-Length` announces it.
//! - Time: the whole body has `time` to arrive, however steadily its bytes trickle in.
//! - Memory: the bodies of all requests share one [`BodyBudget`].
//!
//! A body reserves its share of the budget while it grows, and not beforehand: an announced
//! length is only the client's word. The first 64 KiB are free, so that ordinary requests never
//! touch the shared counter. The reservation travels inside the [`Bytes`] that are returned, and
//! is given back when the last clone of them is dropped: a request that waits for the engine
//! still counts. A body that is alone is always taken, or a budget smaller than one body would
//! refuse it for ever.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use holdfast_wire::error::Code;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use crate::guarded_bytes::GuardedBytes;
use crate::problem::Problem;

/// Bytes up to which a body is not counted. Most bodies are smaller and cost no atomic.
const FREE: usize = 64 << 10;

/// Shared counter of the bytes of all bodies in memory. Clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyBudget(Arc<AtomicUsize>);

/// Reservation of one body in the [`BodyBudget`], in bytes. Dropping it gives them back.
#[derive(Debug)]
struct BodyReservation {
    room: BodyBudget,
    bytes: usize,
}

impl BodyReservation {
    /// Raises the reservation to `bytes` in all, or refuses with `overloaded` where all bodies
    /// together would exceed `most`. One body alone is always taken.
    fn grow_to(&mut self, bytes: usize, most: usize) -> Result<(), Problem> {
        let more = bytes.saturating_sub(self.bytes);
        if bytes <= FREE || more == 0 {
            return Ok(());
        }
        // Added before it is judged: of two bodies that race for the last bytes the later sees the
        // earlier. A race may refuse one too many, and never admits one.
        let others = self.room.0.fetch_add(more, Ordering::AcqRel).saturating_sub(self.bytes);
        // Set also on the way to a refusal, because `drop` subtracts exactly this.
        self.bytes = bytes;
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
        self.room.0.fetch_sub(self.bytes, Ordering::AcqRel);
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
    pub(crate) bytes_max: usize,
    /// Bytes of all counted bodies together: of those larger than the free part.
    pub(crate) in_memory: usize,
    pub(crate) time: Duration,
}

impl Upload {
    pub(crate) fn new(incoming: Incoming, room: &BodyBudget) -> Self {
        Self { incoming, room: room.clone() }
    }

    /// True where the body announces at most `bytes`. A chunked body announces nothing.
    pub(crate) fn is_at_most(&self, bytes: usize) -> bool {
        let announced = self.incoming.size_hint().upper();
        announced.is_some_and(|all| usize::try_from(all).is_ok_and(|all| all <= bytes))
    }

    /// Reads the whole body. A body that announces itself as too large is refused unread.
    pub(crate) async fn read(self, limits: BodyLimits) -> Result<Bytes, Problem> {
        let announced = self.incoming.size_hint().lower();
        if usize::try_from(announced).map_or(true, |announced| announced > limits.bytes_max) {
            return Err(Problem::too_large(limits.bytes_max));
        }
        let taken = BodyReservation { room: self.room, bytes: 0 };
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
) -> Result<Bytes, Problem> {
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
            return Ok(data);
        }
        read.extend_from_slice(&data);
    }
    let read = read.freeze();
    // The owner keeps the reservation: counted for as long as anybody has a clone.
    Ok(if taken.bytes > 0 {
        Bytes::from_owner(GuardedBytes { bytes: read, held: taken })
    } else {
        read
    })
}

/// Refusal of a body that breaks off, which nobody reads, or whose chunks are garbled: hyper
/// tells the second by the kind of the I/O error at its cause.
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
