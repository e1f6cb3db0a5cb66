//! One answer in both forms: each case of `both_ways/` is read as a whole body and, cut into events, as
//! a stream, and both say what the case expects. The request has the tools `get`, `get_time` and
//! `get_weather`.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use holdfast_domain::answer::{Answer, Choice};
use holdfast_domain::request::Request;
use holdfast_domain::usage::UsageCeiling;
use holdfast_wire::chat::completion::finish_label;
use holdfast_wire::chat::request::parse;
use holdfast_wire::chat::upstream::{
    AnswerContext, ChunkReader, FINISH_WORDS, FinishWords, UnreadableReason, read_completion_in,
};
use serde_json::{Value, json};

fn request() -> Arc<Request> {
    let tool = |name| json!({"type": "function", "function": {"name": name}});
    let tools = ["get", "get_time", "get_weather"].map(tool);
    let body = json!({
        "model": "a/b",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": tools,
    });
    Arc::new(parse(body.to_string().as_bytes()).unwrap().request)
}

fn context() -> AnswerContext {
    AnswerContext::new(&request(), &FinishWords::NONE)
}

fn whole(body: &str) -> Result<Answer, UnreadableReason> {
    let mut answer = Answer::default();
    answer.append(read_completion_in(body.as_bytes(), &context(), UsageCeiling::NONE)?.delta);
    Ok(answer)
}

fn streamed(events: &[String]) -> Result<Answer, UnreadableReason> {
    let (mut reader, mut answer) =
        (ChunkReader::in_context(context(), UsageCeiling::NONE), Answer::default());
    for event in events {
        answer.append(reader.read(event.as_bytes())?.unwrap_or_default());
    }
    reader.end()?;
    Ok(answer)
}

/// What callers get of the only choice: text, calls, and end.
fn summary(answer: &Answer) -> Value {
    let Choice { content, refusal, tool_calls, function_call, finish, .. } =
        answer.choices().next().unwrap().1;
    let mut calls: Vec<_> =
        tool_calls.values().map(|call| json!([call.name, call.input])).collect();
    calls.extend(function_call.iter().map(|call| json!([call.name, call.arguments])));
    let finish = finish.map(finish_label);
    let mut said = json!({"content": content.as_deref().unwrap_or_default(), "finish": finish});
    if !calls.is_empty() {
        said["calls"] = calls.into();
    }
    if let Some(refusal) = refusal {
        said["refusal"] = refusal.as_str().into();
    }
    said
}

fn outcome(read: Result<Answer, UnreadableReason>) -> Value {
    read.as_ref().map_or(json!("unknown"), summary)
}

/// Events of the stream that a whole answer would have been: a chunk for what was said, and one for
/// the end.
fn cut(body: &str) -> Vec<String> {
    let chunk = body.replace("\"message\":", "\"delta\":");
    let Ok(mut chunk) = serde_json::from_str::<Value>(&chunk) else { return vec![chunk] };
    let mut end = json!({"choices": [{"delta": {}}]});
    if let Some(choice) = chunk["choices"].get_mut(0).and_then(Value::as_object_mut)
        && let Some(finish) = choice.remove("finish_reason")
    {
        end["choices"][0]["finish_reason"] = finish;
        if let Some(index) = choice.get("index") {
            end["choices"][0]["index"] = index.clone();
        }
    }
    vec![chunk.to_string(), end.to_string()]
}

#[test]
fn an_answer_is_the_same_whole_and_as_a_stream() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/both_ways");
    let mut wrong = Vec::new();
    let mut n_cases = 0;
    for file in ["answers.jsonl", "calls.jsonl"] {
        for line in fs::read_to_string(folder.join(file)).unwrap().lines() {
            let case: Value = serde_json::from_str(line).unwrap();
            let (choice, expected) = (&case["choice"], &case["expected"]);
            // By hand, because some members are no JSON.
            let choice = choice.as_str().map_or_else(|| choice.to_string(), str::to_owned);
            let body = format!("{{\"choices\":[{choice}]}}");
            let stream = if case["open_end"] == true { &json!("unknown") } else { expected };
            for (form, read, expected) in
                [("whole", whole(&body), expected), ("stream", streamed(&cut(&body)), stream)]
            {
                let got = outcome(read);
                if got != *expected {
                    wrong.push(format!("{} as a {form}: {got}", case["name"]));
                }
            }
            n_cases += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(n_cases >= 60, "{n_cases}");
}

/// Calls in pieces, each an element of `tool_calls`: in one chunk and in a chunk each.
#[test]
fn pieces_of_calls_are_put_together_by_their_marks() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/both_ways");
    let end = |finish: &str| json!({"choices": [{"delta": {}, "finish_reason": finish}]});
    let mut wrong = Vec::new();
    for line in fs::read_to_string(folder.join("pieces.jsonl")).unwrap().lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let finish = case["finish"].as_str().unwrap_or("tool_calls");
        let chunk = |calls: &[Value]| json!({"choices": [{"delta": {"tool_calls": calls}}]});
        let pieces = case["pieces"].as_array().unwrap();
        let in_one = vec![chunk(pieces), end(finish)];
        let in_many = pieces.chunks(1).map(chunk).chain([end(finish)]).collect();
        for (form, chunks) in [("one chunk", in_one), ("many chunks", in_many)] {
            let chunks: Vec<_> = chunks.iter().map(Value::to_string).collect();
            let mut got = outcome(streamed(&chunks));
            if got.is_object() {
                got = got["calls"].take();
            }
            if got != case["expected"] {
                wrong.push(format!("{} in {form}: {got}", case["name"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_word_of_the_table_ends_both_forms() {
    for (word, finish, source) in FINISH_WORDS {
        let mut upper = word.to_uppercase();
        for word in [*word, std::mem::take(&mut upper).as_str()] {
            let call = r#""tool_calls":[{"function":{"name":"get"}}]"#;
            let body = format!(
                r#"{{"choices":[{{"index":0,"message":{{"content":"x",{call}}},"finish_reason":"{word}"}}]}}"#
            );
            for read in [whole(&body), streamed(&cut(&body))] {
                let ended = read.unwrap().choices().next().unwrap().1.finish;
                assert_eq!(ended, Some(*finish), "{word} of {source}");
            }
        }
    }
}

#[test]
fn the_manual_lists_every_word_with_its_server_and_meaning() {
    let manual = include_str!("../../../../docs/reference/providers.md");
    for (word, finish, source) in FINISH_WORDS {
        let (word, meaning) = (format!("`{word}`"), format!("`{}` |", finish_label(*finish)));
        let row = format!("| {source} | ");
        let is_listed = manual
            .lines()
            .any(|line| line.starts_with(&row) && line.contains(&word) && line.ends_with(&meaning));
        assert!(is_listed, "docs/reference/providers.md has no {word} of {source}");
    }
}

#[test]
fn a_likelihood_that_is_not_finite_is_openais_number_for_none() {
    for number in ["NaN", "Infinity", "-Infinity"] {
        let token = format!(
            r#"{{"token":"x","logprob":{number},"bytes":[{number},1],"top_logprobs":[{{"token":"y","logprob":{number}}}]}}"#
        );
        let body = format!(
            r#"{{"choices":[{{"message":{{"content":"x"}},"logprobs":{{"content":[{token}]}},"finish_reason":"stop"}}]}}"#
        );
        for read in [whole(&body), streamed(&[body.replace("message", "delta")])] {
            let answer = read.unwrap();
            let logprobs = answer.choices().next().unwrap().1.logprobs.as_ref().unwrap();
            let tokens = logprobs.content.as_ref().unwrap();
            let expected = r#"{"token":"x","logprob":-9999.0,"bytes":[1],"top_logprobs":[{"token":"y","logprob":-9999.0,"bytes":null}]}"#;
            assert_eq!(tokens.iter().map(|token| token.as_str()).collect::<Vec<_>>(), [expected]);
        }
        // Nowhere else does such a number go out, and no request may have one.
        let call = format!(r#"{{"function":{{"name":"get","arguments":{{"x":{number}}}}}}}"#);
        let body = format!(r#"{{"choices":[{{"message":{{"tool_calls":[{call}]}}}}]}}"#);
        assert_eq!(outcome(whole(&body))["calls"], json!([["get", r#"{"x":null}"#]]));
        let request = format!(
            r#"{{"model":"a/b","messages":[{{"role":"user","content":"x"}}],"temperature":{number}}}"#
        );
        assert!(parse(request.as_bytes()).is_err(), "{number}");
    }
}
