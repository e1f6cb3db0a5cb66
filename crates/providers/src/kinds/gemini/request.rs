//! Translation of a request into the body of Google's Gemini API.
//!
//! Every field has its place there, or means what its absence means there too, or was refused by
//! name ([`refusals`](crate::refusals)): none is dropped, and no value is clamped.
//!
//! Put in by the gateway: `maxOutputTokens`, always, because the hold was made with it. Left to the
//! address: the model's name and the choice of streaming. Sent as they are: extra fields, unless
//! their name is one of `WRITTEN`, in either of the two spellings that the API takes.

use holdfast_domain::ports::Call;
use holdfast_domain::request::{
    Function, ReasoningEffort, Request, ResponseFormat, ServiceTier, ToolChoice, ToolMode,
};
use holdfast_wire::json::Draft;

use super::turns::ContentsEncoder;
use crate::schema::described;
use crate::tools::callable_functions;
use crate::turns::{self, Conversation};

type GenerateField<'a> = (&'a str, Draft<'a>);

/// Members that are written here, in either spelling: an extra field of such a name would stand
/// there twice.
pub(super) const WRITTEN: [&str; 11] = [
    "model",
    "contents",
    "systemInstruction",
    "system_instruction",
    "tools",
    "toolConfig",
    "tool_config",
    "generationConfig",
    "generation_config",
    "serviceTier",
    "service_tier",
];

/// Body for a call. The model's name is part of the address.
pub(super) fn render(call: &Call, skip_signatures: bool) -> Vec<u8> {
    let request = &*call.request;
    let Conversation { system, turns } =
        turns::translate(&request.messages, ContentsEncoder::new(skip_signatures, &call.states));
    let mut members = Vec::new();
    if !system.is_empty() {
        members.push(("systemInstruction", Draft::object([("parts", system.into())])));
    }
    members.push(("contents", turns.into()));
    members.extend(tools(request));
    let tier = match request.service_tier {
        Some(ServiceTier::Default) => Some("standard"),
        Some(tier @ (ServiceTier::Flex | ServiceTier::Priority)) => Some(tier.label()),
        None | Some(ServiceTier::Auto | ServiceTier::Scale | ServiceTier::Fast) => None,
    };
    members.extend(tier.map(|tier| ("serviceTier", tier.into())));
    members.extend(request.extras.iter().map(|(name, value)| (name.as_str(), value.into())));
    members.push(("generationConfig", Draft::Object(generation(call))));
    Draft::Object(members).to_bytes()
}

fn tools(request: &Request) -> Vec<GenerateField<'_>> {
    let offered = callable_functions(request);
    let is_strict = offered.iter().any(|function| function.strict == Some(true));
    let offered: Vec<_> = offered.into_iter().map(tool_of).collect();
    if offered.is_empty() {
        return Vec::new();
    }
    let declared = Draft::object([("functionDeclarations", offered.into())]);
    let mut members = vec![("tools", vec![declared].into())];
    members.extend(mode(request, is_strict).map(|mode| {
        ("toolConfig", Draft::object([("functionCallingConfig", Draft::Object(mode))]))
    }));
    members
}

fn tool_of(function: &Function) -> Draft<'_> {
    let Function { name, description, parameters, strict: _, extras: _ } = function;
    let description = description.as_deref().map(|text| ("description", text.into()));
    let parameters = parameters.as_ref().map(|schema| ("parametersJsonSchema", schema.into()));
    Draft::object([Some(("name", name.as_str().into())), description, parameters])
}

/// Mode of calls. Calls keep to their schema if the model has to call, or if the request is strict.
fn mode(request: &Request, is_strict: bool) -> Option<Vec<GenerateField<'_>>> {
    let free = if is_strict { Some("VALIDATED") } else { None };
    let (mode, only) = match &request.tool_choice {
        None => (free?, None),
        Some(ToolChoice::Named { kind: _, name }) => ("ANY", Some(name.as_str())),
        Some(ToolChoice::Mode(mode) | ToolChoice::Allowed { mode, .. }) => match mode {
            ToolMode::None => ("NONE", None),
            ToolMode::Auto => (free.unwrap_or("AUTO"), None),
            ToolMode::Required => ("ANY", None),
        },
    };
    let mut members = vec![("mode", mode.into())];
    members.extend(only.map(|name| ("allowedFunctionNames", vec![name.into()].into())));
    Some(members)
}

/// Members of `generationConfig`: the bound, sampling, stop sequences, the shape of the answer,
/// reasoning.
fn generation(call: &Call) -> Vec<GenerateField<'_>> {
    let request = &*call.request;
    let mut members = vec![("maxOutputTokens", call.max_output_tokens.into())];
    if request.n != 1 {
        members.push(("candidateCount", u64::from(request.n).into()));
    }
    for (name, number) in [
        ("temperature", request.temperature),
        ("topP", request.top_p),
        ("presencePenalty", request.presence_penalty),
        ("frequencyPenalty", request.frequency_penalty),
    ] {
        members.extend(number.map(|number| (name, number.into())));
    }
    if !request.stop.is_empty() {
        let stop: Vec<_> = request.stop.iter().map(|text| text.as_str().into()).collect();
        members.push(("stopSequences", stop.into()));
    }
    members.extend(request.seed.map(|seed| ("seed", seed.into())));
    if let Some(format) = &request.response_format {
        members.push(("responseMimeType", "application/json".into()));
        if let ResponseFormat::JsonSchema(requested) = format {
            members.extend(described(requested).map(|schema| ("responseJsonSchema", schema)));
        }
    }
    let thinking = request.reasoning_effort.and_then(thinking);
    members.extend(thinking.map(|thinking| ("thinkingConfig", thinking)));
    members
}

fn thinking(effort: ReasoningEffort) -> Option<Draft<'static>> {
    let level = match effort {
        // No level means none at all: a budget of 0 turns reasoning off.
        ReasoningEffort::None => return Some(Draft::object([("thinkingBudget", 0_u64.into())])),
        ReasoningEffort::Minimal => "MINIMAL",
        ReasoningEffort::Low => "LOW",
        ReasoningEffort::Medium => "MEDIUM",
        ReasoningEffort::High => "HIGH",
        ReasoningEffort::Xhigh => "XHIGH",
        // Refused before.
        ReasoningEffort::Max => return None,
    };
    let members = [("thinkingLevel", Draft::from(level)), ("includeThoughts", true.into())];
    Some(Draft::object(members))
}
