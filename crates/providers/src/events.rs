//! An answer that comes as server-sent events, read as it comes. Not what its events mean.

use std::ops::ControlFlow;

use holdfast_domain::ports::Failure;
use holdfast_wire::chat::upstream::Unreadable;
use holdfast_wire::sse::{Decoder, Event};

use crate::proof;
use crate::transport::Reply;

/// Hands each event of an answer to `take`, until that says that it was the last, or the answer ends. No
/// event may be longer than `bytes_max`. What was taken when this is dropped stays taken.
///
/// # Errors
///
/// What it proves that the answer breaks off, or has an event that is too long or, as `take` says, cannot
/// be read.
pub(crate) async fn each(
    mut reply: Reply,
    bytes_max: usize,
    mut take: impl FnMut(Event<'_>) -> Result<ControlFlow<()>, Unreadable> + Send,
) -> Result<(), Failure> {
    let mut decoder = Decoder::new(bytes_max, bytes_max);
    while let Some(piece) = reply.next().await.map_err(proof::of_break)? {
        let mut events = decoder.feed(&piece);
        while let Some(event) = events.next_event().map_err(|_too_long| proof::UNREADABLE)? {
            let went_on = take(event).map_err(|_unreadable| proof::UNREADABLE)?;
            if went_on.is_break() {
                reply.end().await;
                return Ok(());
            }
        }
    }
    Ok(())
}
