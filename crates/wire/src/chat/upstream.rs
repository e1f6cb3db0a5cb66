//! OpenAI's dialect towards a provider, as every compatible server takes it: the request that is sent,
//! and the answer that is read leniently but never guessed. What a status proves is not decided here.

mod answer;
mod failure;
mod usage;

use std::collections::BTreeMap;

use holdfast_domain::request::{Content, Decimal, Message, Request};
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

pub use self::answer::{Completion, Unreadable, read_completion};
pub use self::failure::{UpstreamError, read_error};
use crate::render;

/// Under which name a server reads the bound on output tokens. Never both: some servers refuse that,
/// and one that ignores the name it is sent would run without a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundField {
    /// The older name, the only one that some compatible servers read.
    MaxTokens,
    /// The newer name, the only one that OpenAI's reasoning models take.
    MaxCompletionTokens,
}

/// Renders a request for a provider: `model` is what the provider calls it, `max_output_tokens` is
/// always sent, `stream` never. Equal requests are equal bytes.
#[must_use]
pub fn render_request(
    request: &Request,
    model: &str,
    max_output_tokens: u64,
    bound_field: BoundField,
) -> Vec<u8> {
    let bound = |field| (bound_field == field).then_some(max_output_tokens);
    render::to_bytes(&Body {
        model,
        messages: request.messages.iter().map(Turn::of).collect(),
        max_tokens: bound(BoundField::MaxTokens),
        max_completion_tokens: bound(BoundField::MaxCompletionTokens),
        n: (request.n != 1).then_some(request.n),
        temperature: request.temperature.map(Number),
        top_p: request.top_p.map(Number),
        presence_penalty: request.presence_penalty.map(Number),
        frequency_penalty: request.frequency_penalty.map(Number),
        stop: &request.stop,
        seed: request.seed,
        user: request.user.as_deref(),
        metadata: &request.metadata,
    })
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<Number>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metadata: &'a BTreeMap<String, String>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    content: Option<Said<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Said<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
struct Part<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

impl<'a> Turn<'a> {
    fn of(message: &'a Message) -> Self {
        let content = message.content.as_ref().map(|content| match content {
            Content::Text(text) => Said::Text(text),
            Content::Parts(texts) => {
                Said::Parts(texts.iter().map(|text| Part { kind: "text", text }).collect())
            }
        });
        Self { role: message.role.label(), name: message.name.as_deref(), content }
    }
}

/// Written digit by digit: a float would be another number.
struct Number(Decimal);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.0.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}
