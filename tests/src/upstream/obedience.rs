//! A model that follows its request, so that tools and structured answers of clients are real: its calls and its
//! JSON are made out of the schemas that arrive, and it answers a tool's result.

use serde_json::{Map, Value, json};

use super::{ArrivedRequest, Reply, Streaming, completion};

/// Value of each string of a schema, such as `zip`.
const ZIP: &str = "1";
const NAME: &str = "Ada";

pub(super) fn obey(arrived: &ArrivedRequest, text: &str) -> Reply {
    let body = arrived.json();
    let is_streamed = body["stream"] == true;
    if let Some(function) = wanted_function(&body) {
        return call(&function["name"], &filled(&function["parameters"]), is_streamed);
    }
    match body.pointer("/response_format/json_schema/schema") {
        None => say(text, is_streamed),
        Some(schema) => say(&filled(schema), is_streamed),
    }
}

/// The function that is to be called: the one that is named, else the first; none once a result is there.
fn wanted_function(body: &Value) -> Option<&Value> {
    let is_result = |message: &Value| message["role"] == "tool";
    if body["messages"].as_array()?.iter().any(is_result) || body["tool_choice"] == "none" {
        return None;
    }
    let mut functions = body["tools"].as_array()?.iter().map(|tool| &tool["function"]);
    match body.pointer("/tool_choice/function/name") {
        None => functions.next(),
        Some(name) => functions.find(|function| function["name"] == *name),
    }
}

/// JSON of an object with every property of this schema.
fn filled(schema: &Value) -> String {
    let names = schema["properties"].as_object().into_iter().flat_map(Map::keys);
    let value = |name: &String| if name == "zip" { ZIP } else { NAME };
    let filled: Map<_, _> = names.map(|name| (name.clone(), json!(value(name)))).collect();
    Value::Object(filled).to_string()
}

fn say(text: &str, is_streamed: bool) -> Reply {
    if !is_streamed {
        return Reply::saying(text);
    }
    let (first, second) = text.split_at(text.len() / 2);
    Streaming::saying(&[first, second]).reply()
}

fn call(name: &Value, arguments: &str, is_streamed: bool) -> Reply {
    let head = json!({"id": "call_mark-of-id", "type": "function"});
    if !is_streamed {
        let mut call = head;
        call["function"] = json!({"name": name, "arguments": arguments});
        let mut answer = completion("");
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        answer["choices"][0]["message"] = message;
        answer["choices"][0]["finish_reason"] = json!("tool_calls");
        return Reply::json(200, &answer);
    }
    let (first, second) = arguments.split_at(arguments.len() / 2);
    let mut opening = head;
    opening["index"] = json!(0);
    opening["function"] = json!({"name": name, "arguments": first});
    let more = json!({"index": 0, "function": {"arguments": second}});
    let stream = Streaming::new().opening().delta(&json!({"tool_calls": [opening]}));
    let stream = stream.delta(&json!({"tool_calls": [more]})).finish("tool_calls");
    stream.usage().done().reply()
}
