//! A provider's moderation of prompt and answer, as callers get it. The judgements are passed on. The text of
//! its errors and the name of its model are not: they would reveal the provider.

use holdfast_domain::request::Opaque;

use super::passthrough::{MODERATION_MODEL, judgements, object, word};
use crate::json::Node;

/// Reads both sides as `{"input": …, "output": …}`; `None` if one is missing.
pub(super) fn read(moderation: &Node<'_>) -> Option<Opaque> {
    let input = side(moderation.get("input")?);
    let output = side(moderation.get("output")?);
    Some(object([("input", input), ("output", output)]).to_opaque())
}

fn side<'a>(side: &Node<'a>) -> Node<'a> {
    const JUDGED: &str = "moderation_results";
    // Whatever is no judgement becomes the same error: its own words are the provider's.
    if side.get("type").and_then(Node::as_str) != Some(JUDGED) {
        return failed();
    }
    object([
        ("type", word(JUDGED)),
        ("model", word(MODERATION_MODEL)),
        ("results", judgements(side.get("results"))),
    ])
}

fn failed() -> Node<'static> {
    object([
        ("type", word("error")),
        ("code", word("moderation_failed")),
        ("message", word("The moderation did not judge this.")),
    ])
}
