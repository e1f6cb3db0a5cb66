//! What a provider is asked to run, and what it says of a request that it cannot.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::request::Request;
use crate::state::ProviderStates;

/// One call to a provider.
#[derive(Debug, Clone)]
pub struct Call {
    /// What is asked for.
    pub request: Arc<Request>,
    /// What the provider calls the model.
    pub model: Arc<str>,
    /// The bound on output tokens that the hold was computed with: it must reach the provider.
    pub max_output_tokens: u64,
    /// Tokens of a prompt and its answer together that the model is said to take.
    pub context_tokens: u64,
    /// How long connecting may take. The whole call is bounded by whoever drops it.
    pub connect: Duration,
    /// How the answer is wanted.
    pub response_mode: ResponseMode,
    /// What came with calls of the request's earlier turns that the same route answered, as far as it is
    /// still kept. There may be less than was said: whoever wants it must do without.
    pub states: ProviderStates,
}

/// How an answer is wanted from a provider, not how its caller gets it. Pieces may come as one whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseMode {
    /// At its end.
    Whole,
    /// In pieces, as the model says them.
    Streamed,
}

/// What a request asks for and a provider cannot do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{param}` must be {rule}")]
pub struct UnsupportedParam {
    /// The field, as its path is spelled on the wire: `messages[0].content[1].type`.
    pub param: String,
    /// What it must be instead.
    pub rule: Cow<'static, str>,
}
