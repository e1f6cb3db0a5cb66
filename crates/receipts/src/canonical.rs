//! Canonical form of documents by RFC 8785: one value, one text, so that a signature survives every program that
//! reads and writes the JSON again.
//!
//! Documents have texts, lists, objects and null. Amounts and counts are texts of decimal digits: the numbers of RFC
//! 8785 are doubles, which lose micros beyond 2^53. Names of members are ASCII, so that their order is the same by
//! bytes and by UTF-16. A document with anything else is refused and never rounded.

use serde_json::Value;

/// A value that documents do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("documents have texts, lists, objects with ASCII names, and null")]
pub struct NotCanonical;

/// Canonical bytes of a document.
///
/// ```
/// use holdfast_receipts::canonical::canonical;
/// use serde_json::json;
///
/// let document = json!({"b": ["2\n", null], "a": {"y": "é", "x": "1"}});
/// assert_eq!(canonical(&document).unwrap(), r#"{"a":{"x":"1","y":"é"},"b":["2\n",null]}"#.as_bytes());
/// assert!(canonical(&json!({"a": 1})).is_err());
/// ```
///
/// # Errors
///
/// [`NotCanonical`] for a number, a truth value, or a name that is not ASCII.
pub fn canonical(document: &Value) -> Result<Vec<u8>, NotCanonical> {
    let mut bytes = Vec::new();
    write(document, &mut bytes)?;
    Ok(bytes)
}

fn write(value: &Value, bytes: &mut Vec<u8>) -> Result<(), NotCanonical> {
    match value {
        Value::Null => bytes.extend_from_slice(b"null"),
        Value::String(text) => write_text(text, bytes),
        Value::Array(elements) => {
            bytes.push(b'[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    bytes.push(b',');
                }
                write(element, bytes)?;
            }
            bytes.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            // Not left to the map: its order is a feature that any crate of a build may switch.
            members.sort_unstable_by_key(|(name, _member)| *name);
            bytes.push(b'{');
            for (at, (name, member)) in members.into_iter().enumerate() {
                if !name.is_ascii() {
                    return Err(NotCanonical);
                }
                if at > 0 {
                    bytes.push(b',');
                }
                write_text(name, bytes);
                bytes.push(b':');
                write(member, bytes)?;
            }
            bytes.push(b'}');
        }
        Value::Bool(_) | Value::Number(_) => return Err(NotCanonical),
    }
    Ok(())
}

/// Text in quotes. Only quotation mark, backslash and control characters are escaped, the usual ones by a letter.
fn write_text(text: &str, bytes: &mut Vec<u8>) {
    bytes.push(b'"');
    for character in text.chars() {
        match character {
            '"' => bytes.extend_from_slice(b"\\\""),
            '\\' => bytes.extend_from_slice(b"\\\\"),
            '\u{8}' => bytes.extend_from_slice(b"\\b"),
            '\u{c}' => bytes.extend_from_slice(b"\\f"),
            '\n' => bytes.extend_from_slice(b"\\n"),
            '\r' => bytes.extend_from_slice(b"\\r"),
            '\t' => bytes.extend_from_slice(b"\\t"),
            '\0'..='\u{1f}' => {
                bytes.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            _ => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes.push(b'"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The text of RFC 8785, section 3.2.2, without its numbers and literals.
    #[test]
    fn texts_are_escaped_as_the_standard_does() {
        let document: Value = serde_json::from_str(
            r#"{"string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null]}"#,
        )
        .unwrap();
        let expected = r#"{"literals":[null],"string":"€$\u000f\nA'B\"\\\\\"/"}"#;
        assert_eq!(canonical(&document).unwrap(), expected.as_bytes());
        let controls = json!("\u{8}\u{c}\r\t\u{7f}\u{1f}");
        assert_eq!(canonical(&controls).unwrap(), "\"\\b\\f\\r\\t\u{7f}\\u001f\"".as_bytes());
    }

    #[test]
    fn other_values_are_refused() {
        for document in [json!(1), json!([true]), json!({"a": {"b": 1.5}}), json!({"é": "x"})] {
            assert_eq!(canonical(&document), Err(NotCanonical), "{document}");
        }
    }
}
