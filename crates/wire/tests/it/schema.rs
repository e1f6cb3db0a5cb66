//! As much of JSON Schema as the schema of OpenAI's answers uses. A keyword that is not known here is
//! an error of the test, so that nothing is held valid because nobody looked.

use serde_json::Value;

/// Why `value` is no `name` of the schema; `None` when it is one.
pub(crate) fn fault(name: &str, value: &Value) -> Option<String> {
    let root: Value = serde_json::from_str(include_str!("../vectors/answers.schema.json")).unwrap();
    judge(&root, &root["$defs"][name], value, name).err()
}

fn judge(root: &Value, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
    for (keyword, rule) in schema.as_object().ok_or(format!("{at}: no schema"))? {
        match keyword.as_str() {
            "type" => {
                is_a(rule.as_str().unwrap(), value).then_some(()).ok_or(format!("{at}: not {rule}"))
            }
            "enum" => rule
                .as_array()
                .unwrap()
                .contains(value)
                .then_some(())
                .ok_or(format!("{at}: not one of {rule}")),
            "$ref" => {
                let target = root.pointer(rule.as_str().unwrap().trim_start_matches('#'));
                judge(root, target.unwrap(), value, at)
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
            "additionalProperties" => Ok(()),
            other => Err(format!("{at}: keyword {other} is not known to this test")),
        }?;
    }
    Ok(())
}

fn is_a(kind: &str, value: &Value) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
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
}
