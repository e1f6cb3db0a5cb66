//! Spans as OTLP has them, built of records.
//!
//! ```text
//! ServerRecord, RunRecord ─▶ SERVER span, with the events of the hold and the settlement
//! CallRecord, RunRecord   ─▶ CLIENT span, a child of it, for each call to a provider
//! ```
//!
//! A span is built once, after its end, so that an unsampled request has no cost but its records. Moments are of the
//! monotonic clock, and become times of the day by one reading of the wall clock at the request's beginning.
//!
//! Never: a path that a caller wrote. It is the route with names in place of the variable parts, or `REDACTED`.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use uuid::Uuid;

use super::attribute;
use super::context::{SpanContext, SpanId};
use super::otlp::{self, AnyValue, ArrayValue, KeyValue, Link, OtlpEvent, OtlpSpan, Status, Value};
use super::record::{CallRecord, OperationRecord, RunRecord, ServerRecord};

/// Flag of a context: it was sampled.
const SAMPLED: u32 = 0x1;
/// Flag of a context: it is known whether it came from another process.
const KNOWS_REMOTE: u32 = 0x100;
/// Flag of a context: it came from another process.
const REMOTE: u32 = 0x200;
/// Outcome of an operation that has an answer.
const COMPLETED: &str = "completed";
/// Beginning of a completion's id, as callers see it; the operation's id follows without hyphens.
const COMPLETION_ID: &str = "chatcmpl_";
/// Path of a request without a route, whose own may hold anything.
const NO_PATH: &str = "REDACTED";

/// The beginning of a request by both clocks: moments of its run become times of the day by it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanClock {
    wall_nanos: u64,
    began: Instant,
}

impl SpanClock {
    pub(super) fn start() -> Self {
        // Read once: a wall clock that is set back would else let a span end before it began.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { wall_nanos: nanos(wall.as_nanos()), began: Instant::now() }
    }

    fn at(self, moment: Instant) -> u64 {
        let since = moment.saturating_duration_since(self.began);
        self.wall_nanos.saturating_add(nanos(since.as_nanos()))
    }
}

fn nanos(count: u128) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Common part of the spans of a request: ids, parent, links, and the clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanBase {
    pub(super) own: SpanContext,
    pub(super) parent: Option<SpanId>,
    pub(super) caller: Option<SpanContext>,
    pub(super) followed: Option<SpanContext>,
    pub(super) clock: SpanClock,
}

impl SpanBase {
    /// Span of the request; with the hold and the settlement if it has started the run.
    pub(super) fn server(&self, server: &ServerRecord, run: Option<&RunRecord>) -> OtlpSpan {
        let mut attributes = Attributes::default();
        let path = server.route.unwrap_or(NO_PATH);
        attributes.text(attribute::METHOD, server.method);
        attributes.text_if(attribute::ROUTE, server.route);
        attributes.text(attribute::PATH, path);
        attributes.text(attribute::SCHEME, "http");
        // A dual-stack socket has IPv4 clients as `::ffff:…`: one spelling for one address.
        attributes.text(attribute::CLIENT, server.client.to_canonical().to_string());
        if let Some(status) = server.status {
            attributes.int(attribute::STATUS, status.into());
        }
        // A broken stream has the status of its head; a 4xx is the caller's mistake, and no error of a server.
        let has_failed = server.error.is_some()
            && server.status.is_none_or(|status| !(400..500).contains(&status));
        attributes.text_if(attribute::ERROR_TYPE, server.error.filter(|_code| has_failed));
        // With a 4xx, too, although its span has not failed.
        attributes.text_if(attribute::ERROR_CODE, server.error);
        // The run knows better if the client has gone before its end.
        let operation = run.map_or(&server.operation, |run| &run.operation);
        attributes.operation(operation, server.replayed);
        // A caller who hung up got no answer with a route: the run's last call has it.
        let last = run.and_then(|run| run.calls.last()).map(|call| &*call.route);
        attributes.text_if(attribute::PROVIDER_ROUTE, server.provider_route.as_deref().or(last));
        if server.hung_up {
            attributes.bool(attribute::HUNG_UP, true);
        }
        let name = match server.route {
            Some(route) => format!("{} {route}", server.method),
            None => server.method.to_owned(),
        };
        // The followed run is of this process, and the caller's span of another one.
        let links = [(self.caller, REMOTE), (self.followed, 0)];
        let links = links.into_iter().filter_map(|(to, flags)| Some(link(to?, flags)));
        let remote = if self.parent.is_some() { REMOTE } else { 0 };
        OtlpSpan {
            parent_span_id: self.parent.map_or_else(Vec::new, |SpanId(id)| id.to_vec()),
            flags: flags(self.own) | remote,
            events: run.map_or_else(Vec::new, |run| self.run_events(run)),
            links: links.collect(),
            status: status(has_failed),
            start_time_unix_nano: self.clock.wall_nanos,
            end_time_unix_nano: self.clock.at(server.ended),
            ..self.span(self.own.span, name, otlp::SERVER, attributes)
        }
    }

    /// Span of a call, a child of its request's.
    pub(super) fn client(&self, call: &CallRecord, run: &RunRecord) -> OtlpSpan {
        let mut attributes = Attributes::default();
        attributes.text(attribute::GEN_AI_OPERATION, "chat");
        attributes.text(attribute::GEN_AI_PROVIDER, call.system);
        attributes.text(attribute::REQUEST_MODEL, &*call.model);
        if call.is_streamed {
            attributes.bool(attribute::REQUEST_STREAM, true);
        }
        // Only what is completed has an answer that callers see: not a result that came too late.
        if !call.has_failed && run.operation.outcome == Some(COMPLETED) {
            let id = run.operation.id.map(|id| format!("{COMPLETION_ID}{}", id.simple()));
            attributes.text_if(attribute::RESPONSE_ID, id.as_deref());
            attributes.text_if(attribute::RESPONSE_MODEL, run.operation.model.as_deref());
        }
        if !call.finish_reasons.is_empty() {
            attributes.texts(attribute::FINISH_REASONS, &call.finish_reasons);
        }
        if let (true, Some(sent), Some(first)) =
            (call.is_streamed, call.dispatched, call.first_chunk)
        {
            let took = first.saturating_duration_since(sent);
            attributes.add(attribute::FIRST_CHUNK_TIME, Value::Double(took.as_secs_f64()));
        }
        if let Some(tokens) = call.tokens {
            attributes.count(attribute::INPUT_TOKENS, tokens.input);
            attributes.count(attribute::CACHE_READ, tokens.cache_read);
            attributes.count(attribute::CACHE_CREATION, tokens.cache_creation);
            attributes.count(attribute::OUTPUT_TOKENS, tokens.output);
            attributes.count(attribute::REASONING_TOKENS, tokens.reasoning);
        }
        if call.has_failed {
            attributes.text(attribute::ERROR_TYPE, &*call.class);
        }
        attributes.text(attribute::CLASS, &*call.class);
        // Not replayed: a replay makes no call.
        attributes.operation(&run.operation, false);
        attributes.text(attribute::PROVIDER_ROUTE, &*call.route);
        let moments =
            [(attribute::DISPATCH, call.dispatched), (attribute::FIRST_CHUNK, call.first_chunk)];
        let events =
            moments.into_iter().filter_map(|(name, at)| Some(self.event(name, at?, Vec::new())));
        let name = format!("chat {}", call.model);
        let SpanId(parent) = self.own.span;
        OtlpSpan {
            parent_span_id: parent.to_vec(),
            flags: flags(self.own),
            events: events.collect(),
            status: status(call.has_failed),
            start_time_unix_nano: self.clock.at(call.began),
            end_time_unix_nano: self.clock.at(call.ended),
            ..self.span(new_id(), name, otlp::CLIENT, attributes)
        }
    }

    fn span(&self, id: SpanId, name: String, kind: i32, attributes: Attributes) -> OtlpSpan {
        OtlpSpan {
            trace_id: self.own.trace.0.to_vec(),
            span_id: id.0.to_vec(),
            name,
            kind,
            attributes: attributes.0,
            ..OtlpSpan::default()
        }
    }

    fn run_events(&self, run: &RunRecord) -> Vec<OtlpEvent> {
        let amount = |micros: Option<i64>| {
            let mut attributes = Attributes::default();
            if let Some(micros) = micros {
                attributes.int(attribute::MICROS, micros);
                attributes.text(attribute::CURRENCY, run.currency.as_str());
            }
            attributes.0
        };
        let (held, hold) = run.hold;
        let (settled, charge) = run.settle;
        vec![
            self.event(attribute::HOLD, held, amount(Some(hold))),
            self.event(attribute::SETTLE, settled, amount(charge)),
        ]
    }

    fn event(&self, name: &str, at: Instant, attributes: Vec<KeyValue>) -> OtlpEvent {
        let (time_unix_nano, name) = (self.clock.at(at), name.to_owned());
        OtlpEvent { time_unix_nano, name, attributes }
    }
}

fn new_id() -> SpanId {
    let mut id = [0; 8];
    // The first half: its version is never zero.
    id.iter_mut().zip(Uuid::new_v4().as_bytes()).for_each(|(own, random)| *own = *random);
    SpanId(id)
}

fn flags(context: SpanContext) -> u32 {
    KNOWS_REMOTE | if context.is_sampled { SAMPLED } else { 0 }
}

fn link(to: SpanContext, remote: u32) -> Link {
    let (trace_id, span_id) = (to.trace.0.to_vec(), to.span.0.to_vec());
    Link { trace_id, span_id, flags: flags(to) | remote }
}

fn status(has_failed: bool) -> Option<Status> {
    has_failed.then_some(Status { code: otlp::ERROR })
}

/// Attributes of a span that is being built.
#[derive(Default)]
struct Attributes(Vec<KeyValue>);

impl Attributes {
    fn add(&mut self, name: &'static str, value: Value) {
        self.0.push(pair(name, value));
    }

    fn text(&mut self, name: &'static str, value: impl Into<String>) {
        self.add(name, Value::Text(value.into()));
    }

    fn text_if(&mut self, name: &'static str, value: Option<&str>) {
        if let Some(value) = value {
            self.text(name, value);
        }
    }

    fn id_if(&mut self, name: &'static str, id: Option<Uuid>) {
        if let Some(id) = id {
            self.text(name, id.to_string());
        }
    }

    fn texts(&mut self, name: &'static str, values: &[&'static str]) {
        let any = |text: &&str| AnyValue { value: Some(Value::Text((*text).to_owned())) };
        let values = values.iter().map(any).collect();
        self.add(name, Value::Array(ArrayValue { values }));
    }

    fn int(&mut self, name: &'static str, value: i64) {
        self.add(name, Value::Int(value));
    }

    fn count(&mut self, name: &'static str, value: u64) {
        self.int(name, i64::try_from(value).unwrap_or(i64::MAX));
    }

    fn bool(&mut self, name: &'static str, value: bool) {
        self.add(name, Value::Bool(value));
    }

    fn operation(&mut self, operation: &OperationRecord, replayed: bool) {
        self.text_if(attribute::MODEL, operation.model.as_deref());
        self.id_if(attribute::OPERATION_ID, operation.id);
        self.text_if(attribute::SITUATION, operation.situation);
        self.text_if(attribute::OUTCOME, operation.outcome);
        self.bool(attribute::REPLAYED, replayed);
    }
}

/// A name with its value.
pub(super) fn pair(name: &str, value: Value) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}
