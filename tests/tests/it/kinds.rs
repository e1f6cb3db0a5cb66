//! Providers that do not speak OpenAI's dialect, through the whole gateway: what they are sent, what
//! becomes of what they cannot do, and that nothing of theirs is seen outside.

use holdfast_tests::config::{UPSTREAM_KEY, UPSTREAM_MODEL};
use holdfast_tests::upstream::{
    ArrivedRequest, Streaming, completion, error as upstream_error, marked,
};
use holdfast_tests::{Account, Config, Gateway, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::admin;
use crate::bodies::acme;
use crate::check::{check_completion, content, error};
use crate::streaming::check_stream;

/// A kind, as its own server has it.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Name of the kind in OpenTelemetry's conventions.
    semantic_name: &'static str,
    /// What the operator sets besides.
    more: Option<(&'static str, &'static str)>,
    /// Where the request goes, and the header of the credential.
    pub(crate) path: &'static str,
    credential: &'static str,
    pub(crate) answer: Value,
    /// The same in pieces, and where they are asked for.
    pub(crate) stream: (&'static str, Streaming),
    error: Value,
}

/// Events of server-sent data.
pub(crate) fn events(all: &[Value]) -> Streaming {
    all.iter().fold(Streaming::new(), |stream, event| stream.event(event))
}

pub(crate) fn anthropic() -> Kind {
    Kind {
        name: "anthropic",
        semantic_name: "anthropic",
        more: None,
        path: "/v1/messages",
        credential: "x-api-key",
        answer: json!({
            "id": "msg_mark-of-id",
            "type": "message",
            "role": "assistant",
            "model": "mark-of-model",
            "content": [{"type": "text", "text": "Good day", "x_extra": "mark-of-extra"}],
            "stop_reason": "end_turn",
            "stop_sequence": null,
            "usage": {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 20},
        }),
        stream: (
            "/v1/messages",
            events(&[
                json!({"type": "message_start", "message": {
                    "id": "msg_mark-of-id",
                    "model": "mark-of-model",
                    "usage": {"input_tokens": 60, "cache_read_input_tokens": 40, "output_tokens": 1},
                }}),
                json!({"type": "content_block_start", "index": 0,
                    "content_block": {"type": "text", "text": ""}}),
                json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "text_delta", "text": "Good "}, "x_extra": "mark-of-extra"}),
                json!({"type": "content_block_delta", "index": 0,
                    "delta": {"type": "text_delta", "text": "day"}}),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"},
                    "usage": {"output_tokens": 20}}),
                json!({"type": "message_stop"}),
            ]),
        ),
        error: json!({
            "type": "error",
            "error": {"type": "mark-of-code", "message": "mark-of-message"},
            "request_id": "req_mark-of-id",
        }),
    }
}

pub(crate) fn gemini() -> Kind {
    Kind {
        name: "gemini",
        semantic_name: "gcp.gemini",
        more: None,
        path: "/v1/models/upstream-model-mark:generateContent",
        credential: "x-goog-api-key",
        answer: json!({
            "candidates": [{
                "content": {"parts": [{"text": "Good day", "thoughtSignature": "mark-of-extra"}]},
                "finishReason": "STOP",
                "index": 0,
            }],
            "usageMetadata": {
                "promptTokenCount": 100,
                "cachedContentTokenCount": 40,
                "candidatesTokenCount": 20,
                "totalTokenCount": 120,
            },
            "modelVersion": "mark-of-model",
            "responseId": "mark-of-id",
        }),
        stream: (
            "/v1/models/upstream-model-mark:streamGenerateContent?alt=sse",
            events(&[
                json!({"candidates": [{"content": {"parts": [{"text": "Good "}]}}],
                    "responseId": "mark-of-id", "modelVersion": "mark-of-model"}),
                json!({
                    "candidates": [{
                        "content": {"parts": [{"text": "day"}]},
                        "finishReason": "STOP",
                    }],
                    "usageMetadata": {
                        "promptTokenCount": 100,
                        "cachedContentTokenCount": 40,
                        "candidatesTokenCount": 20,
                        "totalTokenCount": 120,
                    },
                }),
            ]),
        ),
        error: json!({
            "error": {"code": 400, "message": "mark-of-message", "status": "mark-of-code"},
        }),
    }
}

fn azure() -> Kind {
    let mut answer = completion("Good day");
    answer["usage"]["completion_tokens_details"] = json!({});
    answer["prompt_filter_results"] = json!([{"content_filter_results": "mark-of-extra"}]);
    answer["choices"][0]["content_filter_results"] = json!({"hate": "mark-of-extra"});
    Kind {
        name: "azure-openai",
        semantic_name: "azure.ai.openai",
        more: None,
        path: "/v1/chat/completions",
        credential: "api-key",
        answer,
        stream: ("/v1/chat/completions", Streaming::saying(&["Good ", "day"])),
        error: upstream_error("mark-of-code"),
    }
}

/// The older API.
fn azure_by_deployment() -> Kind {
    let path = "/v1/deployments/upstream-model-mark/chat/completions?api-version=2024-10-21";
    let (_path, stream) = azure().stream;
    let more = Some(("api_version", "\"2024-10-21\""));
    Kind { more, path, stream: (path, stream), ..azure() }
}

/// OpenAI's own dialect.
pub(crate) fn plain() -> Kind {
    Kind {
        name: "openai",
        semantic_name: "openai",
        more: None,
        path: "/v1/chat/completions",
        credential: "authorization",
        answer: completion("Good day"),
        stream: ("/v1/chat/completions", Streaming::saying(&["Good ", "day"])),
        error: upstream_error("mark-of-code"),
    }
}

pub(crate) fn bedrock() -> Kind {
    Kind {
        name: "bedrock",
        semantic_name: "aws.bedrock",
        more: Some(("region", "\"eu-central-1\"")),
        path: "/v1/model/upstream-model-mark/converse",
        credential: "authorization",
        answer: json!({
            "output": {"message": {"role": "assistant", "content": [{"text": "Good day"}]}},
            "stopReason": "end_turn",
            "usage": {"inputTokens": 60, "cacheReadInputTokens": 40, "outputTokens": 20},
            "trace": {"promptRouter": {"invokedModelId": "mark-of-model"}},
        }),
        stream: (
            "/v1/model/upstream-model-mark/converse-stream",
            Streaming::new()
                .frame("messageStart", &json!({"role": "assistant", "p": "mark-of-extra"}))
                .frame(
                    "contentBlockDelta",
                    &json!({"contentBlockIndex": 0, "delta": {"text": "Good "}, "p": "mark-of-extra"}),
                )
                .frame(
                    "contentBlockDelta",
                    &json!({"contentBlockIndex": 0, "delta": {"text": "day"}}),
                )
                .frame("contentBlockStop", &json!({"contentBlockIndex": 0}))
                .frame("messageStop", &json!({"stopReason": "end_turn"}))
                .frame(
                    "metadata",
                    &json!({
                        "usage": {"inputTokens": 60, "cacheReadInputTokens": 40, "outputTokens": 20},
                        "trace": {"promptRouter": {"invokedModelId": "mark-of-model"}},
                    }),
                ),
        ),
        error: json!({"message": "mark-of-message", "__type": "mark-of-code"}),
    }
}

pub(crate) fn kinds() -> Vec<Kind> {
    vec![anthropic(), gemini(), azure(), azure_by_deployment(), bedrock()]
}

/// Those that cannot do all of what OpenAI's dialect says.
fn foreign_kinds() -> Vec<Kind> {
    vec![anthropic(), gemini(), bedrock()]
}

pub(crate) fn config(kind: &Kind, upstream: &Upstream) -> Config {
    let name = format!("\"{}\"", kind.name);
    let config = Config::upstream(upstream).set("providers.acme", "kind", &name);
    match kind.more {
        None => config,
        Some((key, value)) => config.set("providers.acme", key, value),
    }
}

fn value<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find_map(|(header, value)| (header == name).then_some(value.as_str()))
}

fn shows_key(headers: &[(String, String)], kind: &Kind) -> bool {
    value(headers, kind.credential).is_some_and(|value| value.ends_with(UPSTREAM_KEY))
}

fn check_sent(kind: &Kind, path: &str, arrived: &ArrivedRequest) {
    let line = format!("POST {path} HTTP/1.1");
    assert_eq!(arrived.head.lines().next(), Some(line.as_str()));
    let headers = arrived.headers();
    assert!(shows_key(&headers, kind), "{}: {headers:?}", kind.name);
    let secret = headers.iter().filter(|(_, value)| value.contains(UPSTREAM_KEY)).count();
    assert_eq!(secret, 1, "{}: {headers:?}", kind.name);
}

#[test]
fn an_answer_is_paid_and_replays_and_shows_nothing_of_its_kind() {
    for kind in kinds() {
        let upstream = Upstream::start(Reply::json(200, &kind.answer));
        let (site, account) = Site::funded(&config(&kind, &upstream));
        let gateway = site.serve();
        let key = request_key();
        let first = gateway.complete(&account, &key, &acme("Say hello"));
        let told = check_completion(&first, &key, false);
        assert_eq!(told["choices"][0]["message"]["content"], "Good day", "{}", kind.name);
        let usage = &told["usage"];
        assert_eq!(usage["prompt_tokens"], 100, "{}", kind.name);
        assert_eq!(usage["customer_charge_micros"], 150 + 10 + 200 + 7, "{}", kind.name);
        let again = gateway.complete(&account, &key, &acme("Say hello"));
        assert_eq!(again.body, first.body, "{}", kind.name);
        assert_eq!(upstream.runs(), 1, "{}", kind.name);
        check_sent(&kind, kind.path, &upstream.arrived()[0]);
        let call = format!("gen_ai_provider_name=\"{}\"", kind.semantic_name);
        let name = "gen_ai_client_operation_duration_seconds_count";
        let calls = admin::value(&admin::metrics(&gateway), name, &call);
        assert!((calls - 1.0).abs() < 0.5, "{}: {calls}", kind.name);
        leaks(&kind, &gateway, &upstream, &account);
        gateway.stop();
        let logs = site.logs();
        let seen = marked(&logs).into_iter().filter(|mark| *mark != UPSTREAM_MODEL);
        assert_eq!(seen.collect::<Vec<_>>(), Vec::<&str>::new(), "{}", kind.name);
        assert!(!logs.contains(UPSTREAM_KEY), "{}", kind.name);
        site.verify();
    }
}

#[test]
fn a_stream_says_what_a_whole_answer_says_and_is_that_answer_afterwards() {
    for kind in kinds() {
        let (path, stream) = &kind.stream;
        let upstream = Upstream::start(Reply::Stream(stream.clone()));
        let (site, account) = Site::funded(&config(&kind, &upstream));
        let gateway = site.serve();
        let key = request_key();
        let asked = asking_for(&json!({"stream": true, "stream_options": {"include_usage": true}}));
        let request = Request::completion(&account.key, &key, asked);
        let streamed = request.begin(gateway.address()).events().rest();
        let told = check_stream(&streamed, &key, false);
        assert_eq!(content(&told), "Good day", "{}", kind.name);
        let seen = streamed.events.concat();
        assert_eq!(marked(&seen), Vec::<&str>::new(), "{}: {seen}", kind.name);
        let whole =
            check_completion(&gateway.complete(&account, &key, &acme("Say hello")), &key, true);
        assert_eq!(whole["choices"][0]["message"]["content"], "Good day", "{}", kind.name);
        assert_eq!(whole["usage"], told["usage"], "{}", kind.name);
        assert_eq!(whole["usage"]["prompt_tokens"], 100, "{}", kind.name);
        assert_eq!(upstream.runs(), 1, "{}", kind.name);
        check_sent(&kind, path, &upstream.arrived()[0]);
        site.verify();
    }
}

/// Every way in which it can answer.
fn leaks(kind: &Kind, gateway: &Gateway, upstream: &Upstream, account: &Account) {
    let error = |status| Reply::json(status, &kind.error);
    let statuses = [400, 401, 403, 404, 409, 413, 429, 500, 503, 529];
    let garbage = ["mark-of-message", r#"{"error": {"message": "mark-of-message"}}"#];
    let garbage = garbage.map(|body| Reply::Send(200, body.to_owned()));
    let fine = Reply::json(200, &kind.answer);
    for reply in statuses.map(error).into_iter().chain(garbage).chain([fine]) {
        upstream.otherwise(reply.clone());
        let key = request_key();
        let ask = Request::completion(&account.key, &key, acme("Say hello"));
        let look = Request::get(&format!("/v1/operations/{key}")).bearer(&account.key);
        for request in [&ask, &look, &ask] {
            let seen = gateway.send(request).everything();
            assert_eq!(marked(&seen), Vec::<&str>::new(), "{} {reply:?}: {seen}", kind.name);
            assert!(!seen.contains(UPSTREAM_KEY), "{} {reply:?}: {seen}", kind.name);
        }
    }
}

fn asking_for(more: &Value) -> String {
    let mut body: Value = serde_json::from_str(&acme("Say hello")).unwrap();
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body.to_string()
}

#[test]
fn what_no_route_can_do_is_refused_and_binds_nothing() {
    for kind in foreign_kinds() {
        let upstream = Upstream::start(Reply::json(200, &kind.answer));
        let (site, account) = Site::funded(&config(&kind, &upstream));
        let gateway = site.serve();
        let key = request_key();
        let refused =
            gateway.complete(&account, &key, &asking_for(&json!({"logit_bias": {"7": 1}})));
        let expected = error(Code::UnsupportedParameter).param("logit_bias").echo(&key);
        expected.replayed(false).check(&refused);
        assert_eq!(upstream.runs(), 0, "{}", kind.name);
        // The key is free for another request.
        let answer = gateway.complete(&account, &key, &acme("Say hello"));
        check_completion(&answer, &key, false);
        let shown = gateway.complete(&account, &key, &asking_for(&json!({"logit_bias": {"7": 1}})));
        error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&shown);
        site.verify();
    }
}

#[test]
fn a_route_that_cannot_is_passed_over() {
    for kind in foreign_kinds() {
        let unable = Upstream::start(Reply::json(200, &kind.answer));
        let able = Upstream::start(Reply::json(200, &completion("Good day")));
        let route = format!("provider = \"acme\"\nmodel = \"{UPSTREAM_MODEL}\"\n");
        let other = format!(
            "{route}[[models.routes]]\nprovider = \"other\"\nmodel = \"{UPSTREAM_MODEL}\"\n\
             priority = 1\n"
        );
        let config = config(&kind, &unable)
            .set("providers.other", "kind", "\"openai\"")
            .set("providers.other", "base_url", &format!("\"{}\"", able.base_url()))
            .replace(&route, &other);
        let (site, account) = Site::funded(&config);
        let gateway = site.serve();
        let key = request_key();
        let asked = asking_for(&json!({"logit_bias": {"7": 1}}));
        check_completion(&gateway.complete(&account, &key, &asked), &key, false);
        assert_eq!((unable.runs(), able.runs()), (0, 1), "{}", kind.name);
        let key = request_key();
        check_completion(&gateway.complete(&account, &key, &acme("Say hello")), &key, false);
        assert_eq!((unable.runs(), able.runs()), (1, 1), "{}", kind.name);
    }
}

#[test]
fn a_probe_shows_the_credential_as_the_kind_wants_it() {
    for kind in kinds() {
        let upstream = Upstream::start(Reply::json(200, &kind.answer));
        let site = Site::configured(&config(&kind, &upstream));
        let ran = site.cli(&["check-config", "--probe", "--json"]).json();
        assert_eq!(ran["routes"][0]["answer"], "answers", "{ran}");
        assert_eq!(ran["probes"][0]["answer"], "reached, and it takes the api_key", "{ran}");
        let arrived = upstream.arrived();
        assert_eq!(arrived.len(), 2, "{arrived:?}");
        check_sent(&kind, kind.path, &arrived[1]);
        assert!(arrived[0].head.starts_with("GET /v1/"), "{}", arrived[0].head);
        assert!(arrived[0].head.contains("models"), "{}", arrived[0].head);
        let headers = arrived[0].headers();
        assert!(shows_key(&headers, &kind), "{}: {headers:?}", kind.name);
    }
}

#[test]
fn a_probe_tells_why_an_answer_cannot_be_read() {
    const ANSWER: &str = "its answer cannot be read: check its kind";
    for kind in kinds() {
        let upstream = Upstream::start(Reply::json(200, &json!({"mark-of-extra": "Good day"})));
        let site = Site::configured(&config(&kind, &upstream));
        let ran = site.cli(&["check-config", "--probe", "--json"]);
        assert_eq!(ran.code, Some(1), "{}: {ran:?}", kind.name);
        let told: Value = serde_json::from_str(&ran.stdout).unwrap();
        let route = &told["routes"][0];
        assert_eq!((&told["ok"], &route["ok"]), (&json!(false), &json!(false)), "{told}");
        assert_eq!(route["class"], "unknown_unreadable", "{}: {told}", kind.name);
        assert_eq!(route["answer"], ANSWER, "{}: {told}", kind.name);
        let field = match kind.name {
            "anthropic" => "content",
            "bedrock" => "output.message.content",
            "gemini" => "candidates",
            _ => "choices",
        };
        let why = format!("the answer has not the choices that were asked for, at {field}");
        assert_eq!(route["reason"], why, "{}: {told}", kind.name);
        upstream.otherwise(Reply::Send(200, "mark-of-message".to_owned()));
        let said = site.cli(&["check-config", "--probe"]);
        let why = format!("{ANSWER}: the answer is not JSON (unknown_unreadable, ");
        assert!(said.stdout.contains(&why), "{}: {said:?}", kind.name);
        let seen = [ran.stdout, ran.stderr, said.stdout, said.stderr].concat();
        let marks = marked(&seen).into_iter().filter(|mark| *mark != UPSTREAM_MODEL);
        assert_eq!(marks.collect::<Vec<_>>(), Vec::<&str>::new(), "{}: {seen}", kind.name);
    }
}
