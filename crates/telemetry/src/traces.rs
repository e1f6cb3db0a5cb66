//! Traces: a SERVER span for each request and a CLIENT span for each call to a provider, in OpenTelemetry's
//! conventions, encoded for OTLP.
//!
//! ```text
//! head read ─▶ RequestTrace: ids drawn, sampling decided
//!                 ├─ http: ServerRecord, when the answer is written or its client has gone
//!                 ├─ engine: RunRecord, when the ending of the run that it started is committed
//!                 └─ the last of both drops it ─▶ spans ─▶ bounded queue ─▶ exporter
//! ```
//!
//! A span is built once, from moments that the request and its run have kept anyway: no span is opened, none
//! follows a task, and an unsampled request costs a branch at each of the places above. Spans of an unusual run
//! are built even if the request is not sampled: its outcome is unknown, its result came too late or could not
//! be settled, or it cost more than was held.
//!
//! - The queue never waits: what finds no room is lost, and counted ([`SpanResult`]).
//! - The span of a request whose client hung up waits for its run, so that it has the settlement.
//! - Never: a word of a prompt or an answer, a credential, or any other text that a caller chose. Two are
//!   excepted: the ids of a caller's trace, which are numbers, and the model of a refused request, if it is
//!   spelled as a public model id.

mod attribute;
mod context;
mod export;
mod otlp;
mod queue;
mod record;
mod request_trace;
mod spans;
mod tracer;

pub use self::attribute::{ATTRIBUTES, Attribute, EVENTS};
pub use self::context::{SpanContext, TraceId};
pub use self::export::{Resource, encode, rejected};
pub use self::otlp::OtlpSpan;
pub use self::queue::{SpanQueue, SpanResult, register_results};
pub use self::record::{CallRecord, OperationRecord, RunRecord, ServerRecord, TokenCounts};
pub use self::request_trace::RequestTrace;
pub use self::tracer::{ParentPolicy, Sampling, Tracer};
