//! Reading of one answer, whole or as it streams, so that other work has its turn in between.
//!
//! ```text
//! 200 ─┬─ JSON ─────▶ read to the end ─┬─ short ───────▶ Adapter::deliver
//!      │                               └─ long ────────▶ offload ─▶ emit_deltas
//!      └─ events ───▶ feed, in parts ──┬─ short event ─▶ StreamDecoder::feed
//!                                      └─ long event ──▶ offload ─▶ emit_deltas
//! ```
//!
//! A server may send what it likes, and a byte may cost some 50 ns to read: 64 KiB are 3 ms, 16 MiB almost a
//! second for every call that shares the worker. So a stream is read in parts, a long answer or event on a
//! thread of its own, and its deltas are passed on a few at a time.
//!
//! A stream that breaks after every choice has ended is a success without its rest: at most the
//! usage is missing. A break before that is a failure: an answer is never guessed whole.
//!
//! Limits: `SizeLimits` for one answer or event in memory; `INLINE_BYTES_MAX` for reading on a
//! worker; `LONG_READINGS` for long readings at once; `PIECES_A_TURN` deltas between two yields.

use std::ops::ControlFlow;
use std::sync::Arc;

use bytes::Bytes;
use holdfast_domain::answer::Delta;
use holdfast_domain::ports::{Call, CallFailure, ResponseMode, Sink, UnreadableReason};
use holdfast_domain::usage::UsageReport;
use holdfast_wire::chat::chunk::split_delta;
use holdfast_wire::chat::upstream::Completion;

use crate::adapter::Adapter;
use crate::long_reading::{INLINE_BYTES_MAX, offload};
use crate::proof;
use crate::stream_decoder::StreamDecoder;
use holdfast_net::{TURN_BYTES, UpstreamResponse};

/// The pieces of a long one that are passed on before other work has its turn.
const PIECES_A_TURN: usize = 16;

/// Lengths of an answer and of an event, in bytes at most.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SizeLimits {
    /// Answer that comes whole.
    pub(crate) whole_max: usize,
    /// Event of an answer that streams.
    pub(crate) event_max: usize,
}

/// Reads a success, whole or streamed, and passes its content to the sink.
pub(crate) async fn receive(
    adapter: &Arc<dyn Adapter>,
    mut reply: UpstreamResponse,
    lengths: SizeLimits,
    call: &Call,
    sink: &mut dyn Sink,
) -> Result<Option<UsageReport>, CallFailure> {
    // By the body: some servers know no streams, some nothing else, whatever the request or their
    // own content type says.
    let first = reply.first_byte().await.map_err(proof::of_send_error)?;
    let is_stream = match call.response_mode {
        ResponseMode::Streamed => first != Some(b'{'),
        ResponseMode::Whole => first.is_some_and(begins_event),
    };
    if is_stream {
        let following = StreamDecoder::new(&**adapter, call, lengths.event_max);
        // In a box: a call whose answer comes whole would have room for it.
        return Box::pin(follow(following, reply, sink)).await;
    }
    let body = reply.read(lengths.whole_max, &mut |bytes| sink.on_bytes(bytes)).await;
    let body = body.map_err(proof::of_send_error)?;
    if body.len() > INLINE_BYTES_MAX {
        return Box::pin(receive_long(adapter, body, call, sink)).await;
    }
    adapter.deliver(&body, call, sink).map_err(proof::unreadable)
}

/// True for the first byte of an event: of a field (`data`, `event`, `id`, `retry`) or of a comment.
const fn begins_event(byte: u8) -> bool {
    matches!(byte, b'd' | b'e' | b'i' | b'r' | b':')
}

/// Reads an answer that came whole and is long.
async fn receive_long(
    adapter: &Arc<dyn Adapter>,
    body: Bytes,
    call: &Call,
    sink: &mut dyn Sink,
) -> Result<Option<UsageReport>, CallFailure> {
    let (adapter, call) = (Arc::clone(adapter), call.clone());
    let read = move || {
        let Completion { delta, usage } = adapter.read(&body, &call)?;
        let deltas = match call.response_mode {
            // It is told to nobody before it is stored.
            ResponseMode::Whole => vec![delta],
            ResponseMode::Streamed => split_delta(delta),
        };
        Ok((deltas, usage))
    };
    let (deltas, usage) = offload(read).await.map_err(proof::unreadable)?;
    emit_deltas(deltas, sink).await;
    Ok(usage)
}

/// Passes on the deltas of a long answer.
async fn emit_deltas(deltas: Vec<Delta>, sink: &mut dyn Sink) {
    for (at, delta) in deltas.into_iter().enumerate() {
        if at % PIECES_A_TURN == PIECES_A_TURN - 1 {
            tokio::task::yield_now().await;
        }
        sink.on_delta(delta);
    }
}

/// Reads an answer that streams.
async fn follow(
    mut following: StreamDecoder,
    mut reply: UpstreamResponse,
    sink: &mut dyn Sink,
) -> Result<Option<UsageReport>, CallFailure> {
    let ended = loop {
        let went_on = match reply.next().await {
            Ok(Some(piece)) => {
                sink.on_bytes(piece.len());
                let (back, went_on) = feed(following, piece, sink).await;
                following = back;
                went_on.map_err(proof::unreadable)
            }
            Ok(None) => break Ok(()),
            Err(cause) => Err(proof::of_send_error(cause)),
        };
        match went_on {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => {
                reply.end().await;
                break Ok(());
            }
            Err(failure) => break Err(failure),
        }
    };
    match ended {
        Err(failure) if !following.is_whole() => Err(failure),
        // Everything was said: what is missing is at most the usage, and the word that it ends.
        Ok(()) | Err(_) => following.end().map_err(proof::unreadable),
    }
}

/// Reads one piece of a stream, in parts.
async fn feed(
    mut following: StreamDecoder,
    mut piece: Bytes,
    sink: &mut dyn Sink,
) -> (StreamDecoder, Result<ControlFlow<()>, UnreadableReason>) {
    loop {
        let part = piece.split_to(piece.len().min(TURN_BYTES));
        let went_on = if following.unread() <= INLINE_BYTES_MAX {
            following.feed(&part, sink)
        } else {
            // The event that this part may end is a long one.
            let mut buffer = DeltaBuffer::default();
            let read = move || {
                let went_on = following.feed(&part, &mut buffer);
                (following, buffer, went_on)
            };
            let (back, buffer, went_on) = Box::pin(offload(read)).await;
            following = back;
            emit_deltas(buffer.deltas, sink).await;
            // After the deltas, as on a worker: usage is told of an answer whose choices have
            // ended.
            if let Some(usage) = buffer.usage {
                sink.on_usage(usage);
            }
            went_on
        };
        if piece.is_empty() || !matches!(went_on, Ok(ControlFlow::Continue(()))) {
            return (following, went_on);
        }
        tokio::task::yield_now().await;
    }
}

/// Sink on another thread: the deltas and the usage of one part of a stream, for the real sink.
#[derive(Default)]
struct DeltaBuffer {
    deltas: Vec<Delta>,
    usage: Option<UsageReport>,
}

impl Sink for DeltaBuffer {
    fn on_send(&mut self) {}

    fn on_delta(&mut self, delta: Delta) {
        self.deltas.extend(split_delta(delta));
    }

    fn on_usage(&mut self, report: UsageReport) {
        self.usage = Some(report);
    }
}
