//! The shapes of what the model may call, and of the form of its answer.

use holdfast_domain::request::ToolMode;
use serde_json::{Value, json};

use super::super::shape::{
    any_of, array, boolean, closed, described, labels, named, nullable, string, word, words,
};
use super::{name, opaque};

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("Tool", tool()),
        ("ToolChoice", choice()),
        ("NamedFunction", closed(json!({"name": string()}), &["name"])),
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
    closed(properties, &["name"])
}

fn tool() -> Value {
    let strict = function(json!({"strict": nullable(boolean())}));
    let custom = closed(
        json!({
            "name": string(),
            "description": nullable(string()),
            "format": nullable(format()),
        }),
        &["name"],
    );
    any_of(&[
        closed(json!({"type": word("function"), "function": strict}), &["type", "function"]),
        closed(json!({"type": word("custom"), "custom": custom}), &["type", "custom"]),
    ])
}

fn format() -> Value {
    let grammar = closed(
        json!({"definition": string(), "syntax": words(&["lark", "regex"])}),
        &["definition", "syntax"],
    );
    any_of(&[
        closed(json!({"type": word("text")}), &["type"]),
        closed(json!({"type": word("grammar"), "grammar": grammar}), &["type", "grammar"]),
    ])
}

fn choice() -> Value {
    let one = |kind: &str| {
        closed(json!({"type": word(kind), kind: named("NamedFunction")}), &["type", kind])
    };
    let modes = labels(&[ToolMode::Auto, ToolMode::Required], ToolMode::label);
    let allowed = closed(
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
        closed(
            json!({"type": word("allowed_tools"), "allowed_tools": allowed}),
            &["type", "allowed_tools"],
        ),
    ])
}

fn response_format() -> Value {
    let schema = closed(
        json!({
            "name": name(),
            "description": nullable(string()),
            "schema": described(nullable(opaque()), "A JSON Schema, passed on as it is."),
            "strict": nullable(boolean()),
        }),
        &["name"],
    );
    any_of(&[
        closed(json!({"type": word("text")}), &["type"]),
        closed(json!({"type": word("json_object")}), &["type"]),
        closed(
            json!({"type": word("json_schema"), "json_schema": schema}),
            &["type", "json_schema"],
        ),
    ])
}
