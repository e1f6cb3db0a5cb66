//! The charge in an answer of another Holdfast. No other server has such a member.

use holdfast_domain::Micros;

use crate::json::{Node, parse_answer};

const NAME: &str = "customer_charge_micros";

/// Charge in a completion or a chunk; `None` if there is none, or an impossible one. One that no amount can
/// hold is the largest amount, so that it is refused and not overlooked.
#[must_use]
pub fn read_charge(data: &[u8]) -> Option<Micros> {
    // One chunk of many has it: the others are not read twice.
    if !data.windows(NAME.len()).any(|window| window == NAME.as_bytes()) {
        return None;
    }
    let answer = parse_answer(data).ok()?;
    let digits = answer.get("usage")?.get(NAME).and_then(Node::as_number)?;
    let is_natural = digits.bytes().all(|digit| digit.is_ascii_digit());
    is_natural.then(|| digits.parse().map_or(Micros::MAX, Micros::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_charge_is_read_where_it_stands_and_nowhere_else() {
        for (data, charge) in [
            (r#"{"usage":{"customer_charge_micros":367}}"#, Some(367)),
            (r#"{"usage":{"customer_charge_micros":0}}"#, Some(0)),
            (r#"{"usage":{"customer_charge_micros":9223372036854775808}}"#, Some(i64::MAX)),
            (r#"{"usage":{"customer_charge_micros":-1}}"#, None),
            (r#"{"usage":{"customer_charge_micros":"367"}}"#, None),
            (r#"{"usage":{"customer_charge_micros":1e3}}"#, None),
            (r#"{"usage":null,"customer_charge_micros":367}"#, None),
            (r#"{"choices":[{"delta":{"content":"customer_charge_micros"}}]}"#, None),
            (r#"{"usage":{"prompt_tokens":1}}"#, None),
            ("[DONE]", None),
        ] {
            assert_eq!(read_charge(data.as_bytes()), charge.map(Micros::new), "{data}");
        }
    }
}
