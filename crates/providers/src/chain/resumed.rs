//! Reading of one answer over all attempts at it: the adapter of one call.
//!
//! ```text
//! event ─▶ Resumption::filter ─▶ content not sent on yet ─▶ ChunkReader ─▶ delta
//! ```
//!
//! The reader stays the same from attempt to attempt and so sees one stream without a break. Content that comes
//! again is dropped, and compared as it is dropped (`holdfast_wire::chat::resume`); an answer that differs is
//! no answer, for good.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_domain::Micros;
use holdfast_domain::answer::Delta;
use holdfast_domain::ports::{Call, CallFailure, ResponseMode, UnknownReason};
use holdfast_domain::usage::UsageReport;
use holdfast_wire::chat::resume::Resumption;
use holdfast_wire::chat::upstream::{
    AnswerContext, ChunkReader, Completion, UnreadableReason, read_charge,
};
use holdfast_wire::sse::{self, Event};

use crate::adapter::{Adapter, CredentialHeader, ErrorResponse, EventOutcome, StreamParser};
use crate::kinds::holdfast::Holdfast;

/// Adapter of one call, for all of its attempts.
#[derive(Debug)]
pub(super) struct ResumedAdapter(Arc<Mutex<ResumeProgress>>);

/// State of the answer.
#[derive(Debug)]
struct ResumeProgress {
    reader: ChunkReader,
    resumption: Resumption,
    /// Some of a stream was sent on.
    is_begun: bool,
    is_contradicted: bool,
    charge: Option<Micros>,
}

/// Follower of one attempt's stream.
struct ResumedParser(Arc<Mutex<ResumeProgress>>);

fn lock(progress: &Mutex<ResumeProgress>) -> MutexGuard<'_, ResumeProgress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Gains of two events, in their order.
fn join(mut delta: Delta, more: Delta) -> Delta {
    delta.choices.extend(more.choices);
    Delta {
        choices: delta.choices,
        service_tier: more.service_tier.or(delta.service_tier),
        predicted: more.predicted.or(delta.predicted),
        moderation: more.moderation.or(delta.moderation),
    }
}

impl ResumedAdapter {
    pub(super) fn new(call: &Call) -> Self {
        Self(Arc::new(Mutex::new(ResumeProgress {
            reader: ChunkReader::in_context(
                AnswerContext::of_choices(call.request.n),
                call.usage_ceiling(),
            ),
            resumption: Resumption::new(),
            is_begun: false,
            is_contradicted: false,
            charge: None,
        })))
    }

    /// The next event is the first of the answer again.
    pub(super) fn restart(&self) {
        let mut progress = lock(&self.0);
        if progress.is_begun {
            progress.resumption.restart();
        }
    }

    /// True once an answer has contradicted its own earlier part.
    pub(super) fn is_contradicted(&self) -> bool {
        lock(&self.0).is_contradicted
    }

    /// Usage of a stream whose choices have all ended, even if its end is missing; `None` for any other.
    pub(super) fn end(&self) -> Option<Option<UsageReport>> {
        lock(&self.0).reader.end().ok()
    }

    /// Charge of the gateway behind, if the answer has it.
    pub(super) fn charge(&self) -> Option<Micros> {
        lock(&self.0).charge
    }
}

impl Adapter for ResumedAdapter {
    fn semantic_name(&self) -> &'static str {
        Holdfast::DIALECT.semantic_name()
    }

    fn credential(&self) -> CredentialHeader {
        Holdfast::DIALECT.credential()
    }

    fn path(&self, model: &str, mode: ResponseMode) -> Cow<'static, str> {
        Holdfast::DIALECT.path(model, mode)
    }

    fn render(&self, call: &Call) -> Vec<u8> {
        Holdfast::DIALECT.render(call)
    }

    fn read(&self, body: &[u8], call: &Call) -> Result<Completion, UnreadableReason> {
        let completion = Holdfast::DIALECT.read(body, call)?;
        let mut progress = lock(&self.0);
        if progress.is_begun {
            // The beginning of a stream and a whole answer are two.
            progress.is_contradicted = true;
            return Err(UnreadableReason::Choices("choices"));
        }
        progress.charge = read_charge(body);
        Ok(completion)
    }

    fn follow(&self, _call: &Call) -> Box<dyn StreamParser> {
        Box::new(ResumedParser(Arc::clone(&self.0)))
    }

    fn judge(&self, _rejected: &ErrorResponse) -> CallFailure {
        CallFailure::Unknown(UnknownReason::Status)
    }
}

impl StreamParser for ResumedParser {
    fn read(&mut self, event: Event<'_>) -> Result<EventOutcome, UnreadableReason> {
        let mut progress = lock(&self.0);
        let ResumeProgress { reader, resumption, is_begun, is_contradicted, charge } =
            &mut *progress;
        let whole = sse::event(event.data);
        let filtered = resumption.filter(&whole).map_err(|_other| {
            *is_contradicted = *is_begun;
            UnreadableReason::Choices("choices")
        })?;
        // After the filter: a charge is of the answer that goes on.
        *charge = charge.or_else(|| read_charge(event.data));
        *is_begun |= !filtered.is_empty();
        let mut gained = EventOutcome::Nothing;
        // More than one where a replay has held news back; the last word is alone.
        for news in filtered {
            let data = news.strip_prefix(b"data: ").and_then(|rest| rest.strip_suffix(b"\n\n"));
            let one = Event { data: data.unwrap_or(event.data), ..event };
            gained = match (gained, StreamParser::read(reader, one)?) {
                (EventOutcome::More(delta), EventOutcome::More(more)) => {
                    EventOutcome::More(join(delta, more))
                }
                (gained, EventOutcome::Nothing) => gained,
                (_, outcome) => outcome,
            };
        }
        Ok(gained)
    }

    // Not before the charge has come: what breaks off between the last word and the bill is asked for again.
    fn is_whole(&self) -> bool {
        let progress = lock(&self.0);
        progress.reader.is_complete() && progress.charge.is_some()
    }

    fn end(&self) -> Result<Option<UsageReport>, UnreadableReason> {
        lock(&self.0).reader.end()
    }
}
