//! An answer of the simulated provider in the pieces of a stream: word by word, and its end apart.
//! Put together they are the answer.

use holdfast_domain::answer::{ChoiceDelta, FunctionCallDelta, ToolCallDelta};

/// Piece of a call's input, in bytes at most.
const INPUT_BYTES: usize = 16;

/// The first piece of every choice, then the second of those that have one, and so on.
pub(super) fn rounds(choices: Vec<ChoiceDelta>) -> Vec<Vec<ChoiceDelta>> {
    let mut choices: Vec<_> =
        choices.into_iter().map(|choice| pieces(choice).into_iter()).collect();
    let mut rounds = Vec::new();
    loop {
        let round: Vec<_> = choices.iter_mut().filter_map(Iterator::next).collect();
        if round.is_empty() {
            return rounds;
        }
        rounds.push(round);
    }
}

/// A choice begins empty, goes on word by word, and ends.
fn pieces(choice: ChoiceDelta) -> Vec<ChoiceDelta> {
    let ChoiceDelta { index, content, tool_calls, function_call, finish, .. } = choice;
    let piece = || ChoiceDelta { index, ..ChoiceDelta::default() };
    let mut pieces = Vec::new();
    if let Some(text) = content {
        let words = std::iter::once("").chain(text.split_inclusive(char::is_whitespace));
        pieces.extend(words.map(|word| ChoiceDelta { content: Some(word.to_owned()), ..piece() }));
    }
    for ToolCallDelta { index, kind, name, input, state } in tool_calls {
        let begun = ToolCallDelta { index, kind, name, input: None, state };
        let parts = input.as_deref().map(parts).unwrap_or_default().into_iter();
        let more = parts.map(|part| ToolCallDelta {
            index,
            input: Some(part.to_owned()),
            ..ToolCallDelta::default()
        });
        let calls = std::iter::once(begun).chain(more);
        pieces.extend(calls.map(|call| ChoiceDelta { tool_calls: vec![call], ..piece() }));
    }
    if let Some(FunctionCallDelta { name, arguments }) = function_call {
        let begun = FunctionCallDelta { name, arguments: None };
        let parts = arguments.as_deref().map(parts).unwrap_or_default().into_iter();
        let more =
            parts.map(|part| FunctionCallDelta { name: None, arguments: Some(part.to_owned()) });
        let calls = std::iter::once(begun).chain(more);
        pieces.extend(calls.map(|call| ChoiceDelta { function_call: Some(call), ..piece() }));
    }
    pieces.extend(finish.map(|finish| ChoiceDelta { finish: Some(finish), ..piece() }));
    pieces
}

/// A text in parts of some bytes each, cut between characters.
fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(rest.floor_char_boundary(INPUT_BYTES));
        parts.push(part);
        rest = after;
    }
    parts
}
