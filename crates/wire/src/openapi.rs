//! The public API described by itself: one OpenAPI 3.1 document, and a page made from it. Not here: the
//! operator's listener.
//!
//! The document is `openapi.json` with three additions: the version, the headers of every answer, and
//! the error answers (`errors`), for which the file has `x-codes`. Tests hold its bounds and words
//! against the code that reads and writes.

mod errors;
mod page;

use serde_json::{Map, Value, json};

pub use self::page::{STYLE_HASH, page};
use crate::render;

/// A request key in examples.
const EXAMPLE_KEY: &str = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";

/// The document.
#[must_use]
pub fn document() -> Value {
    // A part of the program, which a test parses: there is no other failure to report.
    let mut document =
        serde_json::from_str(include_str!("openapi/openapi.json")).unwrap_or(Value::Null);
    if let Some(version) = document.pointer_mut("/info/version") {
        *version = json!(env!("CARGO_PKG_VERSION"));
    }
    for answer in members_mut(document.pointer_mut("/components/responses")) {
        errors::expand(answer);
    }
    for operation in
        members_mut(document.pointer_mut("/paths")).flat_map(|path| members_mut(Some(path)))
    {
        let answers = members_mut(operation.get_mut("responses"));
        answers.filter(|answer| answer.get("$ref").is_none()).for_each(errors::add_common_headers);
    }
    document
}

fn members_mut(object: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    object.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
}

/// The part of the document that `value` refers to, or `value` itself without a `$ref`.
#[must_use]
pub fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let target =
        value["$ref"].as_str().and_then(|path| document.pointer(path.trim_start_matches('#')));
    target.unwrap_or(value)
}

/// The document as it is served.
#[must_use]
pub fn rendered() -> Vec<u8> {
    render::to_bytes(&document())
}
