//! Reads a request's body within its limits of size and time.

use std::error::Error;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use holdfast_wire::error::Code;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tokio::time::timeout;

use crate::error::Problem;

/// Reads the whole body. A body that announces itself as too large is refused unread.
pub(crate) async fn read(
    body: Incoming,
    bytes_max: usize,
    time: Duration,
) -> Result<Bytes, Problem> {
    let announced = body.size_hint().lower();
    if usize::try_from(announced).map_or(true, |announced| announced > bytes_max) {
        return Err(too_large(bytes_max));
    }
    match timeout(time, collect(body, bytes_max)).await {
        Ok(read) => read,
        Err(_elapsed) => Err(Problem::new(Code::RequestTimeout)),
    }
}

async fn collect(mut body: Incoming, bytes_max: usize) -> Result<Bytes, Problem> {
    let mut read = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if read.len().saturating_add(data.len()) > bytes_max {
            return Err(too_large(bytes_max));
        }
        if read.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        read.extend_from_slice(&data);
    }
    Ok(read.freeze())
}

/// The refusal of a body that breaks off, which nobody reads, or that is garbled.
fn broken(error: &hyper::Error) -> Problem {
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
