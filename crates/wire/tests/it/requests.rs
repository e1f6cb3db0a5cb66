//! What a request may say, and how it is told what is wrong: the code and the path of the field.

use holdfast_domain::model::{Contract, PublicModelId};
use holdfast_domain::request::{Content, Message, Role};
use holdfast_wire::chat::request::{check, parse};
use holdfast_wire::error::Code;

/// A whole body around more members.
fn body(members: &str) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    format!(r#"{{"model":"a/b","messages":[{{"role":"user","content":"hi"}}]{comma}{members}}}"#)
}

/// A whole body around one message.
fn turn(message: &str) -> String {
    format!(r#"{{"model":"a/b","messages":[{message}]}}"#)
}

#[track_caller]
fn refuses(body: &str, code: Code, param: Option<&str>) {
    let bad = parse(body.as_bytes()).unwrap_err();
    assert_eq!((bad.code, bad.param.as_deref()), (code, param), "{body}: {bad}");
    if let Some(param) = param {
        assert!(bad.message.contains(param), "{bad} does not name its field");
    }
}

#[track_caller]
fn accepts(body: &str) {
    assert_eq!(parse(body.as_bytes()).err(), None, "{body}");
}

#[test]
fn the_whole_request_is_read() {
    let request = parse(
        br#"{"model":"a/b","messages":[
            {"role":"developer","content":"d","name":"app"},
            {"role":"system","content":[{"type":"text","text":"s"}]},
            {"role":"user","content":[{"text":"u1","type":"text"},{"type":"text","text":"u2"}]},
            {"role":"assistant","content":"","name":null,"refusal":null,"audio":null,"tool_calls":[],
             "function_call":null}],
            "max_tokens":16,"max_completion_tokens":1.6e1,"n":2.0,"temperature":0.70,"top_p":1,
            "presence_penalty":-2,"frequency_penalty":2.0,"stop":["a","b"],"seed":-9223372036854775808,
            "user":"u","metadata":{"k":"v"},"stream":false,"stream_options":null}"#,
    )
    .unwrap();
    let said = |role, name: Option<&str>, content| Message {
        role,
        name: name.map(str::to_owned),
        content: Some(content),
    };
    let text = |text: &str| Content::Text(text.to_owned());
    assert_eq!(request.model.as_str(), "a/b");
    assert_eq!(
        request.messages,
        [
            said(Role::Developer, Some("app"), text("d")),
            said(Role::System, None, text("s")),
            said(Role::User, None, Content::Parts(vec!["u1".to_owned(), "u2".to_owned()])),
            said(Role::Assistant, None, text("")),
        ]
    );
    assert_eq!((request.max_output_tokens, request.n), (Some(16), 2));
    let decimals =
        [request.temperature, request.top_p, request.presence_penalty, request.frequency_penalty];
    assert_eq!(decimals.map(|number| number.unwrap().to_string()), ["0.7", "1", "-2", "2"]);
    assert_eq!(request.stop, ["a", "b"]);
    assert_eq!(request.seed, Some(i64::MIN));
    assert_eq!(request.user.as_deref(), Some("u"));
    assert_eq!(request.metadata["k"], "v");
}

#[test]
fn what_is_not_json_has_no_field() {
    for text in ["", "{", "[]", "null", "\"x\"", "{} {}", "{\"a\":1,\"\\u0061\":2}"] {
        refuses(text, Code::InvalidJson, None);
    }
    assert_eq!(parse(b"{\"model\":\"\xff\"}").unwrap_err().code, Code::InvalidJson);
}

#[test]
fn a_model_that_cannot_exist_is_not_found() {
    let model = |model: &str| format!(r#"{{"model":{model},"messages":[]}}"#);
    for absent in
        ["\"gpt-4\"", "\"A/b\"", "\"a/b c\"", "\"a/b/c\"", &format!("\"a/{}\"", "b".repeat(127))]
    {
        refuses(&model(absent), Code::ModelNotFound, Some("model"));
    }
    for bad in ["\"\"", "null", "7", "[\"a/b\"]"] {
        refuses(&model(bad), Code::InvalidValue, Some("model"));
    }
    refuses(r#"{"messages":[{"role":"user","content":"x"}]}"#, Code::InvalidValue, Some("model"));
    refuses(r#"{"model":"a/b"}"#, Code::InvalidValue, Some("messages"));
}

#[test]
fn values_out_of_bounds_are_refused_at_their_field() {
    for (bad, param) in [
        (r#""max_tokens":0"#, "max_tokens"),
        (r#""max_tokens":-1"#, "max_tokens"),
        (r#""max_completion_tokens":1.5"#, "max_completion_tokens"),
        (r#""max_completion_tokens":"16""#, "max_completion_tokens"),
        (r#""max_completion_tokens":9007199254740993"#, "max_completion_tokens"),
        (r#""max_completion_tokens":1e400"#, "max_completion_tokens"),
        (r#""max_tokens":1,"max_completion_tokens":2"#, "max_tokens"),
        (r#""n":0"#, "n"),
        (r#""n":129"#, "n"),
        (r#""n":1.5"#, "n"),
        (r#""n":true"#, "n"),
        (r#""temperature":2.0000000000000000000001"#, "temperature"),
        (r#""temperature":-0.1"#, "temperature"),
        (r#""temperature":"1""#, "temperature"),
        (r#""temperature":1e999999999999"#, "temperature"),
        (r#""top_p":1.01"#, "top_p"),
        (r#""presence_penalty":-2.1"#, "presence_penalty"),
        (r#""frequency_penalty":3"#, "frequency_penalty"),
        (r#""stop":[]"#, "stop"),
        (r#""stop":["1","2","3","4","5"]"#, "stop"),
        (r#""stop":7"#, "stop"),
        (r#""stop":["1",null]"#, "stop[1]"),
        (r#""seed":9223372036854775808"#, "seed"),
        (r#""seed":0.5"#, "seed"),
        (r#""user":7"#, "user"),
        (r#""metadata":[]"#, "metadata"),
        (r#""metadata":{"a":1}"#, "metadata.a"),
        (r#""metadata":{"a":null}"#, "metadata.a"),
        (r#""stream":"yes""#, "stream"),
    ] {
        refuses(&body(bad), Code::InvalidValue, Some(param));
    }
    let pairs = |n: usize| {
        let pairs: Vec<_> = (0..n).map(|at| format!("\"k{at}\":\"v\"")).collect();
        body(&format!("\"metadata\":{{{}}}", pairs.join(",")))
    };
    accepts(&pairs(16));
    refuses(&pairs(17), Code::InvalidValue, Some("metadata"));
    let pair = |key: usize, value: usize| {
        // Characters count, not bytes.
        body(&format!("\"metadata\":{{\"{}\":\"{}\"}}", "é".repeat(key), "é".repeat(value)))
    };
    accepts(&pair(64, 512));
    refuses(&pair(65, 1), Code::InvalidValue, Some(&format!("metadata.{}", "é".repeat(64))));
    refuses(&pair(1, 513), Code::InvalidValue, Some("metadata.é"));
}

#[test]
fn bounds_are_within_bounds() {
    for good in [
        "",
        r#""max_tokens":9007199254740992"#,
        r#""max_tokens":16,"max_completion_tokens":16"#,
        r#""max_tokens":null,"max_completion_tokens":16"#,
        r#""n":128"#,
        r#""n":null"#,
        r#""temperature":0,"top_p":0,"presence_penalty":2,"frequency_penalty":-2.0"#,
        r#""temperature":2e0,"top_p":1.0"#,
        r#""stop":["1","2","3","4"]"#,
        r#""seed":9223372036854775807"#,
        r#""user":"\u0000""#,
        r#""metadata":{}"#,
        r#""stream":null"#,
    ] {
        accepts(&body(good));
    }
}

#[test]
fn what_nobody_reads_is_refused() {
    for name in [
        "tools",
        "logprobs",
        "top_logprobs",
        "response_format",
        "logit_bias",
        "functions",
        "audio",
        "modalities",
        "service_tier",
        "store",
        "reasoning_effort",
        "top_k",
        "Model",
        "",
    ] {
        refuses(&body(&format!("\"{name}\":null")), Code::UnknownParameter, Some(name));
    }
    refuses(&body(r#""stream":true"#), Code::UnsupportedParameter, Some("stream"));
    refuses(&body(r#""stream_options":{}"#), Code::UnsupportedParameter, Some("stream_options"));
    let hostile = format!("\\u001b[31m\\u202e{}", "x".repeat(100));
    let echoed = format!("?[31m?{}", "x".repeat(58));
    refuses(&body(&format!("\"{hostile}\":1")), Code::UnknownParameter, Some(&echoed));
}

#[test]
fn turns_are_refused_at_their_place() {
    use Code::{InvalidValue, UnknownParameter};
    for (message, code, param) in [
        ("7", InvalidValue, "messages[0]"),
        (r#"{"content":"x"}"#, InvalidValue, "messages[0].role"),
        (r#"{"role":"wizard","content":"x"}"#, InvalidValue, "messages[0].role"),
        (r#"{"role":null,"content":"x"}"#, InvalidValue, "messages[0].role"),
        (
            r#"{"tool_call_id":"c","role":"tool","content":"1"}"#,
            UnknownParameter,
            "messages[0].role",
        ),
        (r#"{"role":"function","name":"f","content":"1"}"#, UnknownParameter, "messages[0].role"),
        (r#"{"role":"user"}"#, InvalidValue, "messages[0].content"),
        (r#"{"role":"user","content":null}"#, InvalidValue, "messages[0].content"),
        (r#"{"role":"user","content":7}"#, InvalidValue, "messages[0].content"),
        (r#"{"role":"user","content":[]}"#, InvalidValue, "messages[0].content"),
        (r#"{"role":"user","content":["x"]}"#, InvalidValue, "messages[0].content[0]"),
        (r#"{"role":"user","content":"x","name":7}"#, InvalidValue, "messages[0].name"),
        (
            r#"{"role":"user","content":"x","refusal":null}"#,
            UnknownParameter,
            "messages[0].refusal",
        ),
        (r#"{"role":"user","content":"x","id":"1"}"#, UnknownParameter, "messages[0].id"),
        (r#"{"role":"assistant"}"#, InvalidValue, "messages[0].content"),
        (
            r#"{"role":"assistant","content":null,"tool_calls":[]}"#,
            InvalidValue,
            "messages[0].content",
        ),
        (
            r#"{"role":"assistant","content":null,"tool_calls":[{}]}"#,
            UnknownParameter,
            "messages[0].tool_calls",
        ),
        (
            r#"{"role":"assistant","content":"x","refusal":"no"}"#,
            UnknownParameter,
            "messages[0].refusal",
        ),
        (r#"{"role":"assistant","content":"x","audio":[]}"#, UnknownParameter, "messages[0].audio"),
    ] {
        refuses(&turn(message), code, Some(param));
    }
}

#[test]
fn parts_are_refused_at_their_place() {
    use Code::{InvalidValue, UnknownParameter};
    for (part, code, member) in [
        (r#"{"text":"x"}"#, InvalidValue, ".type"),
        (r#"{"type":"text"}"#, InvalidValue, ".text"),
        (r#"{"type":"text","text":null}"#, InvalidValue, ".text"),
        (r#"{"type":"hologram","text":"x"}"#, InvalidValue, ".type"),
        (r#"{"type":1,"text":"x"}"#, InvalidValue, ".type"),
        (r#"{"type":"image_url","image_url":{"url":"x"}}"#, UnknownParameter, ".type"),
        (r#"{"type":"refusal","refusal":"x"}"#, UnknownParameter, ".type"),
        (
            r#"{"type":"text","text":"x","prompt_cache_breakpoint":{}}"#,
            UnknownParameter,
            ".prompt_cache_breakpoint",
        ),
    ] {
        let message =
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"ok"}},{part}]}}"#);
        refuses(&turn(&message), code, Some(&format!("messages[0].content[1]{member}")));
    }
}

#[test]
fn what_messages_say_is_never_repeated() {
    for body in [
        turn(r#"{"role":"user","content":"SECRET","name":{"SECRET":"SECRET"}}"#),
        turn(r#"{"role":"SECRET","content":"SECRET"}"#),
        turn(r#"{"role":"user","content":[{"type":"SECRET","text":"SECRET"}]}"#),
        turn(r#"{"role":"user","content":{"SECRET":1}}"#),
        turn(r#"{"role":"user","content":"SECRET \ud800 SECRET"}"#),
        turn(r#"{"role":"user","content":"SECRET" SECRET}"#),
        turn(r#"{"role":"user","content":"a","SECRET":1,"SECRET":2}"#),
    ] {
        let bad = parse(body.as_bytes()).unwrap_err();
        assert!(!format!("{bad:?}").contains("SECRET"), "{bad:?}");
    }
}

#[test]
fn a_bound_over_the_contract_is_refused() {
    let contract = Contract {
        model: PublicModelId::try_from("a/b").unwrap(),
        version: 1,
        context_tokens: 8_192,
        max_output_tokens: 1_000,
        prompt_tokens_per_byte_millionths: 1_000_000,
        prompt_overhead_tokens: 64,
    };
    let checked = |members: &str| check(&parse(body(members).as_bytes()).unwrap(), &contract);
    assert_eq!(checked(""), Ok(()));
    assert_eq!(checked(r#""max_tokens":1000"#), Ok(()));
    let bad = checked(r#""max_tokens":1001"#).unwrap_err();
    assert_eq!(
        (bad.code, bad.param.as_deref()),
        (Code::InvalidValue, Some("max_completion_tokens"))
    );
    assert!(bad.message.contains("1000"), "{bad}");
}
