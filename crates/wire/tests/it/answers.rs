//! The completion that a caller gets.

use holdfast_domain::answer::{
    Answer, Audio, ChoiceDelta, Delta, FinishReason, FunctionCallDelta, Logprobs, PredictionTokens,
    ToolCallDelta,
};
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::model::{Contract, PublicModelId};
use holdfast_domain::price::PriceVersionId;
use holdfast_domain::request::{Opaque, ServiceTier, ToolKind};
use holdfast_domain::usage::{MeterKind, MeterReading, Meters, MetersSource, UsageReasons};
use holdfast_domain::{Micros, OperationId, Timestamp};
use holdfast_wire::chat::completion::{CompletionView, render};
use serde_json::{Value, json};

use crate::openapi::answer_fault;
use crate::schema;

fn choice(index: u32, content: Option<&str>, refusal: Option<&str>) -> ChoiceDelta {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    ChoiceDelta {
        index,
        content: owned(content),
        refusal: owned(refusal),
        ..ChoiceDelta::default()
    }
}

fn rendered(choices: Vec<ChoiceDelta>) -> Value {
    let mut answer = Answer::default();
    answer.append(Delta::from(choices));
    shown(&answer)
}

fn shown(answer: &Answer) -> Value {
    let meters = Meters::from_fn(|kind| match kind {
        MeterKind::Input => 1,
        MeterKind::CachedInput => 2,
        MeterKind::CacheWrite => 4,
        MeterKind::AudioInput => 8,
        MeterKind::Output => 16,
        MeterKind::Reasoning => 32,
        MeterKind::AudioOutput => 64,
        MeterKind::Request | MeterKind::Image => 1,
    });
    let body = render(&CompletionView {
        id: OperationId::from_u128(0xabc),
        created: Timestamp::from_micros(1_790_000_000_999_999),
        model: "a/b",
        answer,
        usage: &UsageRecord {
            metered: MeterReading {
                meters: meters.unwrap(),
                source: MetersSource::Reported,
                reasons: UsageReasons::NONE,
                provider_cost: None,
            },
            charge: Micros::new(123),
            shortfall: Micros::new(9),
            price_version: PriceVersionId::from_stored("a/b/USD/2026-01-01T00:00:00Z"),
        },
    });
    let value = serde_json::from_slice(&body).unwrap();
    assert_eq!(schema::fault("CreateChatCompletionResponse", &value), None);
    assert_eq!(answer_fault("ChatCompletion", &value), None);
    value
}

#[test]
fn a_completion_is_what_openai_s_clients_read() {
    let ended = |finish, choice| ChoiceDelta { finish: Some(finish), ..choice };
    let body = rendered(vec![
        ended(FinishReason::ContentFilter, choice(1, None, Some("no"))),
        ended(FinishReason::Stop, choice(0, Some("hi \"é\"\u{0}"), None)),
    ]);
    let said = |index, content: Value, refusal: Value, finish| {
        json!({
            "index": index,
            "message": {"role": "assistant", "content": content, "refusal": refusal, "annotations": []},
            "logprobs": null,
            "finish_reason": finish,
        })
    };
    assert_eq!(
        body,
        json!({
            "id": "chatcmpl_00000000000000000000000000000abc",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": "a/b",
            "choices": [
                said(0, json!("hi \"é\"\u{0}"), json!(null), "stop"),
                said(1, json!(null), json!("no"), "content_filter"),
            ],
            "usage": {
                "prompt_tokens": 15,
                "completion_tokens": 112,
                "total_tokens": 127,
                "prompt_tokens_details": {
                    "cached_tokens": 2, "audio_tokens": 8, "cache_write_tokens": 4,
                },
                "completion_tokens_details": {
                    "reasoning_tokens": 32, "audio_tokens": 64,
                    "accepted_prediction_tokens": 0, "rejected_prediction_tokens": 0,
                },
                "customer_charge_micros": 123,
            },
        })
    );
}

#[test]
fn a_choice_that_was_cut_ends_with_length() {
    let body = rendered(vec![choice(0, Some("so f"), None), choice(1, None, None)]);
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    assert_eq!(body["choices"][1]["message"]["content"], Value::Null);
}

fn piece(index: u32, kind: Option<ToolKind>, name: &str, input: &str) -> ToolCallDelta {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    ToolCallDelta { index, kind, name: some(name), input: some(input), ..ToolCallDelta::default() }
}

#[test]
fn pieces_of_calls_are_put_together_by_their_index() {
    use ToolKind::{Custom, Function};
    let mut answer = Answer::default();
    for tool_calls in [
        vec![piece(1, Some(Custom), "write", "")],
        vec![piece(0, Some(Function), "look", ""), piece(1, None, "", "a\nb")],
        vec![piece(0, None, "", "{\"q\""), piece(1, None, "", "c")],
        vec![piece(0, None, "", ":1}")],
    ] {
        let gained = ChoiceDelta { index: 1, tool_calls, ..ChoiceDelta::default() };
        answer.append(Delta::from(vec![gained]));
    }
    let end = |index, finish| ChoiceDelta { index, finish: Some(finish), ..ChoiceDelta::default() };
    let function_call = |name: Option<&str>, arguments: &str| FunctionCallDelta {
        name: name.map(str::to_owned),
        arguments: Some(arguments.to_owned()),
    };
    for call in [function_call(Some("old"), "{"), function_call(None, "}")] {
        let gained =
            ChoiceDelta { function_call: Some(call), ..end(0, FinishReason::FunctionCall) };
        answer.append(Delta::from(vec![gained]));
    }
    assert!(!answer.is_complete(2));
    answer.append(Delta::from(vec![end(1, FinishReason::ToolCalls)]));
    assert!(answer.is_complete(2));
    assert_eq!(answer.text_bytes(), 4 + 7 + 5 + 4 + 3 + 2);
    let body = shown(&answer);
    let message = &body["choices"][1]["message"];
    let id = |at: u32| format!("call_{}iK_1_{at}", "0".repeat(20));
    assert_eq!(message["content"], Value::Null);
    assert_eq!(
        message["tool_calls"],
        json!([
            {"id": id(0), "type": "function", "function": {"name": "look", "arguments": "{\"q\":1}"}},
            {"id": id(1), "type": "custom", "custom": {"name": "write", "input": "a\nbc"}},
        ])
    );
    assert_eq!(body["choices"][1]["finish_reason"], "tool_calls");
    let old = &body["choices"][0];
    assert_eq!(old["message"]["function_call"], json!({"name": "old", "arguments": "{}"}));
    assert_eq!(old["message"].get("tool_calls"), None);
    assert_eq!(old["finish_reason"], "function_call");
}

#[test]
fn what_goes_with_the_text_is_told() {
    let opaque = |json: &str| Opaque::from_json(json.to_owned());
    let entry = r#"{"token":"x","logprob":-9999.0,"bytes":[120],"top_logprobs":[]}"#;
    let cited = r#"{"type":"url_citation","url_citation":{"start_index":0,"end_index":1,"url":"u","title":"t"}}"#;
    let logprobs = |json: &str| Logprobs { content: Some(vec![opaque(json)]), refusal: None };
    let audio = |data: &str, transcript: &str, expires_at| Audio {
        data: data.to_owned(),
        transcript: transcript.to_owned(),
        expires_at,
    };
    let mut answer = Answer::default();
    for (text, audio) in [("a", audio("AA", "one ", 0)), ("b", audio("BB", "two", 17))] {
        let gained = ChoiceDelta {
            reasoning: Some(text.to_owned()),
            logprobs: Some(logprobs(entry)),
            annotations: vec![opaque(cited)],
            audio: Some(audio),
            finish: Some(FinishReason::Stop),
            ..ChoiceDelta::default()
        };
        answer.append(Delta::from(vec![gained]));
    }
    assert_eq!(answer.text_bytes(), 2 + 7);
    let body = shown(&answer);
    let choice = &body["choices"][0];
    let (entry, cited): (Value, Value) =
        (serde_json::from_str(entry).unwrap(), serde_json::from_str(cited).unwrap());
    assert_eq!(choice["logprobs"], json!({"content": [entry, entry], "refusal": null}));
    assert_eq!(
        choice["message"],
        json!({
            "role": "assistant", "content": null, "refusal": null, "annotations": [cited, cited],
            "reasoning_content": "ab",
            "audio": {
                "id": "audio_00000000000000000000000000000abc_0", "expires_at": 17,
                "data": "AABB", "transcript": "one two",
            },
        })
    );
}

#[test]
fn what_goes_with_an_answer_is_told() {
    let moderation = r#"{"input":{"type":"error","code":"c","message":"m"},"output":{"type":"error","code":"c","message":"m"}}"#;
    let mut answer = Answer::default();
    answer.append(Delta {
        service_tier: Some(ServiceTier::Flex),
        predicted: Some(PredictionTokens { accepted: 7, rejected: 1_000 }),
        moderation: Some(Opaque::from_json(moderation.to_owned())),
        ..Delta::from(vec![choice(0, Some("x"), None)])
    });
    // What comes later without them forgets none.
    answer.append(Delta::from(vec![choice(0, Some("y"), None)]));
    let body = shown(&answer);
    assert_eq!(body["service_tier"], "flex");
    assert_eq!(body["moderation"], serde_json::from_str::<Value>(moderation).unwrap());
    let details = &body["usage"]["completion_tokens_details"];
    assert_eq!(details["accepted_prediction_tokens"], 7);
    assert_eq!(details["rejected_prediction_tokens"], 112, "all there are");
    let asked = |members: &str| {
        let body =
            format!(r#"{{"model":"a/b","messages":[{{"role":"user","content":"x"}}]{members}}}"#);
        holdfast_wire::chat::request::parse(body.as_bytes()).unwrap().request
    };
    answer.retain_requested(&asked(r#","service_tier":"auto","moderation":{"model":"m"}"#));
    assert_eq!(shown(&answer), body);
    answer.retain_requested(&asked(""));
    let body = shown(&answer);
    assert_eq!((body.get("service_tier"), body.get("moderation")), (None, None));
}

#[test]
fn an_answer_may_be_sent_back_as_it_came() {
    let mut answer = Answer::default();
    let tool_calls = vec![piece(0, Some(ToolKind::Function), "f", "{}")];
    let gained = ChoiceDelta {
        tool_calls,
        refusal: Some("no".to_owned()),
        finish: Some(FinishReason::ToolCalls),
        ..ChoiceDelta::default()
    };
    answer.append(Delta::from(vec![gained]));
    let message = &shown(&answer)["choices"][0]["message"];
    let body = json!({"model": "a/b", "messages": [message]}).to_string();
    let request = holdfast_wire::chat::request::parse(body.as_bytes()).unwrap().request;
    let contract = Contract::new(PublicModelId::try_from("a/b").unwrap(), 1, 8_192, 1_000);
    assert_eq!(holdfast_wire::chat::request::check(&request, body.as_bytes(), &contract), Ok(()));
}
