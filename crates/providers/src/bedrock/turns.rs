//! Spelling of a conversation for Bedrock, and the parts of it that Bedrock cannot take.

use holdfast_domain::ports::UnsupportedParam;
use holdfast_domain::request::{Content, ContentPart, Item, ToolCall};
use holdfast_domain::state::ProviderStates;
use holdfast_wire::json::Draft;

use crate::reasoning;
use crate::turns::{Blocks, TurnEncoder};
use crate::unsupported::{LEFT_OUT, data_url};

const PICTURES: [(&str, &str); 4] =
    [("image/png", "png"), ("image/jpeg", "jpeg"), ("image/gif", "gif"), ("image/webp", "webp")];
const DOCUMENTS: [(&str, &str); 4] = [
    ("application/pdf", "pdf"),
    ("text/plain", "txt"),
    ("text/markdown", "md"),
    ("text/csv", "csv"),
];

/// Spells as Bedrock does.
pub(super) struct ConverseEncoder<'a> {
    /// Thoughts that came with earlier calls, by the id of the call.
    states: &'a ProviderStates,
    /// Documents so far: each has a name, and no two the same.
    documents: usize,
}

impl<'a> ConverseEncoder<'a> {
    pub(super) const fn new(states: &'a ProviderStates) -> Self {
        Self { states, documents: 0 }
    }
}

impl<'a> TurnEncoder<'a> for ConverseEncoder<'a> {
    const MODEL: &'static str = "assistant";
    const BLOCKS: &'static str = "content";

    fn text(&self, text: &'a str) -> Draft<'a> {
        Draft::object([("text", text.into())])
    }

    fn part(
        &mut self,
        blocks: &mut Blocks<'a>,
        at: usize,
        part: &'a ContentPart,
    ) -> Result<(), UnsupportedParam> {
        let member = |name: &str| format!("content[{at}].{name}");
        match &part.item {
            Item::Text(text) | Item::Refusal(text) => blocks.text(self, text),
            Item::Image { detail: Some(_), .. } => {
                return blocks.refused(&member("image_url.detail"), "auto for this model");
            }
            Item::Image { url, detail: None } => {
                let Some(picture) = inline_data_url(url, &PICTURES, None) else {
                    let rule = "a data: URL of a PNG, JPEG, GIF or WebP in base64 for this model";
                    return blocks.refused(&member("image_url.url"), rule);
                };
                blocks.all.push(Draft::object([("image", picture)]));
            }
            Item::Audio { .. } => {
                return blocks.refused(&member("type"), "text, image_url or file for this model");
            }
            Item::File { id: Some(_), .. } => {
                return blocks.refused(&member("file.file_id"), LEFT_OUT);
            }
            Item::File { id: None, name: _, data } => {
                self.documents += 1;
                // A name of the caller's could be read as an instruction.
                let name = format!("document {}", self.documents);
                let document =
                    data.as_deref().and_then(|url| inline_data_url(url, &DOCUMENTS, Some(name)));
                let Some(document) = document else {
                    let rule =
                        "a data: URL of a PDF, a text, Markdown or CSV in base64 for this model";
                    return blocks.refused(&member("file.file_data"), rule);
                };
                blocks.all.push(Draft::object([("document", document)]));
            }
        }
        if let Some(mark) = part.cache_breakpoint {
            if mark.ttl.is_some() {
                return blocks.refused(&member("prompt_cache_breakpoint.ttl"), LEFT_OUT);
            }
            let point = Draft::object([("type", "default".into())]);
            blocks.all.push(Draft::object([("cachePoint", point)]));
        }
        Ok(())
    }

    fn call(
        &mut self,
        blocks: &mut Blocks<'a>,
        at: usize,
        (call, input): (&'a ToolCall, &'a str),
    ) -> Result<(), UnsupportedParam> {
        let ToolCall { id, name, .. } = call;
        if !is_id(id) {
            return blocks.refused(&format!("tool_calls[{at}].id"), ID);
        }
        // Before the call, as it came: models refuse signed thoughts that come back otherwise.
        if let Some(state) = self.states.get(id) {
            reasoning::restore(blocks, state);
        }
        let call = Draft::object([
            ("toolUseId", Draft::from(id.as_str())),
            ("name", name.as_str().into()),
            ("input", Draft::Json(input)),
        ]);
        blocks.all.push(Draft::object([("toolUse", call)]));
        Ok(())
    }

    fn result(
        &mut self,
        blocks: &mut Blocks<'a>,
        call_id: &'a str,
        content: Option<&'a Content>,
    ) -> Result<(), UnsupportedParam> {
        if !is_id(call_id) {
            return blocks.refused("tool_call_id", ID);
        }
        let is_bare = |part: &ContentPart| {
            matches!(part.item, Item::Text(_)) && part.cache_breakpoint.is_none()
        };
        if let Some(Content::Parts(parts)) = content
            && !parts.iter().all(is_bare)
        {
            return blocks.refused("content", "text without marks for this model");
        }
        blocks.content(self, content)?;
        let said = std::mem::take(&mut blocks.all);
        let result = Draft::object([("toolUseId", Draft::from(call_id)), ("content", said.into())]);
        blocks.all.push(Draft::object([("toolResult", result)]));
        Ok(())
    }
}

const ID: &str = "an id of 1 to 64 letters, digits, `_`, `-`, `.` and `:` for this model";

fn is_id(id: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte);
    (1..=64).contains(&id.len()) && id.bytes().all(is_plain)
}

fn inline_data_url<'a>(
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
