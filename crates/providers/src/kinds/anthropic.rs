//! Anthropic's Messages API: the adapter. [`request`] renders its requests, [`refusals`](crate::refusals) lists
//! unsupported fields, [`answer`] and [`stream`] read its answers, and [`proof`] classifies its errors.

mod answer;
mod proof;
mod request;
mod stream;
mod turns;
mod usage;

use std::borrow::Cow;

use holdfast_domain::ports::{Call, CallFailure, ResponseMode, UnsupportedParam};
use holdfast_domain::request::Request;
use holdfast_wire::chat::upstream::{Completion, UnreadableReason};
use http::{HeaderName, HeaderValue};

use crate::adapter::{Adapter, CredentialHeader, ErrorResponse, StreamParser};
use crate::late_system::LateSystem;
use crate::refusals::{Column, check};

/// Anthropic's Messages API, and the parameters that its models take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anthropic {
    /// Models that take `temperature` and `top_p`, as older ones do; for others a
    /// value that is not the default is refused.
    pub sampling: bool,
    /// Treatment of instructions after the first turn.
    pub late_system: LateSystem,
}

impl Anthropic {
    /// Start of the API unless the operator sets another.
    pub const BASE_URL: &str = "https://api.anthropic.com/v1";
}

impl Adapter for Anthropic {
    fn semantic_name(&self) -> &'static str {
        "anthropic"
    }

    fn credential(&self) -> CredentialHeader {
        CredentialHeader::In(HeaderName::from_static("x-api-key"))
    }

    /// Version of the API that is spoken here.
    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        let version = HeaderValue::from_static("2023-06-01");
        Some((HeaderName::from_static("anthropic-version"), version))
    }

    fn path(&self, _model: &str, _mode: ResponseMode) -> Cow<'static, str> {
        Cow::Borrowed("/messages")
    }

    fn state_shape(&self) -> Option<&'static str> {
        Some("anthropic 1")
    }

    fn check(&self, request: &Request) -> Result<(), UnsupportedParam> {
        let by = if self.sampling { Column::SamplingAnthropic } else { Column::Anthropic };
        check(request, by, self.late_system, &request::WRITTEN)
    }

    fn added_prompt_bytes(&self, request: &Request) -> u64 {
        self.late_system.added_bytes(request)
    }

    fn render(&self, call: &Call) -> Vec<u8> {
        request::render(call)
    }

    fn read(&self, body: &[u8], _call: &Call) -> Result<Completion, UnreadableReason> {
        answer::read(body)
    }

    fn follow(&self, call: &Call) -> Box<dyn StreamParser> {
        Box::new(stream::MessageStream::new(call.usage_ceiling()))
    }

    fn judge(&self, rejected: &ErrorResponse) -> CallFailure {
        proof::of_status(rejected)
    }
}
