//! Translation of a request into the body of Anthropic's Messages API.
//!
//! Every field has its place there, or means what its absence means there too, or is refused by
//! name: none is dropped, and no value is clamped. The refusal comes from `check_supported`, before
//! anything is sent; the same translation runs again, with the states of earlier calls, to render.
//!
//! Put in by the gateway: `max_tokens`, always, because the hold was made with it, the model's
//! name, and `stream`. Sent as they are: extra fields, unless their name is one of `WRITTEN`.
//!
//! Limits: `temperature` and `top_p` from 0 to 1, for models that sample and requests without
//! reasoning. `user` and `safety_identifier` share one place, so they must be the same.

use std::collections::BTreeSet;

use holdfast_domain::ports::{Call, ResponseMode, UnsupportedParam};
use holdfast_domain::request::{
    Function, JsonSchema, Message, Modalities, ReasoningEffort, Request, ResponseFormat,
    ServiceTier, ToolChoice, ToolKind, ToolMode, Verbosity,
};
use holdfast_domain::state::ProviderStates;
use holdfast_wire::json::Draft;

use super::turns::MessagesEncoder;
use crate::turns::{self, Conversation};
use crate::unsupported::{
    LEFT_OUT, NO_PARAMETERS, callable_functions, extras, is_non_default, refuse, unsupported,
};

type MessagesField<'a> = (&'a str, Draft<'a>);

/// Members that are written here: an extra field of such a name would stand there twice.
const WRITTEN: [&str; 15] = [
    "model",
    "max_tokens",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "stop_sequences",
    "temperature",
    "top_p",
    "output_config",
    "output_format",
    "thinking",
    "metadata",
    "service_tier",
    "stream",
];

/// The body for a call.
pub(crate) fn render(call: &Call, sampling: bool) -> Result<Vec<u8>, UnsupportedParam> {
    let mut members =
        vec![("model", Draft::from(&*call.model)), ("max_tokens", call.max_output_tokens.into())];
    members.extend(translate(&call.request, sampling, &call.states)?);
    if call.response_mode == ResponseMode::Streamed {
        members.push(("stream", true.into()));
    }
    Ok(Draft::object(members).to_bytes())
}

/// Everything but the model's name and the bound on output.
pub(super) fn translate<'a>(
    request: &'a Request,
    sampling: bool,
    states: &'a ProviderStates,
) -> Result<Vec<MessagesField<'a>>, UnsupportedParam> {
    refuse_what_has_no_place(request)?;
    let mut members = conversation(&request.messages, states)?;
    members.extend(tools(request)?);
    if !request.stop.is_empty() {
        let stop: Vec<_> = request.stop.iter().map(|text| text.as_str().into()).collect();
        members.push(("stop_sequences", stop.into()));
    }
    sampled(&mut members, request, sampling)?;
    members.extend(output(request)?);
    members.extend(service(request)?);
    members.extend(extras(request, &WRITTEN)?);
    Ok(members)
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
        user: _,
        metadata,
        logprobs,
        top_logprobs,
        logit_bias,
        tools: _,
        tool_choice: _,
        parallel_tool_calls: _,
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
        safety_identifier: _,
        prompt_cache_key,
        prompt_cache_retention,
        prompt_cache_options,
        web_search_options,
        moderation,
        extras: _,
    } = request;
    refuse([
        ("n", *n != 1, "1 for this model"),
        ("presence_penalty", is_non_default(*presence_penalty, 0), LEFT_OUT),
        ("frequency_penalty", is_non_default(*frequency_penalty, 0), LEFT_OUT),
        ("seed", seed.is_some(), LEFT_OUT),
        ("metadata", !metadata.is_empty(), LEFT_OUT),
        ("logprobs", *logprobs, "false for this model"),
        ("top_logprobs", top_logprobs.is_some(), LEFT_OUT),
        ("logit_bias", !logit_bias.is_empty(), LEFT_OUT),
        ("functions", !functions.is_empty(), "sent as `tools` for this model"),
        ("function_call", function_call.is_some(), "sent as `tool_choice` for this model"),
        ("modalities", *modalities != Modalities::Text, "text alone for this model"),
        ("audio", audio.is_some(), LEFT_OUT),
        ("prediction", prediction.is_some(), LEFT_OUT),
        ("verbosity", verbosity.is_some_and(|said| said != Verbosity::Medium), LEFT_OUT),
        ("store", *store == Some(true), "false for this model"),
        ("prompt_cache_key", prompt_cache_key.is_some(), LEFT_OUT),
        ("prompt_cache_retention", prompt_cache_retention.is_some(), LEFT_OUT),
        ("prompt_cache_options", prompt_cache_options.is_some(), LEFT_OUT),
        ("web_search_options", web_search_options.is_some(), LEFT_OUT),
        ("moderation", moderation.is_some(), LEFT_OUT),
    ])
}

fn conversation<'a>(
    messages: &'a [Message],
    states: &'a ProviderStates,
) -> Result<Vec<MessagesField<'a>>, UnsupportedParam> {
    let Conversation { system, turns } = turns::translate(messages, MessagesEncoder::new(states))?;
    let mut members = Vec::new();
    if !system.is_empty() {
        members.push(("system", system.into()));
    }
    members.push(("messages", turns.into()));
    Ok(members)
}

fn tools(request: &Request) -> Result<Vec<MessagesField<'_>>, UnsupportedParam> {
    let offered: Vec<_> = callable_functions(request)?.into_iter().map(tool_of).collect();
    let mut members = Vec::new();
    if !offered.is_empty() {
        members.push(("tools", offered.into()));
        members.extend(choice(request).map(|choice| ("tool_choice", choice)));
    }
    Ok(members)
}

fn tool_of(function: &Function) -> Draft<'_> {
    let Function { name, description, parameters, strict } = function;
    let schema = parameters.as_ref().map_or(Draft::Json(NO_PARAMETERS), Draft::from);
    Draft::object([
        Some(("name", name.as_str().into())),
        description.as_deref().map(|text| ("description", text.into())),
        Some(("input_schema", schema)),
        (*strict == Some(true)).then(|| ("strict", true.into())),
    ])
}

/// Choice of a tool; `None` where the request makes none: the model then calls as it likes.
fn choice(request: &Request) -> Option<Draft<'_>> {
    let alone = request.parallel_tool_calls == Some(false);
    let (kind, name) = match &request.tool_choice {
        None if !alone => return None,
        None => ("auto", None),
        Some(ToolChoice::Named { kind: ToolKind::Function | ToolKind::Custom, name }) => {
            ("tool", Some(name.as_str()))
        }
        Some(ToolChoice::Mode(mode) | ToolChoice::Allowed { mode, .. }) => match mode {
            ToolMode::None => ("none", None),
            ToolMode::Auto => ("auto", None),
            ToolMode::Required => ("any", None),
        },
    };
    Some(Draft::object([
        Some(("type", kind.into())),
        name.map(|name| ("name", name.into())),
        // The API has this flag only within a choice, so `auto` is written out to carry it.
        (alone && kind != "none").then(|| ("disable_parallel_tool_use", true.into())),
    ]))
}

/// Sampling parameters, for models that have them. 1 is the default of both, and is left out.
fn sampled<'a>(
    members: &mut Vec<MessagesField<'a>>,
    request: &'a Request,
    sampling: bool,
) -> Result<(), UnsupportedParam> {
    for (name, value) in [("temperature", request.temperature), ("top_p", request.top_p)] {
        let Some(number) = value.filter(|_number| is_non_default(value, 1)) else { continue };
        if !sampling {
            return Err(unsupported(name.to_owned(), "1 or left out for this model"));
        }
        if !number.is_within(0, 1) {
            return Err(unsupported(name.to_owned(), "a number from 0 to 1 for this model"));
        }
        if has_thinking(request) {
            return Err(unsupported(name.to_owned(), "left out where the model reasons"));
        }
        members.push((name, number.into()));
    }
    Ok(())
}

fn has_thinking(request: &Request) -> bool {
    request.reasoning_effort.is_some_and(|effort| effort != ReasoningEffort::None)
}

/// Members for the effort of reasoning and for the shape of the answer.
fn output(request: &Request) -> Result<Vec<MessagesField<'_>>, UnsupportedParam> {
    let effort = match request.reasoning_effort {
        None | Some(ReasoningEffort::None) => None,
        Some(ReasoningEffort::Minimal) => {
            let rule = "none, low, medium, high, xhigh or max for this model";
            return Err(unsupported("reasoning_effort".to_owned(), rule));
        }
        Some(
            effort @ (ReasoningEffort::Low
            | ReasoningEffort::Medium
            | ReasoningEffort::High
            | ReasoningEffort::Xhigh
            | ReasoningEffort::Max),
        ) => Some(effort.label()),
    };
    if effort.is_some() && must_call(request) {
        let rule = "none or left out where a tool must be called for this model";
        return Err(unsupported("reasoning_effort".to_owned(), rule));
    }
    let format = request.response_format.as_ref().map(format).transpose()?;
    let mut members = Vec::new();
    if effort.is_some() || format.is_some() {
        let effort = effort.map(|effort| ("effort", effort.into()));
        let format = format.map(|format| ("format", format));
        members.push(("output_config", Draft::object([effort, format])));
    }
    if let Some(asked) = request.reasoning_effort {
        let kind = if asked == ReasoningEffort::None { "disabled" } else { "adaptive" };
        members.push(("thinking", Draft::object([("type", kind.into())])));
    }
    Ok(members)
}

/// Models refuse to think before a call that they are told to make.
fn must_call(request: &Request) -> bool {
    match &request.tool_choice {
        None => false,
        Some(ToolChoice::Named { .. }) => true,
        Some(ToolChoice::Mode(mode) | ToolChoice::Allowed { mode, .. }) => match mode {
            ToolMode::None | ToolMode::Auto => false,
            ToolMode::Required => true,
        },
    }
}

fn format(format: &ResponseFormat) -> Result<Draft<'_>, UnsupportedParam> {
    let ResponseFormat::JsonSchema(JsonSchema { name: _, description, schema, strict: _ }) = format
    else {
        let rule = "text or json_schema for this model";
        return Err(unsupported("response_format.type".to_owned(), rule));
    };
    if description.is_some() {
        let param = "response_format.json_schema.description";
        return Err(unsupported(param.to_owned(), LEFT_OUT));
    }
    let Some(schema) = schema else {
        let param = "response_format.json_schema.schema";
        return Err(unsupported(param.to_owned(), "there for this model"));
    };
    Ok(Draft::object([("type", "json_schema".into()), ("schema", schema.into())]))
}

fn service(request: &Request) -> Result<Vec<MessagesField<'_>>, UnsupportedParam> {
    let mut members = Vec::new();
    let users: BTreeSet<_> = request.user.iter().chain(&request.safety_identifier).collect();
    // A set of the two: the same value twice is one user.
    if users.len() > 1 {
        let rule = "left out, or the same as `safety_identifier`, for this model";
        return Err(unsupported("user".to_owned(), rule));
    }
    if let Some(user) = users.into_iter().next() {
        members.push(("metadata", Draft::object([("user_id", user.as_str().into())])));
    }
    match request.service_tier {
        None => {}
        Some(ServiceTier::Auto) => members.push(("service_tier", "auto".into())),
        Some(ServiceTier::Default) => members.push(("service_tier", "standard_only".into())),
        Some(
            ServiceTier::Flex | ServiceTier::Scale | ServiceTier::Priority | ServiceTier::Fast,
        ) => {
            let rule = "auto or default for this model";
            return Err(unsupported("service_tier".to_owned(), rule));
        }
    }
    Ok(members)
}
