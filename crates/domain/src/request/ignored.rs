//! Members that a model may be sent without, by the operator's `ignores`.
//!
//! ```text
//! request ─▶ fingerprint, digest
//!    └─▶ without_ignored ─▶ contract, support, hold ─▶ provider
//! ```
//!
//! The fingerprint covers the request as the caller wrote it, so that a retry is compared with the same bytes
//! even if the operator's list has changed by then. Everything after it works on the request without the
//! ignored members: a member that is not sent is not refused, not held for and not paid.
//!
//! A closed list. Not on it, because a caller could then get or pay for other than what was agreed:
//!
//! - the question: `model`, `messages`, `tools`, `tool_choice`, `functions`, `function_call`;
//! - bounds of the answer: `n`, `max_tokens`, `max_completion_tokens`, `stop`;
//! - choices between prices: `service_tier`, `modalities`, `audio`, `web_search_options`;
//! - the form of the answer: `stream`, `stream_options`;
//! - members that OpenAI's schema does not have: they are refused unless `accepts` names them.

use std::sync::Arc;

use super::Request;
use crate::model::IgnoredField;

impl Request {
    /// The request without these members; `None`, without a copy, if it has none of them.
    #[must_use]
    pub fn without_ignored(&self, ignores: &[IgnoredField]) -> Option<Arc<Self>> {
        if !ignores.iter().any(|field| self.has(*field)) {
            return None;
        }
        let mut request = self.clone();
        ignores.iter().for_each(|field| request.leave_out(*field));
        Some(Arc::new(request))
    }

    fn has(&self, field: IgnoredField) -> bool {
        // A word that `accepts` opens is kept under its member's name.
        self.extras.contains_key(field.label()) || self.has_typed(field)
    }

    fn has_typed(&self, field: IgnoredField) -> bool {
        match field {
            IgnoredField::FrequencyPenalty => self.frequency_penalty.is_some(),
            IgnoredField::LogitBias => !self.logit_bias.is_empty(),
            IgnoredField::Logprobs => self.logprobs || self.top_logprobs.is_some(),
            IgnoredField::Metadata => !self.metadata.is_empty(),
            IgnoredField::Moderation => self.moderation.is_some(),
            IgnoredField::ParallelToolCalls => self.parallel_tool_calls.is_some(),
            IgnoredField::Prediction => self.prediction.is_some(),
            IgnoredField::PresencePenalty => self.presence_penalty.is_some(),
            IgnoredField::PromptCacheKey => self.prompt_cache_key.is_some(),
            IgnoredField::PromptCacheOptions => self.prompt_cache_options.is_some(),
            IgnoredField::PromptCacheRetention => self.prompt_cache_retention.is_some(),
            IgnoredField::ReasoningEffort => self.reasoning_effort.is_some(),
            IgnoredField::ResponseFormat => self.response_format.is_some(),
            IgnoredField::SafetyIdentifier => self.safety_identifier.is_some(),
            IgnoredField::Seed => self.seed.is_some(),
            IgnoredField::Store => self.store.is_some(),
            IgnoredField::Temperature => self.temperature.is_some(),
            IgnoredField::TopLogprobs => self.top_logprobs.is_some(),
            IgnoredField::TopP => self.top_p.is_some(),
            IgnoredField::User => self.user.is_some(),
            IgnoredField::Verbosity => self.verbosity.is_some(),
        }
    }

    fn leave_out(&mut self, field: IgnoredField) {
        self.extras.remove(field.label());
        match field {
            IgnoredField::FrequencyPenalty => self.frequency_penalty = None,
            IgnoredField::LogitBias => self.logit_bias.clear(),
            IgnoredField::Logprobs => {
                self.logprobs = false;
                // By itself it is an error at a provider.
                self.top_logprobs = None;
            }
            IgnoredField::Metadata => self.metadata.clear(),
            IgnoredField::Moderation => self.moderation = None,
            IgnoredField::ParallelToolCalls => self.parallel_tool_calls = None,
            IgnoredField::Prediction => self.prediction = None,
            IgnoredField::PresencePenalty => self.presence_penalty = None,
            IgnoredField::PromptCacheKey => self.prompt_cache_key = None,
            IgnoredField::PromptCacheOptions => self.prompt_cache_options = None,
            IgnoredField::PromptCacheRetention => self.prompt_cache_retention = None,
            IgnoredField::ReasoningEffort => self.reasoning_effort = None,
            IgnoredField::ResponseFormat => self.response_format = None,
            IgnoredField::SafetyIdentifier => self.safety_identifier = None,
            IgnoredField::Seed => self.seed = None,
            IgnoredField::Store => self.store = None,
            IgnoredField::Temperature => self.temperature = None,
            IgnoredField::TopLogprobs => self.top_logprobs = None,
            IgnoredField::TopP => self.top_p = None,
            IgnoredField::User => self.user = None,
            IgnoredField::Verbosity => self.verbosity = None,
        }
    }
}
