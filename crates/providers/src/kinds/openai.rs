//! Any server with OpenAI's chat completions API: the adapter. The dialect is `holdfast_wire`'s, [`proof`] is
//! the table of proofs by its errors. No field is refused: every one has its place.

mod proof;

use std::borrow::Cow;

use holdfast_domain::ports::{Call, CallFailure, ResponseMode};
use holdfast_domain::usage::UsageReport;
use holdfast_wire::chat::upstream::{
    AnswerContext, BoundField, ChunkReader, Completion, FinishWords, UnreadableReason,
    read_completion_in, render_request,
};
use holdfast_wire::sse::Event;

use crate::adapter::{Adapter, CredentialHeader, ErrorResponse, EventOutcome, StreamParser};

/// OpenAI's chat completions, of any server with that API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenAi {
    /// Field in which the server reads the bound on output tokens.
    pub bound_field: BoundField,
    /// Words of the server for the end of an answer, besides those that are known.
    pub finish_words: FinishWords,
}

impl OpenAi {
    /// Server without words of its own.
    #[must_use]
    pub const fn new(bound_field: BoundField) -> Self {
        Self { bound_field, finish_words: FinishWords::NONE }
    }
}

impl Adapter for OpenAi {
    fn semantic_name(&self) -> &'static str {
        "openai"
    }

    fn credential(&self) -> CredentialHeader {
        CredentialHeader::Bearer
    }

    fn path(&self, _model: &str, _mode: ResponseMode) -> Cow<'static, str> {
        Cow::Borrowed("/chat/completions")
    }

    fn render(&self, call: &Call) -> Vec<u8> {
        let bound = call.max_output_tokens;
        render_request(&call.request, &call.model, bound, self.bound_field, call.response_mode)
    }

    fn read(&self, body: &[u8], call: &Call) -> Result<Completion, UnreadableReason> {
        let context = AnswerContext::new(&call.request, &self.finish_words);
        read_completion_in(body, &context, call.usage_ceiling())
    }

    fn follow(&self, call: &Call) -> Box<dyn StreamParser> {
        let context = AnswerContext::new(&call.request, &self.finish_words);
        Box::new(ChunkReader::in_context(context, call.usage_ceiling()))
    }

    fn judge(&self, rejected: &ErrorResponse) -> CallFailure {
        proof::of_status(rejected)
    }
}

impl StreamParser for ChunkReader {
    fn read(&mut self, event: Event<'_>) -> Result<EventOutcome, UnreadableReason> {
        if event.data.trim_ascii() == b"[DONE]" {
            return Ok(EventOutcome::Last);
        }
        let gained = Self::read(self, event.data)?;
        Ok(gained.map_or(EventOutcome::Nothing, EventOutcome::More))
    }

    fn is_whole(&self) -> bool {
        Self::is_complete(self)
    }

    fn end(&self) -> Result<Option<UsageReport>, UnreadableReason> {
        Self::end(self)
    }
}
