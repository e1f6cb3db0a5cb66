//! Translation of a request into the body of Bedrock's Converse API.
//!
//! Every field has its place there, or means what its absence means there too, or was refused by
//! name ([`refusals`](crate::refusals)): none is dropped, and no value is clamped.
//!
//! Sent as they are: extra fields, unless their name is one of `WRITTEN`. Put in by the gateway:
//! `maxTokens`, always, because the hold was made with it. Left to the address: the model's name
//! and the choice of streaming.

use holdfast_domain::ports::Call;
use holdfast_domain::request::{
    Function, Request, ResponseFormat, ServiceTier, ToolChoice, ToolMode,
};
use holdfast_wire::json::Draft;

use super::turns::ConverseEncoder;
use crate::tools::{NO_PARAMETERS, callable_functions};
use crate::turns::{self, Conversation};

type ConverseField<'a> = (&'a str, Draft<'a>);

/// Members that are written here: an extra field of such a name would stand there twice.
pub(super) const WRITTEN: [&str; 8] = [
    "modelId",
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "outputConfig",
    "serviceTier",
    "requestMetadata",
];

/// Body for a call. The model's name is part of the address.
pub(super) fn render(call: &Call) -> Vec<u8> {
    let request = &*call.request;
    let Conversation { system, turns } =
        turns::translate(&request.messages, ConverseEncoder::new(&call.states));
    let mut members = Vec::new();
    if !system.is_empty() {
        members.push(("system", system.into()));
    }
    members.push(("messages", turns.into()));
    members.extend(tools(request).map(|tools| ("toolConfig", tools)));
    let format = request.response_format.as_ref().and_then(format);
    let format = format.map(|format| Draft::object([("textFormat", format)]));
    members.extend(format.map(|format| ("outputConfig", format)));
    let tier = request.service_tier.filter(|tier| *tier != ServiceTier::Auto);
    let tier = tier.map(|tier| Draft::object([("type", tier.label().into())]));
    members.extend(tier.map(|tier| ("serviceTier", tier)));
    if !request.metadata.is_empty() {
        let pairs = request.metadata.iter();
        let pairs = pairs.map(|(name, value)| (name.as_str(), Draft::from(value.as_str())));
        members.push(("requestMetadata", Draft::object(pairs)));
    }
    members.extend(request.extras.iter().map(|(name, value)| (name.as_str(), value.into())));
    members.push(("inferenceConfig", Draft::Object(inference(call))));
    Draft::Object(members).to_bytes()
}

fn tools(request: &Request) -> Option<Draft<'_>> {
    let spec = |function| Draft::object([("toolSpec", tool_of(function))]);
    let offered: Vec<_> = callable_functions(request).into_iter().map(spec).collect();
    if offered.is_empty() {
        return None;
    }
    let choice = match &request.tool_choice {
        None => None,
        Some(ToolChoice::Named { name, .. }) => {
            Some(("tool", Draft::object([("name", name.as_str().into())])))
        }
        Some(ToolChoice::Mode(mode) | ToolChoice::Allowed { mode, .. }) => match mode {
            // Refused before.
            ToolMode::None => None,
            ToolMode::Auto => Some(("auto", Draft::Object(Vec::new()))),
            ToolMode::Required => Some(("any", Draft::Object(Vec::new()))),
        },
    };
    Some(Draft::object([
        Some(("tools", offered.into())),
        choice.map(|choice| ("toolChoice", Draft::object([choice]))),
    ]))
}

fn tool_of(function: &Function) -> Draft<'_> {
    let Function { name, description, parameters, strict, extras: _ } = function;
    let schema = parameters.as_ref().map_or(Draft::Json(NO_PARAMETERS), Draft::from);
    let description = description.as_deref().filter(|text| !text.is_empty());
    Draft::object([
        Some(("name", name.as_str().into())),
        description.map(|text| ("description", text.into())),
        Some(("inputSchema", Draft::object([("json", schema)]))),
        (*strict == Some(true)).then(|| ("strict", true.into())),
    ])
}

/// Members of `inferenceConfig`: the bound, sampling and stop sequences.
fn inference(call: &Call) -> Vec<ConverseField<'_>> {
    let request = &*call.request;
    let mut members = vec![("maxTokens", call.max_output_tokens.into())];
    for (name, number) in [("temperature", request.temperature), ("topP", request.top_p)] {
        members.extend(number.map(|number| (name, number.into())));
    }
    if !request.stop.is_empty() {
        let stop: Vec<_> = request.stop.iter().map(|text| text.as_str().into()).collect();
        members.push(("stopSequences", stop.into()));
    }
    members
}

fn format(format: &ResponseFormat) -> Option<Draft<'_>> {
    let ResponseFormat::JsonSchema(requested) = format else { return None };
    let schema = Draft::object([
        Some(("schema", Draft::from(requested.schema.as_ref()?.as_str()))),
        Some(("name", requested.name.as_str().into())),
        requested.description.as_deref().map(|text| ("description", text.into())),
    ]);
    let structure = Draft::object([("jsonSchema", schema)]);
    Some(Draft::object([("type", "json_schema".into()), ("structure", structure)]))
}
