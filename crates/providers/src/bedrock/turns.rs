//! A conversation as Bedrock takes it: instructions apart and first, then turns of the user and of the
//! assistant. Results of tools are the user's; neighbours of one speaker are one turn.

use holdfast_domain::ports::Unsupported;
use holdfast_domain::request::{Content, Item, Message, Part, Reply, Role, ToolCall, ToolKind};
use holdfast_wire::json::Draft;

use crate::unable::{LEFT_OUT, arguments, data_url, unsupported};

const PICTURES: [(&str, &str); 4] =
    [("image/png", "png"), ("image/jpeg", "jpeg"), ("image/gif", "gif"), ("image/webp", "webp")];
const DOCUMENTS: [(&str, &str); 4] = [
    ("application/pdf", "pdf"),
    ("text/plain", "txt"),
    ("text/markdown", "md"),
    ("text/csv", "csv"),
];

/// What the conversation becomes.
pub(super) struct Conversation<'a> {
    pub(super) system: Vec<Draft<'a>>,
    pub(super) turns: Vec<Draft<'a>>,
}

pub(super) fn translate(messages: &[Message]) -> Result<Conversation<'_>, Unsupported> {
    let mut system = Vec::new();
    let mut turns: Vec<(&str, Vec<Draft<'_>>)> = Vec::new();
    let mut documents = 0;
    for (at, message) in messages.iter().enumerate() {
        let mut blocks = Blocks { at, documents, all: Vec::new() };
        let speaker = blocks.message(message)?;
        documents = blocks.documents;
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
    /// Documents so far: each has a name, and no two the same.
    documents: usize,
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
                self.text(text);
                Ok(())
            }
            Some(Content::Parts(parts)) => {
                parts.iter().enumerate().try_for_each(|(at, part)| self.part(at, part))
            }
        }
    }

    /// Nothing where there is none: an empty block is refused there.
    fn text(&mut self, text: &'a str) {
        if !text.is_empty() {
            self.all.push(Draft::object([("text", text.into())]));
        }
    }

    fn part(&mut self, at: usize, part: &'a Part) -> Result<(), Unsupported> {
        let member = |name: &str| format!("content[{at}].{name}");
        match &part.item {
            Item::Text(text) | Item::Refusal(text) => self.text(text),
            Item::Image { detail: Some(_), .. } => {
                return self.refused(&member("image_url.detail"), "auto for this model");
            }
            Item::Image { url, detail: None } => {
                let Some(picture) = sent_along(url, &PICTURES, None) else {
                    let rule = "a data: URL of a PNG, JPEG, GIF or WebP in base64 for this model";
                    return self.refused(&member("image_url.url"), rule);
                };
                self.all.push(Draft::object([("image", picture)]));
            }
            Item::Audio { .. } => {
                return self.refused(&member("type"), "text, image_url or file for this model");
            }
            Item::File { id: Some(_), .. } => {
                return self.refused(&member("file.file_id"), LEFT_OUT);
            }
            Item::File { id: None, name: _, data } => {
                self.documents += 1;
                // A name of the caller's could be read as an instruction.
                let name = format!("document {}", self.documents);
                let document =
                    data.as_deref().and_then(|url| sent_along(url, &DOCUMENTS, Some(name)));
                let Some(document) = document else {
                    let rule =
                        "a data: URL of a PDF, a text, Markdown or CSV in base64 for this model";
                    return self.refused(&member("file.file_data"), rule);
                };
                self.all.push(Draft::object([("document", document)]));
            }
        }
        if let Some(mark) = part.cache_breakpoint {
            if mark.ttl.is_some() {
                return self.refused(&member("prompt_cache_breakpoint.ttl"), LEFT_OUT);
            }
            let point = Draft::object([("type", "default".into())]);
            self.all.push(Draft::object([("cachePoint", point)]));
        }
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
        self.text(refusal.as_deref().unwrap_or_default());
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
        let call = Draft::object([
            ("toolUseId", Draft::from(id.as_str())),
            ("name", name.as_str().into()),
            ("input", Draft::Json(input)),
        ]);
        self.all.push(Draft::object([("toolUse", call)]));
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
        let is_bare =
            |part: &Part| matches!(part.item, Item::Text(_)) && part.cache_breakpoint.is_none();
        if let Some(Content::Parts(parts)) = content
            && !parts.iter().all(is_bare)
        {
            return self.refused("content", "text without marks for this model");
        }
        self.content(content)?;
        let said = std::mem::take(&mut self.all);
        let result = Draft::object([("toolUseId", Draft::from(call_id)), ("content", said.into())]);
        self.all.push(Draft::object([("toolResult", result)]));
        Ok(())
    }
}

const ID: &str = "an id of 1 to 64 letters, digits, `_`, `-`, `.` and `:` for this model";

fn is_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    (1..=64).contains(&id.len()) && id.bytes().all(is_plain)
}

fn sent_along<'a>(
    url: &'a str,
    known: &[(&str, &'static str)],
    name: Option<String>,
) -> Option<Draft<'a>> {
    let (media, data) = data_url(url)?;
    let format = known.iter().find_map(|(known, format)| (*known == media).then_some(*format))?;
    let source = Draft::object([("bytes", data.into())]);
    Some(Draft::object([
        Some(("format", Draft::from(format))),
        name.map(|name| ("name", name.into())),
        Some(("source", source)),
    ]))
}
