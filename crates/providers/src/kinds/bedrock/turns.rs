//! Spelling of a conversation for Bedrock.

use std::borrow::Cow;

use holdfast_domain::request::{Content, ContentPart, Item, ToolCall};
use holdfast_domain::state::ProviderStates;
use holdfast_wire::json::Draft;

use crate::media::{BEDROCK_DOCUMENTS, Inline, PICTURES, inline};
use crate::reasoning;
use crate::tools::arguments;
use crate::turns::{Blocks, TurnEncoder, blocks_of};

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

    fn text(&self, text: Cow<'a, str>) -> Draft<'a> {
        Draft::object([("text", Draft::Text(text))])
    }

    fn mark(&self, blocks: &mut Blocks<'a>) {
        let point = Draft::object([("type", "default".into())]);
        blocks.push(Draft::object([("cachePoint", point)]));
    }

    fn part(&mut self, blocks: &mut Blocks<'a>, part: &'a ContentPart) {
        blocks.extend(match &part.item {
            Item::Text(text) | Item::Refusal(text) => {
                (!text.is_empty()).then(|| self.text(text.as_str().into()))
            }
            Item::Image { url, .. } => inline(url, &PICTURES)
                .map(|picture| Draft::object([("image", source(&picture, None))])),
            Item::File { data, .. } => {
                self.documents = self.documents.saturating_add(1);
                // A name of the caller's could be read as an instruction.
                let name = format!("document {}", self.documents);
                data.as_deref()
                    .and_then(|url| inline(url, &BEDROCK_DOCUMENTS))
                    .map(|document| Draft::object([("document", source(&document, Some(name)))]))
            }
            // Refused before.
            Item::Audio { .. } => None,
        });
        if part.cache_breakpoint.is_some() {
            self.mark(blocks);
        }
    }

    fn call(&mut self, blocks: &mut Blocks<'a>, _at: usize, call: &'a ToolCall) {
        let ToolCall { id, name, input, .. } = call;
        // Before the call, as it came: models refuse signed thoughts that come back otherwise.
        if let Some(state) = self.states.get(id) {
            reasoning::restore(blocks, state);
        }
        let call = Draft::object([
            ("toolUseId", Draft::from(id.as_str())),
            ("name", name.as_str().into()),
            ("input", Draft::Json(arguments(input))),
        ]);
        blocks.push(Draft::object([("toolUse", call)]));
    }

    fn result(&mut self, call_id: &'a str, content: Option<&'a Content>) -> Draft<'a> {
        let blocks = blocks_of(self, content);
        let result =
            Draft::object([("toolUseId", Draft::from(call_id)), ("content", blocks.into())]);
        Draft::object([("toolResult", result)])
    }
}

fn source<'a>(inline: &Inline<'a>, name: Option<String>) -> Draft<'a> {
    Draft::object([
        Some(("format", Draft::from(inline.format))),
        name.map(|name| ("name", name.into())),
        Some(("source", Draft::object([("bytes", inline.base64.into())]))),
    ])
}
