//! Spelling of a conversation for Anthropic.

use std::borrow::Cow;

use holdfast_domain::request::{Content, ContentPart, Item, ToolCall};
use holdfast_domain::state::ProviderStates;
use holdfast_wire::json::Draft;

use crate::media::{ANTHROPIC_DOCUMENTS, Inline, PICTURES, inline};
use crate::reasoning;
use crate::tools::arguments;
use crate::turns::{Blocks, TurnEncoder, blocks_of};

/// Spells as Anthropic does, with the thoughts that came with earlier calls, by the id of the call.
pub(super) struct MessagesEncoder<'a>(pub(super) &'a ProviderStates);

impl<'a> TurnEncoder<'a> for MessagesEncoder<'a> {
    const MODEL: &'static str = "assistant";
    const BLOCKS: &'static str = "content";

    fn text(&self, text: Cow<'a, str>) -> Draft<'a> {
        Draft::object(text_of(text))
    }

    fn mark(&self, blocks: &mut Blocks<'a>) {
        if let Some(Draft::Object(block)) = blocks.last_mut() {
            block.push(("cache_control", Draft::object([("type", "ephemeral".into())])));
        }
    }

    fn part(&mut self, blocks: &mut Blocks<'a>, part: &'a ContentPart) {
        let mut block = match &part.item {
            Item::Text(text) | Item::Refusal(text) if text.is_empty() => return,
            Item::Text(text) | Item::Refusal(text) => Vec::from(text_of(text.as_str().into())),
            Item::Image { url, .. } => {
                let source = match inline(url, &PICTURES) {
                    Some(picture) => base64_source(&picture),
                    None => Draft::object([("type", "url".into()), ("url", url.as_str().into())]),
                };
                vec![("type", "image".into()), ("source", source)]
            }
            Item::File { name, data, .. } => {
                let document = data.as_deref().and_then(|url| inline(url, &ANTHROPIC_DOCUMENTS));
                let mut block = vec![("type", "document".into())];
                block.extend(document.map(|document| ("source", base64_source(&document))));
                block.extend(name.as_deref().map(|name| ("title", name.into())));
                block
            }
            // Refused before.
            Item::Audio { .. } => return,
        };
        block.extend(part.extras.iter().map(|(name, value)| (name.as_str(), value.into())));
        blocks.push(Draft::Object(block));
        if part.cache_breakpoint.is_some() {
            self.mark(blocks);
        }
    }

    fn call(&mut self, blocks: &mut Blocks<'a>, _at: usize, call: &'a ToolCall) {
        let ToolCall { id, name, input, .. } = call;
        // Before the call, as it came: the API refuses signed thoughts that come back otherwise.
        if let Some(state) = self.0.get(id) {
            reasoning::restore(blocks, state);
        }
        blocks.push(Draft::object([
            ("type", Draft::from("tool_use")),
            ("id", id.as_str().into()),
            ("name", name.as_str().into()),
            ("input", Draft::Json(arguments(input))),
        ]));
    }

    fn result(&mut self, call_id: &'a str, content: Option<&'a Content>) -> Draft<'a> {
        let blocks = blocks_of(self, content);
        Draft::object([
            Some(("type", Draft::from("tool_result"))),
            Some(("tool_use_id", call_id.into())),
            // A tool that said nothing has a result without content: empty blocks are refused.
            (!blocks.is_empty()).then(|| ("content", blocks.into())),
        ])
    }
}

fn text_of(text: Cow<'_, str>) -> [(&'static str, Draft<'_>); 2] {
    [("type", "text".into()), ("text", Draft::Text(text))]
}

fn base64_source<'a>(inline: &Inline<'a>) -> Draft<'a> {
    Draft::object([
        ("type", Draft::from("base64")),
        ("media_type", inline.media.into()),
        ("data", inline.base64.into()),
    ])
}
