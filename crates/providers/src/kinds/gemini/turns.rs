//! Spelling of a conversation for Gemini.

use std::borrow::Cow;
use std::collections::BTreeMap;

use holdfast_domain::request::{Content, ContentPart, Item, RecordingFormat, ToolCall};
use holdfast_domain::state::{ProviderState, ProviderStates};
use holdfast_wire::json::Draft;

use crate::media::{GEMINI_DOCUMENTS, GEMINI_PICTURES, Inline, inline};
use crate::tools::arguments;
use crate::turns::{Blocks, TurnEncoder};

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

    fn text(&self, text: Cow<'a, str>) -> Draft<'a> {
        Draft::object([("text", Draft::Text(text))])
    }

    /// Refused before.
    fn mark(&self, _blocks: &mut Blocks<'a>) {}

    fn part(&mut self, blocks: &mut Blocks<'a>, part: &'a ContentPart) {
        let sent_along = |Inline { media, base64, .. }| data(media, base64);
        blocks.extend(match &part.item {
            Item::Text(text) | Item::Refusal(text) => {
                (!text.is_empty()).then(|| self.text(text.as_str().into()))
            }
            Item::Image { url, .. } => inline(url, &GEMINI_PICTURES).map(sent_along),
            Item::Audio { data: base64, format } => {
                let media = match format {
                    RecordingFormat::Wav => "audio/wav",
                    RecordingFormat::Mp3 => "audio/mp3",
                };
                Some(data(media, base64))
            }
            Item::File { data, .. } => {
                data.as_deref().and_then(|url| inline(url, &GEMINI_DOCUMENTS)).map(sent_along)
            }
        });
    }

    fn call(&mut self, blocks: &mut Blocks<'a>, at: usize, call: &'a ToolCall) {
        let ToolCall { id, name, input, .. } = call;
        self.called.insert(id, name);
        let call = Draft::object([
            ("id", Draft::from(id.as_str())),
            ("name", name.as_str().into()),
            ("args", Draft::Json(arguments(input))),
        ]);
        // Of calls that were made at once, the first one has the signature.
        let unsigned = (self.skip_signatures && at == 0).then_some(NO_SIGNATURE);
        let signature = self.states.get(id).map(ProviderState::as_str).or(unsigned);
        let signature = signature.map(|text| ("thoughtSignature", Draft::from(text)));
        blocks.push(Draft::object([Some(("functionCall", call)), signature]));
    }

    fn result(&mut self, call_id: &'a str, content: Option<&'a Content>) -> Draft<'a> {
        let texts: Vec<_> = content.into_iter().flat_map(Content::texts).collect();
        let output = Draft::object([("output", Draft::from(texts.concat()))]);
        let name = self.called.get(call_id).copied();
        let result = Draft::object([
            Some(("id", Draft::from(call_id))),
            name.map(|name| ("name", name.into())),
            Some(("response", output)),
        ]);
        Draft::object([("functionResponse", result)])
    }
}

fn data<'a>(media: &'a str, base64: &'a str) -> Draft<'a> {
    let members = [("mimeType", Draft::from(media)), ("data", base64.into())];
    Draft::object([("inlineData", Draft::object(members))])
}
