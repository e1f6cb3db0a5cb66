//! What a provider's moderation said of prompt and answer. Its judgements are passed on, its errors and
//! its model are not: they are the provider's own.

use holdfast_domain::request::Opaque;

use super::passthrough::{MODERATION_MODEL, judgements, object, word};
use crate::json::Node;

/// Reads both sides; `None` where one is missing, for then it is no moderation.
pub(super) fn read(moderation: &Node<'_>) -> Option<Opaque> {
    let input = side(moderation.get("input")?);
    let output = side(moderation.get("output")?);
    Some(object([("input", input), ("output", output)]).to_opaque())
}

fn side<'a>(side: &Node<'a>) -> Node<'a> {
    const JUDGED: &str = "moderation_results";
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
