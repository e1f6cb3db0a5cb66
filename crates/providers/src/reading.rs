//! Readers of an answer's parts that several kinds share. None knows a kind.

use holdfast_domain::answer::{ChoiceDelta, ToolCallDelta};
use holdfast_wire::chat::upstream::{CALLS_MAX, UnreadableReason};
use holdfast_wire::json::Node;

/// The text of this name, if there is one.
pub(crate) fn text<'n>(node: &'n Node<'_>, name: &str) -> Option<&'n str> {
    node.get(name)?.as_str()
}

/// Adds a piece of text that has to be there.
pub(crate) fn append(
    to: &mut Option<String>,
    piece: Option<&str>,
    field: &'static str,
) -> Result<(), UnreadableReason> {
    let piece = piece.ok_or(UnreadableReason::Content(field))?;
    to.get_or_insert_default().push_str(piece);
    Ok(())
}

/// Says if a choice gained words, thoughts or calls.
pub(crate) fn has_content(choice: &ChoiceDelta) -> bool {
    let texts = [&choice.content, &choice.reasoning];
    texts.into_iter().flatten().any(|text| !text.is_empty()) || !choice.tool_calls.is_empty()
}

/// Counts one more call of a choice, and says which it is.
pub(crate) fn next_call(n_calls: &mut u32) -> Result<u32, UnreadableReason> {
    let number = *n_calls;
    // Before counting: a server must not make the caller's list of calls grow without end.
    if usize::try_from(number).is_ok_and(|number| number >= CALLS_MAX) {
        return Err(UnreadableReason::TooManyCalls);
    }
    *n_calls = number.saturating_add(1);
    Ok(number)
}

/// A piece of the input of a call.
pub(crate) fn input_delta(number: u32, piece: &str) -> ToolCallDelta {
    ToolCallDelta { index: number, input: Some(piece.to_owned()), ..ToolCallDelta::default() }
}

/// A count: `Some(None)` where there is none, `None` where it is not one.
pub(crate) fn count(node: &Node<'_>, name: &str) -> Option<Option<u64>> {
    match node.get(name) {
        None => Some(None),
        Some(value) => value.as_number()?.parse().ok().map(Some),
    }
}
