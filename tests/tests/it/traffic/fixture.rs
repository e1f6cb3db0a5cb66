//! What a file of `fixtures/traffic` says, and what the provider of a test answers then.

use std::collections::BTreeMap;
use std::path::PathBuf;

use holdfast_tests::Reply;
use holdfast_tests::config::ACME;
use holdfast_tests::upstream::Streaming;
use serde_json::{Value, json};

/// One shape: requests, the answers that each of them meets, and what is right.
#[derive(Debug)]
pub(super) struct Fixture {
    /// Kinds of provider that it is tried with.
    pub(super) kinds: Vec<String>,
    /// More lines of the model's configuration.
    pub(super) model: String,
    /// More settings of the provider's.
    pub(super) provider: BTreeMap<String, String>,
    /// Bodies, without `stream`: one that a file does not name is a short question.
    pub(super) requests: Vec<Value>,
    answers: Vec<UpstreamAnswer>,
    /// One way of travelling; both, if there is none.
    streamed: Option<bool>,
    pub(super) expected: Expectation,
}

/// What a caller must get.
#[derive(Debug)]
pub(super) struct Expectation {
    /// Text of the first choice; `None` where it does not matter.
    pub(super) content: Option<String>,
    /// Name and arguments of each call, in order.
    pub(super) calls: Vec<(String, Value)>,
    pub(super) finish: Value,
    /// Tokens of the prompt and of the completion, and the charge in micros.
    pub(super) usage: [u64; 3],
    /// The error's code, instead of an answer.
    pub(super) error: Option<String>,
    /// Requests that the provider gets: none of a request that is refused before its key is bound.
    pub(super) runs: usize,
    /// Texts in the JSON that the provider is sent, and texts that are not.
    pub(super) sent: Vec<String>,
    pub(super) not_sent: Vec<String>,
}

/// What the provider answers.
#[derive(Debug, Clone)]
pub(super) enum UpstreamAnswer {
    Whole(u16, Value),
    /// Each with `data: ` before it, unless it begins with `event: `.
    Events(Vec<String>),
}

/// The folder of all files.
pub(super) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fixtures/traffic")
}

impl Fixture {
    pub(super) fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        let mut file: Value = serde_json::from_str(&text).unwrap();
        let mut take = |name: &str| match file.as_object_mut().unwrap().remove(name) {
            None => Value::Null,
            Some(value) => value,
        };
        assert!(take("shape").is_string(), "what the shape is, and of whom");
        let tools = take("tools");
        let expected = Expectation::of(take("expected"));
        let fixture = Self {
            kinds: texts_or(&take("kinds"), &["openai"]),
            model: texts_or(&take("model"), &[]).join("\n"),
            provider: settings(&take("provider")),
            requests: list_or(take("requests"), &json!({}))
                .iter()
                .map(|more| request(more, &tools))
                .collect(),
            answers: list_or(take("answers"), &Value::Null)
                .into_iter()
                .filter(|answer| !answer.is_null())
                .map(UpstreamAnswer::of)
                .collect(),
            streamed: take("streamed").as_bool(),
            expected,
        };
        assert_eq!(file, json!({}), "members that are not known");
        fixture
    }

    /// The answers that each request meets: the plain one of the kind, if the file has none.
    pub(super) fn answers(&self, kind: &str) -> Vec<UpstreamAnswer> {
        if self.answers.is_empty() {
            vec![UpstreamAnswer::plain(kind)]
        } else {
            self.answers.clone()
        }
    }

    /// Ways in which the request travels. Only OpenAI's dialect is read in either way whatever was requested.
    pub(super) fn modes(&self, request: &Value) -> Vec<bool> {
        assert!(request.get("stream").is_none(), "`streamed` is the file's");
        match self.streamed {
            Some(streamed) => vec![streamed],
            None if self.kinds == ["openai"] => vec![false, true],
            None => vec![false],
        }
    }
}

impl Expectation {
    fn of(mut file: Value) -> Self {
        let mut take = |name: &str| file.as_object_mut().unwrap().remove(name).unwrap_or_default();
        let usage = Some(take("usage")).filter(|usage| !usage.is_null());
        let numbers: Vec<u64> =
            serde_json::from_value(usage.unwrap_or(json!([11, 7, 81]))).unwrap();
        let error = take("error").as_str().map(str::to_owned);
        let expected = Self {
            content: take("content").as_str().map(str::to_owned),
            calls: serde_json::from_value(take("calls")).unwrap_or_default(),
            finish: Some(take("finish")).filter(|it| !it.is_null()).unwrap_or(json!("stop")),
            usage: numbers.try_into().unwrap(),
            runs: if take("unbound") == json!(true) { 0 } else { 1 },
            sent: texts_or(&take("sent"), &[]),
            not_sent: texts_or(&take("not_sent"), &[]),
            error,
        };
        assert_eq!(file, json!({}), "members that are not known");
        expected
    }
}

impl UpstreamAnswer {
    /// A short answer of a kind: 11 tokens of prompt and 7 of completion.
    pub(super) fn plain(kind: &str) -> Self {
        let text = "It is sunny.";
        Self::Whole(
            200,
            match kind {
                "anthropic" => json!({"type": "message", "role": "assistant",
                "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
                "usage": {"input_tokens": 11, "output_tokens": 7}}),
                "gemini" => json!({"candidates": [{"content": {"parts": [{"text": text}]},
                "finishReason": "STOP", "index": 0}], "usageMetadata": {"promptTokenCount": 11,
                "candidatesTokenCount": 7, "totalTokenCount": 18}}),
                "bedrock" => json!({"output": {"message": {"role": "assistant",
                "content": [{"text": text}]}}, "stopReason": "end_turn",
                "usage": {"inputTokens": 11, "outputTokens": 7, "totalTokens": 18}}),
                _ => json!({"object": "chat.completion", "choices": [{"index": 0, "message":
                {"role": "assistant", "content": text}, "finish_reason": "stop"}], "usage": usage()}),
            },
        )
    }

    /// A file's: `message` is a choice with that message, `choice` all of it, `usage` a report instead of the plain
    /// one; `deltas` and `events` are a stream's.
    fn of(file: Value) -> Self {
        let usage = file.get("usage").cloned().unwrap_or_else(usage);
        if let Some(events) = file.get("events") {
            return Self::Events(texts_or(events, &[]));
        }
        if let Some(deltas) = file.get("deltas") {
            return Self::streamed(deltas, &file, &usage);
        }
        if let Some(body) = file.get("body") {
            let status = file.get("status").and_then(Value::as_u64).unwrap_or(200);
            return Self::Whole(u16::try_from(status).unwrap(), body.clone());
        }
        let choice = file.get("choice").cloned().unwrap_or_else(|| {
            let message = file.get("message").cloned();
            let message =
                message.unwrap_or(json!({"role": "assistant", "content": "It is sunny."}));
            let finish = file.get("finish").cloned().unwrap_or(json!("stop"));
            json!({"index": 0, "message": message, "finish_reason": finish})
        });
        let choices = json!([choice]);
        Self::Whole(200, json!({"object": "chat.completion", "choices": choices, "usage": usage}))
    }

    fn streamed(deltas: &Value, file: &Value, usage: &Value) -> Self {
        let chunk = |choices: Value| json!({"object": "chat.completion.chunk", "choices": choices});
        let finish = file.get("finish").cloned().unwrap_or(json!("stop"));
        let deltas = deltas.as_array().unwrap().iter();
        let deltas = deltas.map(|delta| {
            chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}])).to_string()
        });
        let end = chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}])).to_string();
        let mut report = chunk(json!([]));
        report["usage"] = usage.clone();
        let tail = [end, report.to_string(), "[DONE]".to_owned()];
        Self::Events(deltas.chain(tail).collect())
    }

    pub(super) fn reply(&self) -> Reply {
        match self {
            Self::Whole(status, body) => Reply::json(*status, body),
            Self::Events(events) => {
                let events = events.iter().map(|event| match event.strip_prefix("event: ") {
                    None => format!("data: {event}\n\n"),
                    Some(_) => format!("{event}\n\n"),
                });
                events.fold(Streaming::new(), |stream, event| stream.raw(&event)).reply()
            }
        }
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18})
}

/// A body of these members, else a short question; with two tools, if the file says `tools`.
fn request(more: &Value, tools: &Value) -> Value {
    let mut body = json!({"model": ACME, "messages": [{"role": "user", "content": "hi"}]});
    if tools == &json!(true) {
        let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
        let tool = |name| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
        body["tools"] = json!([tool("get_weather"), tool("get_time")]);
    }
    for (name, value) in more.as_object().unwrap() {
        body[name] = lengthened(value);
    }
    body
}

/// Texts of a file are short: `@N` at an end stands for N letters.
fn lengthened(value: &Value) -> Value {
    match value {
        Value::String(text) => match text.rsplit_once('@') {
            Some((head, length)) if length.parse::<usize>().is_ok() => {
                json!(format!("{head}{}", "A".repeat(length.parse().unwrap())))
            }
            _ => value.clone(),
        },
        Value::Array(items) => items.iter().map(lengthened).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), lengthened(value)));
            Value::Object(members.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// A streamed answer whose calls are put together by their index, as clients do.
pub(super) fn with_calls_joined(chunks: &[Value], mut whole: Value) -> Value {
    let mut calls: BTreeMap<u64, [String; 2]> = BTreeMap::new();
    let choices = chunks.iter().filter_map(|chunk| chunk["choices"].get(0));
    for piece in choices.filter_map(|choice| choice["delta"]["tool_calls"].as_array()).flatten() {
        let call = calls.entry(piece["index"].as_u64().unwrap()).or_default();
        for (text, name) in call.iter_mut().zip(["name", "arguments"]) {
            text.push_str(piece["function"][name].as_str().unwrap_or_default());
        }
    }
    if !calls.is_empty() {
        let call = |[name, arguments]: &[String; 2]| json!({"function": {"name": name, "arguments": arguments}});
        whole["choices"][0]["message"]["tool_calls"] = calls.values().map(call).collect();
    }
    whole
}

fn texts_or(value: &Value, otherwise: &[&str]) -> Vec<String> {
    if value.is_null() {
        return otherwise.iter().map(|text| (*text).to_owned()).collect();
    }
    serde_json::from_value(value.clone()).unwrap()
}

fn list_or(value: Value, otherwise: &Value) -> Vec<Value> {
    if value.is_null() {
        return vec![otherwise.clone()];
    }
    serde_json::from_value(value).unwrap()
}

fn settings(value: &Value) -> BTreeMap<String, String> {
    if value.is_null() {
        return BTreeMap::new();
    }
    serde_json::from_value(value.clone()).unwrap()
}
