//! What the contract of a model adds to what any request may say.

use std::collections::BTreeSet;

use holdfast_domain::model::{Contract, PublicModelId, RestrictedField};
use holdfast_domain::request::AssistantMessage;
use holdfast_wire::chat::request::{check, parse};
use holdfast_wire::error::Code;

use crate::requests::{body, turn};

/// A contract that takes nothing unusual.
fn contract() -> Contract {
    Contract::new(PublicModelId::try_from("a/b").unwrap(), 1, 8_192, 1_000)
}

#[track_caller]
fn contract_refuses(contract: &Contract, body: &str, code: Code, param: &str) {
    let request = parse(body.as_bytes()).unwrap().request;
    let bad = check(&request, body.as_bytes(), contract).unwrap_err();
    assert_eq!((bad.code, bad.param.as_deref()), (code, Some(param)), "{body}: {bad}");
    assert!(bad.message.contains(param), "{bad} does not name its field");
}

#[track_caller]
fn contract_takes(contract: &Contract, body: &str) {
    let request = parse(body.as_bytes()).unwrap().request;
    assert_eq!(check(&request, body.as_bytes(), contract), Ok(()), "{body}");
}

#[test]
fn what_nobody_reads_is_refused_unless_the_model_accepts_it_by_name() {
    for name in ["top_k", "Model", "", "chat_template_kwargs"] {
        // Null is absent, so that no model has to accept it.
        contract_takes(&contract(), &body(&format!("\"{name}\":null")));
        for value in ["40", r#"{"a":[1.0]}"#] {
            let body = body(&format!("\"{name}\":{value}"));
            contract_refuses(&contract(), &body, Code::UnknownParameter, name);
            let accepts = vec!["other".to_owned(), name.to_owned()];
            contract_takes(&Contract { accepts, ..contract() }, &body);
        }
    }
    let hostile = format!("\\u001b[31m\\u202e{}", "x".repeat(100));
    let echoed = format!("?[31m?{}", "x".repeat(58));
    let hostile = body(&format!("\"{hostile}\":1"));
    contract_refuses(&contract(), &hostile, Code::UnknownParameter, &echoed);
    let said = turn(r#"{"role":"assistant","content":"x","thoughts":"hm"}"#);
    contract_refuses(&contract(), &said, Code::UnknownParameter, "messages[0].thoughts");
    contract_takes(&Contract { accepts: vec!["thoughts".to_owned()], ..contract() }, &said);
}

#[test]
fn what_clients_keep_beside_an_answer_is_taken_back() {
    for name in AssistantMessage::METADATA {
        for value in ["null", "{\"a\":[1.0]}", "\"hm\"", "[{}]"] {
            let message = |role, name| {
                turn(&format!(r#"{{"role":"{role}","content":"x","{name}":{value}}}"#))
            };
            contract_takes(&contract(), &message("assistant", name));
            let (body, param) = (message("user", name), format!("messages[0].{name}"));
            if value == "null" {
                contract_takes(&contract(), &body);
            } else {
                contract_refuses(&contract(), &body, Code::UnknownParameter, &param);
            }
        }
    }
    let call = |beside: &str, within: &str| {
        let function = format!(r#"{{"name":"f","arguments":"{{}}"{within}}}"#);
        let call = format!(r#"{{"id":"c","type":"function","function":{function}{beside}}}"#);
        turn(&format!(r#"{{"role":"assistant","content":null,"tool_calls":[{call}]}}"#))
    };
    let plain = parse(call("", "").as_bytes()).unwrap();
    for kept in [
        call(r#","index":0"#, r#","parsed_arguments":{"a":1}"#),
        call(r#","provider_specific_fields":null"#, r#","provider_specific_fields":{"x":[]}"#),
    ] {
        // Nothing of it goes up, so it makes no other request.
        assert_eq!(parse(kept.as_bytes()).unwrap(), plain, "{kept}");
    }
    let bad = parse(call(r#","thoughts":1"#, "").as_bytes()).unwrap_err();
    assert_eq!(bad.param.as_deref(), Some("messages[0].tool_calls[0].thoughts"));
}

#[test]
fn what_reaches_the_operators_account_is_refused_unless_allowed() {
    let file = r#"[{"type":"text","text":"x"},{"type":"file","file":{"file_id":"f"}}]"#;
    let file = turn(&format!(r#"{{"role":"user","content":{file}}}"#));
    for (field, body, param) in [
        (RestrictedField::FileId, file, "messages[0].content[1].file.file_id"),
        (
            RestrictedField::AudioId,
            turn(r#"{"role":"assistant","audio":{"id":"a"}}"#),
            "messages[0].audio.id",
        ),
        (
            RestrictedField::VoiceId,
            body(r#""audio":{"voice":{"id":"v"},"format":"wav"}"#),
            "audio.voice.id",
        ),
        (RestrictedField::Store, body(r#""store":true"#), "store"),
        (RestrictedField::ServiceTier, body(r#""service_tier":"flex""#), "service_tier"),
        (
            RestrictedField::WebSearchOptions,
            body(r#""web_search_options":{}"#),
            "web_search_options",
        ),
        (RestrictedField::Moderation, body(r#""moderation":{"model":"m"}"#), "moderation"),
        (
            RestrictedField::PromptCacheRetention,
            body(r#""prompt_cache_retention":"24h""#),
            "prompt_cache_retention",
        ),
    ] {
        contract_refuses(&contract(), &body, Code::UnsupportedParameter, param);
        let others = RestrictedField::ALL.into_iter().filter(|other| *other != field);
        let but_this = Contract { allow: others.collect(), ..contract() };
        contract_refuses(&but_this, &body, Code::UnsupportedParameter, param);
        contract_takes(&Contract { allow: BTreeSet::from([field]), ..contract() }, &body);
    }
    for free in [
        r#""store":false"#,
        r#""service_tier":"auto""#,
        r#""service_tier":"default""#,
        r#""web_search_options":null,"moderation":null,"prompt_cache_retention":null"#,
        r#""audio":{"voice":"alloy","format":"wav"}"#,
        r#""prompt_cache_options":{"mode":"explicit","ttl":"30m"},"prompt_cache_key":"k""#,
    ] {
        contract_takes(&contract(), &body(free));
    }
}

#[test]
fn a_bound_over_the_contract_is_refused() {
    contract_takes(&contract(), &body(""));
    contract_takes(&contract(), &body(r#""max_tokens":1000"#));
    for (over, sent) in [
        (r#""max_tokens":1001"#, "max_tokens"),
        (r#""max_tokens":1001,"max_completion_tokens":null"#, "max_tokens"),
        (r#""max_completion_tokens":1001"#, "max_completion_tokens"),
        (r#""max_tokens":1001,"max_completion_tokens":1001"#, "max_completion_tokens"),
    ] {
        let over = body(over);
        contract_refuses(&contract(), &over, Code::InvalidValue, sent);
        let request = parse(over.as_bytes()).unwrap().request;
        let bad = check(&request, over.as_bytes(), &contract()).unwrap_err();
        assert!(bad.message.contains("1000"), "{bad}");
    }
    // Before the model is known, no bound is told that it does not have.
    let none = parse(body(r#""max_tokens":0"#).as_bytes()).unwrap_err();
    assert!(!none.message.contains("9007"), "{none}");
}

#[test]
fn turns_that_clients_send_are_taken() {
    for message in [
        r#"{"role":"tool","tool_call_id":"c","name":"f","content":[{"type":"text","text":"1"}]}"#,
        r#"{"role":"function","name":"f","content":null}"#,
        r#"{"role":"assistant","content":null,"refusal":"no"}"#,
        r#"{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}"#,
        r#"{"role":"assistant","content":"","function_call":null,"tool_calls":null,"audio":null}"#,
        r#"{"role":"assistant","function_call":{"name":"f","arguments":"no JSON"}}"#,
        // An answer of ours, appended as it came.
        r#"{"role":"assistant","content":null,"refusal":null,"annotations":[],"tool_calls":[
            {"id":"call_1","type":"custom","custom":{"name":"f","input":"x"}}]}"#,
    ] {
        contract_takes(&contract(), &turn(message));
    }
}

#[test]
fn accepted_names_reach_turns_parts_and_tools() {
    let mark = r#""cache_control":{"type":"ephemeral"}"#;
    let part = |part: &str| turn(&format!(r#"{{"role":"user","content":[{part}]}}"#));
    for (body, param) in [
        (
            turn(&format!(r#"{{"role":"system","content":"x",{mark}}}"#)),
            "messages[0].cache_control",
        ),
        (turn(&format!(r#"{{"role":"user","content":"x",{mark}}}"#)), "messages[0].cache_control"),
        (
            turn(&format!(r#"{{"role":"assistant","content":"x",{mark}}}"#)),
            "messages[0].cache_control",
        ),
        (
            turn(&format!(r#"{{"role":"tool","tool_call_id":"c","content":"x",{mark}}}"#)),
            "messages[0].cache_control",
        ),
        (
            turn(&format!(r#"{{"role":"function","name":"f","content":"x",{mark}}}"#)),
            "messages[0].cache_control",
        ),
        (
            part(&format!(r#"{{"type":"text","text":"x",{mark}}}"#)),
            "messages[0].content[0].cache_control",
        ),
        (
            part(&format!(r#"{{"type":"image_url","image_url":{{"url":"data:x"}},{mark}}}"#)),
            "messages[0].content[0].cache_control",
        ),
        (
            body(&format!(r#""tools":[{{"type":"function","function":{{"name":"f"}},{mark}}}]"#)),
            "tools[0].cache_control",
        ),
        (
            body(&format!(r#""tools":[{{"type":"custom","custom":{{"name":"f"}},{mark}}}]"#)),
            "tools[0].cache_control",
        ),
    ] {
        contract_refuses(&contract(), &body, Code::UnknownParameter, param);
        let accepting = Contract { accepts: vec!["cache_control".to_owned()], ..contract() };
        contract_takes(&accepting, &body);
        let request = parse(body.as_bytes()).unwrap().request;
        let sent = crate::upstream_body(&request);
        assert!(sent.contains(mark), "{sent}");
        // It is a part of the request, and paid for: a mark is one more word of the prompt.
        let plain = parse(body.replace(&format!(",{mark}"), "").as_bytes()).unwrap().request;
        assert_ne!(crate::fingerprint_of(&request, 1), crate::fingerprint_of(&plain, 1), "{body}");
        assert!(request.cost_factors().prompt_bytes > plain.cost_factors().prompt_bytes, "{body}");
    }
    // A part and its turn, a tool and the body: one name in two places is two requests.
    let one = part(&format!(r#"{{"type":"text","text":"x","a":1,{mark}}}"#));
    let other = part(r#"{"type":"text","text":"x","a":1}"#).replace("]}", &format!("],{mark}}}"));
    let of = |body: &str| crate::fingerprint_of(&parse(body.as_bytes()).unwrap().request, 1);
    assert_ne!(of(&one), of(&other));
    let one = body(r#""tools":[{"type":"function","function":{"name":"f"},"a":1}]"#);
    let other = body(r#""tools":[{"type":"function","function":{"name":"f"}}],"a":1"#);
    assert_ne!(of(&one), of(&other));
}

#[test]
fn unknown_words_are_refused_unless_the_model_accepts_them() {
    for (member, word, known) in [
        ("reasoning_effort", "default", "none, minimal, low, medium, high, xhigh or max"),
        ("verbosity", "huge", "low, medium or high"),
        ("service_tier", "on_demand", "auto, default, flex, scale, priority or fast"),
        ("prompt_cache_retention", "1h", "in_memory or 24h"),
    ] {
        let asked = body(&format!(r#""{member}":"{word}""#));
        contract_refuses(&contract(), &asked, Code::InvalidValue, member);
        let request = parse(asked.as_bytes()).unwrap().request;
        let bad = check(&request, asked.as_bytes(), &contract()).unwrap_err();
        assert_eq!(bad.message, format!("`{member}` must be {known}."));
        let accepting =
            |accepted: &str| Contract { accepts: vec![accepted.to_owned()], ..contract() };
        contract_takes(&accepting(&format!("{member}={word}")), &asked);
        // Not the member as a whole, not another word, not another member's.
        for other in [member.to_owned(), format!("{member}=x"), format!("user={word}")] {
            contract_refuses(&accepting(&other), &asked, Code::InvalidValue, member);
        }
        let sent = crate::upstream_body(&request);
        assert!(sent.contains(&format!(r#""{member}":"{word}""#)), "{sent}");
        let plain = parse(body("").as_bytes()).unwrap().request;
        assert_ne!(crate::fingerprint_of(&request, 1), crate::fingerprint_of(&plain, 1));
        for bad in ["7", "{}", "[\"x\"]"] {
            let bad = body(&format!(r#""{member}":{bad}"#));
            assert_eq!(parse(bad.as_bytes()).unwrap_err().param.as_deref(), Some(member), "{bad}");
        }
    }
}

#[test]
fn words_of_the_service_tier_are_opened_one_by_one() {
    let tier = |word: &str| body(&format!(r#""service_tier":"{word}""#));
    let one = Contract { accepts: vec!["service_tier=flex".to_owned()], ..contract() };
    contract_takes(&one, &tier("flex"));
    for other in ["scale", "priority", "fast"] {
        contract_refuses(&one, &tier(other), Code::UnsupportedParameter, "service_tier");
    }
    contract_refuses(&one, &tier("on_demand"), Code::InvalidValue, "service_tier");
    let all = Contract { allow: BTreeSet::from([RestrictedField::ServiceTier]), ..contract() };
    contract_takes(&all, &tier("priority"));
    contract_refuses(&all, &tier("on_demand"), Code::InvalidValue, "service_tier");
}
