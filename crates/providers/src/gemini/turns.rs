//! Spelling of a conversation for Gemini, and the parts of it that Gemini cannot take.

use std::collections::BTreeMap;

use holdfast_domain::ports::UnsupportedParam;
use holdfast_domain::request::{Content, ContentPart, Item, RecordingFormat, ToolCall};
use holdfast_domain::state::{ProviderState, ProviderStates};
use holdfast_wire::json::Draft;

use crate::turns::{Blocks, TurnEncoder};
use crate::unsupported::{LEFT_OUT, data_url};

const PICTURES: [&str; 5] = ["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"];
const DOCUMENTS: [&str; 2] = ["application/pdf", "text/plain"];

/// Signature that Google documents for calls that another model made: it is not checked.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Spells as Gemini does.
pub(super) struct ContentsEncoder<'a> {
    skip_signatures: bool,
    /// The signatures that earlier calls came with.
    states: &'a ProviderStates,
    /// Names of the functions that were called, by the id of the call: a result must repeat its
    /// name.
    called: BTreeMap<&'a str, &'a str>,
}

impl<'a> ContentsEncoder<'a> {
    pub(super) const fn new(skip_signatures: bool, states: &'a ProviderStates) -> Self {
        Self { skip_signatures, states, called: BTreeMap::new() }
    }
}

impl<'a> TurnEncoder<'a> for ContentsEncoder<'a> {
    const MODEL: &'static str = "model";
    const BLOCKS: &'static str = "parts";

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
        if part.cache_breakpoint.is_some() {
            return blocks.refused(&member("prompt_cache_breakpoint"), LEFT_OUT);
        }
        match &part.item {
            Item::Text(text) | Item::Refusal(text) => blocks.text(self, text),
            Item::Image { detail: Some(_), .. } => {
                return blocks.refused(&member("image_url.detail"), "auto for this model");
            }
            Item::Image { url, detail: None } => {
                let Some(picture) = inline_data_url(url, &PICTURES) else {
                    let rule =
                        "a data: URL of a PNG, JPEG, WebP, HEIC or HEIF in base64 for this model";
                    return blocks.refused(&member("image_url.url"), rule);
                };
                blocks.all.push(picture);
            }
            Item::Audio { data, format } => {
                let media = match format {
                    RecordingFormat::Wav => "audio/wav",
                    RecordingFormat::Mp3 => "audio/mp3",
                };
                blocks.all.push(inline(media.to_owned(), data));
            }
            Item::File { id: Some(_), .. } => {
                return blocks.refused(&member("file.file_id"), LEFT_OUT);
            }
            Item::File { id: None, name: _, data } => {
                let document = data.as_deref().and_then(|url| inline_data_url(url, &DOCUMENTS));
                let Some(document) = document else {
                    let rule = "a data: URL of a PDF or a plain text in base64 for this model";
                    return blocks.refused(&member("file.file_data"), rule);
                };
                blocks.all.push(document);
            }
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
        self.called.insert(id, name);
        let call = Draft::object([
            ("id", Draft::from(id.as_str())),
            ("name", name.as_str().into()),
            ("args", Draft::Json(input)),
        ]);
        // Of calls that were made at once, the first one has the signature.
        let unsigned = (self.skip_signatures && at == 0).then_some(NO_SIGNATURE);
        let signature = self.states.get(id).map(ProviderState::as_str).or(unsigned);
        let signature = signature.map(|text| ("thoughtSignature", Draft::from(text)));
        blocks.all.push(Draft::object([Some(("functionCall", call)), signature]));
        Ok(())
    }

    fn result(
        &mut self,
        blocks: &mut Blocks<'a>,
        call_id: &'a str,
        content: Option<&'a Content>,
    ) -> Result<(), UnsupportedParam> {
        let Some(name) = self.called.get(call_id).copied() else {
            return blocks.refused("tool_call_id", "the id of an earlier call for this model");
        };
        let texts: Vec<_> = content.into_iter().flat_map(Content::texts).collect();
        let is_text = |part: &ContentPart| matches!(part.item, Item::Text(_));
        if let Some(Content::Parts(parts)) = content
            && !parts.iter().all(|part| is_text(part) && part.cache_breakpoint.is_none())
        {
            return blocks.refused("content", "text without marks for this model");
        }
        let said = Draft::object([("output", Draft::from(texts.concat()))]);
        let result = Draft::object([
            ("id", Draft::from(call_id)),
            ("name", name.into()),
            ("response", said),
        ]);
        blocks.all.push(Draft::object([("functionResponse", result)]));
        Ok(())
    }
}

fn inline_data_url<'a>(url: &'a str, known: &[&str]) -> Option<Draft<'a>> {
    let (media, data) = data_url(url)?;
    known.contains(&media.as_str()).then(|| inline(media, data))
}

fn inline(media: String, data: &str) -> Draft<'_> {
    let members = [("mimeType", Draft::from(media)), ("data", data.into())];
    Draft::object([("inlineData", Draft::object(members))])
}
