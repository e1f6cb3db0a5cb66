//! The public API described by itself: one OpenAPI 3.1 document, and a page made from it. Bounds and
//! words come from the code that reads and writes; tests hold the document against that code. Not here:
//! the operator's listener.

mod answer;
mod endpoint;
mod endpoints;
mod example;
mod page;
mod request;
mod shape;
mod usage;

use holdfast_domain::OperationId;
use serde_json::{Map, Value, json};

pub use self::page::{STYLE_HASH, page};
use crate::render;

/// An operation in examples.
const EXAMPLE_OPERATION: OperationId =
    OperationId::from_u128(0x7a1c_0c2f_5d5e_8f0f_9b3c_6d1e_2f30_4152);
/// A request key in examples.
const EXAMPLE_KEY: &str = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";

/// The document.
#[must_use]
pub fn document() -> Value {
    let schemas: Map<String, Value> = request::schemas()
        .into_iter()
        .chain(answer::schemas())
        .chain(usage::schemas())
        .map(|(name, schema)| (name.to_owned(), schema))
        .collect();
    let bearer = json!({
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "hfk_<credential id>_<secret>",
        "description": "An API key, exactly once. Whatever is wrong with it, the answer is the same.",
    });
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Chat completions, each paid for once",
            "description": INTRODUCTION,
            "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        },
        // Relative, because the gateway does not know under which address callers reach it.
        "servers": [{"url": "/"}],
        "paths": endpoint::paths(&endpoints::all()),
        "components": {
            "schemas": schemas,
            "headers": endpoint::headers(),
            "responses": {"Preflight": endpoint::preflight()},
            "securitySchemes": {"apiKey": bearer},
        },
    })
}

/// The document as it is served.
#[must_use]
pub fn rendered() -> Vec<u8> {
    render::to_bytes(&document())
}

const INTRODUCTION: &str = "\
OpenAI's Chat Completions, with an `Idempotency-Key` on every call. A key is bound to its request when funds are \
held for it; the model is called at most once for it, unless the provider proves that it did not run; the wallet \
pays once. Amounts are integers in millionths of the wallet's currency and end in `_micros`.

Every error has the shape `Error`; its `code` is one of a closed list. Where `x-should-retry` is `true`, send the \
same request with the same key again after `retry-after`.

Pages of the origins that the operator lists may call every path (CORS). `OPTIONS` with `Origin` and \
`Access-Control-Request-Method` is a preflight then: its answer is `Preflight`, without an API key. Where no origin \
is listed, no answer has an `Access-Control` header, and `OPTIONS` is 405 `method_not_allowed`.";
