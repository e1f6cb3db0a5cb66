//! One program with the official SDK, unchanged against a model of each kind: the model asks for a tool,
//! is told its result, and answers; whole and in pieces.

use holdfast_tests::upstream::{ArrivedRequest, Judge, Streaming, completion};
use holdfast_tests::{Reply, Site, Upstream};
use serde_json::{Value, json};

use crate::clients::{PYTHON, World};
use crate::kinds::{Kind, config, events, kinds, plain};

/// What the tool returns, in every kind's request of the second turn.
const RESULT: &str = "\"Ada\"";

/// How a kind's model asks for the tool, whole and in pieces.
fn asking(kind: &Kind) -> (Value, Streaming) {
    match kind.name {
        "anthropic" => anthropic(),
        "gemini" => gemini(),
        "bedrock" => bedrock(),
        _ => openai(),
    }
}

fn openai() -> (Value, Streaming) {
    let call = |arguments: &str| {
        json!({
            "id": "call-mark-of-id",
            "type": "function",
            "function": {"name": "look_up", "arguments": arguments},
        })
    };
    let mut first = call("{\"zip\":");
    first["index"] = json!(0);
    let mut whole = completion("");
    whole["choices"][0]["finish_reason"] = json!("tool_calls");
    whole["choices"][0]["message"] = json!({
        "role": "assistant",
        "content": null,
        "tool_calls": [call("{\"zip\":\"1\"}")],
    });
    let more = json!({"index": 0, "function": {"arguments": "\"1\"}"}});
    let streamed = Streaming::new()
        .opening()
        .delta(&json!({"tool_calls": [first]}))
        .delta(&json!({"tool_calls": [more]}));
    (whole, streamed.finish("tool_calls").usage().done())
}

fn anthropic() -> (Value, Streaming) {
    let usage = json!({"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 20});
    let call = |input: Value| json!({"type": "tool_use", "id": "toolu_mark-of-id", "name": "look_up", "input": input});
    let whole = json!({
        "id": "msg_mark-of-id",
        "type": "message",
        "role": "assistant",
        "model": "mark-of-model",
        "content": [call(json!({"zip": "1"}))],
        "stop_reason": "tool_use",
        "usage": usage,
    });
    let piece = |json: &str| {
        json!({"type": "content_block_delta", "index": 0,
            "delta": {"type": "input_json_delta", "partial_json": json}})
    };
    let streamed = events(&[
        json!({"type": "message_start", "message": {"id": "msg_mark-of-id", "usage": usage}}),
        json!({"type": "content_block_start", "index": 0, "content_block": call(json!({}))}),
        piece("{\"zip\":"),
        piece("\"1\"}"),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"},
            "usage": {"output_tokens": 20}}),
        json!({"type": "message_stop"}),
    ]);
    (whole, streamed)
}

fn gemini() -> (Value, Streaming) {
    let answer = json!({
        "candidates": [{
            "content": {"parts": [{"functionCall": {"name": "look_up", "args": {"zip": "1"}}}]},
            "finishReason": "STOP",
            "index": 0,
        }],
        "usageMetadata": {
            "promptTokenCount": 100,
            "cachedContentTokenCount": 40,
            "candidatesTokenCount": 20,
            "totalTokenCount": 120,
        },
        "modelVersion": "mark-of-model",
        "responseId": "mark-of-id",
    });
    let streamed = events(std::slice::from_ref(&answer));
    (answer, streamed)
}

fn bedrock() -> (Value, Streaming) {
    let usage = json!({"inputTokens": 60, "cacheReadInputTokens": 40, "outputTokens": 20});
    let call = json!({"toolUseId": "tooluse_mark-of-id", "name": "look_up"});
    let mut with_input = call.clone();
    with_input["input"] = json!({"zip": "1"});
    let whole = json!({
        "output": {"message": {"role": "assistant", "content": [{"toolUse": with_input}]}},
        "stopReason": "tool_use",
        "usage": usage,
    });
    let piece = |json: &str| json!({"contentBlockIndex": 0, "delta": {"toolUse": {"input": json}}});
    let streamed = Streaming::new()
        .frame("messageStart", &json!({"role": "assistant"}))
        .frame("contentBlockStart", &json!({"contentBlockIndex": 0, "start": {"toolUse": call}}))
        .frame("contentBlockDelta", &piece("{\"zip\":"))
        .frame("contentBlockDelta", &piece("\"1\"}"))
        .frame("contentBlockStop", &json!({"contentBlockIndex": 0}))
        .frame("messageStop", &json!({"stopReason": "tool_use"}))
        .frame("metadata", &json!({"usage": usage}));
    (whole, streamed)
}

/// Asks for the tool until it is told the result, and answers as it was asked: whole or in pieces.
fn server(kind: &Kind) -> Upstream {
    let (call, call_streamed) = asking(kind);
    let (answer, (path, answer_streamed)) = (kind.answer.clone(), kind.stream.clone());
    let is_told_by_path = path != kind.path;
    Upstream::start(Reply::Judged(Judge::new(move |arrived: &ArrivedRequest| {
        let is_streamed = match is_told_by_path {
            true => arrived.head.starts_with(&format!("POST {path} ")),
            false => arrived.json()["stream"] == true,
        };
        match (arrived.body.contains(RESULT), is_streamed) {
            (false, false) => Reply::json(200, &call),
            (false, true) => Reply::Stream(call_streamed.clone()),
            (true, false) => Reply::json(200, &answer),
            (true, true) => Reply::Stream(answer_streamed.clone()),
        }
    })))
}

#[test]
fn python_one_program_uses_a_tool_of_each_kind() {
    for kind in kinds().into_iter().chain([plain()]) {
        let upstream = server(&kind);
        let (site, account) = Site::funded(&config(&kind, &upstream));
        let gateway = site.serve();
        let world = World { upstream, site, account, gateway };
        let told = world.run(&PYTHON, "tools");
        for conversation in told.as_array().unwrap() {
            assert_eq!(conversation["said"], "Good day", "{}: {told}", kind.name);
            let usages = conversation["usages"].as_array().unwrap();
            assert_eq!(usages.len(), 2, "{}: {told}", kind.name);
            for usage in usages {
                let counts = ["prompt_tokens", "completion_tokens", "total_tokens"];
                let counts = counts.map(|count| usage[count].as_i64().unwrap());
                assert_eq!(counts, [100, 20, 120], "{}: {told}", kind.name);
                assert_eq!(usage["customer_charge_micros"], 367, "{}: {told}", kind.name);
            }
        }
        world.check_charges(4);
    }
}
