//! Translation of a request into the body of Bedrock's Converse API.
//!
//! Every field has its place there, or means what its absence means there too, or is refused by
//! name: none is dropped, because a caller who is billed must get what was asked for. The refusal
//! comes in `check_supported`, before anything is held or sent; the same translation runs again
//! with the call's states to render.
//!
//! Sent as they are: extra fields, unless their name is one of `WRITTEN`. Put in by the gateway:
//! `maxTokens`, always, because the hold was made with it. Left to the address: the model's name
//! and the choice of streaming.
//!
//! Limits: `temperature` and `top_p` from 0 to 1.

use std::collections::BTreeMap;

use holdfast_domain::ports::{Call, UnsupportedParam};
use holdfast_domain::request::{
    Function, JsonSchema, Modalities, Request, ResponseFormat, ServiceTier, ToolChoice, ToolMode,
    Verbosity,
};
use holdfast_domain::state::ProviderStates;
use holdfast_wire::json::Draft;

use super::turns::ConverseEncoder;
use crate::turns::{self, Conversation};
use crate::unsupported::{
    LEFT_OUT, NO_PARAMETERS, callable_functions, extras, refuse, unsupported,
};

type ConverseField<'a> = (&'a str, Draft<'a>);

/// Members that are written here: an extra field of such a name would stand there twice.
const WRITTEN: [&str; 8] = [
    "modelId",
    "messages",
    "system",
    "inferenceConfig",
    "toolConfig",
    "outputConfig",
    "serviceTier",
    "requestMetadata",
];

/// Body but for the bound on output: its members, and those of `inferenceConfig`.
pub(super) struct ConverseRequest<'a> {
    members: Vec<ConverseField<'a>>,
    inference: Vec<ConverseField<'a>>,
}

/// The body for a call. The model's name is part of the address.
pub(crate) fn render(call: &Call) -> Result<Vec<u8>, UnsupportedParam> {
    let ConverseRequest { mut members, mut inference } = translate(&call.request, &call.states)?;
    inference.insert(0, ("maxTokens", call.max_output_tokens.into()));
    members.push(("inferenceConfig", Draft::Object(inference)));
    Ok(Draft::Object(members).to_bytes())
}

/// Everything but the bound on output.
pub(super) fn translate<'a>(
    request: &'a Request,
    states: &'a ProviderStates,
) -> Result<ConverseRequest<'a>, UnsupportedParam> {
    refuse_what_has_no_place(request)?;
    let Conversation { system, turns } =
        turns::translate(&request.messages, ConverseEncoder::new(states))?;
    let mut members = Vec::new();
    if !system.is_empty() {
        members.push(("system", system.into()));
    }
    members.push(("messages", turns.into()));
    members.extend(tools(request)?.map(|tools| ("toolConfig", tools)));
    let format = request.response_format.as_ref().map(format).transpose()?;
    let format = format.map(|format| Draft::object([("textFormat", format)]));
    members.extend(format.map(|format| ("outputConfig", format)));
    members.extend(tier(request)?.map(|tier| ("serviceTier", tier)));
    if !request.metadata.is_empty() {
        members.push(("requestMetadata", pairs(&request.metadata)));
    }
    members.extend(extras(request, &WRITTEN)?);
    Ok(ConverseRequest { members, inference: inference(request)? })
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
        presence_penalty,
        frequency_penalty,
        stop: _,
        seed,
        user,
        metadata: _,
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
        reasoning_effort,
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
    let other = crate::unsupported::is_non_default;
    refuse([
        ("n", *n != 1, "1 for this model"),
        ("presence_penalty", other(*presence_penalty, 0), LEFT_OUT),
        ("frequency_penalty", other(*frequency_penalty, 0), LEFT_OUT),
        ("seed", seed.is_some(), LEFT_OUT),
        ("user", user.is_some(), LEFT_OUT),
        ("logprobs", *logprobs, "false for this model"),
        ("top_logprobs", top_logprobs.is_some(), LEFT_OUT),
        ("logit_bias", !logit_bias.is_empty(), LEFT_OUT),
        ("parallel_tool_calls", alone, "true or left out for this model"),
        ("functions", !functions.is_empty(), "sent as `tools` for this model"),
        ("function_call", function_call.is_some(), "sent as `tool_choice` for this model"),
        ("modalities", *modalities != Modalities::Text, "text alone for this model"),
        ("audio", audio.is_some(), LEFT_OUT),
        ("prediction", prediction.is_some(), LEFT_OUT),
        ("reasoning_effort", reasoning_effort.is_some(), LEFT_OUT),
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

fn tools(request: &Request) -> Result<Option<Draft<'_>>, UnsupportedParam> {
    let spec = |function| Draft::object([("toolSpec", tool_of(function))]);
    let offered: Vec<_> = callable_functions(request)?.into_iter().map(spec).collect();
    if offered.is_empty() {
        return Ok(None);
    }
    let choice = match &request.tool_choice {
        None => None,
        Some(ToolChoice::Named { kind: _, name }) => {
            let named = Draft::object([("name", name.as_str().into())]);
            Some(("tool", named))
        }
        Some(ToolChoice::Mode(mode) | ToolChoice::Allowed { mode, .. }) => match mode {
            // Converse has no such choice, and to leave the tools out would drop a field.
            ToolMode::None => {
                let rule = "auto, required or a function where there are tools for this model";
                return Err(unsupported("tool_choice".to_owned(), rule));
            }
            ToolMode::Auto => Some(("auto", Draft::Object(Vec::new()))),
            ToolMode::Required => Some(("any", Draft::Object(Vec::new()))),
        },
    };
    Ok(Some(Draft::object([
        Some(("tools", offered.into())),
        choice.map(|choice| ("toolChoice", Draft::object([choice]))),
    ])))
}

fn tool_of(function: &Function) -> Draft<'_> {
    let Function { name, description, parameters, strict } = function;
    let schema = parameters.as_ref().map_or(Draft::Json(NO_PARAMETERS), Draft::from);
    let description = description.as_deref().filter(|text| !text.is_empty());
    Draft::object([
        Some(("name", name.as_str().into())),
        description.map(|text| ("description", text.into())),
        Some(("inputSchema", Draft::object([("json", schema)]))),
        (*strict == Some(true)).then(|| ("strict", true.into())),
    ])
}

/// Members of `inferenceConfig`: sampling and stop sequences. Out of range is refused, never
/// clamped.
fn inference(request: &Request) -> Result<Vec<ConverseField<'_>>, UnsupportedParam> {
    let mut members = Vec::new();
    for (field, name, value) in
        [("temperature", "temperature", request.temperature), ("top_p", "topP", request.top_p)]
    {
        let Some(number) = value else { continue };
        if !number.is_within(0, 1) {
            return Err(unsupported(field.to_owned(), "a number from 0 to 1 for this model"));
        }
        members.push((name, number.into()));
    }
    if !request.stop.is_empty() {
        let stop: Vec<_> = request.stop.iter().map(|text| text.as_str().into()).collect();
        members.push(("stopSequences", stop.into()));
    }
    Ok(members)
}

fn format(format: &ResponseFormat) -> Result<Draft<'_>, UnsupportedParam> {
    let ResponseFormat::JsonSchema(JsonSchema { name, description, schema, strict: _ }) = format
    else {
        let rule = "text or json_schema for this model";
        return Err(unsupported("response_format.type".to_owned(), rule));
    };
    let Some(schema) = schema else {
        let param = "response_format.json_schema.schema";
        return Err(unsupported(param.to_owned(), "there for this model"));
    };
    let schema = Draft::object([
        Some(("schema", Draft::from(schema.as_str()))),
        Some(("name", name.as_str().into())),
        description.as_deref().map(|text| ("description", text.into())),
    ]);
    let structure = Draft::object([("jsonSchema", schema)]);
    Ok(Draft::object([("type", "json_schema".into()), ("structure", structure)]))
}

fn tier(request: &Request) -> Result<Option<Draft<'_>>, UnsupportedParam> {
    let tier = match request.service_tier {
        None | Some(ServiceTier::Auto) => return Ok(None),
        Some(tier @ (ServiceTier::Default | ServiceTier::Flex | ServiceTier::Priority)) => {
            tier.label()
        }
        Some(ServiceTier::Scale | ServiceTier::Fast) => {
            let rule = "auto, default, flex or priority for this model";
            return Err(unsupported("service_tier".to_owned(), rule));
        }
    };
    Ok(Some(Draft::object([("type", tier.into())])))
}

fn pairs(pairs: &BTreeMap<String, String>) -> Draft<'_> {
    Draft::object(pairs.iter().map(|(name, value)| (name.as_str(), Draft::from(value.as_str()))))
}
