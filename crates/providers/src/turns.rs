//! A conversation as several kinds take it: instructions apart and first, then turns of the user
//! and of the model. Results of tools are the user's; neighbours of one speaker are one turn. How a
//! kind spells a part of it is its own; what it cannot take was [refused](crate::refusals) before.

use holdfast_domain::request::{Content, ContentPart, Message, Role, ToolCall};
use holdfast_wire::json::Draft;

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
    fn text(&self, text: &'a str) -> Draft<'a>;

    /// A part of a message: no block where it is an empty text.
    fn part(&mut self, blocks: &mut Blocks<'a>, part: &'a ContentPart);

    /// The model's call of this number.
    fn call(&mut self, blocks: &mut Blocks<'a>, at: usize, call: &'a ToolCall);

    /// Result of a call, by the id of the call.
    fn result(&mut self, call_id: &'a str, content: Option<&'a Content>) -> Draft<'a>;
}

/// The conversation, spelt so.
pub(crate) fn translate<'a, S: TurnEncoder<'a>>(
    messages: &'a [Message],
    mut spelling: S,
) -> Conversation<'a> {
    let mut system = Vec::new();
    let mut turns: Vec<(&str, Blocks<'a>)> = Vec::new();
    // The name is refused before: no kind that spells turns so takes one.
    for Message { role, name: _, content } in messages {
        let content = content.as_ref();
        let (speaker, blocks) = match role {
            Role::Developer | Role::System => {
                system.extend(blocks_of(&mut spelling, content));
                continue;
            }
            Role::Tool { call_id } => ("user", vec![spelling.result(call_id, content)]),
            Role::User | Role::Function => ("user", blocks_of(&mut spelling, content)),
            Role::Assistant(reply) => {
                let mut blocks = blocks_of(&mut spelling, content);
                let refusal = reply.refusal.as_deref().filter(|text| !text.is_empty());
                blocks.extend(refusal.map(|text| spelling.text(text)));
                for (at, call) in reply.tool_calls.iter().enumerate() {
                    spelling.call(&mut blocks, at, call);
                }
                (S::MODEL, blocks)
            }
        };
        match turns.last_mut() {
            // Results of several calls must come in one turn, so neighbours are joined.
            Some((last, turn)) if *last == speaker => turn.extend(blocks),
            Some(_) | None => turns.push((speaker, blocks)),
        }
    }
    let turn = |(speaker, blocks): (_, Vec<_>)| {
        Draft::object([("role", Draft::from(speaker)), (S::BLOCKS, blocks.into())])
    };
    Conversation { system, turns: turns.into_iter().map(turn).collect() }
}

/// Blocks of a content; none for an empty text, because all kinds refuse an empty block.
pub(crate) fn blocks_of<'a>(
    spelling: &mut impl TurnEncoder<'a>,
    content: Option<&'a Content>,
) -> Blocks<'a> {
    let mut blocks = Vec::new();
    match content {
        Some(Content::Text(text)) if !text.is_empty() => blocks.push(spelling.text(text)),
        Some(Content::Parts(parts)) => {
            parts.iter().for_each(|part| spelling.part(&mut blocks, part));
        }
        Some(Content::Text(_)) | None => {}
    }
    blocks
}
