//! Messages of OTLP 1.x: the members that spans set here, by the tags of OpenTelemetry's protobuf files for
//! `trace`, `common`, `resource` and `collector.trace`. A test compares their bytes with those of the generated
//! messages in `opentelemetry-proto`, which would bring OpenTelemetry's SDK into the program.

use prost::{Message, Oneof};

/// Kind of a span: a request that is served.
pub(super) const SERVER: i32 = 2;
/// Kind of a span: a request to another server.
pub(super) const CLIENT: i32 = 3;
/// Code of a status: the span has failed.
pub(super) const ERROR: i32 = 2;

/// Request to a collector.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) resource_spans: Vec<ResourceSpans>,
}

/// Answer of a collector.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub(super) partial_success: Option<PartialSuccess>,
}

/// Rejection of some spans of a request.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(super) rejected_spans: i64,
}

/// Spans of one process.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) resource: Option<ResourceAttributes>,
    #[prost(message, repeated, tag = "2")]
    pub(super) scope_spans: Vec<ScopeSpans>,
    #[prost(string, tag = "3")]
    pub(super) schema_url: String,
}

/// Attributes of a process.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ResourceAttributes {
    #[prost(message, repeated, tag = "1")]
    pub(super) attributes: Vec<KeyValue>,
}

/// Spans of one library.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(super) scope: Option<OtlpScope>,
    #[prost(message, repeated, tag = "2")]
    pub(super) spans: Vec<OtlpSpan>,
    #[prost(string, tag = "3")]
    pub(super) schema_url: String,
}

/// Library that makes spans.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpScope {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) version: String,
}

/// Span.
#[derive(Clone, PartialEq, Message)]
pub struct OtlpSpan {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(super) name: String,
    #[prost(int32, tag = "6")]
    pub(super) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(super) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(super) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(super) attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "11")]
    pub(super) events: Vec<OtlpEvent>,
    #[prost(message, repeated, tag = "13")]
    pub(super) links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    pub(super) status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub(super) flags: u32,
}

/// Moment within a span.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OtlpEvent {
    #[prost(fixed64, tag = "1")]
    pub(super) time_unix_nano: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "3")]
    pub(super) attributes: Vec<KeyValue>,
}

/// Relation to a span of another trace.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Link {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) span_id: Vec<u8>,
    #[prost(fixed32, tag = "6")]
    pub(super) flags: u32,
}

/// Result of a span.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Status {
    #[prost(int32, tag = "3")]
    pub(super) code: i32,
}

/// Attribute.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(super) key: String,
    #[prost(message, optional, tag = "2")]
    pub(super) value: Option<AnyValue>,
}

/// Value of an attribute.
#[derive(Clone, PartialEq, Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4, 5")]
    pub(super) value: Option<Value>,
}

/// Value of an attribute, by its type.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    Int(i64),
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(message, tag = "5")]
    Array(ArrayValue),
}

/// Values of an attribute that has several.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ArrayValue {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<AnyValue>,
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::trace::v1 as generated;
    use prost::Message as _;

    use super::*;

    fn pair(value: Value) -> KeyValue {
        KeyValue { key: "k".to_owned(), value: Some(AnyValue { value: Some(value) }) }
    }

    /// A request in which every member of every message has a value that is not its default.
    fn request() -> ExportRequest {
        let text = || pair(Value::Text("text".to_owned()));
        let values = [Value::Text("a".to_owned()), Value::Int(3)];
        let values = values.map(|value| AnyValue { value: Some(value) }).to_vec();
        let span = OtlpSpan {
            trace_id: vec![1; 16],
            span_id: vec![2; 8],
            parent_span_id: vec![3; 8],
            name: "span".to_owned(),
            kind: CLIENT,
            start_time_unix_nano: 4,
            end_time_unix_nano: 5,
            attributes: vec![
                text(),
                pair(Value::Bool(true)),
                pair(Value::Int(-6)),
                pair(Value::Double(0.5)),
                pair(Value::Array(ArrayValue { values })),
            ],
            events: vec![OtlpEvent {
                time_unix_nano: 7,
                name: "event".to_owned(),
                attributes: vec![text()],
            }],
            links: vec![Link { trace_id: vec![8; 16], span_id: vec![9; 8], flags: 0x301 }],
            status: Some(Status { code: ERROR }),
            flags: 0x101,
        };
        let scope = OtlpScope { name: "scope".to_owned(), version: "1".to_owned() };
        let spans =
            ScopeSpans { scope: Some(scope), spans: vec![span], schema_url: "a".to_owned() };
        ExportRequest {
            resource_spans: vec![ResourceSpans {
                resource: Some(ResourceAttributes { attributes: vec![text()] }),
                scope_spans: vec![spans],
                schema_url: "b".to_owned(),
            }],
        }
    }

    #[test]
    fn bytes_are_those_of_the_generated_messages() {
        let bytes = request().encode_to_vec();
        let theirs = generated::ExportTraceServiceRequest::decode(&*bytes).unwrap();
        // A tag that the generated messages lack would be skipped, and missing here.
        assert_eq!(theirs.encode_to_vec(), bytes);
        assert_eq!(ExportRequest::decode(&*theirs.encode_to_vec()).unwrap(), request());
        // Members of one type are told apart by their names.
        let all = &theirs.resource_spans[0];
        let (scope, span) = (&all.scope_spans[0], &all.scope_spans[0].spans[0]);
        assert_eq!([&*all.schema_url, &*scope.schema_url], ["b", "a"]);
        let library = scope.scope.as_ref().unwrap();
        assert_eq!([&*library.name, &*library.version], ["scope", "1"]);
        assert_eq!(
            [&span.trace_id, &span.span_id, &span.parent_span_id],
            [&vec![1; 16], &vec![2; 8], &vec![3; 8]]
        );
        assert_eq!((span.start_time_unix_nano, span.end_time_unix_nano, span.flags), (4, 5, 0x101));
        assert_eq!((span.events[0].time_unix_nano, &*span.events[0].name), (7, "event"));
        assert_eq!((span.links[0].flags, span.links[0].span_id.len()), (0x301, 8));
        assert_eq!((span.kind().as_str_name(), span.attributes.len()), ("SPAN_KIND_CLIENT", 5));
        let code = span.status.as_ref().unwrap().code();
        assert_eq!(code.as_str_name(), "STATUS_CODE_ERROR");
    }

    #[test]
    fn a_partial_success_is_read() {
        let partial = generated::ExportTracePartialSuccess {
            rejected_spans: 3,
            error_message: "too old".to_owned(),
        };
        let answer = generated::ExportTraceServiceResponse { partial_success: Some(partial) };
        let read = ExportResponse::decode(&*answer.encode_to_vec()).unwrap();
        assert_eq!(read.partial_success, Some(PartialSuccess { rejected_spans: 3 }));
    }
}
