//! The shapes of what the model may call, and of the form of its answer.

use holdfast_domain::request::ToolMode;
use serde_json::{Value, json};

use super::super::shape::{
    any_of, array, boolean, described, labels, named, nullable, optional, string, typed, word,
    words,
};
use super::{name, opaque};

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("Tool", tool()),
        ("ToolChoice", choice()),
        ("NamedFunction", typed(json!({"name": string()}), &["name"])),
        ("LegacyFunction", function(json!({}))),
        ("ResponseFormat", response_format()),
    ]
}

fn function(more: Value) -> Value {
    let mut properties = json!({
        "name": name(),
        "description": nullable(string()),
        "parameters": described(nullable(opaque()), "A JSON Schema, passed on as it is."),
    });
    let more = more.as_object().into_iter().flatten();
    if let Some(all) = properties.as_object_mut() {
        all.extend(more.map(|(name, schema)| (name.clone(), schema.clone())));
    }
    typed(properties, &["name"])
}

fn tool() -> Value {
    let strict = function(json!({"strict": nullable(boolean())}));
    let custom = typed(
        json!({
            "name": string(),
            "description": nullable(string()),
            "format": nullable(format()),
        }),
        &["name"],
    );
    any_of(&[
        typed(json!({"type": optional(word("function")), "function": strict}), &["function"]),
        typed(json!({"type": optional(word("custom")), "custom": custom}), &["custom"]),
    ])
}

fn format() -> Value {
    let grammar = typed(
        json!({"definition": string(), "syntax": words(&["lark", "regex"])}),
        &["definition", "syntax"],
    );
    any_of(&[
        typed(json!({"type": word("text")}), &["type"]),
        typed(json!({"type": word("grammar"), "grammar": grammar}), &["type", "grammar"]),
    ])
}

fn choice() -> Value {
    let one = |kind: &str| {
        typed(json!({"type": word(kind), kind: named("NamedFunction")}), &["type", kind])
    };
    let modes = labels(&[ToolMode::Auto, ToolMode::Required], ToolMode::label);
    let allowed = typed(
        json!({
            "mode": modes,
            "tools": described(array(opaque(), 0, None), "Passed on as they are."),
        }),
        &["mode", "tools"],
    );
    any_of(&[
        labels(ToolMode::ALL, ToolMode::label),
        one("function"),
        one("custom"),
        typed(
            json!({"type": word("allowed_tools"), "allowed_tools": allowed}),
            &["type", "allowed_tools"],
        ),
    ])
}

fn response_format() -> Value {
    let schema = typed(
        json!({
            "name": name(),
            "description": nullable(string()),
            "schema": described(nullable(opaque()), "A JSON Schema, passed on as it is."),
            "strict": nullable(boolean()),
        }),
        &["name"],
    );
    any_of(&[
        typed(json!({"type": word("text")}), &["type"]),
        typed(json!({"type": word("json_object")}), &["type"]),
        typed(
            json!({"type": word("json_schema"), "json_schema": schema}),
            &["type", "json_schema"],
        ),
    ])
}
