//! Call of a provider: the request with its route's bounds, and the refusal of what it cannot do.
//! Not how it is spelled on the wire, which is the adapter's.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::RequestKey;
use crate::request::Request;
use crate::state::ProviderStates;
use crate::usage::UsageCeiling;

/// Call of a provider, sent once at most; more often only under a key that its provider keeps.
#[derive(Debug, Clone)]
pub struct Call {
    /// Request, as a provider may be sent it.
    pub request: Arc<Request>,
    /// Model by the provider's own name.
    pub model: Arc<str>,
    /// The bound on output tokens that the hold was computed with: it must reach the provider.
    pub max_output_tokens: u64,
    /// Documented limit of the model on the tokens of a prompt and its answer together.
    pub context_tokens: u64,
    /// Key of this call alone, for a provider that takes one
    /// ([`takes_key`](super::Provider::takes_key)); `None` for any other.
    pub key: Option<RequestKey>,
    /// Time that connecting may take. The whole call is bounded by its caller, who drops it.
    pub connect: Duration,
    /// Form of the answer.
    pub response_mode: ResponseMode,
    /// States that came with calls of the request's earlier turns, from the same route, as far as they are
    /// still kept. There may be fewer than there were: a provider that requires them must do without.
    pub states: ProviderStates,
}

impl Call {
    /// Most that its run can use up.
    #[must_use]
    pub fn usage_ceiling(&self) -> UsageCeiling {
        UsageCeiling {
            context_tokens: self.context_tokens,
            output_tokens: self.max_output_tokens.saturating_mul(u64::from(self.request.n)),
        }
    }
}

/// Form in which an answer is requested from a provider, not the one in which its caller gets it. Pieces may
/// come as one whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseMode {
    /// At its end.
    Whole,
    /// In pieces, as the model streams them.
    Streamed,
}

/// Field of a request that a provider cannot do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{param}` must be {rule}")]
pub struct UnsupportedParam {
    /// The field, as its path is spelled on the wire: `messages[0].content[1].type`.
    pub param: String,
    /// Rule that it must keep instead, after "must be".
    pub rule: Cow<'static, str>,
}
