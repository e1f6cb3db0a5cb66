//! JSON Schema of a request, with the bounds and the words of the reader in `chat::request`.
//!
//! A test holds the schema and the reader against each other, field by field: a value that one
//! takes and the other refuses fails it.
//!
//! Rules that depend on the model, and most rules across fields, are in the descriptions alone; the
//! exceptions are `logprobs_hang_together` and `streams_hang_together`.

mod conversation;
mod tools;

use holdfast_domain::request::{
    AudioFormat, CacheMode, CacheRetention, CacheTtl, ReasoningEffort, ServiceTier, Verbosity,
};
use serde_json::{Value, json};

use super::shape::{
    NOTHING, any_of, array, boolean, described, integer, labels, map, named, nothing, nullable,
    number, optional, string, typed, with, word, words,
};
use crate::chat::request::option::{
    BIAS_MAX, METADATA_KEY_CHARS_MAX, METADATA_PAIRS_MAX, METADATA_VALUE_CHARS_MAX,
    SAFETY_IDENTIFIER_CHARS_MAX, STOP_MAX,
};
use crate::chat::request::tool::TOOLS_MAX;
use crate::chat::request::{INTEGER_MAX, N_MAX, TOP_LOGPROBS_MAX};

/// Spelling of a public model id: `vendor/name`.
pub(crate) const MODEL_PATTERN: &str = "^[a-z0-9][a-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._:-]*$";
/// The longest public model id.
pub(crate) const MODEL_CHARS_MAX: usize = 128;
/// The names of functions and schemas.
const NAME_PATTERN: &str = "^[a-zA-Z0-9_-]{1,64}$";

/// The shapes of a request by their names; the first one is the whole body.
pub(crate) fn schemas() -> Vec<(&'static str, Value)> {
    let mut all = vec![("ChatCompletionRequest", request()), (NOTHING, nothing())];
    all.extend(conversation::schemas());
    all.extend(tools::schemas());
    all
}

fn request() -> Value {
    let mut properties = json!({
        "model": described(model(), "A public model id. GET /v1/models lists those that the API key may use."),
        "messages": array(named("Message"), 1, None),
    });
    let groups = [sampling(), bounds(), offers(), output(), service()];
    if let Some(all) = properties.as_object_mut() {
        for group in groups {
            let members = group.as_object().into_iter().flatten();
            all.extend(members.map(|(name, schema)| (name.clone(), schema.clone())));
        }
    }
    let schema = typed(properties, &["model", "messages"]);
    let schema = with(schema, "allOf", json!([logprobs_hang_together(), streams_hang_together()]));
    described(
        schema,
        "A chat completion request. A member that is not listed here is refused with \
         `unknown_parameter`, unless it is null or the model accepts it by name; then it is passed on as \
         it is. Where null may be sent, it says the same as leaving the member out. Member names must \
         not repeat; nesting is at most 64 deep.",
    )
}

/// `top_logprobs` stands only where `logprobs` is true.
fn logprobs_hang_together() -> Value {
    json!({"anyOf": [
        {"properties": {"top_logprobs": {"type": "null"}}},
        {"properties": {"logprobs": {"enum": [true]}}, "required": ["logprobs"]},
    ]})
}

/// A stream's usage is asked for only where `stream` is true.
fn streams_hang_together() -> Value {
    json!({"anyOf": [
        {"properties": {"stream_options": {"properties": {"include_usage": {"enum": [false, null]}}}}},
        {"properties": {"stream": {"enum": [true]}}, "required": ["stream"]},
    ]})
}

pub(crate) fn model() -> Value {
    json!({"type": "string", "pattern": MODEL_PATTERN, "maxLength": MODEL_CHARS_MAX})
}

fn name() -> Value {
    json!({"type": "string", "pattern": NAME_PATTERN})
}

fn opaque() -> Value {
    json!({"type": "object", "additionalProperties": true})
}

fn sampling() -> Value {
    let biases = described(map(integer(-BIAS_MAX, BIAS_MAX)), "By token id. Passed on as it is.");
    json!({
        "temperature": nullable(number(0, 2)),
        "top_p": nullable(number(0, 1)),
        "presence_penalty": nullable(number(-2, 2)),
        "frequency_penalty": nullable(number(-2, 2)),
        "seed": nullable(integer(i64::MIN, i64::MAX)),
        "stop": nullable(any_of(&[string(), array(string(), 0, Some(STOP_MAX))])),
        "logit_bias": optional(biases),
        "logprobs": nullable(boolean()),
        "top_logprobs": described(
            nullable(integer(0, TOP_LOGPROBS_MAX)), "Only where `logprobs` is true."),
    })
}

fn bounds() -> Value {
    let include_usage = "A chunk before the end of the stream says what the answer used up.";
    let stream = typed(
        json!({
            "include_usage": described(nullable(boolean()), include_usage),
            "include_obfuscation": described(nullable(boolean()), "Nothing is padded."),
        }),
        &[],
    );
    json!({
        "max_completion_tokens": described(
            nullable(integer(1, INTEGER_MAX)),
            "At most the model's `max_output_tokens`, which is what it is when left out. The hold pays for it."),
        "max_tokens": with(described(
            nullable(integer(1, INTEGER_MAX)),
            "The older name of `max_completion_tokens`. Where both are sent they must be the same."),
            "deprecated", json!(true)),
        "n": described(nullable(integer(1, N_MAX)), "How many choices; each is paid for."),
        "stream": described(
            nullable(boolean()),
            "How the answer travels, not what it is: a retry may ask for the other way."),
        "stream_options": described(optional(stream), "Of a stream: `include_usage` only where `stream` is true."),
    })
}

fn offers() -> Value {
    json!({
        "tools": optional(array(named("Tool"), 0, Some(TOOLS_MAX))),
        "tool_choice": optional(named("ToolChoice")),
        "parallel_tool_calls": nullable(boolean()),
        "functions": with(
            optional(array(named("LegacyFunction"), 1, Some(TOOLS_MAX))), "deprecated", json!(true)),
        "function_call": with(
            optional(any_of(&[words(&["none", "auto"]), named("NamedFunction")])),
            "deprecated", json!(true)),
    })
}

fn output() -> Value {
    let voice = any_of(&[
        string(),
        described(
            typed(json!({"id": string()}), &["id"]),
            "A voice of the operator's account; refused unless the model allows `voice.id`.",
        ),
    ]);
    let audio = typed(
        json!({"voice": voice, "format": labels(AudioFormat::ALL, AudioFormat::label)}),
        &["voice", "format"],
    );
    let text = named("TextContent");
    let prediction = typed(json!({"type": word("content"), "content": text}), &["type", "content"]);
    json!({
        "response_format": optional(named("ResponseFormat")),
        "modalities": optional(array(words(&["text", "audio"]), 1, None)),
        "audio": optional(audio),
        "prediction": nullable(prediction),
        "reasoning_effort": optional(labels(ReasoningEffort::ALL, ReasoningEffort::label)),
        "verbosity": optional(labels(Verbosity::ALL, Verbosity::label)),
    })
}

fn service() -> Value {
    let cache = typed(
        json!({
            "mode": optional(labels(CacheMode::ALL, CacheMode::label)),
            "ttl": optional(labels(CacheTtl::ALL, CacheTtl::label)),
        }),
        &[],
    );
    let metadata = json!({
        "type": "object",
        "maxProperties": METADATA_PAIRS_MAX,
        "propertyNames": {"maxLength": METADATA_KEY_CHARS_MAX},
        "additionalProperties": {"type": "string", "maxLength": METADATA_VALUE_CHARS_MAX},
    });
    let safety = json!({"type": "string", "maxLength": SAFETY_IDENTIFIER_CHARS_MAX});
    let tier = optional(labels(ServiceTier::ALL, ServiceTier::label));
    let retention = optional(labels(CacheRetention::ALL, CacheRetention::label));
    let allowed = "Refused with `unsupported_parameter` unless the model allows it.";
    json!({
        "user": nullable(string()),
        "metadata": optional(metadata),
        "store": described(nullable(boolean()), "`true` is refused unless the model allows it."),
        "service_tier": described(tier, "Only `auto` and `default`, unless the model allows or accepts others."),
        "safety_identifier": nullable(safety),
        "prompt_cache_key": nullable(string()),
        "prompt_cache_retention": described(retention, allowed),
        "prompt_cache_options": optional(cache),
        "web_search_options": described(nullable(web_search()), allowed),
        "moderation": described(nullable(moderation()), allowed),
    })
}

fn web_search() -> Value {
    let place = typed(
        json!({
            "country": nullable(string()),
            "region": nullable(string()),
            "city": nullable(string()),
            "timezone": nullable(string()),
        }),
        &[],
    );
    let location =
        typed(json!({"type": word("approximate"), "approximate": place}), &["type", "approximate"]);
    typed(
        json!({
            "search_context_size": nullable(words(&["low", "medium", "high"])),
            "user_location": nullable(location),
        }),
        &[],
    )
}

fn moderation() -> Value {
    let side = || nullable(typed(json!({"mode": words(&["score", "block"])}), &["mode"]));
    let policy = typed(json!({"input": side(), "output": side()}), &[]);
    typed(json!({"model": string(), "policy": nullable(policy)}), &["model"])
}
