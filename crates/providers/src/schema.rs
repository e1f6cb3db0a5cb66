//! Schema of an answer, for kinds that take a schema and no description beside it.

use std::borrow::Cow;

use holdfast_domain::request::{JsonSchema, Opaque};
use holdfast_wire::json::{Draft, Node, parse};

const DESCRIPTION: &str = "description";

/// The schema with the format's description as its own, as its first member; the other members keep their
/// order and spelling. A description that the schema has follows the format's in the same text, because
/// neither replaces the other: the one is of the answer, the other of its type. `None` without a schema.
pub(crate) fn described(format: &JsonSchema) -> Option<Draft<'_>> {
    let schema = format.schema.as_ref()?;
    let description = format.description.as_deref().filter(|text| !text.is_empty());
    let merged = description.and_then(|description| with_description(schema, description));
    Some(merged.map_or_else(|| schema.into(), Draft::from))
}

/// `None` if the schema's own description contains it already, or is not a text.
fn with_description(schema: &Opaque, description: &str) -> Option<Opaque> {
    let Ok(Node::Object(mut members)) = parse(schema.as_str().as_bytes()) else { return None };
    match members.iter_mut().find(|(name, _)| name == DESCRIPTION).map(|(_, own)| own) {
        None => {
            let own = Node::String(Cow::Borrowed(description));
            members.insert(0, (DESCRIPTION.into(), own));
        }
        Some(Node::String(own)) if own.contains(description) => return None,
        Some(Node::String(own)) if !own.is_empty() => {
            *own = [description, "\n\n", &**own].concat().into();
        }
        Some(own @ (Node::String(_) | Node::Null)) => {
            *own = Node::String(Cow::Borrowed(description));
        }
        Some(Node::Bool(_) | Node::Number(_) | Node::Array(_) | Node::Object(_)) => return None,
    }
    Some(Opaque::from_json(Node::Object(members).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: &str, sent: &str) {
        let format = JsonSchema {
            name: "city".to_owned(),
            description: Some("A \"city\".".to_owned()),
            schema: Some(Opaque::from_json(schema.to_owned())),
            strict: None,
        };
        assert_eq!(described(&format).unwrap().to_string(), sent, "{schema}");
        let bare = JsonSchema { description: None, ..format.clone() };
        assert_eq!(described(&bare).unwrap().to_string(), schema);
        let empty = JsonSchema { description: Some(String::new()), ..format };
        assert_eq!(described(&empty).unwrap().to_string(), schema);
    }

    #[test]
    fn a_description_becomes_the_first_member_of_the_schema() {
        check("{}", r#"{"description":"A \"city\"."}"#);
        check(
            r#"{"type":"object","properties":{"z":{"description":"In."},"a":{"multipleOf":1.0e2}}}"#,
            r#"{"description":"A \"city\".","type":"object","properties":{"z":{"description":"In."},"a":{"multipleOf":1.0e2}}}"#,
        );
    }

    #[test]
    fn a_description_precedes_the_one_that_the_schema_has() {
        check(
            r#"{"type":"object","description":"Own."}"#,
            r#"{"type":"object","description":"A \"city\".\n\nOwn."}"#,
        );
        for said in [r#"{"description":"A \"city\".","type":"object"}"#, r#"{"description":7}"#] {
            check(said, said);
        }
        for empty in [r#"{"description":"","a":1}"#, r#"{"description":null,"a":1}"#] {
            check(empty, r#"{"description":"A \"city\".","a":1}"#);
        }
    }
}
