//! Body of a request to a provider, in OpenAI's dialect.
//!
//! * Equal requests are equal bytes: members come in one fixed order, decimals digit by digit
//!   and never through a float, and opaque JSON as the bytes that were hashed.
//! * A member that is not in the caller's request is not sent, because a default written out would override the
//!   provider's own.
//! * The bound on output tokens is always sent, under exactly one of its two names: the hold on the
//!   caller's wallet was computed from it.
//! * A stream is requested with `include_usage`: without it there would be no meters to settle by.
//! * Members that are unknown here, and that the model accepts by name, come last.

mod message;

use std::collections::BTreeMap;

use holdfast_domain::ports::ResponseMode;
use holdfast_domain::request::{
    Audio, CacheOptions, CustomTool, Decimal, Function, FunctionChoice, JsonSchema, Modalities,
    Opaque, Request, ResponseFormat, Tool, ToolChoice, Voice,
};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use self::message::MessageBody;
use crate::render::{self, Raw};

/// Name under which a server reads the bound on output tokens. Never both: some servers refuse
/// that, and one that ignores the name it is sent would run without a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundField {
    /// The older name, the only one that some compatible servers read.
    MaxTokens,
    /// The newer name, the only one that OpenAI's reasoning models take.
    MaxCompletionTokens,
}

/// Renders a request for a provider: `model` is the provider's name of it, `max_output_tokens` is always sent.
/// A stream is requested with its usage. Equal requests are equal bytes.
#[must_use]
pub fn render_request(
    request: &Request,
    model: &str,
    max_output_tokens: u64,
    bound_field: BoundField,
    arrival: ResponseMode,
) -> Vec<u8> {
    render::to_bytes(&UpstreamBody { request, model, max_output_tokens, bound_field, arrival })
}

struct UpstreamBody<'a> {
    request: &'a Request,
    model: &'a str,
    max_output_tokens: u64,
    bound_field: BoundField,
    arrival: ResponseMode,
}

impl Serialize for UpstreamBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.request;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", self.model)?;
        map.serialize_entry("messages", &request.turns().map(MessageBody).collect::<Vec<_>>())?;
        let bound = match self.bound_field {
            BoundField::MaxTokens => "max_tokens",
            BoundField::MaxCompletionTokens => "max_completion_tokens",
        };
        // Always sent, also where the caller named none: the hold is an upper bound of the charge only if the
        // provider keeps to this one.
        map.serialize_entry(bound, &self.max_output_tokens)?;
        // One choice is what its absence means.
        put(&mut map, "n", (request.n != 1).then_some(request.n))?;
        sampling(&mut map, request)?;
        tools(&mut map, request)?;
        output(&mut map, request)?;
        service(&mut map, request)?;
        match self.arrival {
            ResponseMode::Whole => {}
            ResponseMode::Streamed => {
                map.serialize_entry("stream", &true)?;
                // Without it a stream ends without a report of usage, and the charge would rest on an own count.
                map.serialize_entry("stream_options", &SingleMember("include_usage", true))?;
            }
        }
        put_extras(&mut map, &request.extras)?;
        map.end()
    }
}

fn sampling<M: SerializeMap>(map: &mut M, request: &Request) -> Result<(), M::Error> {
    put(map, "temperature", request.temperature.map(Number))?;
    put(map, "top_p", request.top_p.map(Number))?;
    put(map, "presence_penalty", request.presence_penalty.map(Number))?;
    put(map, "frequency_penalty", request.frequency_penalty.map(Number))?;
    // Always a list, however the caller spelled it: one request is sent in one spelling.
    put(map, "stop", (!request.stop.is_empty()).then_some(&request.stop))?;
    put(map, "seed", request.seed)?;
    put(map, "user", request.user.as_ref())?;
    put(map, "metadata", (!request.metadata.is_empty()).then_some(&request.metadata))?;
    // False is the default: a provider without this option must not refuse a request that does not use it.
    put(map, "logprobs", request.logprobs.then_some(true))?;
    put(map, "top_logprobs", request.top_logprobs)?;
    put(map, "logit_bias", (!request.logit_bias.is_empty()).then_some(&request.logit_bias))
}

fn tools<M: SerializeMap>(map: &mut M, request: &Request) -> Result<(), M::Error> {
    let tools = &request.tools;
    put(map, "tools", (!tools.is_empty()).then(|| all(tools, ToolBody)))?;
    put(map, "tool_choice", request.tool_choice.as_ref().map(ToolChoiceBody))?;
    put(map, "parallel_tool_calls", request.parallel_tool_calls)?;
    let functions = &request.functions;
    put(map, "functions", (!functions.is_empty()).then(|| all(functions, FunctionBody)))?;
    match &request.function_call {
        None => Ok(()),
        Some(FunctionChoice::None) => map.serialize_entry("function_call", "none"),
        Some(FunctionChoice::Auto) => map.serialize_entry("function_call", "auto"),
        Some(FunctionChoice::Named(name)) => {
            map.serialize_entry("function_call", &SingleMember("name", name))
        }
    }
}

fn output<M: SerializeMap>(map: &mut M, request: &Request) -> Result<(), M::Error> {
    put(map, "response_format", request.response_format.as_ref().map(FormatBody))?;
    let modalities: Option<&[&str]> = match request.modalities {
        Modalities::Text => None,
        Modalities::Audio => Some(&["audio"]),
        Modalities::Both => Some(&["text", "audio"]),
    };
    put(map, "modalities", modalities)?;
    put(map, "audio", request.audio.as_ref().map(AudioBody))?;
    put(map, "prediction", request.prediction.as_ref().map(Json))?;
    put(map, "reasoning_effort", request.reasoning_effort.map(|effort| effort.label()))?;
    put(map, "verbosity", request.verbosity.map(|verbosity| verbosity.label()))
}

fn service<M: SerializeMap>(map: &mut M, request: &Request) -> Result<(), M::Error> {
    put(map, "service_tier", request.service_tier.map(|tier| tier.label()))?;
    put(map, "store", request.store)?;
    put(map, "safety_identifier", request.safety_identifier.as_ref())?;
    put(map, "prompt_cache_key", request.prompt_cache_key.as_ref())?;
    let retention = request.prompt_cache_retention.map(|retention| retention.label());
    put(map, "prompt_cache_retention", retention)?;
    put(map, "prompt_cache_options", request.prompt_cache_options.map(CacheBody))?;
    put(map, "web_search_options", request.web_search_options.as_ref().map(Json))?;
    put(map, "moderation", request.moderation.as_ref().map(Json))
}

/// Writes a member, if it has a value.
fn put<M: SerializeMap>(
    map: &mut M,
    name: &str,
    value: Option<impl Serialize>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(name, &value))
}

/// Writes members that are not known here. Sorted by name, as the fingerprint has them: the order in the
/// caller's body changes no byte here.
fn put_extras<M: SerializeMap>(
    map: &mut M,
    extras: &BTreeMap<String, Opaque>,
) -> Result<(), M::Error> {
    extras.iter().try_for_each(|(name, value)| map.serialize_entry(name, &Json(value)))
}

fn all<'a, T, W>(items: &'a [T], wrap: impl Fn(&'a T) -> W) -> Vec<W> {
    items.iter().map(wrap).collect()
}

/// A decimal, written digit by digit: a float would be another number.
struct Number(Decimal);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Raw(self.0.to_string()).serialize(serializer)
    }
}

/// Opaque JSON, sent as the bytes that were hashed.
struct Json<'a>(&'a Opaque);

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Raw(self.0.as_str()).serialize(serializer)
    }
}

/// An object of one member.
struct SingleMember<'a, T>(&'a str, T);

impl<T: Serialize> Serialize for SingleMember<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(self.0, &self.1)])
    }
}

/// An object of a `type` and one member that has the type's name.
struct TaggedObject<'a, T>(&'a str, T);

impl<T: Serialize> Serialize for TaggedObject<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", self.0)?;
        map.serialize_entry(self.0, &self.1)?;
        map.end()
    }
}

struct ToolBody<'a>(&'a Tool);

impl Serialize for ToolBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let extras = match self.0 {
            Tool::Function(function) => {
                map.serialize_entry("type", "function")?;
                map.serialize_entry("function", &FunctionBody(function))?;
                &function.extras
            }
            Tool::Custom(custom) => {
                map.serialize_entry("type", "custom")?;
                map.serialize_entry("custom", &CustomToolBody(custom))?;
                &custom.extras
            }
        };
        put_extras(&mut map, extras)?;
        map.end()
    }
}

struct FunctionBody<'a>(&'a Function);

impl Serialize for FunctionBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Function { name, description, parameters, strict, extras: _ } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", name)?;
        put(&mut map, "description", description.as_ref())?;
        put(&mut map, "parameters", parameters.as_ref().map(Json))?;
        put(&mut map, "strict", *strict)?;
        map.end()
    }
}

struct CustomToolBody<'a>(&'a CustomTool);

impl Serialize for CustomToolBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CustomTool { name, description, format, extras: _ } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", name)?;
        put(&mut map, "description", description.as_ref())?;
        put(&mut map, "format", format.as_ref().map(Json))?;
        map.end()
    }
}

struct ToolChoiceBody<'a>(&'a ToolChoice);

impl Serialize for ToolChoiceBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ToolChoice::Mode(mode) => mode.label().serialize(serializer),
            ToolChoice::Named { kind, name } => {
                TaggedObject(kind.label(), SingleMember("name", name)).serialize(serializer)
            }
            ToolChoice::Allowed { mode, tools } => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("type", "allowed_tools")?;
                map.serialize_entry("allowed_tools", &AllowedTools(mode.label(), tools))?;
                map.end()
            }
        }
    }
}

struct AllowedTools<'a>(&'a str, &'a [Opaque]);

impl Serialize for AllowedTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("mode", self.0)?;
        map.serialize_entry("tools", &all(self.1, Json))?;
        map.end()
    }
}

struct FormatBody<'a>(&'a ResponseFormat);

impl Serialize for FormatBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ResponseFormat::JsonObject => SingleMember("type", "json_object").serialize(serializer),
            ResponseFormat::JsonSchema(schema) => {
                TaggedObject("json_schema", SchemaBody(schema)).serialize(serializer)
            }
        }
    }
}

struct SchemaBody<'a>(&'a JsonSchema);

impl Serialize for SchemaBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let JsonSchema { name, description, schema, strict } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", name)?;
        put(&mut map, "description", description.as_ref())?;
        put(&mut map, "schema", schema.as_ref().map(Json))?;
        put(&mut map, "strict", *strict)?;
        map.end()
    }
}

struct AudioBody<'a>(&'a Audio);

impl Serialize for AudioBody<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        match &self.0.voice {
            Voice::Named(name) => map.serialize_entry("voice", name)?,
            Voice::Custom(id) => map.serialize_entry("voice", &SingleMember("id", id))?,
        }
        map.serialize_entry("format", self.0.format.label())?;
        map.end()
    }
}

struct CacheBody(CacheOptions);

impl Serialize for CacheBody {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        put(&mut map, "mode", self.0.mode.map(|mode| mode.label()))?;
        put(&mut map, "ttl", self.0.ttl.map(|ttl| ttl.label()))?;
        map.end()
    }
}
