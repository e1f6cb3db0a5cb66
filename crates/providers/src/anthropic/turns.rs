//! Spelling of a conversation for Anthropic, and the parts of it that Anthropic cannot take.

use holdfast_domain::ports::UnsupportedParam;
use holdfast_domain::request::{Content, ContentPart, Item, ToolCall};
use holdfast_domain::state::ProviderStates;
use holdfast_wire::json::Draft;

use crate::reasoning;
use crate::turns::{Blocks, TurnEncoder};
use crate::unsupported::{LEFT_OUT, data_url};

/// Places in a prompt that may be marked for the cache.
const MARKS_MAX: usize = 4;

const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// Spells as Anthropic does.
pub(super) struct MessagesEncoder<'a> {
    /// Thoughts that came with earlier calls, by the id of the call.
    states: &'a ProviderStates,
    /// Marks for the cache so far.
    marks: usize,
}

impl<'a> MessagesEncoder<'a> {
    pub(super) const fn new(states: &'a ProviderStates) -> Self {
        Self { states, marks: 0 }
    }
}

impl<'a> TurnEncoder<'a> for MessagesEncoder<'a> {
    const MODEL: &'static str = "assistant";
    const BLOCKS: &'static str = "content";

    fn text(&self, text: &'a str) -> Draft<'a> {
        Draft::object(text_of(text))
    }

    fn part(
        &mut self,
        blocks: &mut Blocks<'a>,
        at: usize,
        part: &'a ContentPart,
    ) -> Result<(), UnsupportedParam> {
        let member = |name: &str| format!("content[{at}].{name}");
        let mut block = match &part.item {
            Item::Text(text) | Item::Refusal(text) if text.is_empty() => return Ok(()),
            Item::Text(text) | Item::Refusal(text) => Vec::from(text_of(text)),
            Item::Image { detail: Some(_), .. } => {
                return blocks.refused(&member("image_url.detail"), "auto for this model");
            }
            Item::Image { url, detail: None } => match picture(url) {
                Some(source) => vec![("type", "image".into()), ("source", source)],
                None => {
                    let rule = "http: or https:, or a data: URL of a JPEG, PNG, GIF or WebP in base64, for \
                                this model";
                    return blocks.refused(&member("image_url.url"), rule);
                }
            },
            Item::Audio { .. } => {
                return blocks.refused(&member("type"), "text, image_url or file for this model");
            }
            Item::File { id: Some(_), .. } => {
                return blocks.refused(&member("file.file_id"), LEFT_OUT);
            }
            Item::File { id: None, name, data } => {
                let Some(source) = data.as_deref().and_then(document) else {
                    let rule = "a data: URL of a PDF in base64 for this model";
                    return blocks.refused(&member("file.file_data"), rule);
                };
                let mut block = vec![("type", "document".into()), ("source", source)];
                block.extend(name.as_deref().map(|name| ("title", name.into())));
                block
            }
        };
        if let Some(mark) = part.cache_breakpoint {
            self.marks += 1;
            if mark.ttl.is_some() {
                return blocks.refused(&member("prompt_cache_breakpoint.ttl"), LEFT_OUT);
            }
            if self.marks > MARKS_MAX {
                let rule = "at four places at most for this model";
                return blocks.refused(&member("prompt_cache_breakpoint"), rule);
            }
            block.push(("cache_control", Draft::object([("type", "ephemeral".into())])));
        }
        blocks.all.push(Draft::Object(block));
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
        // Before the call, as it came: the API refuses signed thoughts that come back otherwise.
        if let Some(state) = self.states.get(id) {
            reasoning::restore(blocks, state);
        }
        blocks.all.push(Draft::object([
            ("type", Draft::from("tool_use")),
            ("id", id.as_str().into()),
            ("name", name.as_str().into()),
            ("input", Draft::Json(input)),
        ]));
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
        blocks.content(self, content)?;
        let said = std::mem::take(&mut blocks.all);
        blocks.all.push(Draft::object([
            Some(("type", Draft::from("tool_result"))),
            Some(("tool_use_id", call_id.into())),
            // A tool that said nothing has a result without content: empty blocks are refused.
            (!said.is_empty()).then(|| ("content", said.into())),
        ]));
        Ok(())
    }
}

const ID: &str = "an id of letters, digits, underscores and hyphens for this model";

fn is_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

fn text_of(text: &str) -> [(&'static str, Draft<'_>); 2] {
    [("type", "text".into()), ("text", text.into())]
}

fn picture(url: &str) -> Option<Draft<'_>> {
    if let Some((media, data)) = data_url(url) {
        return PICTURES.contains(&media.as_str()).then(|| base64_source(media, data));
    }
    let is_web = |scheme: &str| {
        url.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    };
    (is_web("https:") || is_web("http:"))
        .then(|| Draft::object([("type", "url".into()), ("url", url.into())]))
}

fn document(url: &str) -> Option<Draft<'_>> {
    let (media, data) = data_url(url)?;
    (media == "application/pdf").then(|| base64_source(media, data))
}

fn base64_source(media: String, data: &str) -> Draft<'_> {
    Draft::object([
        ("type", Draft::from("base64")),
        ("media_type", media.into()),
        ("data", data.into()),
    ])
}
