//! Members of a provider's answer, by the rule for labels that are odd: an empty list, an empty object,
//! an empty text or a null in the place of a member stands for its absence.

use std::slice;

use crate::json::Node;

/// A member that is an object: `Some(None)` if it is absent, `None` if it is not one.
pub(super) fn object<'n, 'a>(member: Option<&'n Node<'a>>) -> Option<Option<&'n Node<'a>>> {
    match member {
        None | Some(Node::Null) => Some(None),
        Some(Node::Object(members)) => Some(member.filter(|_| !members.is_empty())),
        // Servers in PHP write an object without members as a list.
        Some(Node::Array(all)) => all.is_empty().then_some(None),
        Some(Node::String(text)) => text.is_empty().then_some(None),
        Some(Node::Bool(_) | Node::Number(_)) => None,
    }
}

/// The elements of a member that is a list, or the only element in its place; `None` for any other.
pub(super) fn list<'n, 'a>(member: Option<&'n Node<'a>>) -> Option<&'n [Node<'a>]> {
    if let Some(Node::Array(all)) = member {
        return Some(all);
    }
    Some(object(member)?.map(slice::from_ref).unwrap_or_default())
}

/// A number from zero: `Some(None)` if there is none, `None` if it is not one.
pub(super) fn index(node: Option<&Node<'_>>) -> Option<Option<u32>> {
    if let Some(Node::Number(number)) = node {
        return number.parse().ok().map(Some);
    }
    match node.and_then(Node::as_str).map(str::trim_ascii) {
        None => object(node)?.is_none().then_some(None),
        Some("") => Some(None),
        Some(number) => number.parse().ok().map(Some),
    }
}

/// True for a report of an error. Empty lists and texts in its place report none.
pub(super) fn has_error(answer: &Node<'_>) -> bool {
    match answer.get("error") {
        None | Some(Node::Null | Node::Bool(false)) => false,
        Some(Node::Array(all)) => !all.is_empty(),
        Some(Node::String(text)) => !text.is_empty(),
        Some(Node::Bool(true) | Node::Number(_) | Node::Object(_)) => true,
    }
}
