//! Smallest JSON that a schema describes: the input of the simulated models' calls, and their answer if a shape
//! is requested. The same for the same schema and text.
//!
//! A schema comes from a caller, may refer to itself and may multiply: two members that both refer to the whole
//! are 2^24 values at the deepest level. So `DEPTH_MAX` bounds the levels, `NULL_FROM` ends recursion early if
//! null is allowed, `TEXT_BYTES_MAX` bounds the text, and `LENGTH_MAX` a list or a filled text.
//!
//! Not a validator: of two bounds that contradict each other one is met, and patterns are not read.

use std::borrow::Cow;

use holdfast_wire::json::{self, Node};

/// Levels of values within each other: a schema may refer to itself.
const DEPTH_MAX: usize = 24;
/// From this level on, what may be null is.
const NULL_FROM: usize = 6;
/// Bytes from which on everything is null: schemas multiply.
const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Elements of an array, and characters of a text that has to be longer than the user's, at most.
const LENGTH_MAX: usize = 256;

/// Object that a schema requires, its texts being `said`. An unreadable schema requires no member: `{}`.
pub(super) fn minimal(schema: &str, said: &str) -> String {
    let mut text = String::new();
    match json::parse_answer(schema.as_bytes()) {
        Ok(root) => SampleWriter { root: &root, said, text: &mut text }.root_object(),
        Err(_unreadable) => text.push_str("{}"),
    }
    text
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    Node::String(Cow::Borrowed(text)).to_string()
}

struct SampleWriter<'s, 'a> {
    root: &'s Node<'a>,
    said: &'s str,
    text: &'s mut String,
}

impl<'s, 'a> SampleWriter<'s, 'a> {
    /// Writes the whole, which is an object for every schema.
    fn root_object(&mut self) {
        let schema = self.resolved(self.root);
        self.object(schema, 0);
    }

    /// Target of a schema's reference, or the schema itself if there is none or it leads to no schema.
    fn resolved(&self, schema: &'s Node<'a>) -> &'s Node<'a> {
        let mut schema = schema;
        // A reference may lead to another one, and both to each other.
        for _step in 0..DEPTH_MAX {
            let Some(pointer) = schema.get("$ref").and_then(Node::as_str) else { break };
            let Some(path) = pointer.strip_prefix('#') else { break };
            let mut names =
                path.split('/').skip(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
            let found = names.try_fold(self.root, |node, name| node.get(&name));
            let Some(found) = found else { break };
            schema = found;
        }
        schema
    }

    fn value(&mut self, schema: &'s Node<'a>, depth: usize) {
        let schema = self.resolved(schema);
        let first = |name| schema.get(name).and_then(Node::as_array).and_then(<[_]>::first);
        if depth >= DEPTH_MAX || self.text.len() >= TEXT_BYTES_MAX {
            return self.text.push_str("null");
        }
        if let Some(fixed) = schema.get("const").or_else(|| first("enum")) {
            return self.text.push_str(&fixed.to_string());
        }
        for choice in ["anyOf", "oneOf"] {
            let Some(variants) = schema.get(choice).and_then(Node::as_array) else { continue };
            let null = variants.iter().find(|variant| kind(variant) == Some("null"));
            let Some(chosen) = null.filter(|_| depth >= NULL_FROM).or_else(|| variants.first())
            else {
                continue;
            };
            return self.value(chosen, depth.saturating_add(1));
        }
        let all = schema.get("allOf").and_then(Node::as_array).unwrap_or_default();
        if let [only] = all {
            return self.value(only, depth.saturating_add(1));
        }
        let has = |name| schema.get(name).is_some();
        match kind(schema) {
            Some("integer" | "number") => self.text.push_str(&number(schema)),
            Some("boolean") => self.text.push_str("true"),
            Some("null") => self.text.push_str("null"),
            Some("array") => self.array(schema, depth),
            Some("object") => self.object(schema, depth),
            None if has("properties") || !all.is_empty() => self.object(schema, depth),
            None if has("items") => self.array(schema, depth),
            Some(_) | None => self.string(schema),
        }
    }

    /// Writes the required members in their order, then those of each part of `allOf`.
    fn object(&mut self, schema: &'s Node<'a>, depth: usize) {
        let mut members = Vec::new();
        self.members(schema, depth, &mut members);
        self.text.push('{');
        for (at, (name, of)) in members.iter().enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            self.text.push_str(&quoted(name));
            self.text.push(':');
            match of {
                Some(of) => self.value(of, depth.saturating_add(1)),
                None => self.text.push_str(&quoted(self.said)),
            }
        }
        self.text.push('}');
    }

    fn members(
        &self,
        schema: &'s Node<'a>,
        depth: usize,
        found: &mut Vec<(&'s str, Option<&'s Node<'a>>)>,
    ) {
        let required = schema.get("required").and_then(Node::as_array).unwrap_or_default();
        for name in required.iter().filter_map(Node::as_str) {
            if !found.iter().any(|(other, _)| *other == name) {
                let of = schema.get("properties").and_then(|properties| properties.get(name));
                found.push((name, of));
            }
        }
        if depth < DEPTH_MAX {
            for part in schema.get("allOf").and_then(Node::as_array).unwrap_or_default() {
                self.members(self.resolved(part), depth.saturating_add(1), found);
            }
        }
    }

    /// As few elements as there may be.
    fn array(&mut self, schema: &'s Node<'a>, depth: usize) {
        let n = size(schema, "minItems").unwrap_or(0).min(LENGTH_MAX);
        self.text.push('[');
        for at in 0..n {
            if at > 0 {
                self.text.push(',');
            }
            match schema.get("items") {
                Some(items) => self.value(items, depth.saturating_add(1)),
                None => self.text.push_str("null"),
            }
        }
        self.text.push(']');
    }

    /// Writes the user's text, unless the schema requires another form or length.
    fn string(&mut self, schema: &'s Node<'a>) {
        let fixed = match schema.get("format").and_then(Node::as_str) {
            Some("date-time") => Some("2026-01-01T00:00:00Z"),
            Some("date") => Some("2026-01-01"),
            Some("time") => Some("00:00:00Z"),
            Some("duration") => Some("PT1S"),
            Some("email") => Some("ada@example.com"),
            Some("hostname") => Some("example.com"),
            Some("ipv4") => Some("192.0.2.1"),
            Some("ipv6") => Some("2001:db8::1"),
            Some("uuid") => Some("7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11"),
            Some("uri") => Some("https://example.com/"),
            Some(_) | None => None,
        };
        if let Some(fixed) = fixed {
            return self.text.push_str(&quoted(fixed));
        }
        let longest = size(schema, "maxLength").unwrap_or(usize::MAX);
        let mut text: String = self.said.chars().take(longest).collect();
        let shortest = size(schema, "minLength").unwrap_or(0).min(LENGTH_MAX);
        let missing = shortest.saturating_sub(text.chars().count());
        text.extend(std::iter::repeat_n('.', missing));
        self.text.push_str(&quoted(&text));
    }
}

/// The first of its types.
fn kind<'n>(schema: &'n Node<'_>) -> Option<&'n str> {
    let kind = schema.get("type")?;
    kind.as_array().and_then(<[_]>::first).unwrap_or(kind).as_str()
}

fn size(schema: &Node<'_>, name: &str) -> Option<usize> {
    schema.get(name)?.as_number()?.parse().ok()
}

/// The least that it may be, else one, else the most that it may be.
fn number(schema: &Node<'_>) -> String {
    let bound = |name| schema.get(name).and_then(Node::as_number);
    if let Some(least) = bound("minimum") {
        return least.to_owned();
    }
    let above = bound("exclusiveMinimum").and_then(|number| number.parse::<i64>().ok());
    if let Some(least) = above.and_then(|number| number.checked_add(1)) {
        return least.to_string();
    }
    let below = bound("exclusiveMaximum").and_then(|number| number.parse::<i64>().ok());
    let most = below.and_then(|number| number.checked_sub(1)).map(|number| number.to_string());
    let most = bound("maximum").map(str::to_owned).or(most);
    let is_below_one = |most: &String| most.parse::<i64>().is_ok_and(|most| most < 1);
    most.filter(is_below_one).unwrap_or_else(|| "1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_gets_the_least_that_it_describes() {
        for (schema, json) in [
            (r#"{}"#, "{}"),
            ("no JSON", "{}"),
            (r#"{"required":["a"]}"#, r#"{"a":"hi"}"#),
            (
                r##"{"$defs":{"P":{"type":"object","properties":{"n":{"type":"string"}},"required":["n"]}},
                  "type":"object","properties":{"p":{"$ref":"#/$defs/P"},"x":{"type":"integer"}},
                  "required":["p"]}"##,
                r#"{"p":{"n":"hi"}}"#,
            ),
            (
                r##"{"$ref":"#/definitions/T","definitions":{"T":{"properties":{"next":{"anyOf":
                  [{"$ref":"#/definitions/T"},{"type":"null"}]}},"required":["next"]}}}"##,
                r#"{"next":{"next":{"next":{"next":null}}}}"#,
            ),
            (r##"{"$ref":"#"}"##, "{}"),
            (
                r#"{"required":["a","b","c","d"],"properties":{"a":{"type":["integer","null"]},
                  "b":{"type":"number","minimum":2.5},"c":{"type":"array","items":{"type":"boolean"},
                  "minItems":2},"d":{"enum":["x","y"]}}}"#,
                r#"{"a":1,"b":2.5,"c":[true,true],"d":"x"}"#,
            ),
            (
                r#"{"required":["a","b","c"],"properties":{"a":{"type":"string","maxLength":1},
                  "b":{"type":"string","minLength":4},"c":{"type":"string","format":"date"}}}"#,
                r#"{"a":"h","b":"hi..","c":"2026-01-01"}"#,
            ),
            (
                r#"{"required":["a","b"],"properties":{"a":{"type":"integer","exclusiveMinimum":4},
                  "b":{"type":"integer","maximum":-2}}}"#,
                r#"{"a":5,"b":-2}"#,
            ),
            (
                r#"{"allOf":[{"required":["a"]},{"required":["b"],"properties":{"b":{"const":7}}}]}"#,
                r#"{"a":"hi","b":7}"#,
            ),
        ] {
            assert_eq!(minimal(schema, "hi"), json, "{schema}");
        }
    }

    #[test]
    fn a_schema_that_multiplies_is_bounded() {
        for schema in [
            r##"{"required":["a","b"],"properties":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}"##,
            r##"{"required":["a"],"properties":{"a":{"type":"array","minItems":9999999,"items":{"$ref":"#"}}}}"##,
        ] {
            let written = minimal(schema, "hi");
            assert!(written.len() < 2 * TEXT_BYTES_MAX, "{}", written.len());
            assert!(json::parse_answer(written.as_bytes()).is_ok());
        }
    }
}
