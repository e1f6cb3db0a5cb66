//! Translation of a request into the body of Anthropic's Messages API.
//!
//! Every field has its place there, or means what its absence means there too, or was refused by
//! name ([`refusals`](crate::refusals)): none is dropped, and no value is clamped.
//!
//! Put in by the gateway: `max_tokens`, always, because the hold was made with it, the model's
//! name, and `stream`. Sent as they are: extra fields, unless their name is one of `WRITTEN`.

use holdfast_domain::ports::{Call, ResponseMode};
use holdfast_domain::request::{
    Function, ReasoningEffort, Request, ResponseFormat, ServiceTier, ToolChoice, ToolMode,
};
use holdfast_wire::json::Draft;

use super::turns::MessagesEncoder;
use crate::refusals::is_other;
use crate::schema::described;
use crate::tools::{NO_PARAMETERS, callable_functions};
use crate::turns::{self, Conversation};

type MessagesField<'a> = (&'a str, Draft<'a>);

/// Members that are written here: an extra field of such a name would stand there twice.
pub(super) const WRITTEN: [&str; 15] = [
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

/// Body for a call.
pub(super) fn render(call: &Call) -> Vec<u8> {
    let request = &*call.request;
    let mut members =
        vec![("model", Draft::from(&*call.model)), ("max_tokens", call.max_output_tokens.into())];
    let Conversation { system, turns } =
        turns::translate(&request.messages, MessagesEncoder(&call.states));
    if !system.is_empty() {
        members.push(("system", system.into()));
    }
    members.push(("messages", turns.into()));
    let offered: Vec<_> = callable_functions(request).into_iter().map(tool_of).collect();
    if !offered.is_empty() {
        members.push(("tools", offered.into()));
        members.extend(choice(request).map(|choice| ("tool_choice", choice)));
    }
    if !request.stop.is_empty() {
        let stop: Vec<_> = request.stop.iter().map(|text| text.as_str().into()).collect();
        members.push(("stop_sequences", stop.into()));
    }
    // 1 is the default of both, and models without sampling take neither field.
    for (name, value) in [("temperature", request.temperature), ("top_p", request.top_p)] {
        let number = value.filter(|_number| is_other(value, 1));
        members.extend(number.map(|number| (name, number.into())));
    }
    reasoning_and_shape(request, &mut members);
    if let Some(user) = request.user.as_ref().or(request.safety_identifier.as_ref()) {
        members.push(("metadata", Draft::object([("user_id", user.as_str().into())])));
    }
    let is_standard = request.service_tier == Some(ServiceTier::Default);
    let tier = request.service_tier.map(|_| if is_standard { "standard_only" } else { "auto" });
    members.extend(tier.map(|tier| ("service_tier", tier.into())));
    members.extend(request.extras.iter().map(|(name, value)| (name.as_str(), value.into())));
    if call.response_mode == ResponseMode::Streamed {
        members.push(("stream", true.into()));
    }
    Draft::object(members).to_bytes()
}

fn tool_of(function: &Function) -> Draft<'_> {
    let Function { name, description, parameters, strict, extras } = function;
    let schema = parameters.as_ref().map_or(Draft::Json(NO_PARAMETERS), Draft::from);
    let members = [
        Some(("name", name.as_str().into())),
        description.as_deref().map(|text| ("description", text.into())),
        Some(("input_schema", schema)),
        (*strict == Some(true)).then(|| ("strict", true.into())),
    ];
    let extras = extras.iter().map(|(name, value)| (name.as_str(), value.into()));
    Draft::object(members.into_iter().flatten().chain(extras))
}

/// Choice of a tool; `None` if the request makes none: the model then calls as it likes.
fn choice(request: &Request) -> Option<Draft<'_>> {
    let alone = request.parallel_tool_calls == Some(false);
    let (kind, name) = match &request.tool_choice {
        None if !alone => return None,
        None => ("auto", None),
        Some(ToolChoice::Named { name, .. }) => ("tool", Some(name.as_str())),
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

/// Members for the effort of reasoning and for the shape of the answer.
fn reasoning_and_shape<'a>(request: &'a Request, members: &mut Vec<MessagesField<'a>>) {
    let requested = request.reasoning_effort;
    let effort = requested.filter(|effort| *effort != ReasoningEffort::None);
    let effort = effort.map(|effort| ("effort", Draft::from(effort.label())));
    let format = request.response_format.as_ref().and_then(format);
    if effort.is_some() || format.is_some() {
        let format = format.map(|format| ("format", format));
        members.push(("output_config", Draft::object([effort, format])));
    }
    let kind = requested.map(|requested| match requested {
        ReasoningEffort::None => "disabled",
        ReasoningEffort::Minimal
        | ReasoningEffort::Low
        | ReasoningEffort::Medium
        | ReasoningEffort::High
        | ReasoningEffort::Xhigh
        | ReasoningEffort::Max => "adaptive",
    });
    members.extend(kind.map(|kind| ("thinking", Draft::object([("type", kind.into())]))));
}

fn format(format: &ResponseFormat) -> Option<Draft<'_>> {
    let ResponseFormat::JsonSchema(requested) = format else { return None };
    let schema = described(requested)?;
    Some(Draft::object([("type", "json_schema".into()), ("schema", schema)]))
}
