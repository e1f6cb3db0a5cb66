//! As much of JSON Schema as the schemas of OpenAI's requests and answers use. A keyword that is not
//! known here is an error of the test, so that nothing is held valid because nobody looked.

use std::sync::LazyLock;

use serde_json::Value;

static ANSWERS: LazyLock<Value> =
    LazyLock::new(|| serde_json::from_str(include_str!("../vectors/answers.schema.json")).unwrap());
static REQUESTS: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../vectors/requests.schema.json")).unwrap()
});

/// Why `value` is no `name` of the schema of answers; `None` when it is one.
pub(crate) fn fault(name: &str, value: &Value) -> Option<String> {
    judge(&ANSWERS, &ANSWERS["$defs"][name], value, name).err()
}

/// Why `value` is no chat completion request; `None` when it is one.
pub(crate) fn request_fault(value: &Value) -> Option<String> {
    let name = "CreateChatCompletionRequest";
    judge(&REQUESTS, &REQUESTS["$defs"][name], value, name).err()
}

/// The schema of requests: its root, and the part that is a request.
pub(crate) fn of_requests() -> (&'static Value, &'static Value) {
    (&REQUESTS, &REQUESTS["$defs"]["CreateChatCompletionRequest"])
}

/// Why `value` is no `name` of a description of the API; `None` when it is one.
pub(crate) fn described_fault(document: &Value, name: &str, value: &Value) -> Option<String> {
    judge(document, &document["components"]["schemas"][name], value, name).err()
}

/// Why `value` has not this shape of a description of the API; `None` when it has.
pub(crate) fn shape_fault(document: &Value, shape: &Value, value: &Value) -> Option<String> {
    judge(document, shape, value, "it").err()
}

fn judge(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    for (keyword, rule) in schema.as_object().ok_or(format!("{at}: no schema"))? {
        let holds = |is: bool| is.then_some(()).ok_or(format!("{at}: not {keyword} {rule}"));
        match keyword.as_str() {
            "type" => {
                let one = std::slice::from_ref(rule);
                let mut kinds = rule.as_array().map_or(one, Vec::as_slice).iter();
                holds(kinds.any(|kind| is_a(kind.as_str().unwrap(), value)))
            }
            "enum" => holds(rule.as_array().unwrap().contains(value)),
            "$ref" => {
                let target = root.pointer(rule.as_str().unwrap().trim_start_matches('#'));
                judge(root, target.unwrap(), value, at)
            }
            "allOf" => {
                rule.as_array().unwrap().iter().try_for_each(|part| judge(root, part, value, at))
            }
            "anyOf" | "oneOf" => {
                let fits =
                    rule.as_array().unwrap().iter().filter(|s| judge(root, s, value, at).is_ok());
                let n = fits.count();
                let enough = if keyword == "oneOf" { n == 1 } else { n > 0 };
                enough.then_some(()).ok_or(format!("{at}: fits {n} of {keyword}"))
            }
            "required" => {
                let missing =
                    rule.as_array().unwrap().iter().find(|name| {
                        value.is_object() && value.get(name.as_str().unwrap()).is_none()
                    });
                missing.map_or(Ok(()), |name| Err(format!("{at}: without {name}")))
            }
            "properties" => rule.as_object().unwrap().iter().try_for_each(|(name, schema)| {
                let member = value.get(name);
                member.map_or(Ok(()), |member| judge(root, schema, member, &format!("{at}.{name}")))
            }),
            "items" => value
                .as_array()
                .into_iter()
                .flatten()
                .enumerate()
                .try_for_each(|(i, element)| judge(root, rule, element, &format!("{at}[{i}]"))),
            "minItems" => holds(value.as_array().is_none_or(|all| all.len() >= whole(rule))),
            "maxItems" => holds(value.as_array().is_none_or(|all| all.len() <= whole(rule))),
            "maxLength" => {
                holds(value.as_str().is_none_or(|text| text.chars().count() <= whole(rule)))
            }
            "maxProperties" => holds(value.as_object().is_none_or(|all| all.len() <= whole(rule))),
            "propertyNames" => {
                let mut names = value.as_object().into_iter().flatten().map(|(name, _)| name);
                names.try_for_each(|name| judge(root, rule, &Value::from(name.as_str()), name))
            }
            "minLength" => {
                holds(value.as_str().is_none_or(|text| text.chars().count() >= whole(rule)))
            }
            "pattern" => match value.as_str() {
                None => Ok(()),
                Some(text) => holds(fits(rule.as_str().unwrap(), text)?),
            },
            "minimum" => holds(!value.is_number() || !is_less(value, rule)),
            "maximum" => holds(!value.is_number() || !is_less(rule, value)),
            // For people, and for programs that want to know the shape before they look at the value.
            "description" | "deprecated" | "format" | "example" | "discriminator" => Ok(()),
            "additionalProperties" => others(root, schema, value, at),
            other => Err(format!("{at}: keyword {other} is not known to this test")),
        }?;
    }
    Ok(())
}

/// Members that `properties` does not name.
fn others(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    let members = value.as_object().into_iter().flatten();
    let mut unnamed = members.filter(|(name, _)| schema["properties"].get(name).is_none());
    let rule = &schema["additionalProperties"];
    match rule.as_bool() {
        Some(true) => Ok(()),
        Some(false) => {
            unnamed.next().map_or(Ok(()), |(name, _)| Err(format!("{at}: {name} is too much")))
        }
        None => unnamed.try_for_each(|(name, it)| judge(root, rule, it, &format!("{at}.{name}"))),
    }
}

/// Whole numbers are compared as such: a float would not know some of them apart.
fn is_less(a: &Value, b: &Value) -> bool {
    match (whole_number(a), whole_number(b)) {
        (Some(a), Some(b)) => a < b,
        _ => a.as_f64().unwrap() < b.as_f64().unwrap(),
    }
}

fn whole_number(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or(value.as_u64().map(i128::from))
}

/// The patterns of the description, by hand. One that is not known here is an error of the test.
fn fits(pattern: &str, text: &str) -> Result<bool, String> {
    let only = |text: &str, also: &str| {
        text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(c))
    };
    let hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    Ok(match pattern {
        "^[a-z0-9][a-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._:-]*$" => {
            text.split_once('/').is_some_and(|(publisher, name)| {
                let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_alphanumeric());
                let is_small = !publisher.contains(|c: char| c.is_ascii_uppercase());
                let is_spelled = only(publisher, "._-") && only(name, "._:-");
                is_small && is_spelled && begins(publisher) && begins(name)
            })
        }
        r"^[a-z0-9][a-z0-9._-]*/\*$" => text.strip_suffix("/*").is_some_and(|publisher| {
            let is_small = !publisher.contains(|c: char| c.is_ascii_uppercase());
            is_small
                && only(publisher, "._-")
                && publisher.starts_with(|c: char| c.is_ascii_alphanumeric())
        }),
        "^[a-zA-Z0-9_-]{1,64}$" => (1..=64).contains(&text.len()) && only(text, "_-"),
        "^([hH][tT][tT][pP][sS]?://|[dD][aA][tT][aA]:)" => {
            let text = text.to_ascii_lowercase();
            ["http://", "https://", "data:"].iter().any(|scheme| text.starts_with(scheme))
        }
        "^[A-Z]{3}$" => text.len() == 3 && text.bytes().all(|b| b.is_ascii_uppercase()),
        "^chatcmpl_[0-9a-f]{32}$" => {
            text.strip_prefix("chatcmpl_").is_some_and(|rest| rest.len() == 32 && hex(rest))
        }
        "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$" => {
            text.parse::<holdfast_domain::RequestKey>().is_ok()
        }
        "^[0-9a-f]{16}$" => text.len() == 16 && hex(text),
        "^[0-9a-f]{64}$" => text.len() == 64 && hex(text),
        "^[0-9a-f]{128}$" => text.len() == 128 && hex(text),
        "^[0-9]+$" => !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()),
        other => return Err(format!("pattern {other} is not known to this test")),
    })
}

fn whole(rule: &Value) -> usize {
    usize::try_from(rule.as_u64().unwrap()).unwrap()
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[test]
fn the_judge_finds_what_is_wrong() {
    let wrong: Value = serde_json::from_str(
        r#"{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,
            "message":{"role":"assistant","content":null,"refusal":null},"logprobs":null,
            "finish_reason":"eos"}]}"#,
    )
    .unwrap();
    let fault = fault("CreateChatCompletionResponse", &wrong).unwrap();
    assert!(fault.contains("choices[0].finish_reason"), "{fault}");
    for (member, at) in [
        (r#""temperature":2.5"#, "temperature"),
        (r#""stop":[]"#, "stop"),
        (r#""tools":[{"type":"function"}]"#, "tools[0]"),
        (r#""metadata":{"a":1}"#, "metadata"),
        (r#""audio":{"voice":{"id":"v","x":1},"format":"wav"}"#, "audio.voice"),
        (r#""n":0"#, "n"),
    ] {
        let body =
            format!(r#"{{"model":"m","messages":[{{"role":"user","content":"x"}}],{member}}}"#);
        let fault = request_fault(&serde_json::from_str(&body).unwrap()).unwrap();
        assert!(fault.contains(at), "{fault}");
    }
}
