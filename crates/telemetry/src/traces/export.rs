//! Requests to a collector: spans of a batch under the resource that made them, in protobuf.

use prost::Message as _;

use super::otlp::{
    ExportRequest, ExportResponse, KeyValue, OtlpScope, OtlpSpan, ResourceAttributes,
    ResourceSpans, ScopeSpans, Value,
};
use super::spans::pair;

/// Version of the conventions that names are of.
const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.42.0";

/// The process that makes spans.
#[derive(Debug, Clone)]
pub struct Resource {
    attributes: Vec<KeyValue>,
    version: &'static str,
}

impl Resource {
    /// A process of this version with these attributes; of two with one name the later counts.
    #[must_use]
    pub fn new(
        version: &'static str,
        attributes: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let fixed = [
            ("service.version", version),
            ("telemetry.sdk.name", "holdfast"),
            ("telemetry.sdk.language", "rust"),
            ("telemetry.sdk.version", version),
        ];
        let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut all: Vec<KeyValue> = Vec::new();
        for (name, value) in fixed.into_iter().chain(attributes) {
            // OTLP allows each name once in a resource.
            all.retain(|known| known.key != name);
            all.push(pair(&name, Value::Text(value)));
        }
        Self { attributes: all, version }
    }
}

/// Body of a request with these spans, which it takes out of the batch.
#[must_use]
pub fn encode(resource: &Resource, batch: &mut Vec<OtlpSpan>) -> Vec<u8> {
    let version = resource.version.to_owned();
    let scope = OtlpScope { name: "holdfast".to_owned(), version };
    let spans = std::mem::take(batch);
    let scope = ScopeSpans { scope: Some(scope), spans, schema_url: SCHEMA_URL.to_owned() };
    let attributes = resource.attributes.clone();
    let of = ResourceSpans {
        resource: Some(ResourceAttributes { attributes }),
        scope_spans: vec![scope],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportRequest { resource_spans: vec![of] }.encode_to_vec()
}

/// Number of spans that a collector's answer rejects. An answer that cannot be read rejects none.
#[must_use]
pub fn rejected(answer: &[u8]) -> usize {
    let answer = ExportResponse::decode(answer).ok();
    let partial = answer.and_then(|answer| answer.partial_success);
    partial.and_then(|partial| usize::try_from(partial.rejected_spans).ok()).unwrap_or(0)
}
