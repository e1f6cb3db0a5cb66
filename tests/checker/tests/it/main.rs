//! Histories by hand: some that the contract allows, and for each rule some that it does not.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends, at the line that says why")]

mod keys;
mod money;

use history_checker::{History, Rule, check};
use serde_json::{Value, json};

/// The first lines of every history here: a wallet with two API keys, the second one with a cap.
fn heading() -> Vec<Value> {
    vec![
        json!({"type": "history", "format": 1, "load": "by hand", "seed": 0}),
        json!({"type": "api_key", "api_key": "k", "wallet": "w", "spend_limit_micros": null}),
        json!({"type": "api_key", "api_key": "c", "wallet": "w", "spend_limit_micros": 15}),
    ]
}

/// A call that overlaps no other: of a request, between two moments, with an answer or without.
fn call(request: &str, moments: (u64, u64), answer: Value) -> Value {
    let returned = if answer.is_null() { Value::Null } else { json!(moments.1) };
    json!({
        "type": "call", "client": 0, "node": 0, "api_key": "k", "key": "1", "request": request,
        "body": request, "streamed": false, "called": moments.0, "returned": returned,
        "answer": answer,
    })
}

/// An answer of ten micros with these bytes.
fn completed(bytes: &str) -> Value {
    json!({
        "status": 200, "code": null, "bytes": bytes, "content": "text", "operation": "o",
        "charge_micros": 10,
    })
}

/// An error of this status and code, which charges nothing.
fn error(status: u16, code: &str) -> Value {
    json!({
        "status": status, "code": code, "bytes": code, "content": code, "operation": null,
        "charge_micros": 0,
    })
}

/// A run that was answered, for ten micros.
fn run(request: &str, at: u64) -> Value {
    json!({
        "type": "run", "at": at, "api_key": "k", "key": "1", "request": request,
        "reaction": "answered", "cost_micros": 10,
    })
}

/// The record with another value of a member.
fn with(mut record: Value, member: &str, value: Value) -> Value {
    let members = record.as_object_mut().unwrap();
    members.insert(member.to_owned(), value);
    record
}

/// The rules that these records break, after the heading.
#[track_caller]
fn broken(records: Vec<Value>) -> Vec<Rule> {
    let lines = heading().into_iter().chain(records).map(|record| format!("{record}\n"));
    let text: String = lines.collect();
    let history = History::read_from(text.as_bytes()).unwrap();
    check(&history).violations.into_iter().map(|violation| violation.rule).collect()
}

#[test]
fn a_file_that_is_no_history_is_refused_with_its_line() {
    let read = |text: &str| History::read_from(text.as_bytes()).unwrap_err().to_string();
    let format = "the history does not begin with a record of format 1";
    assert_eq!(read(""), format);
    assert_eq!(read(r#"{"type": "kill", "node": 0, "at": 1}"#), format);
    assert_eq!(read(r#"{"type": "history", "format": 2, "load": "", "seed": 0}"#), format);
    let first = heading().remove(0).to_string();
    assert_eq!(read(&format!("{first}\n{{}}")), "line 2 is not a record");
    let odd = r#"{"type": "kill", "node": 0, "at": 1, "why": "?"}"#;
    assert_eq!(read(&format!("{first}\n{odd}")), "line 2 is not a record");
}
