//! What a request may say, and how it is told what is wrong: the code and the path of the field.

use holdfast_domain::model::{Contract, RestrictedField};
use holdfast_domain::request::{AssistantMessage, Content, ContentPart, Message, Role};
use holdfast_wire::chat::request::{BadRequest, Delivery, check, parse};
use holdfast_wire::error::Code;

/// A whole body around more members.
pub(crate) fn body(members: &str) -> String {
    let comma = if members.is_empty() { "" } else { "," };
    format!(r#"{{"model":"a/b","messages":[{{"role":"user","content":"hi"}}]{comma}{members}}}"#)
}

/// A whole body around one message.
pub(crate) fn turn(message: &str) -> String {
    format!(r#"{{"model":"a/b","messages":[{message}]}}"#)
}

#[track_caller]
fn refuses(body: &str, code: Code, param: Option<&str>) {
    let bad = read(body).unwrap_err();
    assert_eq!((bad.code, bad.param.as_deref()), (code, param), "{body}: {bad}");
    if let Some(param) = param {
        assert!(bad.message.contains(param), "{bad} does not name its field");
    }
}

#[track_caller]
fn accepts(body: &str) {
    assert_eq!(read(body).err(), None, "{body}");
}

/// Reads a body for a model that accepts nothing by name: names and words that are not known are kept
/// until it is known which model has them.
fn read(body: &str) -> Result<(), BadRequest> {
    let request = parse(body.as_bytes())?.request;
    let contract = Contract {
        allow: RestrictedField::ALL.into(),
        ..Contract::new(request.model.clone(), 1, u64::MAX, u64::MAX)
    };
    check(&request, body.as_bytes(), &contract)
}

#[test]
fn the_first_fields_are_read() {
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
    .unwrap()
    .request;
    let said = |role, name: Option<&str>, content| Message {
        name: name.map(str::to_owned),
        ..Message::new(role, Some(content))
    };
    let text = |text: &str| Content::Text(text.to_owned());
    assert_eq!(request.model.as_str(), "a/b");
    assert_eq!(
        request.messages,
        [
            said(Role::Developer, Some("app"), text("d")),
            said(Role::System, None, text("s")),
            said(
                Role::User,
                None,
                Content::Parts(
                    ["u1", "u2"].map(|text| ContentPart::from(text.to_owned())).to_vec()
                )
            ),
            said(Role::Assistant(AssistantMessage::default()), None, text("")),
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
        (r#""stop":["1","2","3","4","5"]"#, "stop"),
        (r#""stop":["","","","",""]"#, "stop"),
        (r#""stop":7"#, "stop"),
        (r#""stop":["1",null]"#, "stop[1]"),
        (r#""seed":9223372036854775808"#, "seed"),
        (r#""seed":0.5"#, "seed"),
        (r#""user":7"#, "user"),
        (r#""metadata":["a"]"#, "metadata"),
        (r#""metadata":{"a":1}"#, "metadata.a"),
        (r#""metadata":{"a":null}"#, "metadata.a"),
        (r#""stream":"yes""#, "stream"),
        (r#""stream":false,"stream_options":{"include_usage":true}"#, "stream_options"),
        (r#""stream":true,"stream_options":{"include_usage":1}"#, "stream_options.include_usage"),
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
    let identifier = |n: usize| body(&format!("\"safety_identifier\":\"{}\"", "é".repeat(n)));
    accepts(&identifier(128));
    refuses(&identifier(129), Code::InvalidValue, Some("safety_identifier"));
}

#[test]
fn options_are_refused_at_their_field() {
    for (bad, param) in [
        (r#""logprobs":1"#, "logprobs"),
        (r#""top_logprobs":1"#, "top_logprobs"),
        (r#""logprobs":false,"top_logprobs":0"#, "top_logprobs"),
        (r#""logprobs":true,"top_logprobs":21"#, "top_logprobs"),
        (r#""logprobs":true,"top_logprobs":-1"#, "top_logprobs"),
        (r#""logit_bias":[1]"#, "logit_bias"),
        (r#""logit_bias":{"1":101}"#, "logit_bias.1"),
        (r#""logit_bias":{"1":-101}"#, "logit_bias.1"),
        (r#""logit_bias":{"1":0.5}"#, "logit_bias.1"),
        (r#""logit_bias":{"1":null}"#, "logit_bias.1"),
        (r#""modalities":{}"#, "modalities"),
        (r#""modalities":["video"]"#, "modalities[0]"),
        (r#""audio":{"voice":"alloy"}"#, "audio.format"),
        (r#""audio":{"voice":"alloy","format":"midi"}"#, "audio.format"),
        (r#""audio":{"voice":7,"format":"wav"}"#, "audio.voice"),
        (r#""reasoning_effort":"extreme""#, "reasoning_effort"),
        (r#""verbosity":"huge""#, "verbosity"),
        (r#""service_tier":"gold""#, "service_tier"),
        (r#""store":"yes""#, "store"),
        (r#""prompt_cache_key":1"#, "prompt_cache_key"),
        (r#""prompt_cache_retention":"1h""#, "prompt_cache_retention"),
        (r#""prompt_cache_options":{"mode":"never"}"#, "prompt_cache_options.mode"),
        (r#""prompt_cache_options":{"ttl":"12h"}"#, "prompt_cache_options.ttl"),
        (r#""prediction":{"type":"content"}"#, "prediction.content"),
        (r#""prediction":{"type":"code","content":"x"}"#, "prediction.type"),
        (r#""prediction":{"type":"content","content":[]}"#, "prediction.content"),
        (
            r#""web_search_options":{"search_context_size":"all"}"#,
            "web_search_options.search_context_size",
        ),
        (
            r#""web_search_options":{"user_location":{"type":"approximate"}}"#,
            "web_search_options.user_location.approximate",
        ),
        (r#""moderation":{}"#, "moderation.model"),
        (
            r#""moderation":{"model":"m","policy":{"input":{"mode":"x"}}}"#,
            "moderation.policy.input.mode",
        ),
        (r#""response_format":{}"#, "response_format.type"),
        (r#""response_format":{"type":"xml"}"#, "response_format.type"),
        (r#""response_format":{"type":"json_schema"}"#, "response_format.json_schema"),
        (
            r#""response_format":{"type":"json_schema","json_schema":{"name":"a b"}}"#,
            "response_format.json_schema.name",
        ),
        (
            r#""response_format":{"type":"json_schema","json_schema":{"name":"a","schema":[]}}"#,
            "response_format.json_schema.schema",
        ),
        (r#""parallel_tool_calls":"no""#, "parallel_tool_calls"),
    ] {
        refuses(&body(bad), Code::InvalidValue, Some(param));
    }
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
        r#""stream":true,"stream_options":null"#,
        r#""logprobs":true,"top_logprobs":20"#,
        r#""logprobs":true,"top_logprobs":null"#,
        r#""logit_bias":{"50256":-100,"x":1e2}"#,
        r#""modalities":["audio","text","audio"]"#,
        r#""tools":null,"functions":null,"tool_choice":null"#,
        r#""response_format":{"type":"json_schema","json_schema":{"name":"a","schema":null,"strict":null}}"#,
        r#""web_search_options":{"user_location":null}"#,
        r#""moderation":{"model":"m","policy":null}"#,
    ] {
        accepts(&body(good));
    }
}

#[test]
fn how_an_answer_travels_is_no_part_of_the_request() {
    let said = |members: &str| parse(body(members).as_bytes()).unwrap();
    let whole = said("");
    assert_eq!(whole.delivery, Delivery { stream: false, include_usage: false });
    let options =
        r#""stream":true,"stream_options":{"include_obfuscation":true,"include_usage":true}"#;
    let stream = said(options);
    assert_eq!(stream.delivery, Delivery { stream: true, include_usage: true });
    assert_eq!(stream.request, whole.request);
    assert!(!said(r#""stream":true,"stream_options":{}"#).delivery.include_usage);
}

#[test]
fn turns_are_refused_at_their_place() {
    let call = |call: &str| format!(r#"{{"role":"assistant","tool_calls":[{call}]}}"#);
    let turns = [
        ("7", ""),
        (r#"{"content":"x"}"#, ".role"),
        (r#"{"role":"wizard","content":"x"}"#, ".role"),
        (r#"{"role":null,"content":"x"}"#, ".role"),
        (r#"{"role":"tool","content":"1"}"#, ".tool_call_id"),
        (r#"{"role":"tool","tool_call_id":null,"content":"1"}"#, ".tool_call_id"),
        (r#"{"role":"tool","tool_call_id":"c"}"#, ".content"),
        (r#"{"role":"function","content":"1"}"#, ".name"),
        (r#"{"role":"function","name":"f"}"#, ".content"),
        (r#"{"role":"function","name":"f","content":["x"]}"#, ".content"),
        (r#"{"role":"user"}"#, ".content"),
        (r#"{"role":"user","content":null}"#, ".content"),
        (r#"{"role":"user","content":7}"#, ".content"),
        (r#"{"role":"user","content":[]}"#, ".content"),
        (r#"{"role":"user","content":["x"]}"#, ".content[0]"),
        (r#"{"role":"user","content":"x","name":7}"#, ".name"),
        (r#"{"role":"assistant"}"#, ".content"),
        (r#"{"role":"assistant","content":null,"tool_calls":[],"annotations":[]}"#, ".content"),
        (r#"{"role":"assistant","content":"x","refusal":7}"#, ".refusal"),
        (r#"{"role":"assistant","content":[],"tool_calls":[]}"#, ".content"),
        (r#"{"role":"assistant","content":"x","audio":["i"]}"#, ".audio"),
        (r#"{"role":"assistant","content":"x","audio":{}}"#, ".audio.id"),
        (r#"{"role":"assistant","function_call":{"name":"f"}}"#, ".function_call.arguments"),
        (
            r#"{"role":"assistant","content":[{"type":"text","text":"x"},{"type":"refusal","refusal":"x"}]}"#,
            ".content",
        ),
        (
            r#"{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}"#,
            ".content[0].type",
        ),
    ];
    for (message, at) in turns {
        refuses(&turn(message), Code::InvalidValue, Some(&format!("messages[0]{at}")));
    }
    for (one, at) in [
        ("{}", ".id"),
        (r#"{"id":"c","type":"retrieval"}"#, ".type"),
        (r#"{"id":"c","type":"function"}"#, ".function"),
        (r#"{"id":"c","type":"function","function":{"arguments":"{}"}}"#, ".function.name"),
        (r#"{"id":"c","type":"function","function":{"name":"f"}}"#, ".function.arguments"),
        (
            r#"{"id":"c","type":"function","function":{"name":"f","arguments":{}}}"#,
            ".function.arguments",
        ),
        (r#"{"id":"c","type":"custom","custom":{"name":"f","arguments":"x"}}"#, ".custom.input"),
    ] {
        let param = format!("messages[0].tool_calls[0]{at}");
        refuses(&turn(&call(one)), Code::InvalidValue, Some(&param));
    }
    for (message, at) in [
        (r#"{"role":"user","content":"x","refusal":"x"}"#, ".refusal"),
        (r#"{"role":"user","content":"x","id":"1"}"#, ".id"),
        (r#"{"role":"tool","tool_call_id":"c","content":"x","x":1}"#, ".x"),
        (r#"{"role":"assistant","audio":{"id":"a","data":"x"}}"#, ".audio.data"),
    ] {
        refuses(&turn(message), Code::UnknownParameter, Some(&format!("messages[0]{at}")));
    }
}

#[test]
fn parts_are_refused_at_their_place() {
    for (part, member) in [
        (r#"{"text":"x"}"#, ".type"),
        (r#"{"type":"text"}"#, ".text"),
        (r#"{"type":"text","text":null}"#, ".text"),
        (r#"{"type":"hologram","text":"x"}"#, ".type"),
        (r#"{"type":1,"text":"x"}"#, ".type"),
        (r#"{"type":"refusal","refusal":"x"}"#, ".type"),
        (r#"{"type":"image_url","image_url":"https://x"}"#, ".image_url"),
        (r#"{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}"#, ".image_url.url"),
        (r#"{"type":"image_url","image_url":{"url":"x"}}"#, ".image_url.url"),
        (
            r#"{"type":"image_url","image_url":{"url":"https://x","detail":"max"}}"#,
            ".image_url.detail",
        ),
        (r#"{"type":"input_audio","input_audio":{"format":"wav"}}"#, ".input_audio.data"),
        (
            r#"{"type":"input_audio","input_audio":{"data":"","format":"flac"}}"#,
            ".input_audio.format",
        ),
        (r#"{"type":"file","file":{}}"#, ".file.file_data"),
        (r#"{"type":"file","file":{"filename":"x"}}"#, ".file.file_data"),
        (
            r#"{"type":"text","text":"x","prompt_cache_breakpoint":{}}"#,
            ".prompt_cache_breakpoint.mode",
        ),
        (
            r#"{"type":"text","text":"x","prompt_cache_breakpoint":{"mode":"explicit","ttl":"1h"}}"#,
            ".prompt_cache_breakpoint.ttl",
        ),
    ] {
        let message =
            format!(r#"{{"role":"user","content":[{{"type":"text","text":"ok"}},{part}]}}"#);
        let param = format!("messages[0].content[1]{member}");
        refuses(&turn(&message), Code::InvalidValue, Some(&param));
    }
    let unknown = r#"{"role":"user","content":[{"type":"text","text":"ok","x":1}]}"#;
    refuses(&turn(unknown), Code::UnknownParameter, Some("messages[0].content[0].x"));
}

#[test]
fn tools_are_refused_at_their_place() {
    let function = |name: &str| format!(r#"{{"type":"function","function":{{"name":"{name}"}}}}"#);
    let tools = |n: usize| format!("\"tools\":[{}]", vec![function("f"); n].join(","));
    accepts(&body(&tools(0)));
    accepts(&body(&tools(128)));
    refuses(&body(&tools(129)), Code::InvalidValue, Some("tools"));
    let functions = |n: usize| format!("\"functions\":[{}]", vec![r#"{"name":"f"}"#; n].join(","));
    accepts(&body(&functions(128)));
    accepts(&body(&functions(0)));
    refuses(&body(&functions(129)), Code::InvalidValue, Some("functions"));
    accepts(&body(&format!("\"tools\":[{}]", function(&"a-Z_9".repeat(12)))));
    for name in ["", "a b", "é", "a.b", &"x".repeat(65)] {
        let tools = format!("\"tools\":[{},{}]", function("f"), function(name));
        refuses(&body(&tools), Code::InvalidValue, Some("tools[1].function.name"));
    }
    let grammar = |format: &str| {
        format!(r#""tools":[{{"type":"custom","custom":{{"name":"f","format":{format}}}}}]"#)
    };
    for (members, param) in [
        (r#""tools":[7]"#.to_owned(), "tools[0]"),
        (r#""tools":[{"type":"retrieval"}]"#.to_owned(), "tools[0].type"),
        (r#""tools":[{"type":"function"}]"#.to_owned(), "tools[0].function"),
        (
            r#""tools":[{"type":"function","function":{"name":"f","parameters":"{}"}}]"#.to_owned(),
            "tools[0].function.parameters",
        ),
        (grammar(r#"{"type":"json"}"#), "tools[0].custom.format.type"),
        (grammar(r#"{"type":"grammar"}"#), "tools[0].custom.format.grammar"),
        (
            grammar(r#"{"type":"grammar","grammar":{"definition":"x","syntax":"ebnf"}}"#),
            "tools[0].custom.format.grammar.syntax",
        ),
        (r#""tool_choice":"any""#.to_owned(), "tool_choice"),
        (r#""tool_choice":{"type":"function"}"#.to_owned(), "tool_choice.function"),
        (r#""tool_choice":{"type":"any"}"#.to_owned(), "tool_choice.type"),
        (
            r#""tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"none","tools":[]}}"#
                .to_owned(),
            "tool_choice.allowed_tools.mode",
        ),
        (
            r#""tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[7]}}"#
                .to_owned(),
            "tool_choice.allowed_tools.tools[0]",
        ),
        (r#""function_call":"required""#.to_owned(), "function_call"),
        (r#""function_call":{}"#.to_owned(), "function_call.name"),
    ] {
        refuses(&body(&members), Code::InvalidValue, Some(param));
    }
    let unknown = r#""tools":[{"type":"function","function":{"name":"f","x":1}}]"#;
    refuses(&body(unknown), Code::UnknownParameter, Some("tools[0].function.x"));
}

#[test]
fn opaque_json_goes_upstream_in_its_order_and_its_numbers() {
    let sent =
        |members: &str| crate::upstream_body(&parse(body(members).as_bytes()).unwrap().request);
    let parameters = r#"{"z":1.0,"a":[1e400,-0,null,{}],"é\u0000\"/":"\n"}"#;
    let spaced = r#"{ "z" : 1.0 , "a":[1e400,-0 ,null,{ }],"\u00e9\u0000\u0022\/":"\u000a" }"#;
    let tool = |parameters: &str| {
        format!(
            r#""tools":[{{"function":{{"parameters":{parameters},"name":"f"}},"type":"function"}}]"#
        )
    };
    let expected = format!(
        r#""tools":[{{"type":"function","function":{{"name":"f","parameters":{parameters}}}}}]"#
    );
    assert!(sent(&tool(spaced)).contains(&expected), "{}", sent(&tool(spaced)));
    assert!(sent(r#""top_k" : { "b":1.50, "a":2 }"#).ends_with(r#""top_k":{"b":1.50,"a":2}}"#));
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
