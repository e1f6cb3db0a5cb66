//! The description of the API is the API: what it says of requests is what the reader does, what it
//! says of answers is what is rendered, and every error is in it.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::model::{Contract, PublicModelId};
use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::request::{AssistantMessage, CustomTool, Function, Request, Role, Tool};
use holdfast_domain::{OperationId, Phase, Situation};
use holdfast_wire::api::{OperationResult, OperationView};
use holdfast_wire::chat::request::{check, parse};
use holdfast_wire::error::{Code, ErrorBody};
use holdfast_wire::openapi;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::generated::{EXTRA, requests};
use crate::{schema, upstream_body, views};

/// Between them, every member of every shape of a request.
const SAMPLES: [&str; 8] = [
    r#"{"model":"a/b","messages":[{"role":"user","content":"x"}],"temperature":1,"top_p":0.5,
        "presence_penalty":1,"frequency_penalty":-1,"seed":7,"stop":"x","logit_bias":{"5":1},
        "logprobs":true,"top_logprobs":3,"max_completion_tokens":5,"n":2,"stream":true,
        "stream_options":{"include_usage":true,"include_obfuscation":false},"user":"u","metadata":{"k":"v"},"store":false,"service_tier":"auto",
        "safety_identifier":"s","prompt_cache_key":"p","prompt_cache_retention":"24h",
        "prompt_cache_options":{"mode":"implicit","ttl":"30m"}}"#,
    r#"{"model":"a/b","messages":[{"role":"system","content":"x","name":"n"}],"max_tokens":5,
        "stop":["x"],"response_format":{"type":"json_schema","json_schema":{"name":"n",
        "description":"d","schema":{"type":"object"},"strict":true}},"modalities":["text","audio"],
        "audio":{"voice":"alloy","format":"wav"},
        "prediction":{"type":"content","content":[{"type":"text","text":"x"}]},
        "reasoning_effort":"low","verbosity":"low","web_search_options":{
        "search_context_size":"low","user_location":{"type":"approximate","approximate":{
        "country":"c","region":"r","city":"c","timezone":"t"}}},
        "moderation":{"model":"m","policy":{"input":{"mode":"score"},"output":{"mode":"block"}}}}"#,
    r#"{"model":"a/b","messages":[{"role":"developer","content":[{"type":"text","text":"x",
        "prompt_cache_breakpoint":{"mode":"explicit","ttl":"30m"}}],"name":"n"}],
        "tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{},
        "strict":true}},{"type":"custom","custom":{"name":"c","description":"d","format":
        {"type":"grammar","grammar":{"definition":"d","syntax":"lark"}}}}],
        "tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":true,
        "response_format":{"type":"text"}}"#,
    r#"{"model":"a/b","messages":[{"role":"user","name":"n","content":[{"type":"image_url",
        "image_url":{"url":"https://x/y","detail":"high","format":"f"},
        "prompt_cache_breakpoint":{"mode":"explicit"}},{"type":"input_audio",
        "input_audio":{"data":"x","format":"wav"}},{"type":"file",
        "file":{"file_id":"i","filename":"n","file_data":"d"}},{"type":"text","text":"x"}]}],
        "tool_choice":{"type":"custom","custom":{"name":"c"}},
        "audio":{"voice":{"id":"v"},"format":"mp3"},"response_format":{"type":"json_object"}}"#,
    r#"{"model":"a/b","messages":[{"role":"assistant","content":"x","name":"n","refusal":"r",
        "audio":{"id":"i"},"annotations":[],"function_call":{"name":"f","arguments":"{}"},
        "id":"i","parsed":null,"provider_specific_fields":{},"reasoning":"x",
        "reasoning_content":"x","reasoning_details":[],"thinking_blocks":[],
        "tool_calls":[{"id":"i","type":"function","index":0,"provider_specific_fields":null,
        "function":{"name":"f","arguments":"{}","parsed_arguments":{},
        "provider_specific_fields":null}},{"id":"j","type":"custom","custom":{"name":"c","input":"x"}}]}],
        "tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"a":1}]}}}"#,
    r#"{"model":"a/b","messages":[{"role":"assistant","content":[{"type":"refusal","refusal":"r"}]},
        {"role":"tool","tool_call_id":"i","content":"x","name":"n"},
        {"role":"function","name":"f","content":null}],"tool_choice":"auto",
        "functions":[{"name":"f","description":"d","parameters":{}}],"function_call":"auto"}"#,
    r#"{"model":"a/b","messages":[{"role":"assistant","tool_calls":[{"id":"i","type":"function",
        "function":{"name":"f","arguments":"{}"}}]},{"role":"assistant","content":[
        {"type":"text","text":"x"},{"type":"text","text":"y"}]}],"function_call":{"name":"f"},
        "tools":[{"type":"custom","custom":{"name":"c","format":{"type":"text"}}}]}"#,
    r#"{"model":"a/b","messages":[{"role":"assistant","audio":{"id":"i"}},{"role":"user","content":[
        {"type":"file","file":{"file_data":"d"}},{"type":"image_url",
        "image_url":{"url":"data:x"}}]}],"top_logprobs":null,"metadata":{}}"#,
];

/// What stands in a place that had something else.
fn palette() -> Vec<Value> {
    let text = |n: usize| Value::from("x".repeat(n));
    let texts = |n: usize| Value::from(vec!["x"; n]);
    let pairs = |n: usize| {
        Value::Object((0..n).map(|at| (format!("k{at}"), Value::from("v"))).collect::<Map<_, _>>())
    };
    let long_name = json!({"x".repeat(65): "v"});
    let mut all: Vec<Value> = serde_json::from_str(
        r#"[null, true, false, "", "x", "a b", "auto", "text", "json_object", "http://x", "ftp://x",
            "none", "required", "low", "max", "24h", "A/b", "a/b/c", [], {}, [1], [{}], [[]],
            {"x": 1}, {"x": 101}, {"x": -100}, {"x": 1.5}, {"x": null}, {"name": "f"}, {"id": "i"},
            -101, -100, -3, -2.5, -2, -1, -0.5, 0, 0.5, 1, 1.0, 1e0, 1.5, 2, 2.5, 3, 4, 5, 20, 21,
            100, 101, 128, 129, 9007199254740992, 9007199254740993, 9223372036854775807,
            -9223372036854775808, 9223372036854775808, ["text"], ["text", "text"], ["audio"]]"#,
    )
    .unwrap();
    all.extend([text(64), text(65), text(128), text(129), text(512), text(513)]);
    all.extend([texts(1), texts(4), texts(5), pairs(16), pairs(17), long_name]);
    all.extend([json!({"x": "v".repeat(512)}), json!({"x": "v".repeat(513)})]);
    all
}

/// Every body that differs from this one in one place.
fn variations(node: &Value, palette: &[Value], emit: &mut dyn FnMut(Value)) {
    palette.iter().for_each(|other| emit(other.clone()));
    match node {
        Value::Object(members) => {
            for (name, member) in members {
                let mut without = members.clone();
                without.remove(name);
                emit(Value::Object(without));
                variations(member, palette, &mut |other| {
                    let mut members = members.clone();
                    members.insert(name.clone(), other);
                    emit(Value::Object(members));
                });
            }
            let mut more = members.clone();
            more.insert("zz".to_owned(), json!("x"));
            emit(Value::Object(more));
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                variations(element, palette, &mut |other| {
                    let mut elements = elements.clone();
                    elements[at] = other;
                    emit(Value::Array(elements));
                });
            }
            if let Some(first) = elements.first() {
                for n in [1, 2, 4, 5, 128, 129] {
                    emit(Value::Array(vec![first.clone(); n]));
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What the reader says of a body: nothing, or why not. Models add names at two places; here is none.
fn fault(body: &Value) -> Option<String> {
    let parsed = match parse(body.to_string().as_bytes()) {
        Ok(parsed) => parsed,
        Err(bad) => return Some(bad.to_string()),
    };
    let Request { extras, messages, tools, .. } = &parsed.request;
    let of_turns = messages.iter().flat_map(|message| {
        let is_reply = matches!(message.role, Role::Assistant(_));
        let is_unknown =
            move |name: &&String| !is_reply || !AssistantMessage::METADATA.contains(&name.as_str());
        let of_parts = message.parts().iter().flat_map(|part| part.extras.keys());
        message.extras.keys().filter(is_unknown).chain(of_parts)
    });
    let of_tools = tools.iter().flat_map(|tool| {
        let (Tool::Function(Function { extras, .. }) | Tool::Custom(CustomTool { extras, .. })) =
            tool;
        extras.keys()
    });
    extras.keys().chain(of_turns).chain(of_tools).next().cloned()
}

#[test]
fn the_reader_takes_what_is_described_and_nothing_else() {
    let document = openapi::document();
    let palette = palette();
    let mut verdicts = BTreeMap::from([(true, 0), (false, 0)]);
    for sample in SAMPLES {
        let sample: Value = serde_json::from_str(sample).unwrap();
        assert_eq!(fault(&sample), None, "{sample}");
        variations(&sample, &palette, &mut |body| {
            let read = fault(&body);
            let described = schema::described_fault(&document, "ChatCompletionRequest", &body);
            assert_eq!(read.is_none(), described.is_none(), "{read:?} {described:?} {body}");
            *verdicts.entry(read.is_none()).or_default() += 1;
        });
    }
    assert!(verdicts[&true] > 1_000 && verdicts[&false] > 10_000, "{verdicts:?}");
}

proptest! {
    #[test]
    fn whatever_is_generated_is_described(request in requests()) {
        let mut body: Value = serde_json::from_str(&upstream_body(&request)).unwrap();
        body["model"] = json!("a/b");
        let strip = |object: &mut Value| {
            object.as_object_mut().unwrap().retain(|name, _| !name.starts_with(EXTRA));
        };
        strip(&mut body);
        for turn in body["messages"].as_array_mut().unwrap() {
            strip(turn);
            turn["content"].as_array_mut().into_iter().flatten().for_each(strip);
        }
        let tools = body.as_object_mut().unwrap().get_mut("tools");
        tools.and_then(Value::as_array_mut).into_iter().flatten().for_each(strip);
        let document = openapi::document();
        let fault = schema::described_fault(&document, "ChatCompletionRequest", &body);
        prop_assert_eq!(fault, None, "{}", body);
    }
}

/// The names that some source of the reader takes from an object.
fn names_read() -> BTreeSet<String> {
    let sources = [
        include_str!("../../src/chat/request.rs"),
        include_str!("../../src/chat/request/content.rs"),
        include_str!("../../src/chat/request/message.rs"),
        include_str!("../../src/chat/request/option.rs"),
        include_str!("../../src/chat/request/tool.rs"),
    ];
    let source: String = sources.concat().split_whitespace().collect();
    let mut names = BTreeSet::new();
    for call in ["optional(", "optional_or_empty(", "required(", "count(body,", "word(body,"] {
        for rest in source.split(call).skip(1) {
            let name = rest.strip_prefix('"').and_then(|rest| rest.split_once('"'));
            names.extend(name.map(|(name, _)| name.to_owned()));
        }
    }
    for rest in source.split("remove(&[").skip(1) {
        let (list, _) = rest.split_once(']').unwrap();
        names.extend(list.split(',').map(|name| name.trim_matches('"').to_owned()));
    }
    names.extend(AssistantMessage::METADATA.map(str::to_owned));
    // Taken in a loop over their names, or by the name of a kind.
    names.extend(["country", "region", "city", "timezone", "input", "output"].map(str::to_owned));
    names.insert("type".to_owned());
    names
}

fn names_in(value: &Value, names: &mut BTreeSet<String>) {
    if let Some(members) = value.as_object() {
        for (name, value) in members {
            if name == "properties" {
                names.extend(value.as_object().unwrap().keys().cloned());
            }
            names_in(value, names);
        }
    }
    value.as_array().into_iter().flatten().for_each(|value| names_in(value, names));
}

#[test]
fn every_field_that_the_reader_knows_is_described() {
    let document = openapi::document();
    let mut described = BTreeSet::new();
    let mut todo = vec!["ChatCompletionRequest".to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(name) = todo.pop() {
        if seen.insert(name.clone()) {
            let shape = &document["components"]["schemas"][&name];
            names_in(shape, &mut described);
            let text = shape.to_string();
            let refs = text.split("#/components/schemas/").skip(1);
            todo.extend(refs.map(|rest| rest.split('"').next().unwrap().to_owned()));
        }
    }
    let mut read = names_read();
    let kinds = ["function", "custom"].map(str::to_owned);
    read.extend(kinds);
    assert_eq!(read, described);
    let samples = SAMPLES.concat();
    for name in &described {
        assert!(samples.contains(&format!("\"{name}\":")), "no sample has {name}");
    }
}

/// Closes every object, so that a member that nobody describes is found.
fn closed(schema: &mut Value) {
    if let Some(members) = schema.as_object_mut() {
        let kind = members.get("type").map(Value::to_string).unwrap_or_default();
        if kind.contains("\"object\"") && members.contains_key("properties") {
            members.entry("additionalProperties").or_insert(Value::Bool(false));
        }
        members.values_mut().for_each(closed);
    }
    schema.as_array_mut().into_iter().flatten().for_each(closed);
}

/// Why an answer is not what is described; a member too many is a reason.
pub(crate) fn answer_fault(name: &str, answer: &Value) -> Option<String> {
    let mut document = openapi::document();
    closed(&mut document["components"]["schemas"]);
    schema::described_fault(&document, name, answer)
}

#[test]
fn operations_are_described_in_every_phase() {
    let at = views::at(3);
    let usage = views::usage();
    let phases = [
        Phase::Leased,
        Phase::Open,
        Phase::Recorded(usage.clone()),
        Phase::Completed { usage, finished_at: at },
        Phase::Refused { refusal: ProviderRefusal::Request, finished_at: at },
        Phase::Abandoned { finished_at: at },
    ];
    let situations =
        [Situation::NotStarted, Situation::InProgress, Situation::Stale, Situation::Completed];
    let error = ErrorBody::new(Code::ProviderRefused).render();
    let results = || {
        [
            OperationResult::from_stored(&error).unwrap(),
            OperationResult::Expired,
            OperationResult::Sealed,
            OperationResult::None,
        ]
    };
    for phase in phases {
        for situation in situations {
            for result in results() {
                let operation = views::operation(phase.clone());
                let view = OperationView::of(&operation, situation).with_result(result);
                let shown = views::shown(&view);
                assert_eq!(answer_fault("Operation", &shown), None, "{shown}");
            }
        }
    }
}

#[test]
fn every_error_body_is_described() {
    for code in Code::ALL {
        let operation_id = Some(OperationId::from_u128(1));
        let meters = views::usage().metered.meters;
        let bodies = [
            ErrorBody::new(code),
            ErrorBody {
                param: Some("n"),
                operation_id,
                meters: Some(&meters),
                ..ErrorBody::new(code)
            },
        ];
        for body in bodies {
            let body: Value = serde_json::from_slice(&body.render()).unwrap();
            assert_eq!(answer_fault("Error", &body), None, "{body}");
        }
    }
}

/// All answers of all endpoints: where, under which status, and what.
fn answers(document: &Value) -> Vec<(String, u16, Value)> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let answer = openapi::resolved(document, answer).clone();
                all.push((format!("{method} {path}"), status.parse().unwrap(), answer));
            }
        }
    }
    all
}

#[test]
fn every_error_is_an_answer_under_its_status() {
    let document = openapi::document();
    let mut told = BTreeSet::new();
    for (place, status, answer) in answers(&document) {
        let media = answer["content"].as_object().unwrap().values().next().unwrap();
        let examples = media["examples"].as_object().into_iter().flatten();
        for (label, _example) in examples {
            let code = Code::ALL.into_iter().find(|code| code.label() == label).unwrap();
            assert_eq!(code.status(), status, "{place} {label}");
            assert!(answer["description"].as_str().unwrap().contains(code.cause()));
            for (header, is_wanted) in
                [("x-should-retry", true), ("retry-after", code.retry() || code.may_pass())]
            {
                assert!(!is_wanted || answer["headers"].get(header).is_some(), "{place} {label}");
            }
            told.insert(code);
        }
    }
    assert_eq!(told, Code::ALL.into_iter().collect());
}

#[test]
fn every_answer_says_what_pages_of_other_origins_may_read() {
    let document = openapi::document();
    let on_all = ["access-control-allow-origin", "access-control-expose-headers", "vary"];
    for (place, status, answer) in answers(&document) {
        for header in on_all {
            assert!(answer["headers"].get(header).is_some(), "{place} {status} {header}");
        }
    }
    let preflight = &document["components"]["responses"]["Preflight"]["headers"];
    let told: Vec<&str> = preflight.as_object().unwrap().keys().map(String::as_str).collect();
    let alone =
        ["allow-headers", "allow-methods", "max-age"].map(|it| format!("access-control-{it}"));
    let mut wanted: Vec<&str> =
        on_all.into_iter().chain(alone.iter().map(String::as_str)).collect();
    wanted.sort_unstable();
    assert_eq!(told, wanted);
    assert!(document["info"]["description"].as_str().unwrap().contains("`OPTIONS`"));
}

#[test]
fn every_example_is_valid() {
    let document = openapi::document();
    let mut n_checked = 0;
    let mut contents: Vec<Value> =
        answers(&document).into_iter().map(|(_, _, answer)| answer["content"].clone()).collect();
    let complete = &document["paths"]["/v1/chat/completions"]["post"];
    contents.push(complete["requestBody"]["content"].clone());
    for media in contents.iter().flat_map(|content| content.as_object().unwrap().values()) {
        let named = media["examples"].as_object().into_iter().flatten();
        let examples = named.map(|(_, example)| &example["value"]).chain(media.get("example"));
        for example in examples {
            let fault = schema::shape_fault(&document, &media["schema"], example);
            assert_eq!(fault, None, "{example}");
            n_checked += 1;
        }
    }
    assert!(n_checked > Code::ALL.len(), "{n_checked}");
    let body = &complete["requestBody"]["content"]["application/json"]["example"];
    assert_eq!(fault(body), None);
    for parameter in complete["parameters"].as_array().unwrap() {
        let parameter = openapi::resolved(&document, parameter);
        let example = &parameter["schema"]["example"];
        if !example.is_null() {
            assert_eq!(schema::shape_fault(&document, &parameter["schema"], example), None);
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let document = openapi::document();
    let text = document.to_string();
    let refs: BTreeSet<&str> =
        text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(refs.len() > 30);
    for reference in refs {
        assert!(document.pointer(reference).is_some(), "{reference}");
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let html = String::from_utf8(openapi::page(&openapi::document())).unwrap();
    for foreign in ["<script", "<link", "<img", "<iframe", "src=", "url(", "@import", "style="] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    for link in html.split("href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let is_here =
            link.strip_prefix('#').is_some_and(|id| html.contains(&format!("id=\"{id}\"")));
        assert!(is_here || link == "/openapi.json", "{link}");
    }
    for code in Code::ALL {
        assert!(html.contains(code.label()), "{}", code.label());
    }
}

#[test]
fn every_member_of_a_body_can_be_meant() {
    let document = openapi::document();
    let described = &document["components"]["schemas"]["ChatCompletionRequest"]["properties"];
    let contract = Contract::new(PublicModelId::try_from("a/b").unwrap(), 1, 9, 9);
    for name in described.as_object().unwrap().keys() {
        let body = json!({
            "model": "a/b", "messages": [{"role": "user", "content": "x"}], format!("{name}x"): 1,
        });
        let body = body.to_string();
        let request = parse(body.as_bytes()).unwrap().request;
        let bad = check(&request, body.as_bytes(), &contract).unwrap_err();
        assert!(bad.message.contains(&format!("did you mean `{name}`?")), "{bad}");
    }
}
