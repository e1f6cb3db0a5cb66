//! The canonical form of a body, which the canonical digest of a request is made of.
//!
//! ```text
//! {"note": null, "amount_micros": 5, "keys": [{"name": null}]}   ->   {"amount_micros":5,"keys":[{}]}
//! ```
//!
//! A version that adds an optional member writes the same form of each request that does not have the member. So
//! absent members are left out, and members are in the order of their names, not of their declaration.
//!
//! The form is frozen: another one is another version of
//! [`CanonicalDigest`](holdfast_domain::admin::CanonicalDigest).

use serde_json::{Map, Value};

/// Canonical form of an object whose own members are left out by `is_absent`, and those within it if they are null.
pub(crate) fn canonical_json(
    members: &Map<String, Value>,
    is_absent: impl Fn(&str, &Value) -> bool,
) -> serde_json::Result<Vec<u8>> {
    let mut written = Vec::new();
    write_members(members, is_absent, &mut written)?;
    Ok(written)
}

fn write(value: &Value, into: &mut Vec<u8>) -> serde_json::Result<()> {
    match value {
        Value::Array(values) => {
            into.push(b'[');
            for (at, value) in values.iter().enumerate() {
                if at > 0 {
                    into.push(b',');
                }
                write(value, into)?;
            }
            into.push(b']');
            Ok(())
        }
        // Nested nulls are absent ones: only the body's own members can be `NULLABLE`.
        Value::Object(members) => write_members(members, |_name, value| value.is_null(), into),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            serde_json::to_writer(into, value)
        }
    }
}

fn write_members(
    members: &Map<String, Value>,
    is_absent: impl Fn(&str, &Value) -> bool,
    into: &mut Vec<u8>,
) -> serde_json::Result<()> {
    let present = members.iter().filter(|(name, value)| !is_absent(name, value));
    let mut present: Vec<_> = present.collect();
    // Not left to the map: with a feature that any crate may enable it keeps the order of insertion.
    present.sort_unstable_by_key(|(name, _value)| *name);
    into.push(b'{');
    for (at, (name, value)) in present.into_iter().enumerate() {
        if at > 0 {
            into.push(b',');
        }
        serde_json::to_writer(&mut *into, name)?;
        into.push(b':');
        write(value, into)?;
    }
    into.push(b'}');
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canonical_form_has_the_members_that_are_present_in_the_order_of_their_names() {
        let is_null = |_name: &str, value: &Value| value.is_null();
        let is_null_beside_a = |name: &str, value: &Value| name != "a" && value.is_null();
        let form = |text: &str, is_absent: fn(&str, &Value) -> bool| {
            let members: Map<String, Value> = serde_json::from_str(text).unwrap();
            String::from_utf8(canonical_json(&members, is_absent).unwrap()).unwrap()
        };
        for (text, canonical) in [
            ("{}", "{}"),
            (r#"{"b":1,"a":"é\n"}"#, "{\"a\":\"é\\n\",\"b\":1}"),
            (r#"{"b":null,"a":false,"c":[]}"#, r#"{"a":false,"c":[]}"#),
            (r#"{"z":[{"y":null,"x":{"w":null}},null]}"#, r#"{"z":[{"x":{}},null]}"#),
        ] {
            assert_eq!(form(text, is_null), canonical);
        }
        assert_eq!(form(r#"{"b":null,"a":null}"#, is_null_beside_a), r#"{"a":null}"#);
    }
}
