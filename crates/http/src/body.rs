//! Reads a request's body within its limits of size and time.

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

use crate::error::Problem;
use crate::reply::GuardedBytes;

/// The part of a body that is not counted: most have no more.
const FREE: usize = 64 << 10;

/// Bytes of bodies that are in memory, of all requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct BodyBudget(Arc<AtomicUsize>);

/// What one body has of it, until it is dropped.
#[derive(Debug)]
struct BodyReservation {
    room: BodyBudget,
    bytes: usize,
}

impl BodyReservation {
    /// Counts so many bytes in all. One body alone is always taken.
    fn grow_to(&mut self, bytes: usize, most: usize) -> Result<(), Problem> {
        let more = bytes.saturating_sub(self.bytes);
        if bytes <= FREE || more == 0 {
            return Ok(());
        }
        let others = self.room.0.fetch_add(more, Ordering::AcqRel).saturating_sub(self.bytes);
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

/// A request's body that was not read yet.
pub(crate) struct Upload {
    incoming: Incoming,
    room: BodyBudget,
}

/// How much of a body is taken, and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyLimits {
    pub(crate) bytes_max: usize,
    /// Of all bodies.
    pub(crate) in_memory: usize,
    pub(crate) time: Duration,
}

impl Upload {
    pub(crate) fn new(incoming: Incoming, room: &BodyBudget) -> Self {
        Self { incoming, room: room.clone() }
    }

    /// Whether it announces no more than this.
    pub(crate) fn is_at_most(&self, bytes: usize) -> bool {
        let announced = self.incoming.size_hint().upper();
        announced.is_some_and(|all| usize::try_from(all).is_ok_and(|all| all <= bytes))
    }

    /// Reads the whole body. A body that announces itself as too large is refused unread.
    pub(crate) async fn read(self, limits: BodyLimits) -> Result<Bytes, Problem> {
        let announced = self.incoming.size_hint().lower();
        if usize::try_from(announced).map_or(true, |announced| announced > limits.bytes_max) {
            return Err(too_large(limits.bytes_max));
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
            return Err(too_large(limits.bytes_max));
        }
        taken.grow_to(bytes, limits.in_memory)?;
        if read.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        read.extend_from_slice(&data);
    }
    let read = read.freeze();
    // Counted for as long as anybody has it.
    Ok(if taken.bytes > 0 {
        Bytes::from_owner(GuardedBytes { bytes: read, held: taken })
    } else {
        read
    })
}

/// The refusal of a body that breaks off, which nobody reads, or that is garbled.
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

/// The refusal of a body over the limit.
pub(crate) fn too_large(bytes_max: usize) -> Problem {
    let message = format!("The body is larger than {bytes_max} bytes: send a shorter request.");
    Problem { message: message.into(), ..Problem::new(Code::RequestTooLarge) }
}
