//! The end of an operation in another Holdfast's view of it.

use holdfast_domain::{Micros, RequestKey};

use crate::json::{Node, parse_answer};

/// End of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationEnd {
    /// Charge: zero if the operation was not completed, `None` if the view has no valid one.
    pub charge: Option<Micros>,
}

/// End of the operation of this key; `None` while it runs, and in a view of another key or in any other JSON.
#[must_use]
pub fn read_operation_end(view: &[u8], key: RequestKey) -> Option<OperationEnd> {
    let view = parse_answer(view).ok()?;
    let text = |name: &str| view.get(name).and_then(Node::as_str);
    if text("idempotency_key")? != key.to_string() {
        return None;
    }
    match text("status")? {
        "completed" => {
            let charge = view.get("charge_micros").and_then(Node::as_number);
            let charge = charge.and_then(|number| number.parse().ok());
            let charge = charge.filter(|charge: &i64| *charge >= 0).map(Micros::new);
            Some(OperationEnd { charge })
        }
        // The hold was released: nothing is charged.
        "open" | "refused" | "abandoned" => Some(OperationEnd { charge: Some(Micros::ZERO) }),
        _running => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_has_ended_where_its_own_view_has_it() {
        let own = RequestKey::of_random([7; 16]);
        let view = |key: &str, status: &str, charge: &str| {
            let text = format!(
                r#"{{"idempotency_key":"{key}","status":"{status}","charge_micros":{charge}}}"#
            );
            read_operation_end(text.as_bytes(), own)
        };
        let ended = |charge: Option<i64>| Some(OperationEnd { charge: charge.map(Micros::new) });
        let key = own.to_string();
        assert_eq!(view(&key, "completed", "211"), ended(Some(211)));
        for absurd in ["-1", "1.5", "9223372036854775808", "null"] {
            assert_eq!(view(&key, "completed", absurd), ended(None), "{absurd}");
        }
        for released in ["open", "refused", "abandoned"] {
            assert_eq!(view(&key, released, "null"), ended(Some(0)), "{released}");
        }
        for running in ["leased", "recorded", "other"] {
            assert_eq!(view(&key, running, "211"), None, "{running}");
        }
        let other = RequestKey::of_random([8; 16]).to_string();
        assert_eq!(view(&other, "completed", "211"), None);
        assert_eq!(read_operation_end(b"<html>", own), None);
    }
}
