//! What a whole stream looks like, in one place, and what it says, put together as clients do.

use holdfast_tests::events::{DONE, End, chunk};
use holdfast_tests::{Answer, StreamedAnswer};
use serde_json::{Value, json};

use crate::check::{check_request_id, spelled};

/// Headers of every stream. The connection closes because the tests' client asks.
const HEADERS: [&str; 9] = [
    "cache-control",
    "connection",
    "content-type",
    "date",
    "idempotency-key",
    "idempotent-replayed",
    "transfer-encoding",
    "x-accel-buffering",
    "x-request-id",
];

/// The head of a stream.
#[track_caller]
pub(crate) fn check_head(head: &Answer, request_key: &str, replayed: bool) {
    assert_eq!(head.status, 200, "{head:?}");
    assert_eq!(head.header_names(), HEADERS, "{head:?}");
    assert_eq!(head.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(head.header("cache-control"), Some("no-cache"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    assert_eq!(head.header("idempotency-key"), Some(request_key));
    assert_eq!(head.header("idempotent-replayed"), Some(spelled(replayed)));
    check_request_id(head);
}

/// A stream that ended well, and the completion that it says.
#[track_caller]
pub(crate) fn check_stream(streamed: &StreamedAnswer, request_key: &str, replayed: bool) -> Value {
    check_head(&streamed.head, request_key, replayed);
    assert_eq!(streamed.end, End::Whole, "{streamed:?}");
    let (done, told) = streamed.events.split_last().unwrap();
    assert_eq!(done, DONE);
    assert!(!told.iter().any(|event| event == DONE), "{told:?}");
    let chunks: Vec<_> = told.iter().map(|event| chunk(event)).collect();
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant", "{}", chunks[0]);
    assembled(&chunks)
}

/// A stream that broke: what it said before, and the error that it ends with.
#[track_caller]
pub(crate) fn check_broken(streamed: &StreamedAnswer) -> (Value, Value) {
    assert_eq!(streamed.end, End::BrokenOff, "{streamed:?}");
    let (error, told) = streamed.events.split_last().unwrap();
    let chunks: Vec<_> = told.iter().map(|event| chunk(event)).collect();
    let said = assembled(&chunks);
    assert_eq!(said["choices"][0]["finish_reason"], Value::Null, "nothing has ended: {said}");
    let error = chunk(error);
    assert_eq!(error.as_object().unwrap().keys().collect::<Vec<_>>(), ["error"]);
    (said, error["error"].clone())
}

/// One completion of its chunks: text is added to text, whatever else comes is the last of it.
#[track_caller]
pub(crate) fn assembled(chunks: &[Value]) -> Value {
    let mut whole = json!({"object": "chat.completion", "choices": []});
    for chunk in chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk", "{chunk}");
        for name in ["id", "created", "model"] {
            let known = whole.get(name).unwrap_or(&chunk[name]);
            assert_eq!(*known, chunk[name], "{chunk}");
            whole[name] = chunk[name].clone();
        }
        if chunk["usage"].is_object() {
            assert_eq!(chunk["choices"], json!([]), "{chunk}");
            whole["usage"] = chunk["usage"].clone();
        }
        for choice in chunk["choices"].as_array().unwrap() {
            add(&mut whole["choices"], choice);
        }
    }
    whole
}

fn add(choices: &mut Value, gained: &Value) {
    let choices = choices.as_array_mut().unwrap();
    let index = usize::try_from(gained["index"].as_u64().unwrap()).unwrap();
    if choices.len() <= index {
        choices.resize(index + 1, Value::Null);
    }
    let choice = &mut choices[index];
    assert!(choice["finish_reason"].is_null(), "nothing follows an end: {gained}");
    if choice.is_null() {
        *choice = json!({"index": index, "message": {"content": null}, "finish_reason": null});
    }
    for (name, value) in gained["delta"].as_object().unwrap() {
        let member = &mut choice["message"][name];
        *member = match (member.as_str(), value.as_str()) {
            (Some(text), Some(more)) if name != "role" => json!(format!("{text}{more}")),
            _ => value.clone(),
        };
    }
    choice["finish_reason"] = gained["finish_reason"].clone();
}
