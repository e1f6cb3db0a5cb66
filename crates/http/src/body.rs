//! Reads a request's body within its limits of size and time.

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
        // The client broke off: nobody reads the answer, so any will do.
        let frame = frame.map_err(|_broken| Problem::new(Code::RequestTimeout))?;
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

/// The refusal of a body over the limit.
pub(crate) fn too_large(bytes_max: usize) -> Problem {
    let message = format!("The body is larger than {bytes_max} bytes: send a shorter request.");
    Problem { message: message.into(), ..Problem::new(Code::RequestTooLarge) }
}
