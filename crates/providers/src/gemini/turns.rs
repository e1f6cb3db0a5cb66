//! A conversation as Gemini takes it: instructions apart and first, then turns of the user and of the
//! model. Results of functions are the user's; neighbours of one speaker are one turn.

use std::collections::BTreeMap;

use holdfast_domain::ports::Unsupported;
use holdfast_domain::request::{
    Content, Item, Message, Part, RecordingFormat, Reply, Role, ToolCall, ToolKind,
};
use holdfast_wire::json::Draft;

use crate::unable::{LEFT_OUT, arguments, data_url, unsupported};

const PICTURES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
const DOCUMENTS: [&str; 2] = ["application/pdf", "text/plain"];

/// What Google documents for calls that another model made: there is no signature to check.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// What the conversation becomes.
pub(super) struct Conversation<'a> {
    pub(super) system: Vec<Draft<'a>>,
    pub(super) turns: Vec<Draft<'a>>,
}

pub(super) fn translate(
    messages: &[Message],
    skip_signatures: bool,
) -> Result<Conversation<'_>, Unsupported> {
    let mut system = Vec::new();
    let mut turns: Vec<(&str, Vec<Draft<'_>>)> = Vec::new();
    let mut called = BTreeMap::new();
    for (at, message) in messages.iter().enumerate() {
        let mut parts = Parts { at, skip_signatures, called: &mut called, all: Vec::new() };
        let speaker = parts.message(message)?;
        let parts = parts.all;
        match (speaker, turns.last_mut()) {
            (None, None) => system.extend(parts),
            (None, Some(_)) => {
                let rule = "user, assistant or tool after the first turn for this model";
                return Err(unsupported(format!("messages[{at}].role"), rule));
            }
            (Some(speaker), Some((last, turn))) if *last == speaker => turn.extend(parts),
            (Some(speaker), Some(_) | None) => turns.push((speaker, parts)),
        }
    }
    let turn = |(speaker, parts): (_, Vec<_>)| {
        Draft::object([("role", Draft::from(speaker)), ("parts", parts.into())])
    };
    Ok(Conversation { system, turns: turns.into_iter().map(turn).collect() })
}

/// What one message becomes.
struct Parts<'a, 'c> {
    /// Which message.
    at: usize,
    skip_signatures: bool,
    /// Which function each earlier call called: a result says it again.
    called: &'c mut BTreeMap<&'a str, &'a str>,
    all: Vec<Draft<'a>>,
}

impl<'a> Parts<'a, '_> {
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
            Role::Assistant(_) => Some("model"),
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

    /// Nothing where there is none: an empty part is refused there.
    fn text(&mut self, text: &'a str) {
        if !text.is_empty() {
            self.all.push(Draft::object([("text", text.into())]));
        }
    }

    fn part(&mut self, at: usize, part: &'a Part) -> Result<(), Unsupported> {
        let member = |name: &str| format!("content[{at}].{name}");
        if part.cache_breakpoint.is_some() {
            return self.refused(&member("prompt_cache_breakpoint"), LEFT_OUT);
        }
        match &part.item {
            Item::Text(text) | Item::Refusal(text) => self.text(text),
            Item::Image { detail: Some(_), .. } => {
                return self.refused(&member("image_url.detail"), "auto for this model");
            }
            Item::Image { url, detail: None } => {
                let Some(picture) = sent_along(url, &PICTURES) else {
                    let rule =
                        "a data: URL of a PNG, JPEG, WebP, HEIC or HEIF in base64 for this model";
                    return self.refused(&member("image_url.url"), rule);
                };
                self.all.push(picture);
            }
            Item::Audio { data, format } => {
                let media = match format {
                    RecordingFormat::Wav => "audio/wav",
                    RecordingFormat::Mp3 => "audio/mp3",
                };
                self.all.push(inline(media.to_owned(), data));
            }
            Item::File { id: Some(_), .. } => {
                return self.refused(&member("file.file_id"), LEFT_OUT);
            }
            Item::File { id: None, name: _, data } => {
                let document = data.as_deref().and_then(|url| sent_along(url, &DOCUMENTS));
                let Some(document) = document else {
                    let rule = "a data: URL of a PDF or a plain text in base64 for this model";
                    return self.refused(&member("file.file_data"), rule);
                };
                self.all.push(document);
            }
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
        let Some(input) = arguments(input) else {
            return self.refused(&member("function.arguments"), "a JSON object for this model");
        };
        self.called.insert(id, name);
        let call = Draft::object([
            ("id", Draft::from(id.as_str())),
            ("name", name.as_str().into()),
            ("args", Draft::Json(input)),
        ]);
        // Of calls that were made at once, the first one has the signature.
        let unsigned = (self.skip_signatures && at == 0)
            .then(|| ("thoughtSignature", Draft::from(NO_SIGNATURE)));
        self.all.push(Draft::object([Some(("functionCall", call)), unsigned]));
        Ok(())
    }

    fn result(
        &mut self,
        call_id: &'a str,
        content: Option<&'a Content>,
    ) -> Result<(), Unsupported> {
        let Some(name) = self.called.get(call_id).copied() else {
            return self.refused("tool_call_id", "the id of an earlier call for this model");
        };
        let texts: Vec<_> = content.into_iter().flat_map(Content::texts).collect();
        let is_text = |part: &Part| matches!(part.item, Item::Text(_));
        if let Some(Content::Parts(parts)) = content
            && !parts.iter().all(|part| is_text(part) && part.cache_breakpoint.is_none())
        {
            return self.refused("content", "text without marks for this model");
        }
        let said = Draft::object([("output", Draft::from(texts.concat()))]);
        let result = Draft::object([
            ("id", Draft::from(call_id)),
            ("name", name.into()),
            ("response", said),
        ]);
        self.all.push(Draft::object([("functionResponse", result)]));
        Ok(())
    }
}

fn sent_along<'a>(url: &'a str, known: &[&str]) -> Option<Draft<'a>> {
    let (media, data) = data_url(url)?;
    known.contains(&media.as_str()).then(|| inline(media, data))
}

fn inline(media: String, data: &str) -> Draft<'_> {
    let members = [("mimeType", Draft::from(media)), ("data", data.into())];
    Draft::object([("inlineData", Draft::object(members))])
}
