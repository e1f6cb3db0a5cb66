//! Rendering of endpoints in OpenAPI's form: paths, methods, parameters, bodies, answers, headers.
//! The list of them is in `endpoints`.
//!
//! Errors are grouped by status: OpenAPI has one answer for a status, and several codes share one.
//! Such an answer lists its codes, the cause of each, and an example of each. A status that is also
//! an answer of its own (503 of a readiness check) gets both shapes.
//!
//! Headers follow from the endpoint and the code: rate limits stand where requests are counted, the
//! key's headers where a key was read before the error.

use serde_json::{Map, Value, json};

use super::shape::{described, named, natural, string};
use crate::error::{Code, ErrorBody, KeyEffect};

/// Headers of every answer: the second one where the request has a well-formed key, the others where
/// the operator lists origins.
const EVERY: [&str; 5] = [
    "x-request-id",
    "idempotency-key",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "vary",
];
/// Headers of a preflight alone.
const PREFLIGHT: [&str; 3] =
    ["access-control-allow-methods", "access-control-allow-headers", "access-control-max-age"];
/// Headers of counted requests, where the API key has such a limit.
pub(super) const RATES: [&str; 6] = [
    "x-ratelimit-limit-requests",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "x-ratelimit-limit-tokens",
    "x-ratelimit-remaining-tokens",
    "x-ratelimit-reset-tokens",
];

/// An endpoint: one method of one path.
pub(super) struct Endpoint {
    pub(super) path: &'static str,
    pub(super) method: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) text: &'static str,
    /// True where an API key is required.
    pub(super) is_secured: bool,
    pub(super) parameters: Vec<Value>,
    /// Name of the body's schema, and an example.
    pub(super) body: Option<(&'static str, Value)>,
    pub(super) answers: Vec<EndpointResponse>,
    pub(super) errors: Vec<Code>,
    /// True where requests carry an idempotency key, and are counted against limits by the minute.
    pub(super) is_keyed: bool,
}

/// An answer that is no error.
pub(super) struct EndpointResponse {
    pub(super) status: u16,
    pub(super) text: &'static str,
    pub(super) media: &'static str,
    pub(super) schema: Value,
    /// Schema of an event, where the answer may come as a stream of them.
    pub(super) event: Option<Value>,
    /// Headers beside those of every answer.
    pub(super) headers: Vec<&'static str>,
    pub(super) example: Option<Value>,
}

impl EndpointResponse {
    /// A JSON body of a named shape under 200.
    pub(super) fn json(text: &'static str, schema: &str) -> Self {
        Self {
            status: 200,
            text,
            media: "application/json",
            schema: named(schema),
            event: None,
            headers: Vec::new(),
            example: None,
        }
    }

    fn render(&self) -> Value {
        let mut content = json!({"schema": self.schema});
        if let (Some(content), Some(example)) = (content.as_object_mut(), &self.example) {
            content.insert("example".to_owned(), example.clone());
        }
        let mut media: Map<String, Value> = Map::from_iter([(self.media.to_owned(), content)]);
        if let Some(event) = &self.event {
            media.insert("text/event-stream".to_owned(), json!({"schema": event}));
        }
        let headers = EVERY.iter().chain(&self.headers);
        json!({"description": self.text, "headers": header_refs(headers), "content": media})
    }
}

/// The `paths` object: endpoints by path and method.
pub(super) fn paths(endpoints: &[Endpoint]) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in endpoints {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        if let Some(methods) = path.as_object_mut() {
            methods.insert(endpoint.method.to_owned(), endpoint.render());
        }
    }
    Value::Object(paths)
}

impl Endpoint {
    fn render(&self) -> Value {
        let mut answers: Map<String, Value> = Map::new();
        for answer in &self.answers {
            answers.insert(answer.status.to_string(), answer.render());
        }
        let mut statuses: Vec<u16> = self.errors.iter().map(|code| code.status()).collect();
        statuses.sort_unstable();
        statuses.dedup();
        for status in statuses {
            let mut codes: Vec<Code> =
                self.errors.iter().copied().filter(|code| code.status() == status).collect();
            // In the order of the error table, whatever order the endpoint lists them in.
            codes.sort_unstable();
            let error = errors(&codes, self.is_keyed);
            answers
                .entry(status.to_string())
                // The endpoint's own answer keeps its words and its example.
                .and_modify(|answer| add_shape(answer, &error))
                .or_insert(error);
        }
        let mut operation = json!({
            "operationId": self.id,
            "summary": self.summary,
            "description": self.text,
            "parameters": self.parameters,
            "responses": answers,
            "security": if self.is_secured { json!([{"apiKey": []}]) } else { json!([]) },
        });
        if let (Some(operation), Some((shape, example))) = (operation.as_object_mut(), &self.body) {
            let content = json!({"application/json": {"schema": named(shape), "example": example}});
            operation
                .insert("requestBody".to_owned(), json!({"required": true, "content": content}));
        }
        operation
    }
}

/// Adds the shape of an error to an answer of the same status: one of the two bodies comes.
fn add_shape(answer: &mut Value, error: &Value) {
    const SCHEMA: &str = "/content/application~1json/schema";
    let (Some(own), Some(other)) = (answer.pointer(SCHEMA), error.pointer(SCHEMA)) else { return };
    let either = json!({"anyOf": [own, other]});
    if let Some(schema) = answer.pointer_mut(SCHEMA) {
        *schema = either;
    }
}

/// The errors of one status: their codes, the cause of each, and an example body of each.
fn errors(codes: &[Code], is_keyed: bool) -> Value {
    let labels: Vec<&str> = codes.iter().map(|code| code.label()).collect();
    let causes: Vec<String> =
        codes.iter().map(|code| format!("`{}`: {}", code.label(), code.cause())).collect();
    let examples: Map<String, Value> = codes
        .iter()
        .map(|code| (code.label().to_owned(), json!({"value": example(*code)})))
        .collect();
    // `allOf` with the shape of every error: this narrows its code to those of the status.
    let named_here = json!({"properties": {"error": {"properties": {"code": {"enum": labels}}}}});
    let mut headers = EVERY.to_vec();
    headers.push("x-should-retry");
    if codes.iter().any(|code| code.retry() || code.may_pass()) {
        headers.extend(["retry-after", "retry-after-ms"]);
    }
    if is_keyed && codes.iter().any(|code| is_told_by_key(*code)) {
        headers.push("idempotent-replayed");
    }
    if is_keyed && codes.iter().any(|code| is_counted(*code)) {
        headers.extend(RATES);
    }
    if codes.contains(&Code::MethodNotAllowed) {
        headers.push("allow");
    }
    json!({
        "description": causes.join("\n\n"),
        "headers": header_refs(headers.iter()),
        "content": {"application/json": {
            "schema": {"allOf": [named("Error"), named_here]},
            "examples": examples,
        }},
    })
}

/// True for a code that may come after the idempotency key was read.
const fn is_told_by_key(code: Code) -> bool {
    !matches!(
        code,
        Code::IdempotencyKeyRequired
            | Code::IdempotencyKeyMalformed
            | Code::InvalidApiKey
            | Code::MethodNotAllowed
            | Code::RequestTimeout
            | Code::RequestTooLarge
            | Code::UnsupportedMediaType
            | Code::HeadersTooLarge
    )
}

/// True for a code that may end a request that was counted, or one that a limit refused.
const fn is_counted(code: Code) -> bool {
    matches!(
        code,
        Code::ContextLengthExceeded
            | Code::SpendLimitExceeded
            | Code::ProviderRefused
            | Code::RateLimitExceeded
            | Code::InternalError
            | Code::OutcomeUnknown
            | Code::UpstreamUnavailable
            | Code::StorageUnavailable
    )
}

fn example(code: Code) -> Value {
    let operation_id = match code.key_effect() {
        KeyEffect::Untouched | KeyEffect::Unsure => None,
        KeyEffect::Bound | KeyEffect::Final => Some(super::EXAMPLE_OPERATION),
    };
    let body = ErrorBody { operation_id, ..ErrorBody::new(code) }.render();
    serde_json::from_slice(&body).unwrap_or_default()
}

fn header_refs<'a>(names: impl Iterator<Item = &'a &'static str>) -> Value {
    let refs = names
        .map(|name| ((*name).to_owned(), json!({"$ref": format!("#/components/headers/{name}")})));
    Value::Object(refs.collect())
}

/// The answer to a preflight. It belongs to no path: all of them have it, and only where the operator
/// lists origins.
pub(super) fn preflight() -> Value {
    let [_request_id, _key, cors @ ..] = &EVERY;
    json!({
        "description": "204 of `OPTIONS` where origins are listed; another origin is told nothing but `vary`.",
        "headers": header_refs(cors.iter().chain(&PREFLIGHT)),
    })
}

const RESET: &str = "Until the next minute begins, as `20ms`, `1.5s` or `1m0s`.";

/// The headers of answers, by name.
pub(super) fn headers() -> Value {
    let header = |schema: Value, text: &str| json!({"description": text, "schema": schema});
    let flag = || json!({"type": "string", "enum": ["true", "false"]});
    let uuid = || json!({"type": "string", "format": "uuid"});
    json!({
        "x-request-id": header(uuid(), "Names this answer in the operator's log."),
        "idempotency-key": header(uuid(), "The echo of a well-formed key."),
        "idempotent-replayed": header(flag(), "Whether an earlier request had bound the key."),
        "x-should-retry": header(
            flag(), "Whether the same request with the same key may fare better."),
        "retry-after": header(
            json!({"type": "integer", "minimum": 1, "maximum": 60}), "Seconds; where a retry helps."),
        "retry-after-ms": header(
            json!({"type": "integer", "minimum": 1, "maximum": 60_000}), "The same in milliseconds."),
        "x-ratelimit-limit-requests": header(natural(), "Requests that the API key may run a minute."),
        "x-ratelimit-remaining-requests": header(natural(), "Requests that are left of this minute's."),
        "x-ratelimit-reset-requests": header(string(), RESET),
        "x-ratelimit-limit-tokens": header(natural(), "Tokens that the API key may use a minute."),
        "x-ratelimit-remaining-tokens": header(natural(), "Tokens that are left of this minute's."),
        "x-ratelimit-reset-tokens": header(string(), RESET),
        "cache-control": header(string(), "`no-cache`, of a stream."),
        "x-accel-buffering": header(string(), "`no`, of a stream: for proxies."),
        "access-control-allow-origin": header(string(), "The request's `Origin`, where it is listed."),
        "access-control-expose-headers": header(
            string(), "The headers that scripts may read, where the origin is listed."),
        "vary": header(string(), "`Origin`, of every answer where any origin is listed."),
        "access-control-allow-methods": header(string(), "`GET, HEAD, POST`."),
        "access-control-allow-headers": header(string(), "The headers that the preflight asks for."),
        "access-control-max-age": header(natural(), "Seconds for which a browser need not ask again."),
        "allow": header(string(), "The methods that the path takes."),
        "content-security-policy": header(string(), "What the page may do: have its own style."),
        "x-content-type-options": header(string(), "`nosniff`."),
        "referrer-policy": header(string(), "`no-referrer`."),
    })
}

/// A parameter of a path.
pub(super) fn in_path(name: &str, schema: Value, text: &str) -> Value {
    let mut parameter = json!({"name": name, "in": "path", "required": true});
    add(&mut parameter, schema, text);
    parameter
}

/// A parameter of a query.
pub(super) fn in_query(name: &str, required: bool, schema: Value, text: &str) -> Value {
    let mut parameter = json!({"name": name, "in": "query", "required": required});
    add(&mut parameter, schema, text);
    parameter
}

/// A header of a request.
pub(super) fn in_header(name: &str, required: bool, schema: Value, text: &str) -> Value {
    let mut parameter = json!({"name": name, "in": "header", "required": required});
    add(&mut parameter, schema, text);
    parameter
}

fn add(parameter: &mut Value, schema: Value, text: &str) {
    let whole = described(parameter.take(), text);
    *parameter = super::shape::with(whole, "schema", schema);
}
