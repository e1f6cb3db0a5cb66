//! A conversation as Anthropic takes it: instructions apart and first, then turns of the user and of
//! the assistant. Results of tools are the user's; neighbours of one speaker are one turn.

use holdfast_domain::ports::Unsupported;
use holdfast_domain::request::{Content, Item, Message, Part, Reply, Role, ToolCall, ToolKind};
use holdfast_wire::json::Draft;

use crate::unable::{LEFT_OUT, arguments, data_url, unsupported};

/// Places in a prompt that may be marked for the cache.
const MARKS_MAX: usize = 4;

const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// What the conversation becomes.
pub(super) struct Conversation<'a> {
    pub(super) system: Vec<Draft<'a>>,
    pub(super) turns: Vec<Draft<'a>>,
}

pub(super) fn translate(messages: &[Message]) -> Result<Conversation<'_>, Unsupported> {
    let mut system = Vec::new();
    let mut turns: Vec<(&str, Vec<Draft<'_>>)> = Vec::new();
    let mut marks = 0;
    for (at, message) in messages.iter().enumerate() {
        let mut blocks = Blocks { at, marks, all: Vec::new() };
        let speaker = blocks.message(message)?;
        marks = blocks.marks;
        let blocks = blocks.all;
        match (speaker, turns.last_mut()) {
            (None, None) => system.extend(blocks),
            (None, Some(_)) => {
                let rule = "user, assistant or tool after the first turn for this model";
                return Err(unsupported(format!("messages[{at}].role"), rule));
            }
            (Some(speaker), Some((last, turn))) if *last == speaker => turn.extend(blocks),
            (Some(speaker), Some(_) | None) => turns.push((speaker, blocks)),
        }
    }
    let turn = |(speaker, blocks): (_, Vec<_>)| {
        Draft::object([("role", Draft::from(speaker)), ("content", blocks.into())])
    };
    Ok(Conversation { system, turns: turns.into_iter().map(turn).collect() })
}

/// What one message becomes.
struct Blocks<'a> {
    /// Which message.
    at: usize,
    /// Marks for the cache so far.
    marks: usize,
    all: Vec<Draft<'a>>,
}

impl<'a> Blocks<'a> {
    fn refused<T>(&self, member: &str, rule: &'static str) -> Result<T, Unsupported> {
        Err(unsupported(format!("messages[{}].{member}", self.at), rule))
    }

    /// Says whose turn it is; nobody's are instructions.
    fn message(&mut self, message: &'a Message) -> Result<Option<&'static str>, Unsupported> {
        let Message { role, name, content } = message;
        if let Role::Function = role {
            return self.refused("role", "tool, with `tools`, for this model");
        }
        if name.is_some() {
            return self.refused("name", LEFT_OUT);
        }
        if let Role::Tool { call_id } = role {
            return self.result(call_id, content.as_ref()).map(|()| Some("user"));
        }
        self.content(content.as_ref())?;
        if let Role::Assistant(reply) = role {
            self.reply(reply)?;
        }
        if self.all.is_empty() {
            return self.refused("content", "a text that is not empty for this model");
        }
        Ok(match role {
            Role::Developer | Role::System => None,
            Role::Assistant(_) => Some("assistant"),
            Role::User | Role::Tool { .. } | Role::Function => Some("user"),
        })
    }

    fn content(&mut self, content: Option<&'a Content>) -> Result<(), Unsupported> {
        match content {
            None => Ok(()),
            Some(Content::Text(text)) => {
                self.all.extend(text_of(text).map(Draft::object));
                Ok(())
            }
            Some(Content::Parts(parts)) => {
                parts.iter().enumerate().try_for_each(|(at, part)| self.part(at, part))
            }
        }
    }

    fn part(&mut self, at: usize, part: &'a Part) -> Result<(), Unsupported> {
        let member = |name: &str| format!("content[{at}].{name}");
        let mut block = match &part.item {
            Item::Text(text) | Item::Refusal(text) => match text_of(text) {
                Some(block) => Vec::from(block),
                None => return Ok(()),
            },
            Item::Image { detail: Some(_), .. } => {
                return self.refused(&member("image_url.detail"), "auto for this model");
            }
            Item::Image { url, detail: None } => match picture(url) {
                Some(source) => vec![("type", "image".into()), ("source", source)],
                None => {
                    let rule = "http: or https:, or a data: URL of a JPEG, PNG, GIF or WebP in base64, for \
                                this model";
                    return self.refused(&member("image_url.url"), rule);
                }
            },
            Item::Audio { .. } => {
                return self.refused(&member("type"), "text, image_url or file for this model");
            }
            Item::File { id: Some(_), .. } => {
                return self.refused(&member("file.file_id"), LEFT_OUT);
            }
            Item::File { id: None, name, data } => {
                let Some(source) = data.as_deref().and_then(document) else {
                    let rule = "a data: URL of a PDF in base64 for this model";
                    return self.refused(&member("file.file_data"), rule);
                };
                let mut block = vec![("type", "document".into()), ("source", source)];
                block.extend(name.as_deref().map(|name| ("title", name.into())));
                block
            }
        };
        if let Some(mark) = part.cache_breakpoint {
            self.marks += 1;
            if mark.ttl.is_some() {
                return self.refused(&member("prompt_cache_breakpoint.ttl"), LEFT_OUT);
            }
            if self.marks > MARKS_MAX {
                let rule = "at four places at most for this model";
                return self.refused(&member("prompt_cache_breakpoint"), rule);
            }
            block.push(("cache_control", Draft::object([("type", "ephemeral".into())])));
        }
        self.all.push(Draft::Object(block));
        Ok(())
    }

    fn reply(&mut self, reply: &'a Reply) -> Result<(), Unsupported> {
        let Reply { refusal, audio_id, tool_calls, function_call, extras } = reply;
        if audio_id.is_some() {
            return self.refused("audio", LEFT_OUT);
        }
        if function_call.is_some() {
            return self.refused("function_call", "sent as `tool_calls` for this model");
        }
        if let Some(name) = extras.keys().next() {
            return self.refused(name, LEFT_OUT);
        }
        self.all.extend(refusal.as_deref().and_then(text_of).map(Draft::object));
        for (at, call) in tool_calls.iter().enumerate() {
            self.call(at, call)?;
        }
        Ok(())
    }

    fn call(&mut self, at: usize, call: &'a ToolCall) -> Result<(), Unsupported> {
        let ToolCall { id, kind, name, input } = call;
        let member = |name: &str| format!("tool_calls[{at}].{name}");
        if *kind == ToolKind::Custom {
            return self.refused(&member("type"), "function for this model");
        }
        if !is_id(id) {
            return self.refused(&member("id"), ID);
        }
        let Some(input) = arguments(input) else {
            return self.refused(&member("function.arguments"), "a JSON object for this model");
        };
        self.all.push(Draft::object([
            ("type", Draft::from("tool_use")),
            ("id", id.as_str().into()),
            ("name", name.as_str().into()),
            ("input", Draft::Json(input)),
        ]));
        Ok(())
    }

    fn result(
        &mut self,
        call_id: &'a str,
        content: Option<&'a Content>,
    ) -> Result<(), Unsupported> {
        if !is_id(call_id) {
            return self.refused("tool_call_id", ID);
        }
        self.content(content)?;
        let said = std::mem::take(&mut self.all);
        self.all.push(Draft::object([
            Some(("type", Draft::from("tool_result"))),
            Some(("tool_use_id", call_id.into())),
            (!said.is_empty()).then(|| ("content", said.into())),
        ]));
        Ok(())
    }
}

const ID: &str = "an id of letters, digits, underscores and hyphens for this model";

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// Nothing where there is none: an empty block is refused there.
fn text_of(text: &str) -> Option<[(&'static str, Draft<'_>); 2]> {
    (!text.is_empty()).then(|| [("type", "text".into()), ("text", text.into())])
}

fn picture(url: &str) -> Option<Draft<'_>> {
    if let Some((media, data)) = data_url(url) {
        return PICTURES.contains(&media.as_str()).then(|| sent_along(media, data));
    }
    let is_web = |scheme: &str| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    (is_web("https:") || is_web("http:"))
        .then(|| Draft::object([("type", "url".into()), ("url", url.into())]))
}

fn document(url: &str) -> Option<Draft<'_>> {
    let (media, data) = data_url(url)?;
    (media == "application/pdf").then(|| sent_along(media, data))
}

fn sent_along(media: String, data: &str) -> Draft<'_> {
    Draft::object([
        ("type", Draft::from("base64")),
        ("media_type", media.into()),
        ("data", data.into()),
    ])
}
