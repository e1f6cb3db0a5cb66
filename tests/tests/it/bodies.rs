//! Request bodies that begin valid.

use holdfast_tests::config::{ACME, SIM};
use serde_json::{Value, json};

/// A request whose only message is the user's, to the upstream's model.
pub(crate) fn acme(text: &str) -> String {
    body(ACME, text).to_string()
}

/// The same to the simulated model. Lines like `[[sim: refuse]]` tell it what to do.
pub(crate) fn sim(text: &str) -> String {
    body(SIM, text).to_string()
}

/// The simulated model's, with one member more or another one.
pub(crate) fn sim_with(name: &str, value: Value) -> String {
    let mut body = body(SIM, "Hello there");
    body[name] = value;
    body.to_string()
}

fn body(model: &str, text: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": text}]})
}
