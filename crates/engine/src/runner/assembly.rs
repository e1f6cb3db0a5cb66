//! Assembly of one call's answer as it arrives: its deltas become the answer that is stored, and the chunks of the
//! tape that callers follow.
//!
//! Two bounds are watched: the bytes of the answer, and the time of silence. Meeting one only ends a wait here; its
//! consequence for the operation is decided at the call, which knows whether a byte was sent.
//!
//! Never: a piece on the tape that is not in the answer, or the other way round. A replay would then differ from the
//! stream, so a chunk that has no room is in neither.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdfast_domain::answer::{Answer, Delta};
use holdfast_domain::operation::Operation;
use holdfast_domain::ports::{FailureNote, Sink};
use holdfast_domain::request::Request;
use holdfast_domain::usage::UsageReport;
use holdfast_domain::{Currency, Micros};
use holdfast_wire::chat::chunk::Chunks;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::answer_bytes::AnswerShare;
use super::rendering::ReceivedAnswer;
use crate::options::Options;
use crate::routes::{CallOutcome, Permit};
use crate::tape::{ChunkLog, Tape};

/// Assembly of the answer of one call: the provider writes to it as a [`Sink`].
pub(crate) struct Assembly<'a> {
    tape: &'a Tape,
    chunk_writer: Option<ChunkWriter<'a>>,
    silence: &'a SilenceTimer<'a>,
    /// Memory share of the run, by which all bytes that are read are counted.
    share: &'a AnswerShare,
    /// Bytes of the provider's body that were read so far, by this call.
    received: usize,
    pub(crate) answer: Answer,
    /// Usage report of the provider, which comes with the last piece or never.
    pub(crate) usage: Option<UsageReport>,
    /// Send mark: a byte of this call may have left. Without it an end is proven *not run*.
    pub(crate) is_sent: bool,
    /// Moments at which a byte may first have left, and at which the first piece was there.
    pub(crate) moments: CallMoments,
    /// Cut mark: the call was ended on this side, and open choices were closed with `length`.
    pub(crate) is_cut: bool,
    /// `Retry-After` of the provider, if it sent one.
    pub(crate) retry_after: Option<Duration>,
    /// Field of the request that the provider turned away.
    pub(crate) rejected_field: Option<&'static str>,
    /// Note of the failure, only for the statistics of the route.
    pub(crate) failure_note: Option<FailureNote>,
    /// Charge of the provider, if its answer has one.
    pub(crate) charge: Option<(Currency, Micros)>,
    /// Bytes of provider states that are kept for later turns.
    state_bytes: usize,
    /// Answers whether the operation may send once more.
    may_send: &'a (dyn Fn() -> bool + Send + Sync),
}

/// Moments of one call, for its span.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallMoments {
    pub(crate) dispatched: Option<Instant>,
    pub(crate) first_chunk: Option<Instant>,
}

/// Writer of chunks: renders each piece to the run's log while the answer arrives.
struct ChunkWriter<'a> {
    chunk_log: &'a ChunkLog,
    request: &'a Request,
    silence: &'a SilenceTimer<'a>,
    chunks: Chunks,
    bytes: usize,
    is_full: bool,
    has_written: bool,
}

impl<'a> Assembly<'a> {
    /// Begins the assembly of a call. Chunks are written only if the tape has a log, which means that the first
    /// caller requested a stream.
    pub(crate) fn on(
        tape: &'a Tape,
        operation: &Operation,
        request: &'a Request,
        (silence, share): (&'a SilenceTimer<'a>, &'a AnswerShare),
        may_send: &'a (dyn Fn() -> bool + Send + Sync),
    ) -> Self {
        let chunk_writer = tape.chunk_log().map(|chunk_log| ChunkWriter {
            chunk_log,
            request,
            silence,
            chunks: Chunks::new(operation.id, operation.admitted_at, operation.written_model()),
            bytes: 0,
            is_full: false,
            has_written: false,
        });
        Self {
            tape,
            chunk_writer,
            silence,
            share,
            received: 0,
            answer: Answer::default(),
            usage: None,
            is_sent: false,
            moments: CallMoments::default(),
            is_cut: false,
            retry_after: None,
            rejected_field: None,
            failure_note: None,
            charge: None,
            state_bytes: 0,
            may_send,
        }
    }

    /// Drops provider states beyond `STATE_BYTES_MAX`: a later turn without one still works, and a
    /// row without a bound does not.
    fn keep_within(&mut self, delta: &mut Delta) {
        let calls = delta.choices.iter_mut().flat_map(|choice| &mut choice.tool_calls);
        for call in calls {
            let bytes = call.state.as_ref().map_or(0, |state| state.as_str().len());
            self.state_bytes = self.state_bytes.saturating_add(bytes);
            if self.state_bytes > Options::STATE_BYTES_MAX {
                call.state = None;
            }
        }
    }

    /// Closes the open ones of `n` choices with `length`, and marks the answer as cut.
    pub(crate) fn cut(&mut self, n: u32) {
        self.answer.end_open_choices(n);
        self.is_cut = true;
    }

    /// True if the streamed text has met its bound; pieces after that were dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.chunk_writer.as_ref().is_some_and(|chunk_writer| chunk_writer.is_full)
    }

    /// True if a stream was requested.
    pub(crate) const fn is_streaming(&self) -> bool {
        self.chunk_writer.is_some()
    }

    /// True if a chunk has gone out: from then on no other route may answer, because a reader may have had the
    /// beginning of this one.
    pub(crate) fn is_streamed(&self) -> bool {
        self.chunk_writer.as_ref().is_some_and(|chunk_writer| chunk_writer.has_written)
    }

    /// Ends the assembly and hands over its answer, with the renderer of its closing chunks.
    pub(crate) fn into_received(self) -> ReceivedAnswer {
        let chunks = self.chunk_writer.map(|chunk_writer| Box::new(chunk_writer.chunks));
        ReceivedAnswer { answer: self.answer, chunks, received: self.received }
    }
}

impl Sink for Assembly<'_> {
    fn on_send(&mut self) {
        self.is_sent = true;
        self.moments.dispatched.get_or_insert_with(Instant::now);
        self.tape.set_sending();
        if let Some(chunk_writer) = &self.chunk_writer {
            chunk_writer.silence.begin();
        }
    }

    fn on_delta(&mut self, mut delta: Delta) {
        // A provider that sends text has the request, even if it did not report that.
        if !self.is_sent {
            self.on_send();
        }
        self.moments.first_chunk.get_or_insert_with(Instant::now);
        self.keep_within(&mut delta);
        // The chunk before the answer: a piece that has no room is in neither, so that what was
        // streamed and what is sealed stay the same text.
        let delta = match &mut self.chunk_writer {
            Some(chunk_writer) => chunk_writer.write_chunk(delta),
            None => Some(delta),
        };
        if let Some(delta) = delta {
            self.answer.append(delta);
        }
    }

    fn on_bytes(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes);
        let has_room = self.share.read(bytes);
        // Only a signal: the select in `call` decides what the end means, and until it runs more
        // pieces may be counted.
        if !has_room || self.received > Options::RECEIVED_BYTES_MAX {
            self.silence.full.notify_one();
        }
    }

    fn on_usage(&mut self, report: UsageReport) {
        self.usage = Some(report);
    }

    fn on_retry_after(&mut self, time: Duration) {
        self.retry_after = Some(time);
    }

    fn on_rejected_field(&mut self, field: &'static str) {
        self.rejected_field = Some(field);
    }

    fn on_failure_note(&mut self, note: FailureNote) {
        self.failure_note = Some(note);
    }

    fn on_charge(&mut self, currency: Currency, charge: Micros) {
        self.charge = Some((currency, charge));
    }

    fn may_send_again(&self) -> bool {
        (self.may_send)()
    }
}

impl ChunkWriter<'_> {
    /// Writes a piece to the log; `None` if it would pass `STREAM_BYTES_MAX`, which ends the call.
    fn write_chunk(&mut self, mut delta: Delta) -> Option<Delta> {
        if self.is_full {
            return None;
        }
        delta.retain_requested(self.request);
        let pieces = self.chunks.delta(&delta);
        let more: usize = pieces.iter().map(|piece| piece.frame.size()).sum();
        self.bytes = self.bytes.saturating_add(more).saturating_add(unwritten_bytes(&delta));
        if self.bytes > Options::STREAM_BYTES_MAX {
            self.is_full = true;
            self.silence.full.notify_one();
            return None;
        }
        self.has_written |= !pieces.is_empty();
        self.chunk_log.append(self.chunks.envelope(), pieces);
        if delta.has_content() {
            self.silence.beat();
        }
        Some(delta)
    }
}

/// Bytes of annotations in a piece: rendered only at the end of the answer, and held until then.
fn unwritten_bytes(delta: &Delta) -> usize {
    let annotations = delta.choices.iter().flat_map(|choice| &choice.annotations);
    annotations.map(|annotation| annotation.as_str().len()).sum()
}

/// Watchdog of one call: the time of its last piece, and signals for silence and size.
#[derive(Debug)]
pub(crate) struct SilenceTimer<'a> {
    /// Permit of the call, through which the first piece is reported to the breaker.
    permit: &'a Permit,
    beat: Mutex<LastPiece>,
    /// Signal of the first piece: the limit changes from `first_token` to `between_tokens`.
    spoken: Notify,
    full: Notify,
}

#[derive(Debug, Clone, Copy)]
struct LastPiece {
    at: Instant,
    is_first: bool,
}

impl<'a> SilenceTimer<'a> {
    /// Starts the timer at the present time, before a byte is sent.
    pub(crate) fn new(permit: &'a Permit) -> Self {
        let beat = LastPiece { at: Instant::now(), is_first: true };
        Self { permit, beat: Mutex::new(beat), spoken: Notify::new(), full: Notify::new() }
    }

    pub(crate) const fn pass(&self) -> &Permit {
        self.permit
    }

    /// Restarts the watch when the request leaves.
    fn begin(&self) {
        // Not from when the call began: the time that a connection takes is bounded by its own timeout.
        self.beat.lock().unwrap_or_else(PoisonError::into_inner).at = Instant::now();
    }

    fn beat(&self) {
        let beat = LastPiece { at: Instant::now(), is_first: false };
        let mut last = self.beat.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = std::mem::replace(&mut *last, beat).is_first;
        drop(last);
        // A first piece proves that the route works: it closes the breaker now, not when a long answer is over.
        if is_first {
            self.permit.report(CallOutcome::Answered);
            self.spoken.notify_one();
        }
    }

    /// Completes after a silence of `first` before the first piece, or of `between` after any.
    pub(crate) async fn wait_silent(&self, first: Duration, between: Duration) {
        loop {
            let LastPiece { at, is_first } =
                *self.beat.lock().unwrap_or_else(PoisonError::into_inner);
            let limit = at + if is_first { first } else { between };
            if limit <= Instant::now() {
                return;
            }
            // A later beat only moves the limit; the first one may bring it nearer.
            tokio::select! {
                biased;
                () = sleep_until(limit) => {}
                () = self.spoken.notified(), if is_first => {}
            }
        }
    }

    /// Completes when a bound is met: of streamed text, of bytes read, or of the memory of all
    /// runs.
    pub(crate) async fn wait_full(&self) {
        self.full.notified().await;
    }
}
