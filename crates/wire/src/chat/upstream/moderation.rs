//! What a provider's moderation said of prompt and answer. Its judgements are passed on, its errors are
//! not: their words are the provider's own.

use std::borrow::Cow;

use holdfast_domain::request::Opaque;

use crate::json::Node;

const KEPT: [&str; 3] = ["type", "model", "results"];

/// Reads both sides; `None` where one is missing, for then it is no moderation.
pub(super) fn read(moderation: &Node<'_>) -> Option<Opaque> {
    let side = |name: &'static str| Some((Cow::Borrowed(name), side(moderation.get(name)?)));
    Some(Node::Object(vec![side("input")?, side("output")?]).to_opaque())
}

fn side<'a>(side: &Node<'a>) -> Node<'a> {
    let is_judged = side.get("type").and_then(Node::as_str) == Some("moderation_results");
    match side {
        Node::Object(members) if is_judged => {
            let kept = members.iter().filter(|(name, _)| KEPT.contains(&&**name));
            Node::Object(kept.cloned().collect())
        }
        Node::Object(_)
        | Node::Null
        | Node::Bool(_)
        | Node::Number(_)
        | Node::String(_)
        | Node::Array(_) => failed(),
    }
}

fn failed() -> Node<'static> {
    let members = [
        ("type", "error"),
        ("code", "moderation_failed"),
        ("message", "The moderation did not judge this."),
    ];
    let member = |(name, text)| (Cow::Borrowed(name), Node::String(Cow::Borrowed(text)));
    Node::Object(members.map(member).to_vec())
}
