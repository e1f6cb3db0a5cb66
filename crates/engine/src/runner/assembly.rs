//! Puts the answer of one call together as it arrives, and tells it to those who listen. It bounds how
//! much there may be of it and how long it may be silent; what a bound that is met means is decided where
//! the call is.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdfast_domain::answer::{Answer, Delta};
use holdfast_domain::operation::Operation;
use holdfast_domain::ports::Sink;
use holdfast_domain::request::Request;
use holdfast_domain::usage::Meters;
use holdfast_wire::chat::chunk::Chunks;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::answer_bytes::AnswerShare;
use super::rendering::ReceivedAnswer;
use crate::options::Options;
use crate::routes::{CallOutcome, Permit};
use crate::tape::{ChunkLog, Tape};

/// The answer of one call.
pub(crate) struct Assembly<'a> {
    tape: &'a Tape,
    telling: Option<ChunkWriter<'a>>,
    pulse: &'a SilenceTimer<'a>,
    /// The memory that it may take.
    share: &'a AnswerShare,
    /// Bytes that were read of it.
    received: usize,
    pub(crate) answer: Answer,
    /// What was reported of it once it was whole.
    pub(crate) meters: Option<Meters>,
    /// Whether a byte of this call may have left.
    pub(crate) is_sent: bool,
    /// Whether it was ended here.
    pub(crate) is_cut: bool,
    /// How long its provider wants to be left alone.
    pub(crate) retry_after: Option<Duration>,
    /// Bytes that the provider wants back.
    state_bytes: usize,
}

/// What is told of an answer while it arrives.
struct ChunkWriter<'a> {
    track: &'a ChunkLog,
    request: &'a Request,
    pulse: &'a SilenceTimer<'a>,
    chunks: Chunks,
    bytes: usize,
    is_full: bool,
    is_told: bool,
}

impl<'a> Assembly<'a> {
    /// Of a call that has said nothing. `pulse` is that of a call which is told as it arrives.
    pub(crate) fn on(
        tape: &'a Tape,
        operation: &Operation,
        request: &'a Request,
        (pulse, share): (&'a SilenceTimer<'a>, &'a AnswerShare),
    ) -> Self {
        let telling = tape.chunk_log().map(|track| ChunkWriter {
            track,
            request,
            pulse,
            chunks: Chunks::new(operation.id, operation.admitted_at, &operation.model),
            bytes: 0,
            is_full: false,
            is_told: false,
        });
        Self {
            tape,
            telling,
            pulse,
            share,
            received: 0,
            answer: Answer::default(),
            meters: None,
            is_sent: false,
            is_cut: false,
            retry_after: None,
            state_bytes: 0,
        }
    }

    /// Forgets what the provider wants back beyond what is kept.
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

    /// Ends whatever of `n` choices has not ended.
    pub(crate) fn cut(&mut self, n: u32) {
        self.answer.end_open_choices(n);
        self.is_cut = true;
    }

    /// Whether there was more of it than there may be.
    pub(crate) fn is_full(&self) -> bool {
        self.telling.as_ref().is_some_and(|telling| telling.is_full)
    }

    /// Whether anybody may have heard any of it.
    pub(crate) fn is_streamed(&self) -> bool {
        self.telling.as_ref().is_some_and(|telling| telling.is_told)
    }

    /// What was heard.
    pub(crate) fn into_received(self) -> ReceivedAnswer {
        let chunks = self.telling.map(|telling| Box::new(telling.chunks));
        ReceivedAnswer { answer: self.answer, chunks, received: self.received }
    }
}

impl Sink for Assembly<'_> {
    fn on_send(&mut self) {
        self.is_sent = true;
        self.tape.set_sending();
        if let Some(telling) = &self.telling {
            telling.pulse.begin();
        }
    }

    fn on_delta(&mut self, mut delta: Delta) {
        // Whoever says something was asked, even where the provider forgot to tell.
        if !self.is_sent {
            self.on_send();
        }
        self.keep_within(&mut delta);
        let delta = match &mut self.telling {
            Some(telling) => telling.write_chunk(delta),
            None => Some(delta),
        };
        if let Some(delta) = delta {
            self.answer.append(delta);
        }
    }

    fn on_bytes(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes);
        let has_room = self.share.read(bytes);
        if !has_room || self.received > Options::RECEIVED_BYTES_MAX {
            self.pulse.full.notify_one();
        }
    }

    fn on_meters(&mut self, meters: Meters) {
        self.meters = Some(meters);
    }

    fn on_retry_after(&mut self, time: Duration) {
        self.retry_after = Some(time);
    }
}

impl ChunkWriter<'_> {
    /// Tells a piece; `None` where there is no room for it.
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
            self.pulse.full.notify_one();
            return None;
        }
        self.is_told |= !pieces.is_empty();
        self.track.append(self.chunks.envelope(), pieces);
        if delta.has_content() {
            self.pulse.beat();
        }
        Some(delta)
    }
}

/// Bytes of a piece that are told at the end of its answer, and kept until then.
fn unwritten_bytes(delta: &Delta) -> usize {
    let annotations = delta.choices.iter().flat_map(|choice| &choice.annotations);
    annotations.map(|annotation| annotation.as_str().len()).sum()
}

/// When a call last said something, for whoever watches over it.
#[derive(Debug)]
pub(crate) struct SilenceTimer<'a> {
    /// The route that the call is on.
    pass: &'a Permit,
    beat: Mutex<LastPiece>,
    /// The first piece is there: another time is the limit from now on.
    spoken: Notify,
    full: Notify,
}

#[derive(Debug, Clone, Copy)]
struct LastPiece {
    at: Instant,
    is_first: bool,
}

impl<'a> SilenceTimer<'a> {
    /// Of a call that begins now.
    pub(crate) fn new(pass: &'a Permit) -> Self {
        let beat = LastPiece { at: Instant::now(), is_first: true };
        Self { pass, beat: Mutex::new(beat), spoken: Notify::new(), full: Notify::new() }
    }

    pub(crate) const fn pass(&self) -> &Permit {
        self.pass
    }

    /// The request leaves: what it says is waited for from now on.
    fn begin(&self) {
        // Not from when the call began: the time that a connection takes is bounded by its own time-out.
        self.beat.lock().unwrap_or_else(PoisonError::into_inner).at = Instant::now();
    }

    fn beat(&self) {
        let beat = LastPiece { at: Instant::now(), is_first: false };
        let mut last = self.beat.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = std::mem::replace(&mut *last, beat).is_first;
        drop(last);
        // A first piece proves that the route works: it closes the breaker now, not when a long answer is over.
        if is_first {
            self.pass.report(CallOutcome::Answered);
            self.spoken.notify_one();
        }
    }

    /// Completes when nothing was said for so long: before the first piece, and between two.
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
                () = sleep_until(limit) => {}
                () = self.spoken.notified(), if is_first => {}
            }
        }
    }

    /// Completes when more was said, or only sent, than may be.
    pub(crate) async fn wait_full(&self) {
        self.full.notified().await;
    }
}
