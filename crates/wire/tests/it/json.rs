//! The strict reader against a general one: it reads the same values, and refuses exactly what the
//! other refuses, plus what the other forgives.

use std::borrow::Cow;
use std::fmt;

use holdfast_wire::json::{DEPTH_MAX, Fault, Node, VALUES_MAX, parse};
use proptest::prelude::*;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

#[track_caller]
fn check(body: &str, fault: Fault, at: usize) {
    let bad = parse(body.as_bytes()).unwrap_err();
    assert_eq!((bad.fault, bad.at), (fault, at), "{body}");
}

#[test]
fn values_are_kept_as_they_were_written() {
    let text = " {\"b\": [null, true, false, -0, 1.50E+2, \"x\"],\r\n\t\"a\": {}, \"\": []} ";
    let string = |text| Node::String(Cow::Borrowed(text));
    assert_eq!(
        parse(text.as_bytes()).unwrap(),
        Node::Object(vec![
            (
                "b".into(),
                Node::Array(vec![
                    Node::Null,
                    Node::Bool(true),
                    Node::Bool(false),
                    Node::Number("-0"),
                    Node::Number("1.50E+2"),
                    string("x"),
                ])
            ),
            ("a".into(), Node::Object(Vec::new())),
            ("".into(), Node::Array(Vec::new())),
        ])
    );
}

#[test]
fn only_strings_with_escapes_are_copied() {
    let long = format!("\"{}é\u{10ffff}\u{7f}\"", "x".repeat(100));
    let read = parse(long.as_bytes()).unwrap();
    assert!(matches!(&read, Node::String(Cow::Borrowed(text)) if text.len() == 107), "{read:?}");
    let escaped = r#""\"\\\/\b\f\n\r\t\u0000\u00e9\uD83D\ude00é\uffff\ud800\udc00\uDBFF\uDFFF""#;
    let text = "\"\\/\u{8}\u{c}\n\r\t\0é😀é\u{ffff}\u{10000}\u{10ffff}".to_owned();
    assert_eq!(parse(escaped.as_bytes()).unwrap(), Node::String(Cow::Owned(text)));
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    for (body, fault, at) in [
        ("\u{feff}{}", Fault::ByteOrderMark, 0),
        ("", Fault::End, 0),
        (" ", Fault::End, 1),
        ("[1,", Fault::End, 3),
        ("[1,]", Fault::Syntax, 3),
        ("[1 2]", Fault::Syntax, 3),
        ("{\"a\":1,}", Fault::Syntax, 7),
        ("{\"a\" 1}", Fault::Syntax, 5),
        ("{a:1}", Fault::Syntax, 1),
        ("{\"a\"", Fault::End, 4),
        ("tru", Fault::Syntax, 0),
        ("NaN", Fault::Syntax, 0),
        ("Infinity", Fault::Syntax, 0),
        ("-Infinity", Fault::Syntax, 1),
        ("+1", Fault::Syntax, 0),
        (".5", Fault::Syntax, 0),
        ("01", Fault::Trailing, 1),
        ("[-01]", Fault::Syntax, 3),
        ("1.", Fault::End, 2),
        ("[1.]", Fault::Syntax, 3),
        ("[1.e1]", Fault::Syntax, 3),
        ("[1e]", Fault::Syntax, 3),
        ("[1e+]", Fault::Syntax, 4),
        ("-", Fault::End, 1),
        ("{} x", Fault::Trailing, 3),
        ("{}\u{a0}", Fault::Trailing, 2),
        ("\"a", Fault::End, 2),
        ("\"a\u{1f}\"", Fault::Control, 2),
        ("\"a\n\"", Fault::Control, 2),
        ("\"\\", Fault::End, 2),
        ("\"\\x\"", Fault::Syntax, 2),
        ("\"\\u00g0\"", Fault::Syntax, 5),
        ("\"\\u00", Fault::End, 5),
        ("\"\\ud800\"", Fault::Surrogate, 3),
        ("\"\\udc00\"", Fault::Surrogate, 3),
        ("\"\\ud800\\ud800\"", Fault::Surrogate, 3),
        ("\"\\ud800x\"", Fault::Surrogate, 3),
        ("{\"\\udfff\":1}", Fault::Surrogate, 4),
        ("{\"a\":1,\"\\u0061\":2}", Fault::Duplicate, 15),
        ("[{\"a\":{\"b\":1,\"b\":1}}]", Fault::Duplicate, 16),
    ] {
        check(body, fault, at);
    }
    let bad = parse(b"[\"\xc3\x28\"]").unwrap_err();
    assert_eq!((bad.fault, bad.at), (Fault::Encoding, 2));
}

#[test]
fn names_repeat_in_no_object_however_large() {
    for n in [2, 15, 16, 17, 18, 1_000] {
        for twin in [0, (n - 1) / 2, n - 2] {
            let name = |at: usize| if at == n - 1 { twin } else { at };
            let members: Vec<_> = (0..n).map(|at| format!("\"{}\":1", name(at))).collect();
            let body = format!("{{{}}}", members.join(","));
            assert_eq!(parse(body.as_bytes()).unwrap_err().fault, Fault::Duplicate, "{n} {twin}");
        }
        let members: Vec<_> = (0..n).map(|at| format!("\"{at}\":1")).collect();
        parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap();
    }
}

#[test]
fn depth_has_an_end() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let nested = |depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        parse(nested(DEPTH_MAX).as_bytes()).unwrap();
        check(&nested(DEPTH_MAX + 1), Fault::Depth, open.len() * DEPTH_MAX);
        check(&open.repeat(1_000_000), Fault::Depth, open.len() * DEPTH_MAX);
    }
}

#[test]
fn values_are_counted() {
    // An array counts, and the values of members do.
    let zeros = |n: usize| format!("[{}0]", "0,".repeat(n - 1));
    parse(zeros(VALUES_MAX - 1).as_bytes()).unwrap();
    check(&zeros(VALUES_MAX), Fault::Values, 1 + 2 * (VALUES_MAX - 1));
    let members = format!("[{}]", vec!["{\"a\":[]}"; VALUES_MAX / 2].join(","));
    assert_eq!(parse(members.as_bytes()).unwrap_err().fault, Fault::Values);
}

/// A value as the general reader sees it, which names that repeat make an error of.
struct Oracle(Value);

impl<'de> Deserialize<'de> for Oracle {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OracleVisitor).map(Self)
    }
}

struct OracleVisitor;

impl<'de> Visitor<'de> for OracleVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(Oracle(element)) = access.next_element()? {
            elements.push(element);
        }
        Ok(Value::Array(elements))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut members = serde_json::Map::new();
        while let Some((name, Oracle(member))) = access.next_entry::<String, Oracle>()? {
            if members.insert(name, member).is_some() {
                return Err(A::Error::custom("a name that repeats"));
            }
        }
        Ok(Value::Object(members))
    }
}

/// What the strict reader read, in the general reader's terms.
fn general(node: &Node<'_>) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(value) => Value::Bool(*value),
        Node::Number(lexeme) => serde_json::from_str(lexeme).unwrap(),
        Node::String(text) => Value::String(text.clone().into_owned()),
        Node::Array(elements) => elements.iter().map(general).collect(),
        Node::Object(members) => {
            members.iter().map(|(name, node)| (name.clone().into_owned(), general(node))).collect()
        }
    }
}

#[track_caller]
fn agrees_with_the_oracle(body: &[u8]) {
    match (parse(body), serde_json::from_slice::<Oracle>(body)) {
        (Ok(node), Ok(Oracle(value))) => assert_eq!(general(&node), value),
        (Err(_), Err(_)) => {}
        // Numbers beyond a float's range are kept as they are spelled, and refused by their field.
        (Ok(_), Err(error)) => {
            assert!(error.to_string().contains("number out of range"), "{error}");
        }
        (Err(bad), Ok(_)) => assert_eq!(bad.fault, Fault::Depth, "{bad}"),
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 24, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..24)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// Pieces that make and break JSON, so that random texts of them are often nearly right.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec!["[", "]", "{", "}", ",", ":", "\"", " "]),
        2 => prop::sample::select(vec!["\"a\":", "\"a\"", "\"\\u0061\":1", "null", "true", "{}", "[]"]),
        2 => prop::sample::select(vec!["0", "-", "1", ".", "e", "E+", "10", "0.5", "1e400"]),
        1 => prop::sample::select(vec!["\\", "\\u", "\\ud83d", "\\ude00", "d800", "\u{0}", "é", "x"]),
    ];
    prop::collection::vec(piece, 0..16).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn values_are_read_as_by_the_oracle(value in values(), pretty in any::<bool>()) {
        let body = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) };
        let body = body.unwrap();
        prop_assert_eq!(general(&parse(&body).unwrap()), serde_json::from_slice::<Value>(&body).unwrap());
    }

    #[test]
    fn damaged_values_are_refused_as_by_the_oracle(
        value in values(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<Option<u8>>()), 1..3),
    ) {
        let mut body = serde_json::to_vec(&value).unwrap();
        for (at, byte) in damage {
            if body.is_empty() {
                break;
            }
            let at = at.index(body.len());
            match byte {
                Some(byte) => body[at] = byte,
                None => { body.remove(at); }
            }
        }
        agrees_with_the_oracle(&body);
    }

    #[test]
    fn near_misses_are_judged_as_by_the_oracle(body in pieces()) {
        agrees_with_the_oracle(body.as_bytes());
        agrees_with_the_oracle(format!("[{body}]").as_bytes());
        agrees_with_the_oracle(format!("{{\"b\":\"{body}\"}}").as_bytes());
    }

    #[test]
    fn any_bytes_are_judged_as_by_the_oracle(body in prop::collection::vec(any::<u8>(), 0..64)) {
        agrees_with_the_oracle(&body);
    }
}
