//! Translation of a request into the body of Google's Gemini API.
//!
//! Every field has its place there, or means what its absence means there too, or is refused by
//! name: none is dropped, and no value is clamped. The refusal comes from `check_supported`, before
//! anything is sent; the same translation runs again, with the states of earlier calls, to render.
//!
//! Put in by the gateway: `maxOutputTokens`, always, because the hold was made with it. Left to the
//! address: the model's name and the choice of streaming. Sent as they are: extra fields, unless
//! their name is one of `WRITTEN`, in either of the two spellings that the API takes.
//!
//! Limits: `CANDIDATES_MAX`, `STOPS_MAX`, a seed of 32 bits.

use holdfast_domain::ports::{Call, UnsupportedParam};
use holdfast_domain::request::{
    Function, JsonSchema, Modalities, ReasoningEffort, Request, ResponseFormat, ServiceTier,
    ToolChoice, ToolMode, Verbosity,
};
use holdfast_domain::state::ProviderStates;
use holdfast_wire::json::Draft;

use super::turns::ContentsEncoder;
use crate::turns::{self, Conversation};
use crate::unsupported::{LEFT_OUT, callable_functions, extras, refuse, unsupported};

type GenerateField<'a> = (&'a str, Draft<'a>);

/// Members that are written here, in either spelling: an extra field of such a name would stand
/// there twice.
const WRITTEN: [&str; 11] = [
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

/// Candidates that may be asked for.
const CANDIDATES_MAX: u32 = 8;
/// Stop sequences that may be asked for.
const STOPS_MAX: usize = 5;

/// Body but for the bound on output: its members, and those of `generationConfig`.
pub(super) struct GenerateRequest<'a> {
    members: Vec<GenerateField<'a>>,
    generation: Vec<GenerateField<'a>>,
}

/// The body for a call. The model's name is part of the address.
pub(crate) fn render(call: &Call, skip_signatures: bool) -> Result<Vec<u8>, UnsupportedParam> {
    let GenerateRequest { mut members, mut generation } =
        translate(&call.request, skip_signatures, &call.states)?;
    generation.insert(0, ("maxOutputTokens", call.max_output_tokens.into()));
    members.push(("generationConfig", Draft::Object(generation)));
    Ok(Draft::Object(members).to_bytes())
}

/// Everything but the bound on output.
pub(super) fn translate<'a>(
    request: &'a Request,
    skip_signatures: bool,
    states: &'a ProviderStates,
) -> Result<GenerateRequest<'a>, UnsupportedParam> {
    refuse_what_has_no_place(request)?;
    let Conversation { system, turns } =
        turns::translate(&request.messages, ContentsEncoder::new(skip_signatures, states))?;
    let mut members = Vec::new();
    if !system.is_empty() {
        members.push(("systemInstruction", Draft::object([("parts", system.into())])));
    }
    members.push(("contents", turns.into()));
    members.extend(tools(request)?);
    let tier = match request.service_tier {
        None | Some(ServiceTier::Auto) => None,
        Some(ServiceTier::Default) => Some("standard"),
        Some(ServiceTier::Flex) => Some("flex"),
        Some(ServiceTier::Priority) => Some("priority"),
        Some(ServiceTier::Scale | ServiceTier::Fast) => {
            let rule = "auto, default, flex or priority for this model";
            return Err(unsupported("service_tier".to_owned(), rule));
        }
    };
    members.extend(tier.map(|tier| ("serviceTier", tier.into())));
    members.extend(extras(request, &WRITTEN)?);
    Ok(GenerateRequest { members, generation: generation(request)? })
}

fn refuse_what_has_no_place(request: &Request) -> Result<(), UnsupportedParam> {
    // Every field is named, so that a new one has to be thought of.
    let Request {
        model: _,
        messages: _,
        max_output_tokens: _,
        n,
        temperature: _,
        top_p: _,
        presence_penalty: _,
        frequency_penalty: _,
        stop,
        seed,
        user,
        metadata,
        logprobs,
        top_logprobs,
        logit_bias,
        tools,
        tool_choice: _,
        parallel_tool_calls,
        functions,
        function_call,
        response_format: _,
        modalities,
        audio,
        prediction,
        reasoning_effort: _,
        verbosity,
        service_tier: _,
        store,
        safety_identifier,
        prompt_cache_key,
        prompt_cache_retention,
        prompt_cache_options,
        web_search_options,
        moderation,
        extras: _,
    } = request;
    let alone = *parallel_tool_calls == Some(false) && !tools.is_empty();
    refuse([
        ("n", *n > CANDIDATES_MAX, "8 at most for this model"),
        ("stop", stop.len() > STOPS_MAX, "five sequences at most for this model"),
        (
            "seed",
            seed.is_some_and(|seed| i32::try_from(seed).is_err()),
            "of 32 bits for this model",
        ),
        ("user", user.is_some(), LEFT_OUT),
        ("metadata", !metadata.is_empty(), LEFT_OUT),
        ("logprobs", *logprobs, "false for this model"),
        ("top_logprobs", top_logprobs.is_some(), LEFT_OUT),
        ("logit_bias", !logit_bias.is_empty(), LEFT_OUT),
        ("parallel_tool_calls", alone, "true or left out for this model"),
        ("functions", !functions.is_empty(), "sent as `tools` for this model"),
        ("function_call", function_call.is_some(), "sent as `tool_choice` for this model"),
        ("modalities", *modalities != Modalities::Text, "text alone for this model"),
        ("audio", audio.is_some(), LEFT_OUT),
        ("prediction", prediction.is_some(), LEFT_OUT),
        ("verbosity", verbosity.is_some_and(|said| said != Verbosity::Medium), LEFT_OUT),
        ("store", *store == Some(true), "false for this model"),
        ("safety_identifier", safety_identifier.is_some(), LEFT_OUT),
        ("prompt_cache_key", prompt_cache_key.is_some(), LEFT_OUT),
        ("prompt_cache_retention", prompt_cache_retention.is_some(), LEFT_OUT),
        ("prompt_cache_options", prompt_cache_options.is_some(), LEFT_OUT),
        ("web_search_options", web_search_options.is_some(), LEFT_OUT),
        ("moderation", moderation.is_some(), LEFT_OUT),
    ])
}

fn tools(request: &Request) -> Result<Vec<GenerateField<'_>>, UnsupportedParam> {
    let offered = callable_functions(request)?;
    let is_strict = offered.iter().any(|function| function.strict == Some(true));
    let offered: Vec<_> = offered.into_iter().map(tool_of).collect();
    if offered.is_empty() {
        return Ok(Vec::new());
    }
    let declared = Draft::object([("functionDeclarations", offered.into())]);
    let mut members = vec![("tools", vec![declared].into())];
    members.extend(mode(request, is_strict).map(|mode| {
        ("toolConfig", Draft::object([("functionCallingConfig", Draft::Object(mode))]))
    }));
    Ok(members)
}

fn tool_of(function: &Function) -> Draft<'_> {
    let Function { name, description, parameters, strict: _ } = function;
    let description = description.as_deref().map(|text| ("description", text.into()));
    let parameters = parameters.as_ref().map(|schema| ("parametersJsonSchema", schema.into()));
    Draft::object([Some(("name", name.as_str().into())), description, parameters])
}

/// Calls that must keep to their schema do so where the model has to call, and where it is told to.
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

/// Members of `generationConfig`: sampling, stop sequences, the shape of the answer, reasoning.
fn generation(request: &Request) -> Result<Vec<GenerateField<'_>>, UnsupportedParam> {
    let mut members = Vec::new();
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
        members.extend(schema(format)?.map(|schema| ("responseJsonSchema", schema)));
    }
    members.extend(thinking(request)?.map(|thinking| ("thinkingConfig", thinking)));
    Ok(members)
}

fn schema(format: &ResponseFormat) -> Result<Option<Draft<'_>>, UnsupportedParam> {
    let ResponseFormat::JsonSchema(JsonSchema { name: _, description, schema, strict: _ }) = format
    else {
        return Ok(None);
    };
    if description.is_some() {
        let param = "response_format.json_schema.description";
        return Err(unsupported(param.to_owned(), LEFT_OUT));
    }
    let Some(schema) = schema else {
        let param = "response_format.json_schema.schema";
        return Err(unsupported(param.to_owned(), "there for this model"));
    };
    Ok(Some(schema.into()))
}

fn thinking(request: &Request) -> Result<Option<Draft<'_>>, UnsupportedParam> {
    let level = match request.reasoning_effort {
        None => return Ok(None),
        Some(ReasoningEffort::None) => {
            // No level means none at all: a budget of 0 turns reasoning off.
            return Ok(Some(Draft::object([("thinkingBudget", 0_u64.into())])));
        }
        Some(ReasoningEffort::Minimal) => "MINIMAL",
        Some(ReasoningEffort::Low) => "LOW",
        Some(ReasoningEffort::Medium) => "MEDIUM",
        Some(ReasoningEffort::High) => "HIGH",
        Some(ReasoningEffort::Xhigh) => "XHIGH",
        Some(ReasoningEffort::Max) => {
            let rule = "none, minimal, low, medium, high or xhigh for this model";
            return Err(unsupported("reasoning_effort".to_owned(), rule));
        }
    };
    let members = [("thinkingLevel", Draft::from(level)), ("includeThoughts", true.into())];
    Ok(Some(Draft::object(members)))
}
