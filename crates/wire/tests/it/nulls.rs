//! A member that is not known and null is absent in every typed object, and is kept in what is passed through.

use holdfast_wire::chat::request::parse;
use serde_json::{Map, Value, json};

use crate::{fingerprint_of, upstream_body};

/// Every typed object that a request can have.
fn everything() -> Value {
    json!({
        "model": "a/b",
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "d"}]},
            {"role": "system", "content": "s"},
            {"role": "user", "content": [
                {"type": "text", "text": "x", "prompt_cache_breakpoint": {"mode": "explicit"}},
                {"type": "image_url", "image_url": {"url": "data:x", "detail": "low", "format": "image/png"}},
                {"type": "input_audio", "input_audio": {"data": "x", "format": "wav"}},
                {"type": "file", "file": {"file_data": "d", "filename": "n"}},
            ]},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "r"}], "audio": {"id": "i"},
             "tool_calls": [
                {"id": "i", "type": "function", "function": {"name": "f", "arguments": "{}"}},
                {"id": "j", "type": "custom", "custom": {"name": "c", "input": "x"}},
             ]},
            {"role": "tool", "tool_call_id": "i", "content": [{"type": "text", "text": "t"}]},
            {"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}},
            {"role": "function", "name": "f", "content": "x"},
        ],
        "stream": true,
        "stream_options": {"include_usage": true},
        "tools": [
            {"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {}}}}},
            {"type": "custom", "custom": {"name": "c", "format": {"type": "text"}}},
        ],
        "functions": [{"name": "f", "parameters": {}}],
        "function_call": {"name": "f"},
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"a": 1}]}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}},
        "audio": {"voice": {"id": "v"}, "format": "wav"},
        "prediction": {"type": "content", "content": "x"},
        "web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": "c"}}},
        "moderation": {"model": "m", "policy": {"input": {"mode": "score"}}},
        "prompt_cache_options": {"mode": "explicit"},
        "logit_bias": {"1": 1},
        "metadata": {"k": "v"},
    })
}

/// Treatment of a null member of an object.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Treatment {
    Absent,
    /// Passed through, so that it makes another request.
    Kept,
    /// A value of a map of the caller's own names, which is no such value.
    Refused,
}

fn treatment(path: &str) -> Treatment {
    let passed = [
        ".parameters",
        ".json_schema.schema",
        ".allowed_tools.tools",
        ".custom.format",
        ".prediction",
        ".web_search_options",
        ".moderation",
    ];
    if passed.iter().any(|opaque| path.contains(opaque)) {
        Treatment::Kept
    } else if [".logit_bias", ".metadata"].contains(&path) {
        Treatment::Refused
    } else {
        Treatment::Absent
    }
}

/// Every object of a value by its path, each time with one more member in that object only.
fn with_null(node: &Value, path: &str, emit: &mut dyn FnMut(&str, Value)) {
    match node {
        Value::Object(members) => {
            let mut more = members.clone();
            more.insert("unheard_of".to_owned(), Value::Null);
            emit(path, Value::Object(more));
            for (name, member) in members {
                with_null(member, &format!("{path}.{name}"), &mut |found, changed| {
                    let mut members: Map<_, _> = members.clone();
                    members.insert(name.clone(), changed);
                    emit(found, Value::Object(members));
                });
            }
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                with_null(element, path, &mut |found, changed| {
                    let mut elements = elements.clone();
                    elements[at] = changed;
                    emit(found, Value::Array(elements));
                });
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn judge(usual: &Value, changed: &Value) -> Treatment {
    let usual = parse(usual.to_string().as_bytes()).unwrap();
    let Ok(parsed) = parse(changed.to_string().as_bytes()) else { return Treatment::Refused };
    assert_eq!(parsed.delivery, usual.delivery, "{changed}");
    let is_same = fingerprint_of(&parsed.request, 1) == fingerprint_of(&usual.request, 1);
    let is_sent_alike = upstream_body(&parsed.request) == upstream_body(&usual.request);
    assert_eq!(is_same, is_sent_alike, "{changed}");
    if is_same { Treatment::Absent } else { Treatment::Kept }
}

#[test]
fn an_unknown_member_that_is_null_is_absent_in_every_typed_object() {
    let usual = everything();
    let mut n_objects = 0;
    with_null(&usual, "", &mut |path, changed| {
        assert_eq!(judge(&usual, &changed), treatment(path), "{path}: {changed}");
        n_objects += 1;
    });
    assert!(n_objects >= 50, "{n_objects}");
}

#[test]
fn the_answer_of_a_client_that_writes_its_missing_members_as_null_is_read() {
    // As huggingface_hub keeps a message, which its users append.
    let call = |more: &str| {
        json!({"model": "a/b", "messages": [{"role": "assistant", "content": null, "tool_calls": [
            serde_json::from_str::<Value>(&format!(
                r#"{{"id":"c","type":"function","function":{{"name":"f","arguments":"{{}}"{more}}}}}"#
            )).unwrap()
        ]}, {"role": "tool", "tool_call_id": "c", "content": "x"}]})
    };
    assert_eq!(judge(&call(""), &call(r#","description":null"#)), Treatment::Absent);
    assert_eq!(judge(&call(""), &call(r#","description":"d""#)), Treatment::Refused);
}

#[test]
fn the_format_of_an_image_is_read_and_left_out() {
    let image = |more: &str| {
        serde_json::from_str::<Value>(&format!(
            r#"{{"model":"a/b","messages":[{{"role":"user","content":[
                {{"type":"image_url","image_url":{{"url":"data:image/png;base64,eA=="{more}}}}}]}}]}}"#
        ))
        .unwrap()
    };
    for format in [r#""image/png""#, r#""png""#, r#""image/jpeg""#, r#""""#, "[]", "null"] {
        let changed = image(&format!(",\"format\":{format}"));
        assert_eq!(judge(&image(""), &changed), Treatment::Absent, "{format}");
    }
    for format in ["1", "true", "{}", "[\"image/png\"]"] {
        let body = image(&format!(",\"format\":{format}")).to_string();
        let bad = parse(body.as_bytes()).unwrap_err();
        assert_eq!(
            bad.param.as_deref(),
            Some("messages[0].content[0].image_url.format"),
            "{format}"
        );
    }
}
