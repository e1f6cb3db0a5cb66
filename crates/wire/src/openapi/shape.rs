//! Pieces of JSON Schema (2020-12, as OpenAPI 3.1 uses it). They know nothing of what they
//! describe.

use serde_json::{Value, json};

/// An object that has these members; any other is null, which says nothing.
pub(crate) fn typed(properties: Value, required: &[&str]) -> Value {
    with(open(properties, required), "additionalProperties", json!({"type": "null"}))
}

/// An object that has these members; later versions may add more.
pub(crate) fn open(properties: Value, required: &[&str]) -> Value {
    let mut schema = json!({"type": "object"});
    set(&mut schema, "properties", properties);
    if !required.is_empty() {
        set(&mut schema, "required", json!(required));
    }
    schema
}

/// The same with one keyword more, or another one.
pub(crate) fn with(mut schema: Value, keyword: &str, rule: Value) -> Value {
    set(&mut schema, keyword, rule);
    schema
}

fn set(schema: &mut Value, keyword: &str, rule: Value) {
    if let Some(keywords) = schema.as_object_mut() {
        keywords.insert(keyword.to_owned(), rule);
    }
}

/// The same with words for people.
pub(crate) fn described(schema: Value, text: &str) -> Value {
    with(schema, "description", json!(text))
}

/// The same, or one of the values that say nothing ([`nothing`]).
pub(crate) fn optional(schema: Value) -> Value {
    let description = schema.get("description").cloned();
    let mut shapes = match schema.get("anyOf").and_then(Value::as_array) {
        Some(shapes) => shapes.clone(),
        None => vec![schema],
    };
    shapes.push(named(NOTHING));
    let either = any_of(&shapes);
    match description {
        Some(text) => with(either, "description", text),
        None => either,
    }
}

/// Name of [`nothing`].
pub(crate) const NOTHING: &str = "Nothing";

/// The values of a member that are the same as leaving it out.
pub(crate) fn nothing() -> Value {
    let empty = [
        json!({"type": "null"}),
        json!({"type": "string", "maxLength": 0}),
        json!({"type": "array", "maxItems": 0}),
    ];
    described(
        any_of(&empty),
        "Null, an empty text or an empty array: the same as leaving the member out.",
    )
}

/// The same, or null.
pub(crate) fn nullable(schema: Value) -> Value {
    // A schema without a single type is a choice or a reference: null becomes one choice more.
    let Some(kind) = schema.get("type").and_then(Value::as_str).map(str::to_owned) else {
        let mut either = json!({"anyOf": []});
        let description = schema.get("description").cloned();
        if let Some(all) = either.get_mut("anyOf").and_then(Value::as_array_mut) {
            match schema.get("anyOf").and_then(Value::as_array) {
                Some(shapes) => all.extend(shapes.iter().cloned()),
                None => all.push(schema),
            }
            all.push(json!({"type": "null"}));
        }
        return match description {
            Some(text) => with(either, "description", text),
            None => either,
        };
    };
    let mut schema = with(schema, "type", json!([kind, "null"]));
    // `type` alone would not do: an enum lists all values that there may be, so null is among them.
    if let Some(all) = schema.get_mut("enum").and_then(Value::as_array_mut) {
        all.push(Value::Null);
    }
    schema
}

/// A shape that has a name.
pub(crate) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

/// A string that is one of these words.
pub(crate) fn words(all: &[&str]) -> Value {
    json!({"type": "string", "enum": all})
}

/// A string that is the label of one of these values.
pub(crate) fn labels<T: Copy>(all: &[T], label: fn(T) -> &'static str) -> Value {
    let all: Vec<_> = all.iter().map(|one| label(*one)).collect();
    words(&all)
}

/// A string that is this word.
pub(crate) fn word(word: &str) -> Value {
    words(&[word])
}

pub(crate) fn string() -> Value {
    json!({"type": "string"})
}

pub(crate) fn boolean() -> Value {
    json!({"type": "boolean"})
}

/// A whole number in some range.
pub(crate) fn integer(low: i64, high: i64) -> Value {
    json!({"type": "integer", "minimum": low, "maximum": high})
}

/// A count, or an amount that cannot be negative.
pub(crate) fn natural() -> Value {
    json!({"type": "integer", "minimum": 0})
}

/// A number in some range.
pub(crate) fn number(low: i32, high: i32) -> Value {
    json!({"type": "number", "minimum": low, "maximum": high})
}

/// An array of some length.
pub(crate) fn array(items: Value, least: usize, most: Option<usize>) -> Value {
    let mut schema = with(json!({"type": "array"}), "items", items);
    if least > 0 {
        set(&mut schema, "minItems", json!(least));
    }
    if let Some(most) = most {
        set(&mut schema, "maxItems", json!(most));
    }
    schema
}

/// An object whose members are all of one shape.
pub(crate) fn map(values: Value) -> Value {
    with(json!({"type": "object"}), "additionalProperties", values)
}

/// A value of any of these shapes.
pub(crate) fn any_of(shapes: &[Value]) -> Value {
    json!({"anyOf": shapes})
}

/// A moment in RFC 3339, in UTC.
pub(crate) fn moment() -> Value {
    json!({"type": "string", "format": "date-time"})
}

/// An identifier that is a UUID.
pub(crate) fn uuid() -> Value {
    json!({"type": "string", "format": "uuid"})
}
