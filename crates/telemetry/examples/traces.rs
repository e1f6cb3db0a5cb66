//! Prints `docs/reference/traces.md` from the table of attributes. `cargo xtask docs` writes it; a test compares.

use std::io::{self, Write};

use holdfast_telemetry::traces::{ATTRIBUTES, Attribute, EVENTS};

const INTRODUCTION: &str = r#"# Traces

<!-- Written by `cargo xtask docs` from crates/telemetry: change it there. -->

For operators: the settings, spans, attributes and events of the OpenTelemetry traces that the gateway exports over OTLP
by HTTP with protobuf. [Export traces](../how-to/export-traces.md) has the steps. Traces are off until an endpoint is
set:

```toml
[telemetry]
endpoint = "http://localhost:4318"                     # spans go to /v1/traces below it
ratio = 0.01                                           # share of requests; default 1
parents = "link"                                       # or "trust"; default "link"
timeout = "10s"                                        # for one batch; the default
headers = { authorization = "Bearer ${OTLP_TOKEN}" }
resource = { "deployment.environment.name" = "production" }
```

The table takes effect at the start; a reload keeps the running exporter, and logs that. The variables of OpenTelemetry
override it:

| variable | setting |
|---|---|
| `OTEL_SDK_DISABLED` | `true`: off, with any other setting |
| `OTEL_TRACES_EXPORTER` | `none`: off; `otlp`: on, without an endpoint at `http://localhost:4318` |
| `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` | the URL for spans, unchanged |
| `OTEL_EXPORTER_OTLP_ENDPOINT` | `endpoint` |
| `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL`, `OTEL_EXPORTER_OTLP_PROTOCOL` | `http/protobuf`; any other, such as `grpc`, is refused at the start |
| `OTEL_EXPORTER_OTLP_TRACES_HEADERS`, `OTEL_EXPORTER_OTLP_HEADERS` | `headers`, instead of the file's |
| `OTEL_EXPORTER_OTLP_TRACES_TIMEOUT`, `OTEL_EXPORTER_OTLP_TIMEOUT` | `timeout`, in milliseconds |
| `OTEL_TRACES_SAMPLER`, `OTEL_TRACES_SAMPLER_ARG` | `ratio`; a `parentbased_` sampler means `parents = "trust"`, any other `"link"` |
| `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES` | `resource`, added to the file's; `service.name` is `holdfast` by default |

Other variables are not read. `https://` endpoints are verified like providers, and the operator's proxies are used.

## Spans

Each request of the public API, except probes and preflights of browsers, has a SERVER span,
`POST /v1/chat/completions`, by the stable conventions for HTTP; those of the administration, its pages and other
gateways have none. Each call to a provider has a CLIENT span below the span of the request that started the run,
`chat MODEL`, by the conventions for generative AI. The trace id is the request id without its dashes, so that a line in
the log leads to its trace and back.

- A request that attaches to a run in the same process is linked to the span of the request that started it.
- `parents = "link"`: each request has a trace of its own, sampled by `ratio`, with a link to the caller's span if it
  sent `traceparent`. The caller's sampling does not matter: only you decide how much is exported.
- `parents = "trust"`: the span belongs to the caller's trace, and is exported if the caller's is sampled. `ratio` is
  for requests without a caller's trace.
- A malformed or repeated `traceparent` is ignored. `tracestate` and `baggage` are not read, and no header of a
  trace goes to a provider.
- Runs with an unusual end are exported with any `ratio`: with an outcome that is unknown, with a result that came
  too late or could not be settled, or with a shortfall.
- The span of a request whose client hung up is exported when its run has ended; the settlement is then after its end.
- A killed gateway does not export its running spans. The gateway that ends those operations logs each as `reconciled`,
  with the operation, the node that ran it and its age.

A span never has a prompt, an answer, a key, a credential or any other text of a caller.

## Batches and lost spans

A batch has at most 512 spans, or those of a second. A batch that the collector does not accept within `timeout` is lost
and not sent again; meanwhile at most 2,048 spans wait, and further ones are lost. Requests never wait for an export.
`holdfast_spans_total` counts exported and lost spans, and the log has one line when the collector fails and one when it
works again. At its end the gateway exports the waiting spans, within 5 s.
"#;

fn main() -> io::Result<()> {
    io::stdout().write_all(document().as_bytes())
}

/// The whole document.
pub(crate) fn document() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n## Attributes of spans\n\n| attribute | on | meaning |\n|---|---|---|\n");
    for Attribute { name, on, meaning } in ATTRIBUTES {
        text.push_str(&format!("| `{name}` | {on} | {meaning} |\n"));
    }
    text.push_str("\n## Events of spans\n\n| event | on | when |\n|---|---|---|\n");
    for (name, on, meaning) in EVENTS {
        text.push_str(&format!("| `{name}` | {on} | {meaning} |\n"));
    }
    text
}
