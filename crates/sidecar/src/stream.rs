//! A stream as its client receives it: one unbroken answer out of any number of requests.
//!
//! ```text
//! pieces ─▶ Decoder ─▶ whole events ─▶ Resumption ─▶ StreamPart
//!    └ the connection breaks, or an event requests a retry ─▶ Call::send ─▶ from the beginning ─┘
//! ```
//!
//! What the client has is dropped from the answer that begins anew, and compared as it is dropped
//! (`holdfast_wire::chat::resume`). Another answer is an error event and an abort, never a splice.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, StreamExt};
use holdfast_net::PassedAnswer;
use holdfast_wire::chat::resume::Resumption;
use holdfast_wire::error::{Code, ErrorBody};
use holdfast_wire::sse::{self, Decoder};
use http::HeaderMap;
use tokio::time::{Instant, timeout};

use crate::answer::{self, Meaning};
use crate::attendance::Attendance;
use crate::call::{Call, CallAnswer, WholeAnswer};
use crate::table::CallEnd;

/// The longest event of a stream, in bytes: as much as a whole answer may have.
const EVENT_BYTES_MAX: usize = crate::budget::BYTES_MAX;
/// Silence after which a gateway is taken to be gone: a live one sends an event or a comment every 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const DONE: &[u8] = b"[DONE]";

/// Next part of a stream.
pub(crate) enum StreamPart {
    /// A gateway has begun to answer, with these headers.
    Begun(HeaderMap),
    /// An event; with the attendance if the answer is whole with it.
    Event(Bytes, Option<Attendance>),
    /// The last event of a stream that has no end.
    Broken(Bytes, Option<Attendance>),
    /// Instead of a stream.
    Whole(WholeAnswer, Option<Attendance>),
}

/// A stream, and what it takes to go on with it.
pub(crate) struct ResumedStream {
    call: Call,
    /// The choices that the client waits for.
    n_choices: usize,
    answer: Option<PassedAnswer>,
    decoder: Decoder,
    resumption: Resumption,
    ready: VecDeque<StreamPart>,
    progress: Progress,
}

/// Progress of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// Not begun.
    Silent,
    /// A part of it was sent to the client.
    Begun,
    /// All of it was, or its last word.
    Over,
}

impl ResumedStream {
    /// A stream whose first answer has begun.
    pub(crate) fn begin(call: Call, n_choices: usize, answer: PassedAnswer) -> Self {
        let ready = VecDeque::from([StreamPart::Begun(answer.headers.clone())]);
        Self {
            call,
            n_choices,
            answer: Some(answer),
            decoder: Decoder::new(EVENT_BYTES_MAX, EVENT_BYTES_MAX),
            resumption: Resumption::new(),
            ready,
            progress: Progress::Silent,
        }
    }

    /// The parts of it, whose reader may stop waiting at any time.
    pub(crate) fn into_stream(self) -> BoxStream<'static, StreamPart> {
        let parts = stream::unfold(self, |mut telling| async {
            telling.next().await.map(|part| (part, telling))
        });
        parts.boxed()
    }

    async fn next(&mut self) -> Option<StreamPart> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Some(part);
            }
            if self.progress == Progress::Over {
                return None;
            }
            match &mut self.answer {
                None => self.send().await,
                Some(answer) => match timeout(SILENCE_MAX, answer.next()).await {
                    Ok(Ok(Some(piece))) => {
                        if !self.feed(&piece) {
                            self.break_off().await;
                        }
                    }
                    // An end before the last word is a break like any other, and so is silence.
                    Ok(Ok(None) | Err(_)) | Err(_) => self.break_off().await,
                },
            }
        }
    }

    /// Sends the request again, after a break.
    async fn send(&mut self) {
        match self.call.send().await {
            CallAnswer::Stream(answer) => {
                // Before its first event the client has nothing with which a new answer must agree.
                if self.progress == Progress::Begun {
                    self.resumption.restart();
                }
                // Half an event of the broken connection must not join the first one of the next.
                self.decoder = Decoder::new(EVENT_BYTES_MAX, EVENT_BYTES_MAX);
                self.answer = Some(answer);
            }
            CallAnswer::Whole(answer) => self.end_with(answer),
            // No gateway answers so to a request which it has begun to stream to.
            CallAnswer::Long(_, _) => self.break_for_good(),
        }
    }

    async fn break_off(&mut self) {
        self.answer = None;
        // The head of an answer had come, so the key may be bound: a refusal of the next request
        // must not end the slot.
        self.call.cut();
        if let Some(last) = self.call.wait(None).await {
            self.end_with(last);
        }
    }

    /// Reads the events that end in a piece; false if the rest has to be requested again.
    fn feed(&mut self, piece: &[u8]) -> bool {
        let mut datas = Vec::new();
        let mut events = self.decoder.feed(piece);
        let is_readable = loop {
            match events.next_event() {
                Ok(Some(event)) => datas.push(Bytes::copy_from_slice(event.data)),
                Ok(None) => break true,
                Err(_too_long) => break false,
            }
        };
        for data in datas {
            if self.progress == Progress::Over {
                return true;
            }
            match answer::event_meaning(&data) {
                None => self.event(&data),
                Some(Meaning::Retry(_)) => return false,
                Some(Meaning::PassOn(end)) => self.end(sse::event(&data), end),
                // Of no event.
                Some(Meaning::Success) => {}
            }
        }
        // After the events before the unreadable one: they are whole, and the client gets them.
        if !is_readable {
            self.break_for_good();
        }
        true
    }

    fn event(&mut self, data: &[u8]) {
        match self.resumption.filter(&sse::event(data)) {
            Ok(mut events) => {
                // With the last event alone the answer may be whole.
                let Some(last) = events.pop() else { return };
                self.ready.extend(events.into_iter().map(|event| StreamPart::Event(event, None)));
                let is_done = data == DONE;
                self.progress = if is_done { Progress::Over } else { Progress::Begun };
                let is_whole = is_done || self.resumption.finished() >= self.n_choices;
                let attendance = if is_whole { self.leave(CallEnd::Delivered) } else { None };
                self.call.retry_budget.begin_anew(Instant::now());
                self.ready.push_back(StreamPart::Event(last, attendance));
            }
            Err(error) => {
                tracing::error!(%error, "a stream cannot be continued");
                self.break_for_good();
            }
        }
    }

    /// The attendance, once, with the end that it has when its last bytes were taken.
    fn leave(&mut self, end: CallEnd) -> Option<Attendance> {
        let mut attendance = self.call.attendance.take()?;
        attendance.set_end(end);
        Some(attendance)
    }

    /// Ends with an answer that is no stream.
    fn end_with(&mut self, answer: WholeAnswer) {
        let attendance = self.leave(answer.end);
        self.progress = Progress::Over;
        self.ready.push_back(StreamPart::Whole(answer, attendance));
    }

    fn end(&mut self, event: Bytes, end: CallEnd) {
        let attendance = self.leave(end);
        self.progress = Progress::Over;
        self.ready.push_back(StreamPart::Broken(event, attendance));
    }

    /// End of a stream after which no bytes can be trusted.
    fn break_for_good(&mut self) {
        let error = ErrorBody {
            message: "The answer that came again is not the one that was begun. Send the same \
                      request again to read it from its beginning.",
            ..ErrorBody::new(Code::InternalError)
        };
        let error = ErrorBody { charged_micros: None, ..error };
        self.end(sse::event(&error.render()), CallEnd::Unsure);
    }
}

/// The event that a whole answer becomes in a stream that has begun.
pub(crate) fn as_event(answer: &WholeAnswer) -> Bytes {
    // A line break would end the data line of the event, and the error with it.
    let is_error = answer::event_meaning(&answer.body).is_some() && !answer.body.contains(&b'\n');
    if is_error {
        return sse::event(&answer.body);
    }
    sse::event(&ErrorBody::new(Code::GatewayUnreachable).render())
}
