//! Every field with a value of every wrong type, and with values just out of its range.

use holdfast_tests::config::ACME;
use holdfast_tests::request_key;
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::check::error;
use crate::hostile::{CANARY, Want, World};

/// A value of each type of JSON, by the letter that the tables below name it with.
fn probes() -> [(char, Value); 6] {
    [
        ('0', Value::Null),
        ('b', json!(true)),
        ('n', json!(7)),
        ('s', json!(CANARY)),
        ('a', json!([CANARY])),
        ('o', json!({"x": CANARY})),
    ]
}

/// Where in [`whole`], how an error names it, and the types that it may have.
#[rustfmt::skip]
const FIELDS: &[(&str, &str, &str)] = &[
    ("/model", "model", "s"),
    ("/messages", "messages", "a"),
    ("/frequency_penalty", "frequency_penalty", "0n"),
    ("/logit_bias", "logit_bias", "0o"),
    ("/logprobs", "logprobs", "0b"),
    ("/top_logprobs", "top_logprobs", "0n"),
    ("/max_completion_tokens", "max_completion_tokens", "0n"),
    ("/max_tokens", "max_tokens", "0n"),
    ("/metadata", "metadata", "0o"),
    ("/modalities", "modalities", "0a"),
    ("/n", "n", "0n"),
    ("/parallel_tool_calls", "parallel_tool_calls", "0b"),
    ("/prediction", "prediction", "0o"),
    ("/presence_penalty", "presence_penalty", "0n"),
    ("/prompt_cache_key", "prompt_cache_key", "0s"),
    ("/prompt_cache_options", "prompt_cache_options", "0o"),
    ("/prompt_cache_retention", "prompt_cache_retention", "0"),
    ("/reasoning_effort", "reasoning_effort", "0"),
    ("/response_format", "response_format", "0o"),
    ("/safety_identifier", "safety_identifier", "0s"),
    ("/seed", "seed", "0n"),
    ("/service_tier", "service_tier", "0"),
    ("/stop", "stop", "0sa"),
    ("/store", "store", "0b"),
    ("/stream", "stream", "0b"),
    ("/stream_options", "stream_options", "0o"),
    ("/temperature", "temperature", "0n"),
    ("/tool_choice", "tool_choice", "0o"),
    ("/tools", "tools", "0a"),
    ("/top_p", "top_p", "0n"),
    ("/user", "user", "0s"),
    ("/verbosity", "verbosity", "0"),
    ("/web_search_options", "web_search_options", "0o"),
    ("/audio", "audio", "0o"),
    ("/functions", "functions", "0a"),
    ("/function_call", "function_call", "0o"),
    ("/moderation", "moderation", "0o"),
    ("/metadata/k", "metadata.k", "s"),
    ("/logit_bias/1", "logit_bias.1", "n"),
    ("/stop/0", "stop[0]", "s"),
    ("/response_format/type", "response_format.type", ""),
    ("/response_format/json_schema", "response_format.json_schema", "o"),
    ("/response_format/json_schema/name", "response_format.json_schema.name", "s"),
    ("/response_format/json_schema/schema", "response_format.json_schema.schema", "0o"),
    ("/response_format/json_schema/strict", "response_format.json_schema.strict", "0b"),
    ("/tools/0", "tools[0]", "o"),
    ("/tools/0/type", "tools[0].type", "0"),
    ("/tools/0/function", "tools[0].function", "o"),
    ("/tools/0/function/name", "tools[0].function.name", "s"),
    ("/tools/0/function/description", "tools[0].function.description", "0s"),
    ("/tools/0/function/parameters", "tools[0].function.parameters", "0o"),
    ("/tools/0/function/strict", "tools[0].function.strict", "0b"),
    ("/messages/0", "messages[0]", "o"),
    ("/messages/0/role", "messages[0].role", ""),
    ("/messages/0/content", "messages[0].content", "sa"),
    ("/messages/0/name", "messages[0].name", "0s"),
    ("/messages/0/content/0", "messages[0].content[0]", "o"),
    ("/messages/0/content/0/type", "messages[0].content[0].type", ""),
    ("/messages/0/content/0/text", "messages[0].content[0].text", "s"),
    ("/messages/0/content/1/image_url", "messages[0].content[1].image_url", "o"),
    ("/messages/0/content/1/image_url/url", "messages[0].content[1].image_url.url", ""),
    ("/messages/0/content/1/image_url/detail", "messages[0].content[1].image_url.detail", "0"),
    ("/messages/1/tool_calls", "messages[1].tool_calls", "0a"),
    ("/messages/1/tool_calls/0", "messages[1].tool_calls[0]", "o"),
    ("/messages/1/tool_calls/0/id", "messages[1].tool_calls[0].id", "s"),
    ("/messages/1/tool_calls/0/function", "messages[1].tool_calls[0].function", "o"),
    ("/messages/1/tool_calls/0/function/arguments", "messages[1].tool_calls[0].function.arguments", "s"),
    ("/messages/2/tool_call_id", "messages[2].tool_call_id", "s"),
];

/// A request that has every place of the table, but those that stand alone.
fn whole() -> Value {
    json!({
        "model": ACME,
        "metadata": {"k": "v"},
        "logit_bias": {"1": 1},
        "logprobs": true,
        "stop": ["x"],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "tools": [{"type": "function", "function": {"name": "f"}}],
        "messages": [
            {"role": "user", "name": "n", "content": [
                {"type": "text", "text": "Hello"},
                {"type": "image_url", "image_url": {"url": "https://a/b", "detail": "low"}},
            ]},
            {"role": "assistant", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
            ]},
            {"role": "tool", "tool_call_id": "c", "content": "x"},
        ],
    })
}

/// Puts a value somewhere, also where nothing was.
fn put(body: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = body.pointer_mut(parent).unwrap();
    match name.parse::<usize>() {
        Ok(at) if parent.is_array() => parent[at] = value,
        _ => parent[name] = value,
    }
}

#[track_caller]
fn check(world: &mut World, body: &Value, code: Code, param: &'static str) {
    let key = request_key();
    let body = body.to_string();
    let want = Want::Row(Box::new(error(code).param(param).echo(&key).replayed(false)));
    world.check(&body, &key, world.with_body(&key, &body).as_bytes(), &want);
}

#[test]
fn every_field_refuses_every_wrong_type() {
    let mut world = World::new(|config| config);
    let mut cases = 0;
    for (pointer, param, types) in FIELDS {
        for (letter, value) in probes() {
            if types.contains(letter) {
                continue;
            }
            let mut body = whole();
            put(&mut body, pointer, value);
            if *pointer == "/stream_options" {
                body["stream"] = json!(true);
            }
            if *pointer == "/logprobs" {
                body["top_logprobs"] = Value::Null;
            }
            check(&mut world, &body, Code::InvalidValue, param);
            cases += 1;
        }
    }
    assert!(cases >= 250, "{cases}");
    let key = request_key();
    let good = world.with_body(&key, &whole().to_string());
    world.check("whole", &key, good.as_bytes(), &Want::Served);
    world.check_unharmed();
}

fn turn(content: &Value) -> Value {
    json!([{"role": "user", "content": content}])
}

/// A member of a body, what an error says that it is about, and its value.
type Case = (&'static str, &'static str, Value);

#[rustfmt::skip]
fn turns_out_of_range() -> Vec<Case> {
    vec![
        ("messages", "messages", json!([])),
        ("messages", "messages[0].content", turn(&json!([]))),
        ("messages", "messages[0].content[0].type", turn(&json!([{"type": "video"}]))),
        ("messages", "messages[0].content[0].text", turn(&json!([{"type": "text"}]))),
        ("messages", "messages[0].content[0].image_url.url", turn(&json!([{"type": "image_url", "image_url": {"url": "file:///etc/passwd"}}]))),
        ("messages", "messages[0].content[0].image_url.url", turn(&json!([{"type": "image_url", "image_url": {"url": ""}}]))),
        ("messages", "messages[0].content[0].input_audio.format", turn(&json!([{"type": "input_audio", "input_audio": {"data": "", "format": "ogg"}}]))),
        ("messages", "messages[0].content[0].file.file_data", turn(&json!([{"type": "file", "file": {}}]))),
        ("messages", "messages[0].role", json!([{"role": "root", "content": "x"}])),
        ("messages", "messages[0].role", json!([{"content": "x"}])),
        ("messages", "messages[0].content", json!([{"role": "user"}])),
        ("messages", "messages[0].content", json!([{"role": "assistant"}])),
        ("messages", "messages[0].tool_call_id", json!([{"role": "tool", "content": "x"}])),
    ]
}

#[rustfmt::skip]
fn options_out_of_range() -> Vec<Case> {
    let function = |name: &str| json!([{"type": "function", "function": {"name": name}}]);
    let pairs = |n: usize| (0..n).map(|at| (at.to_string(), json!("v"))).collect::<Value>();
    let format = |value: Value| json!({"type": "json_schema", "json_schema": value});
    let (long_key, long_value) = ("k".repeat(65), "v".repeat(513));
    vec![
        ("model", "model", json!("")),
        ("temperature", "temperature", json!(-0.1)),
        ("temperature", "temperature", json!(2.000_000_1)),
        ("top_p", "top_p", json!(-0.1)),
        ("top_p", "top_p", json!(1.1)),
        ("presence_penalty", "presence_penalty", json!(-2.1)),
        ("presence_penalty", "presence_penalty", json!(2.1)),
        ("frequency_penalty", "frequency_penalty", json!(-2.1)),
        ("frequency_penalty", "frequency_penalty", json!(2.1)),
        ("n", "n", json!(0)),
        ("n", "n", json!(-1)),
        ("n", "n", json!(129)),
        ("n", "n", json!(1.5)),
        ("max_tokens", "max_tokens", json!(0)),
        ("max_tokens", "max_tokens", json!(0.5)),
        ("max_completion_tokens", "max_completion_tokens", json!(0)),
        ("max_completion_tokens", "max_completion_tokens", json!(501)),
        ("top_logprobs", "top_logprobs", json!(-1)),
        ("top_logprobs", "top_logprobs", json!(21)),
        ("logit_bias", "logit_bias.1", json!({"1": 101})),
        ("logit_bias", "logit_bias.1", json!({"1": -101})),
        ("logit_bias", "logit_bias.1", json!({"1": 0.5})),
        ("stop", "stop", json!(["a", "b", "c", "d", "e"])),
        ("metadata", "metadata", pairs(17)),
        ("metadata", Box::leak(format!("metadata.{}", "k".repeat(64)).into_boxed_str()), json!({long_key: "v"})),
        ("metadata", "metadata.k", json!({"k": long_value})),
        ("modalities", "modalities[1]", json!(["text", "video"])),
        ("audio", "audio.format", json!({"voice": "a", "format": "ogg"})),
        ("audio", "audio.voice", json!({"format": "mp3"})),
        ("tools", "tools", vec![function("f")[0].clone(); 129].into()),
        ("tools", "tools[0].function.name", function("")),
        ("tools", "tools[0].function.name", function(&"f".repeat(65))),
        ("tools", "tools[0].function.name", function("a b")),
        ("tools", "tools[0].type", json!([{"type": "shell"}])),
        ("tool_choice", "tool_choice", json!("always")),
        ("function_call", "function_call", json!("required")),
        ("response_format", "response_format.type", json!({"type": "xml"})),
        ("response_format", "response_format.json_schema.name", format(json!({"strict": true}))),
        ("response_format", "response_format.json_schema.name", format(json!({"name": "a/b"}))),
        ("reasoning_effort", "reasoning_effort", json!("utmost")),
        ("verbosity", "verbosity", json!("loud")),
        ("service_tier", "service_tier", json!("first")),
        ("safety_identifier", "safety_identifier", json!("é".repeat(129))),
        ("prompt_cache_retention", "prompt_cache_retention", json!("1y")),
        ("stream_options", "stream_options", json!({"include_usage": true})),
    ]
}

#[test]
fn every_field_refuses_what_is_just_out_of_range() {
    let mut world = World::new(|config| config);
    for (name, param, value) in turns_out_of_range().into_iter().chain(options_out_of_range()) {
        let mut body = json!({"model": ACME, "messages": turn(&json!("Hello"))});
        body[name] = value;
        if name == "top_logprobs" {
            body["logprobs"] = json!(true);
        }
        body["user"] = json!(CANARY);
        check(&mut world, &body, Code::InvalidValue, param);
    }
    world.check_unharmed();
}

#[test]
fn what_is_the_operators_and_what_nobody_knows_is_refused_by_name() {
    let mut world = World::new(|config| config);
    let file = json!([{"type": "file", "file": {"file_id": CANARY}}]);
    let file = json!([{"role": "user", "content": file}]);
    let spoken = json!([{"role": "assistant", "audio": {"id": CANARY}}]);
    let voice = json!({"voice": {"id": CANARY}, "format": "mp3"});
    let weighed = json!([{"role": "user", "content": "x", "weight": 1}]);
    let extra = json!([{"role": "assistant", "content": "x", "thoughts": CANARY}]);
    let strict = json!({"type": "json_object", "strict": true});
    for (code, name, param, value) in [
        (Code::UnsupportedParameter, "messages", "messages[0].content[0].file.file_id", file),
        (Code::UnsupportedParameter, "messages", "messages[0].audio.id", spoken),
        (Code::UnsupportedParameter, "audio", "audio.voice.id", voice),
        (Code::UnsupportedParameter, "store", "store", json!(true)),
        (Code::UnsupportedParameter, "service_tier", "service_tier", json!("priority")),
        (Code::UnsupportedParameter, "web_search_options", "web_search_options", json!({})),
        (Code::UnsupportedParameter, "moderation", "moderation", json!({"model": CANARY})),
        (
            Code::UnsupportedParameter,
            "prompt_cache_retention",
            "prompt_cache_retention",
            json!("24h"),
        ),
        (Code::UnknownParameter, "messages", "messages[0].weight", weighed),
        (Code::UnknownParameter, "messages", "messages[0].thoughts", extra),
        (Code::UnknownParameter, "response_format", "response_format.strict", strict),
        (Code::UnknownParameter, "top_k", "top_k", json!(1)),
        (Code::UnknownParameter, "__proto__", "__proto__", json!({"model": CANARY})),
        (Code::UnknownParameter, "Messages", "Messages", json!([])),
        (Code::UnknownParameter, "messages ", "messages ", json!([])),
        (Code::UnknownParameter, "", "", json!(CANARY)),
    ] {
        let mut body = json!({"model": ACME, "messages": [{"role": "user", "content": CANARY}]});
        body[name] = value;
        check(&mut world, &body, code, param);
    }
    world.check_unharmed();
}
