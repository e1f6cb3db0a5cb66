//! A collector that decodes what it gets, a gateway that exports to it, and what is looked at in spans.

use std::collections::BTreeMap;

use holdfast_telemetry::traces::{ATTRIBUTES, EVENTS};
use holdfast_tests::{
    Account, Answer, Config, Gateway, Reply, Request, Site, Streaming, Upstream, request_key,
};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::check::until;

const CONVENTIONS: &str = include_str!("../../../../crates/telemetry/tests/conventions-1.42.0.txt");
pub(crate) const CALLER_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
pub(crate) const CALLER_SPAN: &str = "b7ad6b7169203331";
/// Sent with every batch, and to be seen nowhere else.
pub(crate) const HEADER_SECRET: &str = "otlp-header-secret-4713";

pub(crate) fn traceparent(flags: &str) -> String {
    format!("00-{CALLER_TRACE}-{CALLER_SPAN}-{flags}")
}

/// A collector that takes everything.
pub(crate) struct Collector(pub(crate) Upstream);

impl Collector {
    pub(crate) fn start() -> Self {
        Self(Upstream::start(Reply::Send(200, String::new())))
    }

    pub(crate) fn endpoint(&self) -> String {
        self.0.base_url().trim_end_matches("/v1").to_owned()
    }

    pub(crate) fn batches(&self) -> Vec<ExportTraceServiceRequest> {
        let decode = |bytes: &[u8]| ExportTraceServiceRequest::decode(bytes).unwrap();
        self.0.arrived().iter().map(|arrived| decode(&arrived.bytes)).collect()
    }

    pub(crate) fn spans(&self) -> Vec<Span> {
        let of = self.batches().into_iter().flat_map(|batch| batch.resource_spans);
        of.flat_map(|of| of.scope_spans).flat_map(|of| of.spans).collect()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, spans: usize) -> Vec<Span> {
        until("spans are exported", || Some(self.spans()).filter(|all| all.len() >= spans))
    }

    pub(crate) fn holds(&self, text: &str) -> bool {
        let is_in = |bytes: &[u8]| bytes.windows(text.len()).any(|it| it == text.as_bytes());
        self.0.arrived().iter().any(|arrived| is_in(&arrived.bytes))
    }
}

pub(crate) struct World {
    pub(crate) upstream: Upstream,
    pub(crate) site: Site,
    pub(crate) account: Account,
    pub(crate) gateway: Gateway,
}

/// A gateway that exports to this endpoint, with these variables besides.
pub(crate) fn world_at(endpoint: &str, variables: &[(&str, &str)]) -> World {
    let upstream = Upstream::start(Reply::as_wanted(
        Streaming::saying(&["Good ", "day"]).reply(),
        Reply::saying("Good day"),
    ));
    let config = Config::upstream(&upstream)
        .set("providers.sim", "kind", "\"simulated\"")
        .model("holdfast/sim-1", "sim", "sim-1", "input = 2_000_000, output = 4_000_000")
        .set("telemetry", "endpoint", &format!("\"{endpoint}\""))
        .set("telemetry.headers", "x-collector-key", &format!("\"{HEADER_SECRET}\""));
    let (mut site, account) = Site::funded(&config);
    for (name, value) in variables {
        site.set_env(name, *value);
    }
    let gateway = site.serve();
    World { upstream, site, account, gateway }
}

pub(crate) fn world(collector: &Collector, variables: &[(&str, &str)]) -> World {
    world_at(&collector.endpoint(), variables)
}

impl World {
    pub(crate) fn completion(&self, body: String) -> Request {
        Request::completion(&self.account.key, &request_key(), body)
    }

    pub(crate) fn send(&self, request: &Request) -> Answer {
        request.send(self.gateway.address())
    }

    /// Ends the gateway, which exports what waits.
    pub(crate) fn end(self) -> (Upstream, Site) {
        self.gateway.terminate();
        assert!(self.gateway.wait().success());
        (self.upstream, self.site)
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn named<'s>(spans: &'s [Span], name: &str) -> Vec<&'s Span> {
    spans.iter().filter(|span| span.name == name).collect()
}

pub(crate) fn only<'s>(spans: &'s [Span], name: &str) -> &'s Span {
    let found = named(spans, name);
    assert_eq!(found.len(), 1, "{name} in {spans:?}");
    found[0]
}

pub(crate) fn server(spans: &[Span]) -> &Span {
    only(spans, "POST /v1/chat/completions")
}

/// Attributes as texts.
pub(crate) fn texts(attributes: &[KeyValue]) -> BTreeMap<&str, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::BoolValue(flag) => flag.to_string(),
        Value::IntValue(count) => count.to_string(),
        Value::ArrayValue(values) => format!("{} values", values.values.len()),
        Value::DoubleValue(number) => number.to_string(),
        other @ (Value::KvlistValue(_) | Value::BytesValue(_) | Value::StringValueStrindex(_)) => {
            panic!("{other:?} is sent nowhere")
        }
    };
    let of =
        |it: &KeyValue| text(it.value.as_ref().and_then(|value| value.value.as_ref()).unwrap());
    let all: BTreeMap<_, _> = attributes.iter().map(|it| (it.key.as_str(), of(it))).collect();
    assert_eq!(all.len(), attributes.len(), "no name twice");
    all
}

pub(crate) fn events(span: &Span) -> Vec<&str> {
    span.events.iter().map(|event| event.name.as_str()).collect()
}

pub(crate) fn trace_of(answer: &Answer) -> String {
    answer.header("x-request-id").unwrap().replace('-', "")
}

/// Each name is of the conventions or Holdfast's own, and in the manual's table.
pub(crate) fn check_names(collector: &Collector) {
    let is_known = |name: &str| CONVENTIONS.lines().any(|line| line == name);
    for batch in collector.batches() {
        for of in batch.resource_spans {
            let resource = of.resource.unwrap();
            resource.attributes.iter().for_each(|it| assert!(is_known(&it.key), "{}", it.key));
            for span in of.scope_spans.into_iter().flat_map(|of| of.spans) {
                let own = span.attributes.iter();
                for it in own.chain(span.events.iter().flat_map(|event| &event.attributes)) {
                    assert!(is_known(&it.key) || it.key.starts_with("holdfast."), "{}", it.key);
                    assert!(ATTRIBUTES.iter().any(|row| row.name == it.key), "{}", it.key);
                }
                for event in &span.events {
                    assert!(EVENTS.iter().any(|(name, ..)| *name == event.name), "{}", event.name);
                }
            }
        }
    }
}
