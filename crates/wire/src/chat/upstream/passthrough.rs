//! Filter of the parts of an answer that are neither text nor calls: sources, log-probabilities, judgements of
//! a moderation. The members of OpenAI's schema pass and no others: a provider's additions would reveal it to
//! callers.

use std::borrow::Cow;

use holdfast_domain::answer::Logprobs;
use holdfast_domain::request::Opaque;

use crate::json::{Node, is_non_finite};

/// Sources of one choice that are passed on of one delta.
pub(super) const ANNOTATIONS_MAX: usize = 1_024;
/// The parameter that OpenAI appends to the addresses it cites: its value names the provider.
const TRACKER: &str = "utm_source";

/// A member by its name, and what is passed on of its value.
type MemberReader = (&'static str, for<'a> fn(&Node<'a>) -> Option<Node<'a>>);

const CITATION: &[MemberReader] =
    &[("start_index", number), ("end_index", number), ("title", text), ("url", address)];
const ALTERNATIVE: &[MemberReader] = &[("token", text), ("logprob", likelihood)];
const JUDGEMENT: &[MemberReader] = &[
    ("flagged", flag),
    ("categories", |node| map(node, flag)),
    ("category_scores", |node| map(node, number)),
    ("category_applied_input_types", |node| map(node, |kinds| list(kinds, text))),
];

/// The sources of a message that are addresses: others are files in the provider's account.
pub(super) fn annotations(nodes: Option<&Node<'_>>) -> Vec<Opaque> {
    let Some(nodes) = nodes.and_then(Node::as_array) else { return Vec::new() };
    nodes.iter().filter_map(annotation).take(ANNOTATIONS_MAX).collect()
}

fn annotation(node: &Node<'_>) -> Option<Opaque> {
    const KIND: &str = "url_citation";
    if node.get("type")?.as_str()? != KIND {
        return None;
    }
    let citation = members(node.get(KIND)?, CITATION)?;
    // `members` drops an address that is no text, and a source without one leads nowhere.
    citation.get("url")?;
    Some(object([("type", word(KIND)), (KIND, citation)]).to_opaque())
}

pub(in crate::chat) fn logprobs(logprobs: &Node<'_>) -> Logprobs {
    let side = |name| {
        let tokens = logprobs.get(name)?.as_array()?;
        Some(tokens.iter().filter_map(|token| Some(token_of(token)?.to_opaque())).collect())
    };
    Logprobs { content: side("content"), refusal: side("refusal") }
}

fn token_of<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    let mut token = alternative(node)?;
    let others = node.get("top_logprobs").and_then(|others| list(others, alternative));
    if let (Node::Object(members), Some(others)) = (&mut token, others) {
        members.push((Cow::Borrowed("top_logprobs"), others));
    }
    Some(token)
}

/// A token and how likely it was.
fn alternative<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    let mut token = members(node, ALTERNATIVE)?;
    // OpenAI's schema requires it, and readers match it with the text.
    token.get("token")?;
    // No bytes are said as null.
    let bytes = node.get("bytes").and_then(|bytes| list(bytes, number)).unwrap_or(Node::Null);
    if let Node::Object(members) = &mut token {
        members.push((Cow::Borrowed("bytes"), bytes));
    }
    Some(token)
}

/// The results of a moderation. The judging model is the operator's affair, and the schema requires one.
pub(super) fn judgements<'a>(results: Option<&Node<'a>>) -> Node<'a> {
    let judged = |node: &Node<'a>| {
        let Node::Object(kept) = members(node, JUDGEMENT)? else { return None };
        let named = [("type", word("moderation_result")), ("model", word(MODERATION_MODEL))];
        let named = named.into_iter().map(|(name, node)| (Cow::Borrowed(name), node));
        Some(Node::Object(named.chain(kept).collect()))
    };
    let results = results.and_then(Node::as_array).unwrap_or_default();
    Node::Array(results.iter().filter_map(judged).collect())
}

/// Model of a moderation for callers: the provider's own name would reveal it.
pub(super) const MODERATION_MODEL: &str = "moderation";

/// The known members of an object; `None` for a value that is no object.
fn members<'a>(node: &Node<'a>, known: &[MemberReader]) -> Option<Node<'a>> {
    let Node::Object(_) = node else { return None };
    let member =
        |(name, value): &MemberReader| Some((Cow::Borrowed(*name), value(node.get(name)?)?));
    Some(Node::Object(known.iter().filter_map(member).collect()))
}

fn list<'a>(node: &Node<'a>, one: impl Fn(&Node<'a>) -> Option<Node<'a>>) -> Option<Node<'a>> {
    Some(Node::Array(node.as_array()?.iter().filter_map(one).collect()))
}

/// An object whose names are data.
fn map<'a>(node: &Node<'a>, one: impl Fn(&Node<'a>) -> Option<Node<'a>>) -> Option<Node<'a>> {
    let Node::Object(all) = node else { return None };
    Some(Node::Object(
        all.iter().filter_map(|(name, node)| Some((name.clone(), one(node)?))).collect(),
    ))
}

fn number<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    node.as_number().filter(|number| !is_non_finite(number)).map(Node::Number)
}

/// A logarithm of a likelihood. One that is not finite is OpenAI's number for a token that is not
/// likely at all.
fn likelihood<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    let number = node.as_number()?;
    Some(Node::Number(if is_non_finite(number) { "-9999.0" } else { number }))
}

fn text<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    node.as_str().map(|_text| node.clone())
}

fn flag<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    matches!(node, Node::Bool(_)).then(|| node.clone())
}

/// An address without what names who found it.
fn address<'a>(node: &Node<'a>) -> Option<Node<'a>> {
    let url = node.as_str()?;
    Some(match untracked(url) {
        Cow::Borrowed(_) => node.clone(),
        Cow::Owned(url) => Node::String(Cow::Owned(url)),
    })
}

fn untracked(url: &str) -> Cow<'_, str> {
    let (before, fragment) = url.find('#').map_or((url, ""), |at| url.split_at(at));
    let Some((place, query)) = before.split_once('?') else { return Cow::Borrowed(url) };
    let is_tracker = |pair: &&str| pair.split('=').next() == Some(TRACKER);
    if !query.split('&').any(|pair| is_tracker(&pair)) {
        return Cow::Borrowed(url);
    }
    let kept: Vec<_> = query.split('&').filter(|pair| !is_tracker(pair)).collect();
    let mark = if kept.is_empty() { "" } else { "?" };
    Cow::Owned([place, mark, &kept.join("&"), fragment].concat())
}

pub(super) fn word(word: &'static str) -> Node<'static> {
    Node::String(Cow::Borrowed(word))
}

pub(super) fn object<'a, const N: usize>(members: [(&'static str, Node<'a>); N]) -> Node<'a> {
    Node::Object(members.map(|(name, node)| (Cow::Borrowed(name), node)).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_loses_its_tracker_and_nothing_else() {
        for (url, kept) in [
            ("https://a.test/x", "https://a.test/x"),
            ("https://a.test/x?utm_source=openai", "https://a.test/x"),
            ("https://a.test/x?utm_source", "https://a.test/x"),
            (
                "https://a.test/x?a=1&utm_source=openai&b=%3F#utm_source=f",
                "https://a.test/x?a=1&b=%3F#utm_source=f",
            ),
            ("https://a.test/?utm_source=a&utm_source=b#f", "https://a.test/#f"),
            ("https://a.test/?my_utm_source=a", "https://a.test/?my_utm_source=a"),
            ("https://a.test/#?utm_source=a", "https://a.test/#?utm_source=a"),
            ("utm_source=openai", "utm_source=openai"),
        ] {
            assert_eq!(untracked(url), kept);
        }
    }
}
