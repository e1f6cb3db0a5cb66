//! What a provider is sent, and what is made of its answers and its errors.

use holdfast_domain::answer::{ChoiceDelta, FinishReason};
use holdfast_domain::usage::{Kind, Meters};
use holdfast_wire::chat::request::parse;
use holdfast_wire::chat::upstream::{
    BoundField, Unreadable, UpstreamError, read_completion, read_error, render_request,
};

#[test]
fn everything_that_was_asked_for_is_sent() {
    let request = parse(
        br#"{"metadata":{"b":"2","a":"1"},"seed":-1,"user":"u","stop":"END","frequency_penalty":-0.5,
            "presence_penalty":1,"top_p":0.90,"temperature":1e0,"n":2,"max_tokens":5,"model":"a/b",
            "messages":[{"role":"system","content":"s","name":"app"},
            {"role":"user","content":[{"type":"text","text":"1"},{"type":"text","text":"2\u0000"}]}]}"#,
    )
    .unwrap()
    .request;
    let sent = render_request(&request, "real", 7, BoundField::MaxCompletionTokens);
    let expected = concat!(
        r#"{"model":"real","messages":[{"role":"system","name":"app","content":"s"},"#,
        r#"{"role":"user","content":[{"type":"text","text":"1"},{"type":"text","text":"2\u0000"}]}],"#,
        r#""max_completion_tokens":7,"n":2,"temperature":1,"top_p":0.9,"presence_penalty":1,"#,
        r#""frequency_penalty":-0.5,"stop":["END"],"seed":-1,"user":"u","metadata":{"a":"1","b":"2"}}"#,
    );
    assert_eq!(str::from_utf8(&sent), Ok(expected));
}

#[test]
fn what_was_not_asked_for_is_not_sent_but_the_bound_always_is() {
    let request =
        parse(br#"{"model":"a/b","messages":[{"role":"user","content":"x"}]}"#).unwrap().request;
    let sent = render_request(&request, "m", 64, BoundField::MaxTokens);
    let expected = r#"{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":64}"#;
    assert_eq!(str::from_utf8(&sent), Ok(expected));
}

/// An answer of one choice.
fn answer(choice: &str, usage: &str) -> String {
    format!(r#"{{"choices":[{choice}],"usage":{usage}}}"#)
}

const USAGE: &str = r#"{"prompt_tokens":10,"completion_tokens":5}"#;

/// A choice that says `content` and ends with `finish`.
fn choice(content: &str, finish: &str) -> String {
    format!(r#"{{"index":0,"message":{{"content":{content}}},"finish_reason":{finish}}}"#)
}

#[track_caller]
fn says(body: &str, content: Option<&str>, finish: FinishReason) {
    let completion = read_completion(body.as_bytes(), 1).unwrap();
    let expected = ChoiceDelta {
        index: 0,
        content: content.map(str::to_owned),
        finish: Some(finish),
        ..ChoiceDelta::default()
    };
    assert_eq!(completion.delta.choices, [expected], "{body}");
}

#[track_caller]
fn unreadable(body: &str, why: Unreadable) {
    assert_eq!(read_completion(body.as_bytes(), 1), Err(why), "{body}");
}

#[test]
fn answers_are_read_with_what_providers_add_and_leave_out() {
    says(&answer(&choice("\"hi\"", "\"stop\""), USAGE), Some("hi"), FinishReason::Stop);
    says(&answer(&choice("null", "\"length\""), USAGE), None, FinishReason::Length);
    says(
        &answer(&choice("\"\"", "\"content_filter\""), "null"),
        Some(""),
        FinishReason::ContentFilter,
    );
    says(&answer(&choice("\"x\"", "\"eos\""), USAGE), Some("x"), FinishReason::Stop);
    says(&answer(&choice("\"x\"", "\"model_length\""), USAGE), Some("x"), FinishReason::Length);
    let parts = r#"[{"type":"thinking","thinking":[]},{"type":"text","text":"a"},{"type":"text","text":"b"}]"#;
    says(&answer(&choice(parts, "\"stop\""), USAGE), Some("ab"), FinishReason::Stop);
    says(
        r#"{"id":7,"object":"x","created":"now","model":null,"error":null,"kv_transfer_params":null,
            "choices":[{"index":0,"logprobs":null,"stop_reason":7,"finish_reason":"stop","message":
            {"role":"assistant","content":"hi","tool_calls":[],
             "function_call":null,"refusal":null,"audio":null}}],"system_fingerprint":"fp"}"#,
        Some("hi"),
        FinishReason::Stop,
    );
}

#[test]
fn refusals_are_said_too() {
    let body = answer(
        r#"{"index":0,"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}"#,
        USAGE,
    );
    let completion = read_completion(body.as_bytes(), 1).unwrap();
    let said = &completion.delta.choices[0];
    assert_eq!((said.content.as_deref(), said.refusal.as_deref()), (None, Some("no")));
}

#[test]
fn choices_are_those_that_were_asked_for() {
    let indexed = |indexes: &[u32]| {
        let choices: Vec<_> = indexes
            .iter()
            .map(|at| {
                format!(r#"{{"index":{at},"message":{{"content":"{at}"}},"finish_reason":"stop"}}"#)
            })
            .collect();
        answer(&choices.join(","), USAGE)
    };
    let read = |indexes: &[u32], n| {
        let completion = read_completion(indexed(indexes).as_bytes(), n)?;
        Ok(completion.delta.choices.into_iter().filter_map(|choice| choice.content).collect())
    };
    assert_eq!(read(&[1, 0, 2], 3), Ok(vec!["0".to_owned(), "1".to_owned(), "2".to_owned()]));
    for (indexes, n) in [(&[][..], 1), (&[0], 2), (&[0, 1], 1), (&[0, 0], 2), (&[1, 2], 2)] {
        assert_eq!(read(indexes, n), Err::<Vec<String>, _>(Unreadable::Choices), "{indexes:?}");
    }
}

#[test]
fn what_is_no_whole_answer_is_not_read() {
    unreadable(r#"{"error":{"message":"x","code":502}}"#, Unreadable::Error);
    unreadable(&answer(&choice("\"x\"", "\"stop\""), r#"{},"error":{}"#), Unreadable::Error);
    for body in ["", "{", "<html>", "{} {}"] {
        unreadable(body, Unreadable::Json);
    }
    for body in
        ["[]", "null", "{}", r#"{"choices":null}"#, r#"{"choices":{}}"#, r#"{"choices":[7]}"#]
    {
        unreadable(body, Unreadable::Choices);
    }
    unreadable(&answer(r#"{"index":0,"finish_reason":"stop"}"#, USAGE), Unreadable::Choices);
    unreadable(&answer(r#"{"message":{},"finish_reason":"stop"}"#, USAGE), Unreadable::Choices);
    for finish in ["null", "\"\"", "\"error\"", "\"abort\"", "\"load\"", "\"STOP\"", "7"] {
        unreadable(&answer(&choice("\"x\"", finish), USAGE), Unreadable::Finish);
    }
    unreadable(&answer(r#"{"index":0,"message":{"content":"x"}}"#, USAGE), Unreadable::Finish);
    for finish in ["\"tool_calls\"", "\"function_call\""] {
        unreadable(&answer(&choice("\"x\"", finish), USAGE), Unreadable::ToolCalls);
    }
    for calls in [r#""tool_calls":[{}]"#, r#""tool_calls":{}"#, r#""function_call":{}"#] {
        let choice = format!(r#"{{"index":0,"message":{{{calls}}},"finish_reason":"stop"}}"#);
        unreadable(&answer(&choice, USAGE), Unreadable::ToolCalls);
    }
    for content in ["7", "{}", "[7]", r#"[{"type":"image"}]"#, r#"[{"type":"text"}]"#] {
        unreadable(&answer(&choice(content, "\"stop\""), USAGE), Unreadable::Content);
    }
}

/// The meters of an answer that says something.
fn meters(usage: &str) -> Option<Meters> {
    let body = answer(&choice("\"hi\"", "\"stop\""), usage);
    read_completion(body.as_bytes(), 1).unwrap().meters
}

#[track_caller]
fn metered(usage: &str, expected: &[(Kind, u64)]) {
    let expected = Meters::by(|kind| {
        let count = expected.iter().find(|(k, _)| *k == kind).map(|(_, count)| *count);
        count.unwrap_or(u64::from(kind == Kind::Request))
    });
    assert_eq!(meters(usage), expected, "{usage}");
}

#[test]
fn usage_becomes_disjoint_meters() {
    use Kind::{CacheWrite, CachedInput, Input, Output, Reasoning};
    metered(USAGE, &[(Input, 10), (Output, 5)]);
    metered(
        r#"{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,
            "prompt_tokens_details":{"cached_tokens":30,"cache_write_tokens":20,"audio_tokens":0},
            "completion_tokens_details":{"reasoning_tokens":40,"rejected_prediction_tokens":3},
            "cost":0.1}"#,
        &[(Input, 50), (CachedInput, 30), (CacheWrite, 20), (Output, 10), (Reasoning, 40)],
    );
    metered(
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":null,
            "completion_tokens_details":{"reasoning_tokens":null}}"#,
        &[(Input, 10), (Output, 5)],
    );
    metered(
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":4,
            "prompt_cache_miss_tokens":6}"#,
        &[(Input, 6), (CachedInput, 4), (Output, 5)],
    );
    metered(
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":4,
            "prompt_tokens_details":{"cached_tokens":4}}"#,
        &[(Input, 6), (CachedInput, 4), (Output, 5)],
    );
}

#[test]
fn usage_that_cannot_be_true_is_not_believed() {
    for usage in [
        "null",
        "{}",
        "7",
        r#"{"prompt_tokens":10}"#,
        r#"{"completion_tokens":10}"#,
        r#"{"prompt_tokens":null,"completion_tokens":5}"#,
        r#"{"prompt_tokens":-1,"completion_tokens":5}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5.5}"#,
        r#"{"prompt_tokens":"10","completion_tokens":5}"#,
        r#"{"prompt_tokens":10,"completion_tokens":0}"#,
        r#"{"prompt_tokens":1099511627777,"completion_tokens":5}"#,
        r#"{"prompt_tokens":1e300,"completion_tokens":5}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":11}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":-1}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":7}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,
            "prompt_tokens_details":{"cached_tokens":6,"cache_write_tokens":5}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"completion_tokens_details":{"reasoning_tokens":6}}"#,
        r#"{"prompt_tokens":10,"completion_tokens":5,"prompt_cache_hit_tokens":11}"#,
        // Each part is sane, their sum is not.
        r#"{"prompt_tokens":2000000000000,"completion_tokens":5,
            "prompt_tokens_details":{"cached_tokens":1000000000000}}"#,
    ] {
        assert_eq!(meters(usage), None, "{usage}");
    }
}

#[test]
fn a_silent_answer_may_cost_no_completion() {
    let body = answer(&choice("\"\"", "\"stop\""), r#"{"prompt_tokens":10,"completion_tokens":0}"#);
    assert_eq!(read_completion(body.as_bytes(), 1).unwrap().meters, Meters::text(10, 0));
    let refusal = answer(
        r#"{"index":0,"message":{"refusal":"no"},"finish_reason":"stop"}"#,
        r#"{"prompt_tokens":10,"completion_tokens":0}"#,
    );
    assert_eq!(read_completion(refusal.as_bytes(), 1).unwrap().meters, None);
}

#[test]
fn errors_are_read_in_every_shape() {
    let error =
        |code: Option<&str>, kind: Option<&str>, param: Option<&str>, message: Option<&str>| {
            let owned = |text: Option<&str>| text.map(str::to_owned);
            UpstreamError {
                code: owned(code),
                kind: owned(kind),
                param: owned(param),
                message: owned(message),
            }
        };
    for (body, expected) in [
        (
            r#"{"error":{"message":"m","type":"t","param":"p","code":"c"}}"#,
            error(Some("c"), Some("t"), Some("p"), Some("m")),
        ),
        (
            r#"{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}"#,
            error(Some("400"), Some("BadRequestError"), None, Some("m")),
        ),
        (
            r#"{"error":{"code":429,"message":"m","metadata":{}}}"#,
            error(Some("429"), None, None, Some("m")),
        ),
        (r#"{"error":"model not found"}"#, error(None, None, None, Some("model not found"))),
        (r#"{"error":null,"code":"c"}"#, error(Some("c"), None, None, None)),
        (r#"{"error":[7],"code":"c"}"#, UpstreamError::default()),
        (r#"{"detail":[{"loc":["body"]}]}"#, UpstreamError::default()),
        ("[]", UpstreamError::default()),
        ("", UpstreamError::default()),
        ("<html>503</html>", UpstreamError::default()),
    ] {
        assert_eq!(read_error(body.as_bytes()), expected, "{body}");
    }
    assert_eq!(read_error(b"\xff\xfe"), UpstreamError::default());
}

#[test]
fn a_provider_s_words_do_not_show() {
    let error = read_error(br#"{"error":{"message":"SECRET","code":"c"}}"#);
    let shown = format!("{error:?}");
    assert!(shown.contains("\"c\"") && !shown.contains("SECRET"), "{shown}");
}
