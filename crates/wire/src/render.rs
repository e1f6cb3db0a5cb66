//! Renderer of this crate's own shapes: one way from a type to bytes. Shapes of others are read,
//! never written here.

mod compact;

use serde::{Serialize, Serializer};

use self::compact::{Compact, RAW};

/// Bytes that a rendering begins with: most shapes fit without growing.
const USUAL_BYTES: usize = 1_024;

/// Renders a shape of this crate as compact JSON.
#[expect(
    clippy::expect_used,
    reason = "strings, numbers, checked raw JSON and maps keyed by strings: failing is a bug"
)]
pub(crate) fn to_bytes(shape: &impl Serialize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    shape.serialize(Compact::to(&mut bytes)).expect("our own shapes are JSON");
    bytes
}

/// JSON that stays as it is spelled: it was read as JSON, or made here.
#[derive(Debug, Clone)]
pub(crate) struct Raw<T>(pub(crate) T);

impl<T: AsRef<str>> Serialize for Raw<T> {
    /// For [`to_bytes`] alone.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(RAW, self.0.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    /// Whatever JSON there may be, in which texts have escapes more often than ours.
    fn values() -> impl Strategy<Value = Value> {
        let text =
            prop_oneof!["[a-z]{0,20}", "\\PC{0,12}", "[\\x00-\\x24\\\\\u{7f}-\u{90}é]{0,12}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 48, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(text.clone(), inner, 0..6)
                    .prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_is_spelled_as_by_everybody_else(value in values()) {
            let spelled = String::from_utf8(to_bytes(&value)).unwrap();
            prop_assert_eq!(spelled, serde_json::to_string(&value).unwrap());
        }
    }

    #[derive(Serialize)]
    struct Shape<'a> {
        text: &'a str,
        number: i64,
        nothing: Option<u32>,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u32>,
        pair: (u8, char),
        unit: Unit,
        #[serde(flatten)]
        rest: BTreeMap<&'a str, [(); 0]>,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    enum Unit {
        OfMoney,
    }

    #[test]
    fn a_shape_is_an_object_of_its_members() {
        let shape = Shape {
            text: "a \"b\"\n",
            number: i64::MIN,
            nothing: None,
            left_out: None,
            pair: (7, 'é'),
            unit: Unit::OfMoney,
            rest: BTreeMap::from([("rest", [])]),
        };
        let spelled = String::from_utf8(to_bytes(&shape)).unwrap();
        assert_eq!(spelled, serde_json::to_string(&shape).unwrap());
    }

    #[test]
    fn raw_json_keeps_its_spelling() {
        let raw = Raw(r#"{"z":1.00,"a":"\u00e9"}"#);
        assert_eq!(to_bytes(&[&raw]), br#"[{"z":1.00,"a":"\u00e9"}]"#);
    }

    #[test]
    #[should_panic(expected = "our own shapes are JSON")]
    fn a_name_is_a_text() {
        to_bytes(&BTreeMap::from([(1, json!(null))]));
    }
}
