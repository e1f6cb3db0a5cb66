//! Values that say nothing are absent: the same request, sent upstream as the same bytes. Values that
//! say something, and values of what is passed through, are kept apart. `docs/reference/fingerprint.md` has the
//! table.

use holdfast_domain::ApiKeyId;
use holdfast_domain::request::{
    FINGERPRINT_VERSION, Request, UNFOLDED_VERSION, fingerprint, is_known_version,
};
use holdfast_domain::secret::ServerSecret;
use holdfast_wire::chat::request::{Delivery, parse, parse_as};
use serde_json::Value;

use crate::requests::{body, turn};
use crate::{fingerprint_of, upstream_body};

fn read(body: &str) -> Request {
    parse(body.as_bytes()).map_err(|bad| format!("{bad}: {body}")).unwrap().request
}

#[track_caller]
fn check(one: &str, other: &str, is_same: bool) {
    let (first, second) = (read(one), read(other));
    assert_eq!(fingerprint_of(&first, 1) == fingerprint_of(&second, 1), is_same, "{one} {other}");
    assert_eq!(upstream_body(&first) == upstream_body(&second), is_same, "{one} {other}");
}

/// Turns around one turn, so that none of them is the only one.
fn turns(turns: &str) -> String {
    turn(&format!(r#"{turns}{{"role":"user","content":"hi"}}"#))
}

#[test]
fn empty_members_of_a_body_are_absent() {
    let empty = [
        "stop",
        "metadata",
        "logit_bias",
        "tools",
        "tool_choice",
        "functions",
        "function_call",
        "response_format",
        "modalities",
        "audio",
        "reasoning_effort",
        "verbosity",
        "service_tier",
        "prompt_cache_retention",
        "prompt_cache_options",
        "stream_options",
    ];
    for name in empty {
        for value in ["null", "[]", "\"\""] {
            check(&body(&format!("\"{name}\":{value}")), &body(""), true);
        }
    }
    for members in [
        r#""stop":[""]"#,
        r#""stop":["",""]"#,
        r#""user":"""#,
        r#""safety_identifier":"""#,
        r#""prompt_cache_key":"""#,
        r#""metadata":{}"#,
        r#""logit_bias":{}"#,
        r#""prompt_cache_options":{}"#,
        r#""prompt_cache_options":{"mode":null,"ttl":null}"#,
        r#""prompt_cache_options":{"mode":"","ttl":[]}"#,
        r#""prompt_cache_options":{"mode":"implicit"}"#,
        r#""prompt_cache_options":{"mode":"implicit","ttl":"30m"}"#,
        r#""prompt_cache_options":{"ttl":"30m","other":null}"#,
        r#""stream_options":{}"#,
        r#""stream_options":{"include_usage":false}"#,
        r#""response_format":{"type":"text","json_schema":null}"#,
        r#""top_k":null,"thinking":null"#,
        r#""temperature":null,"seed":null,"store":null,"web_search_options":null,"moderation":null"#,
    ] {
        check(&body(members), &body(""), true);
    }
    check(&body(r#""stop":["","x"]"#), &body(r#""stop":"x""#), true);
    assert_eq!(
        parse(body(r#""stream_options":{}"#).as_bytes()).unwrap().delivery,
        Delivery::default()
    );
}

#[test]
fn empty_members_of_turns_and_parts_are_absent() {
    let user = |members: &str| turn(&format!(r#"{{"role":"user","content":"hi"{members}}}"#));
    for members in [
        r#","name":null"#,
        r#","name":"""#,
        r#","tool_calls":null,"tool_call_id":null,"refusal":null,"audio":null,"id":null"#,
    ] {
        check(&user(members), &user(""), true);
    }
    let calls =
        r#""tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]"#;
    let reply = |members: &str| turns(&format!(r#"{{"role":"assistant",{members}}},"#));
    for members in
        [r#""content":null"#, r#""content":[]"#, r#""content":[],"refusal":"","audio":"""#]
    {
        check(&reply(&format!("{members},{calls}")), &reply(calls), true);
    }
    for calls in [
        r#"{"id":"c","function":{"name":"f","arguments":"{}"}}"#,
        r#"{"id":"c","type":null,"custom":null,"function":{"name":"f","arguments":"{}","x":null}}"#,
        r#"{"id":"c","type":"","function":{"name":"f","arguments":"{}"},"extra_content":null}"#,
    ] {
        let calls = format!("\"tool_calls\":[{calls}]");
        let typed = r#""tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]"#;
        check(&reply(&calls), &reply(typed), true);
    }
    for members in [
        r#""refusal":null"#,
        r#""refusal":"""#,
        r#""name":"""#,
        r#""tool_calls":[],"function_call":"","audio":[]"#,
        r#""reasoning_content":null,"annotations":[],"thoughts":null"#,
    ] {
        check(&reply(&format!(r#""content":"x",{members}"#)), &reply(r#""content":"x""#), true);
    }
    let result = |content: &str| {
        turns(&format!(r#"{{"role":"tool","tool_call_id":"c","content":{content}}},"#))
    };
    for content in ["[]", "null", r#"[{"type":"text","text":""}]"#] {
        check(&result(content), &result("\"\""), true);
    }
    let function =
        |content: &str| turns(&format!(r#"{{"role":"function","name":"f","content":{content}}},"#));
    check(&function("[]"), &function("null"), true);
    let part = |part: &str| turn(&format!(r#"{{"role":"user","content":[{part}]}}"#));
    for (one, other) in [
        (
            r#"{"type":"text","text":"x","image_url":null,"cache_control":null}"#,
            r#"{"type":"text","text":"x"}"#,
        ),
        (
            r#"{"type":"text","text":"x","prompt_cache_breakpoint":[]}"#,
            r#"{"type":"text","text":"x"}"#,
        ),
        (
            r#"{"type":"image_url","image_url":{"url":"data:x","detail":""},"text":null}"#,
            r#"{"type":"image_url","image_url":{"url":"data:x"}}"#,
        ),
        (
            r#"{"type":"file","file":{"file_id":"","filename":"","file_data":"d"}}"#,
            r#"{"type":"file","file":{"file_data":"d"}}"#,
        ),
        (
            r#"{"type":"file","file":{"file_id":"i","file_data":""}}"#,
            r#"{"type":"file","file":{"file_id":"i"}}"#,
        ),
    ] {
        check(&part(one), &part(other), true);
    }
}

#[test]
fn instructions_without_a_word_are_absent_where_another_turn_is_left() {
    for role in ["system", "developer"] {
        for content in
            ["\"\"", "null", "[]", r#"[{"type":"text","text":""},{"type":"text","text":""}]"#]
        {
            let silent = format!(r#"{{"role":"{role}","content":{content},"name":""}}"#);
            check(&turns(&format!("{silent},")), &turns(""), true);
            check(
                &turn(&format!(r#"{{"role":"user","content":"hi"}},{silent}"#)),
                &turns(""),
                true,
            );
            // A conversation has to have a turn.
            assert_eq!(read(&turn(&silent)).messages.len(), 1, "{silent}");
        }
    }
    for said in [
        r#"{"role":"system","content":" "}"#,
        r#"{"role":"system","content":"","name":"n"}"#,
        r#"{"role":"user","content":""}"#,
        r#"{"role":"system","content":[{"type":"text","text":"","prompt_cache_breakpoint":{"mode":"explicit"}}]}"#,
        r#"{"role":"system","content":[{"type":"text","text":"","cache_control":{}}]}"#,
    ] {
        check(&turns(&format!("{said},")), &turns(""), false);
    }
}

#[test]
fn tools_without_a_type_are_of_the_kind_that_they_describe() {
    let tools = |tool: &str| body(&format!("\"tools\":[{tool}]"));
    let function = tools(r#"{"type":"function","function":{"name":"f"}}"#);
    let custom = tools(r#"{"type":"custom","custom":{"name":"f"}}"#);
    for tool in [
        r#"{"function":{"name":"f"}}"#,
        r#"{"type":null,"function":{"name":"f","strict":null,"x":null}}"#,
        r#"{"type":"","function":{"name":"f"},"custom":null,"cache_control":null}"#,
    ] {
        check(&tools(tool), &function, true);
    }
    check(&tools(r#"{"custom":{"name":"f"}}"#), &custom, true);
    assert!(
        upstream_body(&read(&tools(r#"{"function":{"name":"f"}}"#)))
            .contains(r#""type":"function""#)
    );
}

#[test]
fn what_may_mean_something_is_never_folded() {
    for (one, other) in [
        (r#""temperature":1"#, ""),
        (r#""top_p":1"#, ""),
        (r#""presence_penalty":0"#, ""),
        (r#""frequency_penalty":0"#, ""),
        (r#""seed":0"#, ""),
        (r#""store":false"#, ""),
        (r#""parallel_tool_calls":true"#, ""),
        (r#""tool_choice":"auto""#, ""),
        (r#""service_tier":"auto""#, ""),
        (r#""reasoning_effort":"medium""#, ""),
        (r#""verbosity":"medium""#, ""),
        (r#""web_search_options":{}"#, ""),
        (r#""logit_bias":{"1":0}"#, ""),
        (r#""metadata":{"k":""}"#, ""),
        (r#""prompt_cache_options":{"mode":"explicit"}"#, ""),
        (r#""top_k":[]"#, ""),
        (r#""top_k":"""#, ""),
        (r#""top_k":{"a":null}"#, r#""top_k":{}"#),
        (
            r#""tools":[{"type":"function","function":{"name":"f","description":""}}]"#,
            r#""tools":[{"type":"function","function":{"name":"f"}}]"#,
        ),
        (
            r#""tools":[{"type":"function","function":{"name":"f","strict":false}}]"#,
            r#""tools":[{"type":"function","function":{"name":"f"}}]"#,
        ),
        (
            r#""tools":[{"type":"function","function":{"name":"f","parameters":{"a":null}}}]"#,
            r#""tools":[{"type":"function","function":{"name":"f","parameters":{}}}]"#,
        ),
        (r#""moderation":{"model":"m","policy":null}"#, r#""moderation":{"model":"m"}"#),
    ] {
        check(&body(one), &body(other), false);
    }
    let calls =
        r#""tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":""}}]"#;
    let reply = |members: &str| turns(&format!(r#"{{"role":"assistant",{members}{calls}}},"#));
    // Some servers insist on a text next to calls.
    check(&reply(r#""content":"","#), &reply(""), false);
}

/// The digest that a version has for a body, in hexadecimal digits.
fn digest(version: u16, body: &str) -> String {
    let key = ServerSecret::new(&[7; 32]).unwrap().fingerprint_key(ApiKeyId::from_u128(1));
    let request = parse_as(version, body.as_bytes(), &|_alias| None).unwrap();
    let fingerprint = fingerprint(&key, version, 1, &request).unwrap();
    fingerprint.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn fingerprints_of_every_version_are_those_that_rows_hold() {
    let golden = [
        (UNFOLDED_VERSION, include_str!("../vectors/fingerprint-v1.json")),
        (FINGERPRINT_VERSION, include_str!("../vectors/fingerprint-v2.json")),
    ];
    for (version, golden) in golden {
        let golden: Vec<Value> = serde_json::from_str(golden).unwrap();
        assert!(golden.len() >= 270, "{version}");
        for row in golden {
            let body = row["body"].as_str().unwrap();
            assert_eq!(digest(version, body), row["fingerprint"], "version {version}: {body}");
        }
    }
}

#[test]
fn later_versions_are_not_guessed_at() {
    let later = FINGERPRINT_VERSION + 1;
    assert!(!is_known_version(later) && !is_known_version(0));
    assert_eq!(parse_as(later, body("").as_bytes(), &|_alias| None), None);
}

/// What version 1 refused is read as what it is now the same as: its rows are found by it.
#[test]
fn rows_of_version_1_are_found_by_values_that_it_refused() {
    for (now, then) in [
        (body(r#""stop":[]"#), body("")),
        (body(r#""functions":[],"modalities":[],"reasoning_effort":"""#), body("")),
        (
            turn(r#"{"role":"user","content":"x","tool_calls":null}"#),
            turn(r#"{"role":"user","content":"x"}"#),
        ),
        (
            body(r#""tools":[{"function":{"name":"f"},"cache_control":null}]"#),
            body(r#""tools":[{"type":"function","function":{"name":"f"}}]"#),
        ),
    ] {
        assert_eq!(digest(UNFOLDED_VERSION, &now), digest(UNFOLDED_VERSION, &then), "{now}");
    }
    // What it kept apart stays apart under it.
    let options = body(r#""prompt_cache_options":{"mode":"implicit"}"#);
    assert_ne!(digest(UNFOLDED_VERSION, &options), digest(UNFOLDED_VERSION, &body("")));
}
