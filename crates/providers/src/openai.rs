//! Any server that speaks OpenAI's chat completions: the adapter. The dialect is `holdfast_wire`'s,
//! what proves what is [`proof`](crate::proof)'s. Nothing is refused: every field has its place.

use std::borrow::Cow;

use holdfast_domain::ports::{Call, CallFailure, ResponseMode};
use holdfast_domain::usage::Meters;
use holdfast_wire::chat::upstream::{
    BoundField, ChunkReader, Completion, UnreadableReason, read_completion, render_request,
};
use holdfast_wire::sse::Event;

use crate::adapter::{Adapter, CredentialHeader, ErrorResponse, EventOutcome, StreamParser};
use crate::proof;

/// OpenAI's chat completions, of whatever server speaks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenAi {
    /// Field in which the server reads the bound on output tokens.
    pub bound_field: BoundField,
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
        read_completion(body, call.request.n)
    }

    fn follow(&self, call: &Call) -> Box<dyn StreamParser> {
        Box::new(ChunkReader::new(call.request.n))
    }

    fn judge(&self, rejected: &ErrorResponse) -> CallFailure {
        proof::openai(rejected)
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

    fn end(&self) -> Result<Option<Meters>, UnreadableReason> {
        Self::end(self)
    }
}
