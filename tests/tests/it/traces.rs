//! Traces as a collector gets them: which spans there are, what they are linked to, which names they have, and
//! what becomes of requests whose collector is gone.

mod collector;

use std::time::{Duration, Instant};

use holdfast_tests::config::{ACME, ADMIN_TOKEN, UPSTREAM_KEY, UPSTREAM_MODEL};
use holdfast_tests::database::execute;
use holdfast_tests::{Answer, Config, Gate, Reply, Request, Site, Upstream, request_key};
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;

use self::collector::{
    CALLER_SPAN, CALLER_TRACE, Collector, HEADER_SECRET, check_names, events, hex, named, only,
    server, texts, trace_of, traceparent, world, world_at,
};
use crate::admin::{metrics, value, wait_for_waiters};
use crate::bodies::{acme, sim};
use crate::check::{charge, check_completion, until};

/// Events of a request that has started a run.
const RUN_EVENTS: [&str; 2] = ["hold", "settle"];

#[test]
fn a_request_and_its_call_are_two_spans_of_one_trace() {
    let collector = Collector::start();
    let world = world(&collector, &[("OTEL_RESOURCE_ATTRIBUTES", "service.namespace=a%20b")]);
    let answer = world.send(&world.completion(acme("Say hello")));
    assert_eq!(answer.status, 200, "{answer:?}");
    let spans = collector.wait_for(2);
    let (server, client) = (server(&spans), only(&spans, &format!("chat {UPSTREAM_MODEL}")));
    assert_eq!([server.kind(), client.kind()], [SpanKind::Server, SpanKind::Client]);
    assert_eq!([hex(&server.trace_id), hex(&client.trace_id)], [(); 2].map(|()| trace_of(&answer)));
    assert_eq!((server.parent_span_id.len(), &client.parent_span_id), (0, &server.span_id));
    assert_ne!(server.span_id, client.span_id);
    assert_eq!([events(server), events(client)], [RUN_EVENTS, ["dispatch", "first_chunk"]]);
    let moments = [
        server.start_time_unix_nano,
        server.events[0].time_unix_nano,
        client.start_time_unix_nano,
        client.events[0].time_unix_nano,
        client.events[1].time_unix_nano,
        client.end_time_unix_nano,
        server.events[1].time_unix_nano,
        server.end_time_unix_nano,
    ];
    assert!(moments.is_sorted(), "{moments:?}");
    let of = texts(&server.attributes);
    for (name, expected) in [
        ("http.request.method", "POST"),
        ("http.route", "/v1/chat/completions"),
        ("http.response.status_code", "200"),
        ("client.address", "127.0.0.1"),
        ("holdfast.model", ACME),
        ("holdfast.situation", "completed"),
        ("holdfast.outcome", "completed"),
        ("holdfast.replayed", "false"),
        ("holdfast.route", &format!("acme/{UPSTREAM_MODEL}")),
        ("holdfast.request.id", answer.header("x-request-id").unwrap()),
    ] {
        assert_eq!(of.get(name).map(String::as_str), Some(expected), "{name}");
    }
    let call = texts(&client.attributes);
    for (name, expected) in [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.request.model", UPSTREAM_MODEL),
        ("gen_ai.response.finish_reasons", "1 values"),
        ("gen_ai.response.id", answer.json()["id"].as_str().unwrap()),
        ("gen_ai.response.model", answer.json()["model"].as_str().unwrap()),
        ("holdfast.model", ACME),
        ("holdfast.class", "finished"),
        ("holdfast.operation.id", &of["holdfast.operation.id"]),
    ] {
        assert_eq!(call.get(name).map(String::as_str), Some(expected), "{name}");
    }
    assert!(call["gen_ai.usage.input_tokens"].parse::<u64>().unwrap() > 0);
    let charge = charge(&answer.json()).to_string();
    let settled = texts(&server.events[1].attributes);
    assert_eq!((&settled["holdfast.micros"], &*settled["holdfast.currency"]), (&charge, "USD"));
    check_names(&collector);
    let arrived = collector.0.arrived().remove(0);
    assert!(arrived.head.starts_with("POST /v1/traces "), "{}", arrived.head);
    let headers = arrived.headers();
    let has = |name: &str, value: &str| headers.contains(&(name.to_owned(), value.to_owned()));
    assert!(has("content-type", "application/x-protobuf") && has("x-collector-key", HEADER_SECRET));
    let resource = collector.batches().remove(0).resource_spans.remove(0).resource.unwrap();
    let resource = texts(&resource.attributes);
    assert_eq!([&*resource["service.name"], &*resource["service.namespace"]], ["holdfast", "a b"]);
}

#[test]
fn whoever_attaches_is_linked_to_the_run_and_a_replay_is_not() {
    let collector = Collector::start();
    let world = world(&collector, &[]);
    let gate = Gate::new();
    world.upstream.next(Reply::saying("Good day").after(&gate));
    let request = world.completion(acme("Say hello"));
    let first = request.begin(world.gateway.address());
    world.upstream.wait_for(1);
    let second = request.begin(world.gateway.address());
    wait_for_waiters(&world.gateway, 2);
    gate.open();
    let (first, second) = (first.answer(), second.answer());
    let replay = world.send(&request);
    let spans = collector.wait_for(4);
    let servers = named(&spans, "POST /v1/chat/completions");
    let of = |answer: &Answer| -> &Span {
        let trace = trace_of(answer);
        servers.iter().find(|span| hex(&span.trace_id) == trace).unwrap()
    };
    let link = &of(&second).links[0];
    assert_eq!((&link.trace_id, &link.span_id), (&of(&first).trace_id, &of(&first).span_id));
    assert_eq!(
        [of(&first).links.len(), of(&second).links.len(), of(&replay).links.len()],
        [0, 1, 0]
    );
    assert_eq!([events(of(&second)).len(), events(of(&replay)).len()], [0, 0]);
    let replayed = |answer: &Answer| texts(&of(answer).attributes)["holdfast.replayed"].clone();
    assert_eq!([replayed(&first), replayed(&second), replayed(&replay)], ["false", "true", "true"]);
}

#[test]
fn a_callers_trace_is_linked_and_nothing_of_it_goes_to_a_provider() {
    let collector = Collector::start();
    let world = world(&collector, &[]);
    let request = world.completion(acme("Say hello"));
    let request = request
        .header("traceparent", &traceparent("00"))
        .header("tracestate", "vendor=state-canary")
        .header("baggage", "user=baggage-canary");
    let answer = world.send(&request);
    let spans = collector.wait_for(2);
    let link = &server(&spans).links[0];
    assert_eq!([hex(&link.trace_id), hex(&link.span_id)], [CALLER_TRACE, CALLER_SPAN]);
    assert_eq!(hex(&server(&spans).trace_id), trace_of(&answer), "a trace of its own");
    let sent = world.upstream.arrived().remove(0).head.to_ascii_lowercase();
    for name in ["traceparent", "tracestate", "baggage"] {
        assert!(!sent.contains(name), "{sent}");
    }
    assert!(!collector.holds("state-canary") && !collector.holds("baggage-canary"));
    let (_upstream, site) = world.end();
    let logs = site.logs();
    assert!(logs.contains(&format!("caller.trace_id={CALLER_TRACE}")), "{logs}");
    assert!(!logs.contains("canary"), "{logs}");
}

#[test]
fn a_malformed_parent_is_none() {
    let collector = Collector::start();
    let world = world(&collector, &[("OTEL_TRACES_SAMPLER", "parentbased_always_on")]);
    let good = traceparent("00");
    let hostile = [
        good.to_uppercase(),
        good.replace(CALLER_SPAN, &"0".repeat(16)),
        good.replacen("00", "ff", 1),
        format!("{good}-x"),
        format!("{good}, {good}"),
        "0".repeat(4_000),
        "%n%n%s".to_owned(),
    ];
    for parent in &hostile {
        let request = world.completion(acme("Say hello")).header("traceparent", parent);
        assert_eq!(world.send(&request).status, 200);
    }
    let twice = world.completion(acme("Say hello")).header("traceparent", &good);
    assert_eq!(world.send(&twice.header("traceparent", &traceparent("01"))).status, 200);
    let spans = collector.wait_for(2 * (hostile.len() + 1));
    let servers = named(&spans, "POST /v1/chat/completions");
    assert_eq!(servers.len(), hostile.len() + 1);
    for span in servers {
        assert_ne!(hex(&span.trace_id), CALLER_TRACE);
        assert_eq!((span.links.len(), span.parent_span_id.len()), (0, 0), "{span:?}");
    }
}

#[test]
fn a_parent_that_is_trusted_decides() {
    let collector = Collector::start();
    let world = world(&collector, &[("OTEL_TRACES_SAMPLER", "parentbased_always_off")]);
    for flags in ["00", "01"] {
        let request =
            world.completion(acme("Say hello")).header("traceparent", &traceparent(flags));
        assert_eq!(world.send(&request).status, 200);
    }
    assert_eq!(world.send(&world.completion(acme("Say hello"))).status, 200);
    drop(world.end());
    let spans = collector.spans();
    assert_eq!(spans.len(), 2, "{spans:?}");
    assert_eq!(hex(&server(&spans).trace_id), CALLER_TRACE);
    assert_eq!(hex(&server(&spans).parent_span_id), CALLER_SPAN);
    assert!(server(&spans).links.is_empty());
}

#[test]
fn runs_that_end_unusually_are_exported_whatever_the_sampling_says() {
    let collector = Collector::start();
    let world = world(&collector, &[("OTEL_TRACES_SAMPLER", "always_off")]);
    let usual = world.send(&world.completion(acme("Say hello")));
    let unknown = world.send(&world.completion(sim("[[sim: fail-after]]")));
    let short = world.send(&world.completion(sim("Hello\n[[sim: overrun]]")));
    assert_eq!([usual.status, short.status], [200, 200]);
    // Its caller is gone long before its end.
    let gate = Gate::new();
    world.upstream.next(Reply::Raw(String::new()).after(&gate));
    let gone = world.completion(acme("Say hello")).begin(world.gateway.address());
    world.upstream.wait_for(2);
    gone.hang_up();
    until("its end is told", || world.gateway.said().contains("hung_up").then_some(()));
    gate.open();
    let spans = collector.wait_for(6);
    drop(world.end());
    assert_eq!((spans.len(), collector.spans().len()), (6, 6), "{spans:?}");
    let outcome = |span: &Span| texts(&span.attributes)["holdfast.outcome"].clone();
    let of = |trace: &str| spans.iter().filter(|it| hex(&it.trace_id) == trace).collect::<Vec<_>>();
    let unknown = of(&trace_of(&unknown));
    assert_eq!(unknown.iter().map(|it| outcome(it)).collect::<Vec<_>>(), ["abandoned"; 2]);
    assert!(unknown.iter().all(|span| span.status.is_some()), "both failed: {unknown:?}");
    assert_eq!(of(&trace_of(&short)).len(), 2);
    let gone = spans.iter().find(|span| texts(&span.attributes).contains_key("holdfast.hung_up"));
    let gone = gone.expect("the request of the caller that is gone");
    assert_eq!((outcome(gone).as_str(), events(gone)), ("abandoned", RUN_EVENTS.to_vec()));
    assert_eq!(texts(&gone.attributes)["holdfast.route"], format!("acme/{UPSTREAM_MODEL}"));
    // What has no answer tells of none.
    let calls = spans.iter().filter(|span| span.kind() == SpanKind::Client);
    let told = calls.map(|span| texts(&span.attributes));
    let told = told
        .map(|of| (of["holdfast.outcome"] == "completed", of.contains_key("gen_ai.response.id")));
    let mut told: Vec<_> = told.collect();
    told.sort_unstable();
    assert_eq!(told, [(false, false), (false, false), (true, true)]);
    assert!(gone.events[1].time_unix_nano > gone.end_time_unix_nano);
}

/// Ends the operation that runs, as a process does that takes its owner for dead.
const ENDED: &str = "UPDATE operations SET phase = 'abandoned', version = version + 1, \
                     finished_at = admitted_at WHERE phase = 'leased'";

#[test]
fn sqlite_a_run_whose_row_ended_elsewhere_is_exported_as_the_row_has_it() {
    let collector = Collector::start();
    let world = world(&collector, &[("OTEL_TRACES_SAMPLER", "always_off")]);
    let gate = Gate::new();
    world.upstream.next(Reply::saying("Good day").after(&gate));
    let waiting = world.completion(acme("Say hello")).begin(world.gateway.address());
    world.upstream.wait_for(1);
    drop(execute(&world.site.database(), ENDED));
    gate.open();
    let answer = waiting.answer();
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (502, &"outcome_unknown".into()));
    let spans = collector.wait_for(2);
    let (server, client) = (server(&spans), only(&spans, &format!("chat {UPSTREAM_MODEL}")));
    let (of, call) = (texts(&server.attributes), texts(&client.attributes));
    assert_eq!([&of["holdfast.outcome"], &call["holdfast.outcome"]], ["abandoned"; 2]);
    assert_eq!([&of["error.type"], &call["holdfast.class"]], ["outcome_unknown", "finished"]);
    // The call has brought an answer, and nobody has it.
    assert!(server.status.is_some() && client.status.is_none(), "{spans:?}");
    assert!(!call.contains_key("gen_ai.response.id"), "{call:?}");
    assert_eq!(events(server), RUN_EVENTS);
    let (_upstream, site) = world.end();
    assert!(site.logs().contains("a result came too late to be billed"));
}

#[test]
fn sqlite_a_run_that_could_not_be_settled_is_exported() {
    let collector = Collector::start();
    let world = world(&collector, &[("OTEL_TRACES_SAMPLER", "always_off")]);
    let gate = Gate::new();
    world.upstream.next(Reply::saying("Good day").after(&gate));
    let waiting = world.completion(acme("Say hello")).begin(world.gateway.address());
    world.upstream.wait_for(1);
    drop(execute(&world.site.database(), "UPDATE wallets SET held = 0"));
    gate.open();
    assert_eq!(waiting.answer().status, 503);
    let spans = collector.wait_for(2);
    let outcomes = spans.iter().map(|it| texts(&it.attributes)["holdfast.outcome"].clone());
    assert_eq!(outcomes.collect::<Vec<_>>(), ["recorded"; 2]);
}

#[test]
fn a_stream_has_the_time_to_its_first_chunk() {
    let collector = Collector::start();
    let world = world(&collector, &[]);
    let body = acme("Say hello").replacen('{', r#"{"stream":true,"#, 1);
    let told = world.completion(body).begin(world.gateway.address()).events().rest();
    assert_eq!(told.head.status, 200, "{told:?}");
    let spans = collector.wait_for(2);
    let call = texts(&only(&spans, &format!("chat {UPSTREAM_MODEL}")).attributes);
    assert_eq!(call["gen_ai.request.stream"], "true");
    let seconds: f64 = call["gen_ai.response.time_to_first_chunk"].parse().unwrap();
    assert!((0.0..60.0).contains(&seconds), "{call:?}");
    assert_eq!(events(server(&spans)), RUN_EVENTS);
    assert!(server(&spans).events[1].time_unix_nano <= server(&spans).end_time_unix_nano);
    check_names(&collector);
}

#[test]
fn no_prompt_answer_or_secret_is_in_a_span() {
    const PROMPT: &str = "canary-in-the-prompt-4714";
    const ANSWER: &str = "canary-in-the-answer-4715";
    let collector = Collector::start();
    let world = world(&collector, &[]);
    world.upstream.otherwise(Reply::saying(ANSWER));
    assert_eq!(world.send(&world.completion(acme(PROMPT))).status, 200);
    let quoting = format!("{{\"error\":{{\"message\":\"{PROMPT}\",\"code\":\"{ANSWER}\"}}}}");
    for status in [400, 401, 429, 500] {
        world.upstream.next(Reply::Send(status, quoting.clone()));
        assert_ne!(world.send(&world.completion(acme(PROMPT))).status, 200);
    }
    let key = format!("canary-key-{}", request_key());
    for request in [
        world.completion(acme(PROMPT).replacen('{', &format!("{{\"{PROMPT}\":1,"), 1)),
        world.completion(acme(PROMPT)).header("traceparent", PROMPT),
        Request::get(&format!("/v1/operations/{key}")).bearer(&world.account.key),
        Request::get(&format!("/v1/{PROMPT}?{PROMPT}")).bearer(PROMPT),
        Request::get(&format!("/v1/models/{PROMPT}")).bearer(&world.account.key),
    ] {
        drop(world.send(&request));
    }
    let secret = world.account.key.rsplit_once('_').unwrap().1.to_owned();
    drop(world.end());
    assert!(collector.holds(ACME), "what is not secret is found");
    for canary in [PROMPT, ANSWER, &key, &secret, UPSTREAM_KEY, ADMIN_TOKEN, HEADER_SECRET] {
        assert!(!collector.holds(canary), "{canary}");
    }
    check_names(&collector);
}

#[test]
fn a_collector_that_is_gone_loses_spans_and_no_request() {
    let world = world_at(&format!("http://{}", Upstream::absent()), &[]);
    for _turn in 0..5 {
        assert_eq!(world.send(&world.completion(acme("Say hello"))).status, 200);
    }
    until("the lost spans are counted", || {
        let told = metrics(&world.gateway);
        (value(&told, "holdfast_spans_total", "\"failed\"") > 9.5).then_some(())
    });
    let told = metrics(&world.gateway);
    for result in ["\"exported\"", "\"queue_full\""] {
        assert!(value(&told, "holdfast_spans_total", result) < 0.5, "{told}");
    }
    let (_upstream, site) = world.end();
    let told = "the collector of traces does not take spans";
    assert_eq!(site.logs().matches(told).count(), 1, "once, not for each batch");
}

#[test]
fn a_collector_that_comes_back_is_told_of_once() {
    let collector = Collector::start();
    collector.0.next(Reply::Send(503, String::new()));
    let world = world(&collector, &[]);
    let exported = |result: &str, least: f64| {
        until("spans have an end", || {
            let told = metrics(&world.gateway);
            (value(&told, "holdfast_spans_total", result) > least).then_some(())
        });
    };
    for (result, least) in [("\"failed\"", 0.5), ("\"exported\"", 0.5), ("\"exported\"", 1.5)] {
        assert_eq!(world.send(&Request::get("/v1/wallet")).status, 401);
        exported(result, least);
    }
    let (_upstream, site) = world.end();
    for told in ["the collector of traces does not take spans", "takes spans again"] {
        assert_eq!(site.logs().matches(told).count(), 1, "{told}");
    }
}

#[test]
fn a_collector_that_is_silent_is_waited_for_by_nobody() {
    const CLIENTS: usize = 8;
    const EACH: usize = 360;
    let silent = Upstream::start(Reply::Silence);
    let endpoint = silent.base_url();
    let patient = [("OTEL_EXPORTER_OTLP_TIMEOUT", "60000")];
    let world = world_at(endpoint.trim_end_matches("/v1"), &patient);
    // More requests than a batch and the queue have room for, and each has a span.
    std::thread::scope(|scope| {
        for _client in 0..CLIENTS {
            scope.spawn(|| {
                for _turn in 0..EACH {
                    assert_eq!(world.send(&Request::get("/v1/wallet")).status, 401);
                }
            });
        }
    });
    let told = metrics(&world.gateway);
    assert!(value(&told, "holdfast_spans_total", "\"queue_full\"") > 0.5, "{told}");
    let answer = world.send(&world.completion(acme("Say hello")));
    assert_eq!(answer.status, 200);
    let ending = Instant::now();
    world.gateway.terminate();
    assert!(world.gateway.wait().success());
    assert!(ending.elapsed() < Duration::from_secs(15), "{:?}", ending.elapsed());
}

#[test]
fn what_the_variables_ask_for_and_there_is_not_is_refused_at_the_start() {
    let site = Site::configured(&Config::simulated());
    let endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT";
    let site = site.with_env(endpoint, "http://collector:4317");
    let site = site.with_env("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    for command in [&["serve"][..], &["check-config"]] {
        let said = site.cli(command).failed(2);
        assert!(
            said.contains("OTEL_EXPORTER_OTLP_PROTOCOL") && said.contains("http/protobuf"),
            "{said}"
        );
    }
    // Whoever does not serve does not look.
    drop(site.cli(&["migrate", "up"]).ok());
}

#[test]
fn a_completion_is_answered_where_traces_are_switched_off() {
    let collector = Collector::start();
    let world = world(&collector, &[("OTEL_SDK_DISABLED", "true")]);
    let key = request_key();
    check_completion(&world.gateway.complete(&world.account, &key, &acme("Hi")), &key, false);
    drop(world.end());
    assert_eq!(collector.0.runs(), 0);
}
