//! Readers of an answer's parts that several kinds share. None knows a kind.

use holdfast_domain::answer::{ChoiceDelta, FinishReason, ToolCallDelta};
use holdfast_wire::chat::upstream::{CALLS_MAX, JsonProgress, UnreadableReason};
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

/// True if a choice gained words, thoughts or calls.
pub(crate) fn has_content(choice: &ChoiceDelta) -> bool {
    let texts = [&choice.content, &choice.reasoning];
    texts.into_iter().flatten().any(|text| !text.is_empty()) || !choice.tool_calls.is_empty()
}

/// True if a choice gained words.
pub(crate) fn has_text(choice: &ChoiceDelta) -> bool {
    choice.content.as_ref().is_some_and(|text| !text.is_empty())
}

/// The end of a whole answer, which needs no name: its body was read to the last byte.
pub(crate) const fn unnamed_finish(n_calls: usize) -> FinishReason {
    if n_calls > 0 { FinishReason::ToolCalls } else { FinishReason::Stop }
}

/// The end that the provider sent, but for promised calls that did not come: text next to them is an answer all
/// the same. `None` without text.
pub(crate) fn kept_promise(
    told: FinishReason,
    n_calls: u32,
    has_text: bool,
) -> Option<FinishReason> {
    if told == FinishReason::ToolCalls && n_calls == 0 {
        return has_text.then_some(FinishReason::Stop);
    }
    Some(told)
}

/// Arguments of a call that came whole, as the text that callers parse: `{}` for none.
pub(crate) fn arguments(input: Option<&Node<'_>>) -> String {
    match input {
        None | Some(Node::Null) => NO_ARGUMENTS.to_owned(),
        Some(Node::Array(all)) if all.is_empty() => NO_ARGUMENTS.to_owned(),
        Some(Node::String(text)) if text.trim_ascii().is_empty() => NO_ARGUMENTS.to_owned(),
        Some(input) => input.to_string(),
    }
}

const NO_ARGUMENTS: &str = "{}";

/// Arguments of one call of a stream.
#[derive(Debug, Default)]
pub(crate) struct CallInput {
    /// Arguments that came with the start of the call: all of them, unless pieces follow.
    first: Option<String>,
    progress: JsonProgress,
}

impl CallInput {
    /// Arguments at the start of the call.
    pub(crate) fn begin(first: Option<&Node<'_>>) -> Self {
        let first = Some(arguments(first)).filter(|first| first != NO_ARGUMENTS);
        Self { first, progress: JsonProgress::default() }
    }

    /// Takes a piece.
    pub(crate) fn take(&mut self, piece: &str) {
        self.progress.feed(piece);
    }

    /// True before the first argument: there are none, or the answer was cut before them. Its end
    /// decides.
    pub(crate) const fn is_blank(&self) -> bool {
        self.first.is_none() && self.progress.is_blank()
    }

    /// Ends the arguments, and returns what was not sent to the caller before: callers parse what
    /// they get. A call that a bound cut before its arguments must not look whole, and gets none.
    pub(crate) fn close(&mut self, is_cut: bool) -> Option<String> {
        if !self.progress.is_blank() || is_cut && self.first.is_none() {
            return None;
        }
        let all = self.first.take().unwrap_or_else(|| NO_ARGUMENTS.to_owned());
        self.progress.feed(&all);
        Some(all)
    }

    pub(crate) const fn is_whole(&self) -> bool {
        self.progress.is_whole()
    }
}

/// True for calls that an answer with this end may have: one with half of its arguments only if a bound or a
/// filter has cut the answer.
pub(crate) const fn may_have_half_calls(finish: FinishReason, n_half: u32) -> bool {
    n_half == 0 || n_half == 1 && finish.is_cut()
}

/// Takes the arguments `{}` from the last call of a whole answer that a bound or a filter has cut: its
/// arguments may not have come, and callers run calls that look whole.
pub(crate) fn cut_last_call(choice: &mut ChoiceDelta) {
    if choice.finish.is_some_and(FinishReason::is_cut)
        && let Some(last) = choice.tool_calls.last_mut()
    {
        last.input = last.input.take().filter(|input| input != NO_ARGUMENTS);
    }
}

/// Counts one more call of a choice, and returns its number.
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

/// A count: `Some(None)` if there is none, `None` if it is not one.
pub(crate) fn count(node: &Node<'_>, name: &str) -> Option<Option<u64>> {
    match node.get(name) {
        None => Some(None),
        Some(value) => value.as_number()?.parse().ok().map(Some),
    }
}
