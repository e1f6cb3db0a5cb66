//! What a provider is sent, and what is made of its answers and its errors.

use holdfast_domain::answer::{
    Audio, ChoiceDelta, FinishReason, FunctionCallDelta, Logprobs, PredictionTokens, ToolCallDelta,
};
use holdfast_domain::ports::ResponseMode;
use holdfast_domain::request::{Opaque, ServiceTier, ToolKind};
use holdfast_domain::usage::Meters;
use holdfast_wire::chat::request::parse;
use holdfast_wire::chat::upstream::{
    BoundField, UnreadableReason, UpstreamError, read_completion, read_error, render_request,
};

use crate::upstream_meters::resolved;

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
    let sent =
        render_request(&request, "real", 7, BoundField::MaxCompletionTokens, ResponseMode::Whole);
    let expected = concat!(
        r#"{"model":"real","messages":[{"role":"system","name":"app","content":"s"},"#,
        r#"{"role":"user","content":[{"type":"text","text":"1"},{"type":"text","text":"2\u0000"}]}],"#,
        r#""max_completion_tokens":7,"n":2,"temperature":1,"top_p":0.9,"presence_penalty":1,"#,
        r#""frequency_penalty":-0.5,"stop":["END"],"seed":-1,"user":"u","metadata":{"a":"1","b":"2"}}"#,
    );
    assert_eq!(str::from_utf8(&sent), Ok(expected));
}

#[test]
fn tools_and_options_are_sent_in_one_order() {
    let request = parse(
        br#"{"top_k":1.50,"moderation":{"model":"m"},"store":false,"service_tier":"auto","verbosity":"low",
            "reasoning_effort":"none","audio":{"format":"wav","voice":{"id":"v"}},"modalities":["audio","text"],
            "response_format":{"json_schema":{"strict":false,"name":"s","schema":{}},"type":"json_schema"},
            "function_call":{"name":"f"},"functions":[{"name":"f"}],"parallel_tool_calls":true,
            "tool_choice":{"allowed_tools":{"tools":[{"b":1,"a":2}],"mode":"auto"},"type":"allowed_tools"},
            "tools":[{"custom":{"format":{"type":"text"},"name":"c"},"type":"custom"}],
            "logit_bias":{"9":-1,"10":1e2},"top_logprobs":0,"logprobs":true,"model":"a/b","messages":[
            {"content":null,"role":"assistant","audio":{"id":"a"},"refusal":"no","x":[ ],"tool_calls":[
                {"type":"custom","id":"1","custom":{"input":"i","name":"c"}}]},
            {"content":"r","tool_call_id":"1","role":"tool"},
            {"content":null,"role":"function","name":"f"},
            {"role":"user","content":[
                {"image_url":{"detail":"low","url":"data:,"},"type":"image_url",
                 "prompt_cache_breakpoint":{"ttl":"12h","mode":"explicit"}},
                {"type":"file","file":{"file_data":"d","filename":"n"}}]}]}"#,
    )
    .unwrap()
    .request;
    let sent = render_request(&request, "m", 7, BoundField::MaxTokens, ResponseMode::Whole);
    let expected = concat!(
        r#"{"model":"m","messages":[{"role":"assistant","content":null,"refusal":"no","audio":{"id":"a"},"#,
        r#""tool_calls":[{"id":"1","type":"custom","custom":{"name":"c","input":"i"}}],"x":[]},"#,
        r#"{"role":"tool","content":"r","tool_call_id":"1"},"#,
        r#"{"role":"function","name":"f","content":null},"#,
        r#"{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,","detail":"low"},"#,
        r#""prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}},"#,
        r#"{"type":"file","file":{"filename":"n","file_data":"d"}}]}],"max_tokens":7,"#,
        r#""logprobs":true,"top_logprobs":0,"logit_bias":{"10":100,"9":-1},"#,
        r#""tools":[{"type":"custom","custom":{"name":"c","format":{"type":"text"}}}],"#,
        r#""tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"b":1,"a":2}]}},"#,
        r#""parallel_tool_calls":true,"functions":[{"name":"f"}],"function_call":{"name":"f"},"#,
        r#""response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{},"strict":false}},"#,
        r#""modalities":["text","audio"],"audio":{"voice":{"id":"v"},"format":"wav"},"#,
        r#""reasoning_effort":"none","verbosity":"low","service_tier":"auto","store":false,"#,
        r#""moderation":{"model":"m"},"top_k":1.50}"#,
    );
    assert_eq!(str::from_utf8(&sent), Ok(expected));
}

#[test]
fn what_was_not_asked_for_is_not_sent_but_the_bound_always_is() {
    let request =
        parse(br#"{"model":"a/b","messages":[{"role":"user","content":"x"}]}"#).unwrap().request;
    let sent = render_request(&request, "m", 64, BoundField::MaxTokens, ResponseMode::Whole);
    let expected = r#"{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":64}"#;
    assert_eq!(str::from_utf8(&sent), Ok(expected));
}

#[test]
fn a_stream_is_asked_for_with_its_usage() {
    let request =
        parse(br#"{"x":1,"stream":true,"model":"a/b","messages":[{"role":"user","content":"x"}]}"#)
            .unwrap()
            .request;
    let sent = render_request(&request, "m", 64, BoundField::MaxTokens, ResponseMode::Streamed);
    let expected = concat!(
        r#"{"model":"m","messages":[{"role":"user","content":"x"}],"max_tokens":64,"#,
        r#""stream":true,"stream_options":{"include_usage":true},"x":1}"#,
    );
    assert_eq!(str::from_utf8(&sent), Ok(expected));
}

/// An answer of one choice.
pub(crate) fn answer(choice: &str, usage: &str) -> String {
    format!(r#"{{"choices":[{choice}],"usage":{usage}}}"#)
}

pub(crate) const USAGE: &str = r#"{"prompt_tokens":10,"completion_tokens":5}"#;

/// A choice that says `content` and ends with `finish`.
pub(crate) fn choice(content: &str, finish: &str) -> String {
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
fn unreadable(body: &str, why: UnreadableReason) {
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

/// What is read of a choice whose message and other members are these.
fn read(message: &str, finish: &str, members: &str) -> Result<ChoiceDelta, UnreadableReason> {
    let choice =
        format!(r#"{{"index":0,"message":{{{message}}},"finish_reason":"{finish}"{members}}}"#);
    let completion = read_completion(answer(&choice, USAGE).as_bytes(), 1)?;
    Ok(completion.delta.choices.into_iter().next().unwrap())
}

fn called(index: u32, kind: ToolKind, name: &str, input: &str) -> ToolCallDelta {
    let (name, input) = (Some(name.to_owned()), Some(input.to_owned()));
    ToolCallDelta { index, kind: Some(kind), name, input, state: None }
}

#[test]
fn tool_calls_are_read_without_the_ids_of_the_provider() {
    let calls = r#""content":null,"tool_calls":[
        {"id":"call_up","type":"function","function":{"name":"f","arguments":"{ \"a\":1.0}"},"index":7},
        {"id":"up2","type":"custom","custom":{"name":"g","input":"x\ny"}},
        {"function":{"name":"h","arguments":{"b":2.50,"a":[1]}}},
        {"id":null,"function":{"name":"i","arguments":null}}]"#;
    let said = read(calls, "tool_calls", "").unwrap();
    let expected = [
        called(0, ToolKind::Function, "f", r#"{ "a":1.0}"#),
        called(1, ToolKind::Custom, "g", "x\ny"),
        called(2, ToolKind::Function, "h", r#"{"b":2.50,"a":[1]}"#),
        called(3, ToolKind::Function, "i", "{}"),
    ];
    assert_eq!(said.tool_calls, expected);
    assert_eq!((said.content, said.finish), (None, Some(FinishReason::ToolCalls)));
    // A named tool choice ends with `stop`.
    let named = r#""tool_calls":[{"function":{"name":"f","arguments":"{}"}}]"#;
    assert_eq!(read(named, "stop", "").unwrap().finish, Some(FinishReason::Stop));
}

#[test]
fn function_calls_are_read_in_the_older_form() {
    let call = r#""content":null,"function_call":{"name":"f","arguments":"{}"}"#;
    let said = read(call, "function_call", "").unwrap();
    let expected =
        FunctionCallDelta { name: Some("f".to_owned()), arguments: Some("{}".to_owned()) };
    assert_eq!(said.function_call, Some(expected));
    assert_eq!(said.finish, Some(FinishReason::FunctionCall));
}

#[test]
fn calls_that_cannot_be_read_are_no_answer() {
    for (calls, field) in [
        (r#"[7]"#, "tool_calls[].type"),
        (r#"[{"type":"function"}]"#, "tool_calls"),
        (r#"[{"type":"function","function":{}}]"#, "tool_calls[].function.name"),
        (
            r#"[{"type":"function","function":{"name":"f","arguments":[]}}]"#,
            "tool_calls[].function.arguments",
        ),
        (r#"[{"type":"custom","custom":{"name":"f","input":[]}}]"#, "tool_calls[].custom.input"),
        (r#"[{"type":"retrieval","function":{"name":"f","arguments":"{}"}}]"#, "tool_calls[].type"),
        (r#"[{"function":{"name":"f","arguments":"{\"a\":"}}]"#, "tool_calls[].function.arguments"),
    ] {
        let message = format!(r#""tool_calls":{calls}"#);
        let told = read(&message, "tool_calls", "").unwrap_err().to_string();
        let field = format!("choices[].message.{field}");
        assert_eq!(
            told,
            format!("the answer calls tools in an unknown way, at {field}"),
            "{calls}"
        );
    }
    let promised = UnreadableReason::ToolCalls("choices[].finish_reason");
    assert_eq!(read(r#""content":"""#, "tool_calls", ""), Err(promised));
    assert_eq!(read(r#""reasoning":"x""#, "tool_calls", ""), Err(promised));
    // Next to text, and in the other form, the promise is a label that is odd.
    let finish = |message: &str, finish| read(message, finish, "").unwrap().finish;
    assert_eq!(finish(r#""content":"x""#, "tool_calls"), Some(FinishReason::Stop));
    let tools = r#""tool_calls":[{"function":{"name":"f","arguments":"{}"}}]"#;
    assert_eq!(finish(tools, "function_call"), Some(FinishReason::ToolCalls));
}

#[test]
fn what_goes_with_the_text_is_read() {
    let opaque = |json: &str| Opaque::from_json(json.to_owned());
    let said = read(
        r#""content":"x","reasoning_content":"hm","reasoning":"other","annotations":[7,
            {"type":"url_citation", "url_citation":{"url":"u"}}],
            "audio":{"id":"audio_up","expires_at":17,"data":"AA==","transcript":"x","x":1}"#,
        "stop",
        r#","logprobs":{"content":[{"token":"x","logprob":-9999.0,"bytes":null}],"refusal":null}"#,
    )
    .unwrap();
    assert_eq!(said.reasoning.as_deref(), Some("hm"));
    let source = r#"{"type":"url_citation","url_citation":{"url":"u"}}"#;
    assert_eq!(said.annotations, [opaque(source)]);
    let audio = Audio { data: "AA==".to_owned(), transcript: "x".to_owned(), expires_at: 17 };
    assert_eq!(said.audio, Some(audio));
    let entry = opaque(r#"{"token":"x","logprob":-9999.0,"bytes":null}"#);
    assert_eq!(said.logprobs, Some(Logprobs { content: Some(vec![entry]), refusal: None }));
    assert_eq!(read(r#""reasoning":"hm""#, "stop", "").unwrap().reasoning.as_deref(), Some("hm"));
    // As in a stream: an id alone is no voice.
    assert_eq!(read(r#""audio":{"id":"a"}"#, "stop", "").unwrap().audio, None);
    assert_eq!(
        read(r#""reasoning":{"x":1}"#, "stop", ",\"logprobs\":null").unwrap().logprobs,
        None
    );
}

#[test]
fn what_goes_with_an_answer_is_read() {
    let judged = r#"{"type":"moderation_results","id":"modr-up","model":"m","results":[{"flagged":false,"model":"mm","category_scores":{"b":0.10,"a":"x"},"x":1}]}"#;
    let told = |members: &str| {
        let body = format!(
            r#"{{"choices":[{}],"usage":{{"prompt_tokens":10,"completion_tokens":5,
                "completion_tokens_details":{{"accepted_prediction_tokens":3,
                "rejected_prediction_tokens":-1}}}}{members}}}"#,
            choice("\"x\"", "\"stop\""),
        );
        let completion = read_completion(body.as_bytes(), 1).unwrap();
        assert_eq!(resolved(completion.usage), Meters::text(10, 5).ok(), "nobody pays by it");
        completion.delta
    };
    let plain = told("");
    assert_eq!(plain.predicted, Some(PredictionTokens { accepted: 3, rejected: 0 }));
    assert_eq!((plain.service_tier, &plain.moderation), (None, &None));
    for tier in ServiceTier::ALL {
        let members = format!(r#","service_tier":"{}""#, tier.label());
        assert_eq!(told(&members).service_tier, Some(*tier));
    }
    for other in ["null", "7", "\"gold of acme\""] {
        assert_eq!(told(&format!(r#","service_tier":{other}"#)).service_tier, None);
    }
    let failed = r#"{"type":"error","code":"up","message":"words of the provider"}"#;
    let moderation = told(&format!(r#","moderation":{{"output":{failed},"input":{judged}}}"#));
    let expected = concat!(
        r#"{"input":{"type":"moderation_results","model":"moderation","#,
        r#""results":[{"type":"moderation_result","model":"moderation","flagged":false,"#,
        r#""category_scores":{"b":0.10}}]},"#,
        r#""output":{"type":"error","code":"moderation_failed","#,
        r#""message":"The moderation did not judge this."}}"#,
    );
    assert_eq!(moderation.moderation.as_ref().map(Opaque::as_str), Some(expected));
    assert_eq!(told(&format!(r#","moderation":{{"input":{judged}}}"#)).moderation, None);
}

#[test]
fn a_name_that_a_provider_repeats_counts_once_more() {
    says(
        &answer(&choice("\"a\",\"content\":\"b\"", "\"stop\""), USAGE),
        Some("b"),
        FinishReason::Stop,
    );
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
        assert_eq!(
            read(indexes, n),
            Err::<Vec<String>, _>(UnreadableReason::Choices("choices")),
            "{indexes:?}"
        );
    }
}

#[test]
fn what_is_no_whole_answer_is_not_read() {
    unreadable(r#"{"error":{"message":"x","code":502}}"#, UnreadableReason::Error);
    unreadable(&answer(&choice("\"x\"", "\"stop\""), r#"{},"error":{}"#), UnreadableReason::Error);
    let own = r#"{},"x_groq":{"id":"req","error":"over capacity"}"#;
    unreadable(&answer(&choice("\"x\"", "\"stop\""), own), UnreadableReason::Error);
    for body in ["", "{", "<html>", "{} {}"] {
        unreadable(body, UnreadableReason::Json);
    }
    for body in ["[]", "null", "{}", r#"{"choices":null}"#, r#"{"choices":{}}"#] {
        unreadable(body, UnreadableReason::Choices("choices"));
    }
    let no_index = UnreadableReason::Choices("choices[].index");
    unreadable(r#"{"choices":[7]}"#, no_index);
    unreadable(&answer(r#"{"index":"x","message":{},"finish_reason":"stop"}"#, USAGE), no_index);
    for nothing in [r#"{"index":0}"#, r#"{"index":0,"message":null}"#, r#"{"message":"x"}"#] {
        unreadable(&answer(nothing, USAGE), UnreadableReason::Choices("choices[].message"));
    }
    let no_end = UnreadableReason::Finish("choices[].finish_reason");
    for finish in ["\"error\"", "\"abort\"", "\"insufficient_system_resource\"", "\"x\"", "7"] {
        unreadable(&answer(&choice("\"x\"", finish), USAGE), no_end);
    }
    for finish in ["\"tool_calls\"", "\"function_call\""] {
        let promised = UnreadableReason::ToolCalls("choices[].finish_reason");
        unreadable(&answer(&choice("null", finish), USAGE), promised);
    }
    for (calls, field) in [
        (r#""tool_calls":[{"id":"a"}]"#, "choices[].message.tool_calls"),
        (r#""tool_calls":"x""#, "choices[].message.tool_calls"),
        (r#""function_call":{"arguments":"{}"}"#, "choices[].message.function_call.name"),
    ] {
        let choice = format!(r#"{{"index":0,"message":{{{calls}}},"finish_reason":"stop"}}"#);
        unreadable(&answer(&choice, USAGE), UnreadableReason::ToolCalls(field));
    }
    for content in ["7", "[7]", r#"[{"type":"image"}]"#, r#"[{"type":"text","text":7}]"#] {
        let unknown = UnreadableReason::Content("choices[].message.content");
        unreadable(&answer(&choice(content, "\"stop\""), USAGE), unknown);
    }
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
