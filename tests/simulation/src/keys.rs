//! Request keys of a run: their names in the trace, the operations that they stand for, and what is asked under them.

use std::collections::BTreeMap;

use holdfast_domain::{ApiKeyId, OperationId, RequestKey};
use holdfast_testkit::sample;

/// Second API key. The first is [`sample::API_KEY`]; both pay from one wallet.
pub const SECOND_API_KEY: ApiKeyId = ApiKeyId::from_u128(0xaa);

/// Request key of an API key.
#[derive(Debug, Clone)]
pub struct Key {
    /// Name in the trace, and the first word of its prompts: `a3` is key 3 of the first API key.
    pub name: String,
    /// Number of the credential: 1 or 2.
    pub bearer: u8,
    /// Request key.
    pub request_key: RequestKey,
    /// Operation.
    pub operation: OperationId,
    /// Model that it asks for.
    pub model: &'static str,
}

/// Model whose unknown outcomes end its operations.
pub const ONE_RUN: &str = "holdfast/sample";
/// Model whose unknown outcomes may be sent to the next route.
pub const ONE_CHARGE: &str = "holdfast/second";

/// Word of a prompt that is another request under a key.
pub const OTHER: &str = "other";

impl Key {
    /// Key of this number: both API keys have the same request keys, which are two operations each.
    #[must_use]
    pub fn new(bearer: u8, number: u64, model: &'static str) -> Self {
        let (letter, api_key) = match bearer {
            1 => ('a', sample::API_KEY),
            _ => ('b', SECOND_API_KEY),
        };
        let request_key = sample::request_key(number);
        let operation = OperationId::of(api_key, request_key);
        Self { name: format!("{letter}{number}"), bearer, request_key, operation, model }
    }

    /// Prompt of its request, or of another one.
    #[must_use]
    pub fn prompt(&self, is_other: bool) -> String {
        if is_other { format!("{} {OTHER}", self.name) } else { self.name.clone() }
    }

    /// Body of a request with this prompt.
    #[must_use]
    pub fn body(&self, prompt: &str, streams: bool) -> String {
        let model = self.model;
        let stream =
            if streams { r#","stream":true,"stream_options":{"include_usage":true}"# } else { "" };
        format!(
            r#"{{"model":"{model}","messages":[{{"role":"user","content":"{prompt}"}}]{stream}}}"#
        )
    }
}

/// Names of operations, for the trace.
#[derive(Debug, Default)]
pub struct KeyNames(BTreeMap<OperationId, String>);

impl KeyNames {
    /// Names of these keys.
    #[must_use]
    pub fn of(keys: &[Key]) -> Self {
        Self(keys.iter().map(|key| (key.operation, key.name.clone())).collect())
    }

    /// Name of an operation.
    #[must_use]
    pub fn of_operation(&self, operation: OperationId) -> &str {
        self.0.get(&operation).map_or("?", String::as_str)
    }
}
