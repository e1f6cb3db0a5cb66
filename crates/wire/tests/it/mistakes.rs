//! What a request that is refused is told: where the mistake is, and what was probably meant.

use holdfast_domain::model::{Contract, PublicModelId};
use holdfast_wire::chat::request::{check, parse};
use holdfast_wire::error::Code;

use crate::requests::{body, turn};

#[test]
fn what_is_no_json_is_told_by_line_and_column() {
    for (body, told) in [
        ("{\"a\": [1,\n  2,\n]}", "JSON at line 3, column 1, byte 15. Remove the comma before it."),
        ("{\"a\": 1, }", "JSON at line 1, column 10, byte 9. Remove the comma before it."),
        ("{'a': 1}", "JSON at line 1, column 2, byte 1. Put strings and names in double quotes."),
        ("{\"é\": é}", "JSON at line 1, column 7, byte 7. Send one"),
        ("{\n\"a\": 1", "an unexpected end at line 2, column 7, byte 8. Send one"),
        ("{}\n{}", "more than one value at line 2, column 1, byte 3. Send one"),
    ] {
        let bad = parse(body.as_bytes()).unwrap_err();
        assert_eq!(bad.code, Code::InvalidJson);
        assert!(bad.message.contains(told), "{body}: {bad}");
    }
}

#[test]
fn a_mistyped_member_is_told_with_the_one_that_was_meant() {
    let told = |body: &str| {
        let parsed = parse(body.as_bytes());
        let contract = Contract::new(PublicModelId::try_from("a/b").unwrap(), 1, 9, 9);
        let contract = Contract { accepts: vec!["top_k".to_owned()], ..contract };
        let checked = parsed.and_then(|parsed| check(&parsed.request, body.as_bytes(), &contract));
        checked.unwrap_err().message
    };
    for (body, meant) in [
        (body(r#""temprature":1"#), "temperature"),
        (body(r#""max_token":1"#), "max_tokens"),
        (body(r#""topk":1"#), "top_k"),
        (turn(r#"{"role":"assistant","content":"x","tool_call":[]}"#), "tool_calls"),
        (turn(r#"{"role":"tool","content":"x","tool_call_id":"x","nmae":"y"}"#), "name"),
        (
            body(r#""tools":[{"type":"function","function":{"name":"f","paramters":{}}}]"#),
            "parameters",
        ),
    ] {
        let told = told(&body);
        assert!(told.contains(&format!("not known here: did you mean `{meant}`?")), "{told}");
    }
    let told = told(&body(r#""chat_template_kwargs":1"#));
    assert!(told.ends_with("is not known here. Remove it."), "{told}");
}

#[test]
fn pictures_are_not_fetched_from_the_inside() {
    let picture = |url: &str| {
        let part = format!(r#"{{"type":"image_url","image_url":{{"url":"{url}"}}}}"#);
        turn(&format!(r#"{{"role":"user","content":[{part}]}}"#))
    };
    for url in
        ["http://169.254.169.254/latest", "https://[::1]/", "http://0x7f.1/", "http://localhost"]
    {
        let bad = parse(picture(url).as_bytes()).unwrap_err();
        assert_eq!(bad.code, Code::InvalidValue, "{url}");
        assert_eq!(bad.param.as_deref(), Some("messages[0].content[0].image_url.url"));
    }
    for url in ["https://example.org/a.png", "http://10.0.0.1/a.png", "data:image/png;base64,AA=="]
    {
        assert_eq!(parse(picture(url).as_bytes()).err(), None, "{url}");
    }
}
