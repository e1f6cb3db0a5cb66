//! A conversation as several kinds take it: instructions apart and first, then turns of the user
//! and of the model. Results of tools are the user's; neighbours of one speaker are one turn. How a
//! kind spells a part of it is its own; what it cannot take was [refused](crate::refusals) before.
//!
//! Instructions after the first turn are the user's too, [marked](crate::late_system). Within a turn of the
//! user, results of tools come first, even before earlier parts of the request: Anthropic and Bedrock refuse a
//! turn after calls that begins with any other part.

use std::borrow::Cow;

use holdfast_domain::request::{Content, ContentPart, Item, Message, Role, ToolCall};
use holdfast_wire::json::Draft;

use crate::late_system::{is_instruction, marked};

/// Blocks of one message.
pub(crate) type Blocks<'a> = Vec<Draft<'a>>;

/// Conversation as a kind takes it: instructions, then turns.
pub(crate) struct Conversation<'a> {
    pub(crate) system: Blocks<'a>,
    pub(crate) turns: Vec<Draft<'a>>,
}

/// Spelling of a conversation by one kind. May remember what it has spelt of earlier messages.
pub(crate) trait TurnEncoder<'a> {
    /// Name of the model as a speaker.
    const MODEL: &'static str;
    /// Member of a turn that holds its blocks.
    const BLOCKS: &'static str;

    /// A text that is not empty.
    fn text(&self, text: Cow<'a, str>) -> Draft<'a>;

    /// A part of a message: no block if it is an empty text.
    fn part(&mut self, blocks: &mut Blocks<'a>, part: &'a ContentPart);

    /// Has the prompt cached up to the last block, by a mark of the caller's.
    fn mark(&self, blocks: &mut Blocks<'a>);

    /// The model's call of this number.
    fn call(&mut self, blocks: &mut Blocks<'a>, at: usize, call: &'a ToolCall);

    /// Result of a call, by the id of the call.
    fn result(&mut self, call_id: &'a str, content: Option<&'a Content>) -> Draft<'a>;
}

/// A turn as it grows.
struct Turn<'a> {
    speaker: &'static str,
    blocks: Blocks<'a>,
    /// Results of tools, which are the first of the blocks.
    results: usize,
}

impl<'a> Turn<'a> {
    fn add(&mut self, blocks: Blocks<'a>, is_result: bool) {
        if is_result {
            self.blocks.splice(self.results..self.results, blocks);
            self.results = self.results.saturating_add(1);
        } else {
            self.blocks.extend(blocks);
        }
    }
}

/// The conversation, spelt so.
pub(crate) fn translate<'a, S: TurnEncoder<'a>>(
    messages: &'a [Message],
    mut spelling: S,
) -> Conversation<'a> {
    let mut system = Vec::new();
    let mut turns: Vec<Turn<'a>> = Vec::new();
    let mut is_late = false;
    // Any name but that of a result's call is refused before, and so are extras.
    for message in messages {
        let Message { role, name: _, content, extras: _ } = message;
        is_late |= !is_instruction(message);
        let content = content.as_ref();
        let (speaker, blocks) = match role {
            Role::Developer | Role::System if is_late => {
                ("user", late_blocks_of(&mut spelling, content))
            }
            Role::Developer | Role::System => {
                system.extend(blocks_of(&mut spelling, content));
                continue;
            }
            Role::Tool { call_id } => ("user", vec![spelling.result(call_id, content)]),
            Role::User | Role::Function => ("user", blocks_of(&mut spelling, content)),
            Role::Assistant(reply) => {
                let mut blocks = blocks_of(&mut spelling, content);
                let refusal = reply.refusal.as_deref().filter(|text| !text.is_empty());
                blocks.extend(refusal.map(|text| spelling.text(text.into())));
                for (at, call) in reply.tool_calls.iter().enumerate() {
                    spelling.call(&mut blocks, at, call);
                }
                (S::MODEL, blocks)
            }
        };
        let is_result = matches!(role, Role::Tool { .. });
        match turns.last_mut() {
            // Results of several calls must come in one turn, so neighbours are joined.
            Some(last) if last.speaker == speaker => last.add(blocks, is_result),
            // Only an instruction may be empty: a turn without blocks is refused by all kinds.
            Some(_) | None if blocks.is_empty() => {}
            Some(_) | None => turns.push(Turn { speaker, blocks, results: usize::from(is_result) }),
        }
    }
    let turn = |Turn { speaker, blocks, .. }| {
        Draft::object([("role", Draft::from(speaker)), (S::BLOCKS, blocks.into())])
    };
    Conversation { system, turns: turns.into_iter().map(turn).collect() }
}

/// Blocks of an instruction after the first turn: each text of it has the marks.
fn late_blocks_of<'a>(
    spelling: &mut impl TurnEncoder<'a>,
    content: Option<&'a Content>,
) -> Blocks<'a> {
    let mut blocks = Vec::new();
    match content {
        Some(Content::Text(text)) if !text.is_empty() => {
            blocks.push(spelling.text(marked(text).into()));
        }
        Some(Content::Parts(parts)) => {
            for part in parts {
                match &part.item {
                    Item::Text(text) if !text.is_empty() => {
                        blocks.push(spelling.text(marked(text).into()));
                        if let Some(Draft::Object(block)) = blocks.last_mut() {
                            let extras = part.extras.iter();
                            block.extend(extras.map(|(name, value)| (name.as_str(), value.into())));
                        }
                        if part.cache_breakpoint.is_some() {
                            spelling.mark(&mut blocks);
                        }
                    }
                    Item::Text(_) => {}
                    Item::Refusal(_)
                    | Item::Image { .. }
                    | Item::Audio { .. }
                    | Item::File { .. } => spelling.part(&mut blocks, part),
                }
            }
        }
        Some(Content::Text(_)) | None => {}
    }
    blocks
}

/// Blocks of a content; none for an empty text, because all kinds refuse an empty block.
pub(crate) fn blocks_of<'a>(
    spelling: &mut impl TurnEncoder<'a>,
    content: Option<&'a Content>,
) -> Blocks<'a> {
    let mut blocks = Vec::new();
    match content {
        Some(Content::Text(text)) if !text.is_empty() => {
            blocks.push(spelling.text(text.as_str().into()));
        }
        Some(Content::Parts(parts)) => {
            parts.iter().for_each(|part| spelling.part(&mut blocks, part));
        }
        Some(Content::Text(_)) | None => {}
    }
    blocks
}
