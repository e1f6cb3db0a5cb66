//! A provider's usage block, reduced to disjoint meters or not believed at all. Its counts contain one
//! another: cached and written tokens are prompt tokens, reasoning is completion.

use holdfast_domain::usage::{Kind, Meters};
use serde_json::Value;

/// Reads a usage block; `None` when a count is missing, negative, fractional or absurd, or a part is
/// larger than its whole.
pub(super) fn read(usage: &Value) -> Option<Meters> {
    let prompt = usage.get("prompt_tokens")?.as_u64()?;
    let completion = usage.get("completion_tokens")?.as_u64()?;
    // Absurd wholes first: their disjoint parts might each still look sane.
    if prompt.max(completion) > Meters::COUNT_MAX {
        return None;
    }
    let cached = match part(usage, "prompt_tokens_details", "cached_tokens")? {
        Some(cached) => cached,
        None => count(usage.get("prompt_cache_hit_tokens"))?.unwrap_or(0),
    };
    let written = part(usage, "prompt_tokens_details", "cache_write_tokens")?.unwrap_or(0);
    let reasoning = part(usage, "completion_tokens_details", "reasoning_tokens")?.unwrap_or(0);
    let input = prompt.checked_sub(cached)?.checked_sub(written)?;
    let output = completion.checked_sub(reasoning)?;
    Meters::by(|kind| match kind {
        Kind::Input => input,
        Kind::CachedInput => cached,
        Kind::CacheWrite => written,
        Kind::Output => output,
        Kind::Reasoning => reasoning,
        Kind::Request => 1,
        Kind::AudioInput | Kind::AudioOutput | Kind::Image => 0,
    })
}

/// A count in a block of details: `Some(None)` where there is none, `None` where it is not a count.
fn part(usage: &Value, details: &str, name: &str) -> Option<Option<u64>> {
    match usage.get(details) {
        None | Some(Value::Null) => Some(None),
        Some(Value::Object(details)) => count(details.get(name)),
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => None,
    }
}

fn count(value: Option<&Value>) -> Option<Option<u64>> {
    match value {
        None | Some(Value::Null) => Some(None),
        Some(value) => value.as_u64().map(Some),
    }
}
