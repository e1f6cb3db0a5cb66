//! JSON Schemas of a conversation: a turn for each role, its content, and the calls in it.
//!
//! Each role has a schema of its own, because roles differ in their members and in the kinds of
//! content parts that they may use. An assistant's turn also has the members that clients keep
//! beside an answer, of any shape: the reader takes them, so that a schema without them would
//! refuse what is accepted.

use holdfast_domain::request::{AssistantMessage, BreakpointTtl, ImageDetail, RecordingFormat};
use serde_json::{Value, json};

use super::super::shape::{
    any_of, array, described, labels, named, nullable, optional, string, typed, with, word, words,
};

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    let mut all = vec![
        ("Message", message()),
        ("DeveloperMessage", said("developer", optional(named("TextContent")))),
        ("SystemMessage", said("system", optional(named("TextContent")))),
        ("UserMessage", said("user", named("UserContent"))),
        ("AssistantMessage", assistant()),
        ("ToolMessage", tool_message()),
        ("FunctionMessage", function_message()),
        ("ToolCall", tool_call()),
    ];
    all.extend(parts());
    all
}

fn message() -> Value {
    let roles = [
        ("developer", "DeveloperMessage"),
        ("system", "SystemMessage"),
        ("user", "UserMessage"),
        ("assistant", "AssistantMessage"),
        ("tool", "ToolMessage"),
        ("function", "FunctionMessage"),
    ];
    let shapes: Vec<Value> = roles.iter().map(|(_, name)| named(name)).collect();
    let mapping: serde_json::Map<String, Value> =
        roles.iter().map(|(role, name)| ((*role).to_owned(), json!(schema_path(name)))).collect();
    json!({"oneOf": shapes, "discriminator": {"propertyName": "role", "mapping": mapping}})
}

fn schema_path(name: &str) -> String {
    format!("#/components/schemas/{name}")
}

fn said(role: &str, content: Value) -> Value {
    typed(
        json!({"role": word(role), "content": content, "name": nullable(string())}),
        &["role", "content"],
    )
}

fn tool_message() -> Value {
    typed(
        json!({
            "role": word("tool"),
            "content": optional(named("TextContent")),
            "tool_call_id": string(),
            "name": nullable(string()),
        }),
        &["role", "content", "tool_call_id"],
    )
}

fn function_message() -> Value {
    let schema = typed(
        json!({"role": word("function"), "content": optional(string()), "name": string()}),
        &["role", "content", "name"],
    );
    with(schema, "deprecated", json!(true))
}

fn assistant() -> Value {
    let audio = typed(json!({"id": string()}), &["id"]);
    let audio = described(audio, "Refused unless the model allows `audio.id`.");
    let members = json!({
        "role": word("assistant"),
        "content": optional(named("AssistantContent")),
        "refusal": nullable(string()),
        "name": nullable(string()),
        "audio": optional(audio),
        "tool_calls": optional(array(named("ToolCall"), 0, None)),
        "function_call": with(optional(called("arguments")), "deprecated", json!(true)),
    });
    let kept = || left_out("Taken, and sent on only where the model accepts it by name.");
    let members = AssistantMessage::METADATA
        .iter()
        .fold(members, |members, name| with(members, name, kept()));
    let schema = typed(members, &["role"]);
    let says = |name: &str, rule: Value| json!({"properties": {name: rule}, "required": [name]});
    let schema = with(
        schema,
        "anyOf",
        json!([
            says("content", json!({"type": ["string", "array"], "minItems": 1})),
            says("refusal", string()),
            says("audio", json!({"type": "object"})),
            says("tool_calls", json!({"type": "array", "minItems": 1})),
            says("function_call", json!({"type": "object"})),
        ]),
    );
    described(
        schema,
        "An earlier answer, sent back as it came. It says something: content, a refusal, audio or a \
         call. A member that is not listed here is refused, unless the model accepts it by name.",
    )
}

/// Schema of a member that clients keep beside an answer: any shape is taken.
fn left_out(what: &str) -> Value {
    described(json!({}), what)
}

fn called(input: &str) -> Value {
    let kept = "What clients keep: taken, and left out.";
    typed(
        json!({
            "name": string(),
            input: string(),
            "parsed_arguments": left_out(kept),
            "provider_specific_fields": left_out(kept),
        }),
        &["name", input],
    )
}

fn tool_call() -> Value {
    let call = |kind: &str, input: &str| {
        typed(
            json!({
                "id": string(),
                "type": optional(word(kind)),
                kind: called(input),
                "index": left_out("What clients keep: taken, and left out."),
                "provider_specific_fields": left_out("What clients keep: taken, and left out."),
            }),
            &["id", kind],
        )
    };
    any_of(&[call("function", "arguments"), call("custom", "input")])
}

fn parts() -> Vec<(&'static str, Value)> {
    let content = |parts: &[&str]| {
        let parts: Vec<Value> = parts.iter().map(|part| named(part)).collect();
        let part = match parts.as_slice() {
            [one] => one.clone(),
            several => any_of(several),
        };
        any_of(&[string(), array(part, 1, None)])
    };
    let reply = any_of(&[
        string(),
        array(named("TextPart"), 1, None),
        array(named("RefusalPart"), 1, Some(1)),
    ]);
    vec![
        ("TextContent", content(&["TextPart"])),
        ("UserContent", content(&["TextPart", "ImagePart", "AudioPart", "FilePart"])),
        ("AssistantContent", described(reply, "Text parts, or exactly one refusal part.")),
        ("TextPart", marked("text", "text", string())),
        (
            "RefusalPart",
            typed(json!({"type": word("refusal"), "refusal": string()}), &["type", "refusal"]),
        ),
        ("ImagePart", marked("image_url", "image_url", image())),
        ("AudioPart", marked("input_audio", "input_audio", recording())),
        ("FilePart", marked("file", "file", file())),
    ]
}

/// A part after which the provider may keep its cache.
fn marked(kind: &str, member: &str, value: Value) -> Value {
    let breakpoint = typed(
        json!({
            "mode": word("explicit"),
            "ttl": optional(labels(BreakpointTtl::ALL, BreakpointTtl::label)),
        }),
        &["mode"],
    );
    typed(
        json!({
            "type": word(kind),
            member: value,
            "prompt_cache_breakpoint": optional(breakpoint),
        }),
        &["type", member],
    )
}

fn image() -> Value {
    let mut details = vec!["auto"];
    details.extend(ImageDetail::ALL.iter().map(|detail| detail.label()));
    let url = json!({"type": "string", "pattern": "^([hH][tT][tT][pP][sS]?://|[dD][aA][tT][aA]:)"});
    typed(
        json!({
            "url": described(url, "An https:, http: or data: URL."),
            "detail": optional(words(&details)),
            "format": optional(described(string(), "Media type. Read and left out: the URL decides.")),
        }),
        &["url"],
    )
}

fn recording() -> Value {
    typed(
        json!({
            "data": described(string(), "Base64."),
            "format": labels(RecordingFormat::ALL, RecordingFormat::label),
        }),
        &["data", "format"],
    )
}

fn file() -> Value {
    let given = |name: &str| json!({"properties": {name: string()}, "required": [name]});
    let schema = typed(
        json!({
            "file_id": described(
                nullable(string()), "Refused unless the model allows `file_id`."),
            "filename": nullable(string()),
            "file_data": described(nullable(string()), "Base64."),
        }),
        &[],
    );
    with(schema, "anyOf", json!([given("file_id"), given("file_data")]))
}
