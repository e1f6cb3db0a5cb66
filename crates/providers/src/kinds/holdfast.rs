//! Another Holdfast: the adapter. Its dialect is OpenAI's; a request under a key and the asking
//! again are [`chain`](crate::chain)'s.
//!
//! No error is a proof here by itself: its meaning depends on the echo in its head, and on the requests before
//! it.

use std::borrow::Cow;

use holdfast_domain::Currency;
use holdfast_domain::ports::{Call, CallFailure, ResponseMode, UnknownReason};
use holdfast_wire::chat::upstream::{BoundField, Completion, UnreadableReason};
use http::HeaderName;

use crate::adapter::{Adapter, CredentialHeader, ErrorResponse, StreamParser};
use crate::kinds::openai::OpenAi;

/// Holdfast's own API, as another gateway serves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holdfast {
    /// Currency of the wallet that pays there.
    pub currency: Currency,
}

impl Holdfast {
    /// Dialect of its API.
    pub(crate) const DIALECT: OpenAi = OpenAi::new(BoundField::MaxCompletionTokens);
    /// Header of the key, in requests and as the echo in answers.
    pub(crate) const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
}

impl Adapter for Holdfast {
    fn semantic_name(&self) -> &'static str {
        "holdfast"
    }

    fn credential(&self) -> CredentialHeader {
        CredentialHeader::Bearer
    }

    fn key_header(&self) -> Option<HeaderName> {
        Some(Self::KEY_HEADER)
    }

    fn path(&self, model: &str, mode: ResponseMode) -> Cow<'static, str> {
        Self::DIALECT.path(model, mode)
    }

    fn render(&self, call: &Call) -> Vec<u8> {
        Self::DIALECT.render(call)
    }

    fn read(&self, body: &[u8], call: &Call) -> Result<Completion, UnreadableReason> {
        Self::DIALECT.read(body, call)
    }

    fn follow(&self, call: &Call) -> Box<dyn StreamParser> {
        Self::DIALECT.follow(call)
    }

    fn judge(&self, _rejected: &ErrorResponse) -> CallFailure {
        CallFailure::Unknown(UnknownReason::Status)
    }
}
