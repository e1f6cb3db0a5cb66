//! Google's Gemini API: the adapter. [`request`] renders its requests, [`refusals`](crate::refusals) lists
//! unsupported fields, [`answer`] reads its answers, and [`proof`] classifies its errors.

mod answer;
mod proof;
mod request;
mod turns;

use std::borrow::Cow;

use holdfast_domain::ports::{Call, CallFailure, ResponseMode, UnsupportedParam};
use holdfast_domain::request::Request;
use holdfast_wire::chat::upstream::{Completion, UnreadableReason};
use http::HeaderName;

use crate::adapter::{Adapter, CredentialHeader, ErrorResponse, StreamParser, segment};
use crate::late_system::LateSystem;
use crate::refusals::{Column, check};

/// Google's Gemini API, and the habits of its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gemini {
    /// Earlier calls without a kept signature are sent as calls of another model, so that no signature is
    /// required: models from Gemini 3 on refuse them otherwise.
    pub skip_signatures: bool,
    /// Treatment of instructions after the first turn.
    pub late_system: LateSystem,
}

impl Gemini {
    /// Start of the API unless the operator sets another.
    pub const BASE_URL: &str = "https://generativelanguage.googleapis.com/v1beta";
}

impl Adapter for Gemini {
    fn semantic_name(&self) -> &'static str {
        "gcp.gemini"
    }

    fn credential(&self) -> CredentialHeader {
        CredentialHeader::In(HeaderName::from_static("x-goog-api-key"))
    }

    fn path(&self, model: &str, mode: ResponseMode) -> Cow<'static, str> {
        let method = match mode {
            ResponseMode::Whole => "generateContent",
            ResponseMode::Streamed => "streamGenerateContent?alt=sse",
        };
        format!("/models/{}:{method}", segment(model)).into()
    }

    fn state_shape(&self) -> Option<&'static str> {
        Some("gemini 1")
    }

    fn check(&self, request: &Request) -> Result<(), UnsupportedParam> {
        check(request, Column::Gemini, self.late_system, &request::WRITTEN)
    }

    fn added_prompt_bytes(&self, request: &Request) -> u64 {
        self.late_system.added_bytes(request)
    }

    fn render(&self, call: &Call) -> Vec<u8> {
        request::render(call, self.skip_signatures)
    }

    fn read(&self, body: &[u8], call: &Call) -> Result<Completion, UnreadableReason> {
        answer::read(body, call.request.n, call.usage_ceiling())
    }

    fn follow(&self, call: &Call) -> Box<dyn StreamParser> {
        Box::new(answer::GenerateStream::new(call.request.n, call.usage_ceiling()))
    }

    fn judge(&self, rejected: &ErrorResponse) -> CallFailure {
        proof::of_status(rejected)
    }
}
