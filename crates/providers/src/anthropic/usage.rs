//! Anthropic's report of usage, into meters.
//!
//! Its input tokens leave out those that were written to the cache and read from it; its output
//! tokens include those of thoughts. Meters are disjoint, so thoughts are subtracted.

use holdfast_domain::request::ServiceTier;
use holdfast_domain::usage::{MeterKind, Meters};
use holdfast_wire::json::Node;

use crate::reading::{count, text};

/// The newest of each count: within a stream each is told in full, and not every time.
#[derive(Default)]
pub(super) struct TokenUsage {
    input: Option<u64>,
    output: Option<u64>,
    cached: Option<u64>,
    written: Option<u64>,
    thought: Option<u64>,
    /// Something was told that is no count.
    is_wrong: bool,
    pub(super) tier: Option<ServiceTier>,
}

impl TokenUsage {
    /// Takes note of a report.
    pub(super) fn take(&mut self, usage: &Node<'_>) {
        let details = usage.get("output_tokens_details");
        let known = [
            (&mut self.input, Some(usage), "input_tokens"),
            (&mut self.output, Some(usage), "output_tokens"),
            (&mut self.cached, Some(usage), "cache_read_input_tokens"),
            (&mut self.written, Some(usage), "cache_creation_input_tokens"),
            (&mut self.thought, details, "thinking_tokens"),
        ];
        for (known, place, name) in known {
            match place.map(|place| count(place, name)) {
                Some(Some(Some(told))) => *known = Some(told),
                Some(Some(None)) | None => {}
                Some(None) => self.is_wrong = true,
            }
        }
        self.tier = text(usage, "service_tier").and_then(tier).or(self.tier);
    }

    /// Disjoint; `None` where it cannot be believed.
    pub(super) fn meters(&self) -> Option<Meters> {
        let (input, output) = (self.input?, self.output?);
        let thought = self.thought.unwrap_or(0);
        // More thoughts than output, or a count that is none: the whole report is not believed.
        let said = output.checked_sub(thought).filter(|_said| !self.is_wrong)?;
        Meters::from_fn(|kind| match kind {
            MeterKind::Input => input,
            MeterKind::CachedInput => self.cached.unwrap_or(0),
            MeterKind::CacheWrite => self.written.unwrap_or(0),
            MeterKind::Output => said,
            MeterKind::Reasoning => thought,
            MeterKind::Request => 1,
            MeterKind::AudioInput | MeterKind::AudioOutput | MeterKind::Image => 0,
        })
    }
}

fn tier(name: &str) -> Option<ServiceTier> {
    match name {
        "standard" => Some(ServiceTier::Default),
        "priority" => Some(ServiceTier::Priority),
        _ => None,
    }
}
