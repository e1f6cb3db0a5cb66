//! A conversation as several kinds take it: instructions apart and first, then turns of the user
//! and of the model. Results of tools are the user's; neighbours of one speaker are one turn. How a
//! kind spells a part of it, and what it cannot take, is its own.

use holdfast_domain::ports::UnsupportedParam;
use holdfast_domain::request::{
    AssistantMessage, Content, ContentPart, Message, Role, ToolCall, ToolKind,
};
use holdfast_domain::state::ProviderStates;
use holdfast_wire::json::Draft;

use crate::unsupported::{LEFT_OUT, arguments, unsupported};

/// No states, for checks: what a model wants back makes no difference to what can be done.
pub(crate) static NO_STATES: ProviderStates = ProviderStates::new();

/// Conversation as a kind takes it: instructions, then turns.
pub(crate) struct Conversation<'a> {
    pub(crate) system: Vec<Draft<'a>>,
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

    /// The part of this number.
    fn part(
        &mut self,
        blocks: &mut Blocks<'a>,
        at: usize,
        part: &'a ContentPart,
    ) -> Result<(), UnsupportedParam>;

    /// The model's call of this number, with the object that a function was called with.
    fn call(
        &mut self,
        blocks: &mut Blocks<'a>,
        at: usize,
        called: (&'a ToolCall, &'a str),
    ) -> Result<(), UnsupportedParam>;

    /// Result of a call, by the id of the call.
    fn result(
        &mut self,
        blocks: &mut Blocks<'a>,
        call_id: &'a str,
        content: Option<&'a Content>,
    ) -> Result<(), UnsupportedParam>;
}

/// Blocks of one message.
pub(crate) struct Blocks<'a> {
    /// Place of the message in the conversation, for refusals.
    at: usize,
    pub(crate) all: Vec<Draft<'a>>,
}

/// The conversation, spelt so.
pub(crate) fn translate<'a, S: TurnEncoder<'a>>(
    messages: &'a [Message],
    mut spelling: S,
) -> Result<Conversation<'a>, UnsupportedParam> {
    let mut system = Vec::new();
    let mut turns: Vec<(&str, Vec<Draft<'a>>)> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let mut blocks = Blocks { at, all: Vec::new() };
        let speaker = blocks.message(&mut spelling, message)?;
        match (speaker, turns.last_mut()) {
            (None, None) => system.extend(blocks.all),
            (None, Some(_)) => {
                return blocks.refused(
                    "role",
                    "user, assistant or tool after the first turn for this model",
                );
            }
            // Results of several calls must come in one turn, so neighbours are joined.
            (Some(speaker), Some((last, turn))) if *last == speaker => turn.extend(blocks.all),
            (Some(speaker), Some(_) | None) => turns.push((speaker, blocks.all)),
        }
    }
    let turn = |(speaker, blocks): (_, Vec<_>)| {
        Draft::object([("role", Draft::from(speaker)), (S::BLOCKS, blocks.into())])
    };
    Ok(Conversation { system, turns: turns.into_iter().map(turn).collect() })
}

impl<'a> Blocks<'a> {
    pub(crate) fn refused<T>(
        &self,
        member: &str,
        rule: &'static str,
    ) -> Result<T, UnsupportedParam> {
        Err(unsupported(format!("messages[{}].{member}", self.at), rule))
    }

    /// Block of a text; none for an empty one, because all kinds refuse an empty block.
    pub(crate) fn text(&mut self, spelling: &impl TurnEncoder<'a>, text: &'a str) {
        if !text.is_empty() {
            self.all.push(spelling.text(text));
        }
    }

    pub(crate) fn content(
        &mut self,
        spelling: &mut impl TurnEncoder<'a>,
        content: Option<&'a Content>,
    ) -> Result<(), UnsupportedParam> {
        match content {
            None => Ok(()),
            Some(Content::Text(text)) => {
                self.text(spelling, text);
                Ok(())
            }
            Some(Content::Parts(parts)) => {
                let mut parts = parts.iter().enumerate();
                parts.try_for_each(|(at, part)| spelling.part(self, at, part))
            }
        }
    }

    /// Says whose turn it is; nobody's are instructions.
    fn message<S: TurnEncoder<'a>>(
        &mut self,
        spelling: &mut S,
        message: &'a Message,
    ) -> Result<Option<&'static str>, UnsupportedParam> {
        let Message { role, name, content } = message;
        if let Role::Function = role {
            return self.refused("role", "tool, with `tools`, for this model");
        }
        if name.is_some() {
            return self.refused("name", LEFT_OUT);
        }
        if let Role::Tool { call_id } = role {
            return spelling.result(self, call_id, content.as_ref()).map(|()| Some("user"));
        }
        self.content(spelling, content.as_ref())?;
        if let Role::Assistant(reply) = role {
            self.reply(spelling, reply)?;
        }
        if self.all.is_empty() {
            return self.refused("content", "a text that is not empty for this model");
        }
        Ok(match role {
            Role::Developer | Role::System => None,
            Role::Assistant(_) => Some(S::MODEL),
            Role::User | Role::Tool { .. } | Role::Function => Some("user"),
        })
    }

    fn reply(
        &mut self,
        spelling: &mut impl TurnEncoder<'a>,
        reply: &'a AssistantMessage,
    ) -> Result<(), UnsupportedParam> {
        let AssistantMessage { refusal, audio_id, tool_calls, function_call, extras } = reply;
        if audio_id.is_some() {
            return self.refused("audio", LEFT_OUT);
        }
        if function_call.is_some() {
            return self.refused("function_call", "sent as `tool_calls` for this model");
        }
        // Among the metadata is what the caller was told that the model thought. The model wants
        // its thoughts as it said them: what is kept of them stands for it.
        let is_metadata = |name: &&String| AssistantMessage::METADATA.contains(&name.as_str());
        if let Some(name) = extras.keys().find(|name| !is_metadata(name)) {
            return self.refused(name, LEFT_OUT);
        }
        self.text(spelling, refusal.as_deref().unwrap_or_default());
        for (at, call) in tool_calls.iter().enumerate() {
            if call.kind == ToolKind::Custom {
                let member = format!("tool_calls[{at}].type");
                return self.refused(&member, "function for this model");
            }
            let Some(input) = arguments(&call.input) else {
                let member = format!("tool_calls[{at}].function.arguments");
                return self.refused(&member, "a JSON object for this model");
            };
            spelling.call(self, at, (call, input))?;
        }
        Ok(())
    }
}
