//! Size of a request, as far as it bounds what the request can cost.

use super::canon::{CanonicalSink, CanonicalWriter, tag};
use super::{Item, Modalities, Request, Role};

/// Size of a request: all that its hold's bound needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CostFactors {
    /// UTF-8 bytes of every string and opaque value that may reach the prompt, pictures apart.
    pub prompt_bytes: u64,
    /// UTF-8 bytes of those that are text: without the documents and recordings that are sent along.
    pub text_bytes: u64,
    /// Number of messages.
    pub messages: u64,
    /// The request's own bound on output tokens of each choice.
    pub max_output_tokens: Option<u64>,
    /// Number of choices.
    pub n: u32,
    /// Tools and functions on offer.
    pub tools: u64,
    /// Pictures in the prompt.
    pub images: u64,
    /// Recordings in the prompt, sent along or kept by the provider.
    pub recordings: u64,
    /// Documents in the prompt, sent along or kept by the provider.
    pub files: u64,
    /// True if the model may read pages that it finds on the web.
    pub searches: bool,
    /// True if the model may answer in audio.
    pub audio_output: bool,
}

impl Request {
    /// The facts that bound what it can cost.
    #[must_use]
    pub fn cost_factors(&self) -> CostFactors {
        let mut feed = CanonicalWriter(PromptBytes(0));
        feed.request(self);
        let mut facts = CostFactors {
            prompt_bytes: feed.0.0,
            text_bytes: feed.0.0,
            messages: count(self.turns().count()),
            max_output_tokens: self.max_output_tokens,
            n: self.n,
            tools: count(self.tools.len()).saturating_add(count(self.functions.len())),
            images: 0,
            recordings: 0,
            files: 0,
            searches: self.web_search_options.is_some(),
            audio_output: self.modalities != Modalities::Text || self.audio.is_some(),
        };
        for message in &self.messages {
            if let Role::Assistant(reply) = &message.role
                && let Some(kept) = &reply.audio_id
            {
                // Its length is the provider's to know: a recording without a cap.
                facts.recordings = facts.recordings.saturating_add(1);
                facts.text_bytes = facts.text_bytes.saturating_sub(count(kept.len()));
            }
            for part in message.parts() {
                let (number, encoded) = match &part.item {
                    // By their bytes, which the feed has counted.
                    Item::Text(_) | Item::Refusal(_) => continue,
                    // The feed has left out its address.
                    Item::Image { .. } => (&mut facts.images, 0),
                    Item::Audio { data, .. } => (&mut facts.recordings, data.len()),
                    // Its name may be read by the model: text.
                    Item::File { id, name: _, data } => {
                        let lengths = [id, data].map(|it| it.as_ref().map_or(0, String::len));
                        (&mut facts.files, lengths.into_iter().fold(0, usize::saturating_add))
                    }
                };
                *number = number.saturating_add(1);
                // Base64 is counted in the bound, which must not be too low, and is never text.
                facts.text_bytes = facts.text_bytes.saturating_sub(count(encoded));
            }
        }
        facts
    }
}

fn count(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Sum of the strings of the canonical feed: what is hashed is what is counted. The model's id does
/// not reach the prompt, and a picture's URL is not what it costs.
struct PromptBytes(u64);

impl CanonicalSink for PromptBytes {
    fn bytes(&mut self, _structure: &[u8]) {}

    fn string(&mut self, tag: u8, text: &str) {
        if !matches!(tag, tag::MODEL | tag::IMAGE) {
            self.0 = self.0.saturating_add(count(text.len()));
        }
    }
}
