//! The OpenAI client against a scripted server: what goes out, what comes back, and how often.

use std::future::poll_fn;
use std::io::Write;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use holdfast_domain::answer::{Delta, FinishReason};
use holdfast_domain::ports::{
    Call, CallFailure, NotRunProof, Provider, Sink, UnknownReason, UnreadableReason,
};
use holdfast_domain::request::Request;
use holdfast_net::{BadBaseUrl, BaseUrl};
use holdfast_providers::kinds::{HttpOptions, Kind, OpenAi};
use holdfast_providers::{HttpProvider, ServerOptions, UpstreamKey};
use holdfast_wire::chat::upstream::BoundField;
use tokio::task::coop::consume_budget;

use crate::calls::{call, request, run};
use crate::upstream::{ScriptedReply, Upstream, answer};

pub(crate) const COMPLETION: &str = r#"{
    "id": "chatcmpl-upstream", "object": "chat.completion", "created": 1, "model": "gpt-upstream",
    "system_fingerprint": "fp_upstream",
    "choices": [{
        "index": 0, "message": {"role": "assistant", "content": "Hello.", "refusal": null},
        "logprobs": null, "finish_reason": "stop"
    }],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
}"#;

pub(crate) fn completion() -> ScriptedReply {
    ScriptedReply::Send(answer(200, COMPLETION))
}

pub(crate) fn server(base_url: &str) -> ServerOptions {
    ServerOptions::new(BaseUrl::try_from(base_url).unwrap())
}

pub(crate) fn options(server: ServerOptions) -> HttpOptions {
    let kind = Kind::OpenAi(OpenAi::new(BoundField::MaxCompletionTokens));
    HttpOptions { server, kind }
}

fn client(upstream: &Upstream) -> HttpProvider {
    HttpProvider::new(options(server(&upstream.base_url()))).unwrap()
}

/// Lets every task do what it can do without the network.
pub(crate) async fn settle() {
    for _turn in 0..100 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn answers_with_content_and_usage() {
    let upstream = Upstream::start(completion()).await;
    let ran = run(&client(&upstream), &call(request("hi"))).await;
    assert_eq!(ran.choices(), [("Hello.", Some(FinishReason::Stop))]);
    assert_eq!(ran.usage(), Some((9, 3)));
    assert_eq!(upstream.arrived().len(), 1);
}

#[tokio::test]
async fn an_answer_without_usage_is_an_answer() {
    let body = COMPLETION.replace("\"usage\"", "\"costs\"");
    let upstream = Upstream::start(ScriptedReply::Send(answer(200, &body))).await;
    let ran = run(&client(&upstream), &call(request("hi"))).await;
    assert_eq!(ran.choices(), [("Hello.", Some(FinishReason::Stop))]);
    assert_eq!(ran.usage(), None);
}

#[tokio::test]
async fn sends_these_headers_and_no_others() {
    let upstream = Upstream::start(completion()).await;
    let api_key = Some(UpstreamKey::try_from("sk-operator").unwrap());
    let client =
        HttpProvider::new(options(ServerOptions { api_key, ..server(&upstream.base_url()) }))
            .unwrap();
    run(&client, &call(request("hi"))).await.outcome.unwrap();
    let arrived = &upstream.arrived()[0];
    let mut lines: Vec<_> = arrived.head.trim_end().lines().collect();
    lines.sort_unstable();
    let port = upstream.address.port();
    let length = arrived.body.len();
    let mut expected = [
        "POST /v1/chat/completions HTTP/1.1".to_owned(),
        "accept: application/json".to_owned(),
        "authorization: Bearer sk-operator".to_owned(),
        format!("content-length: {length}"),
        "content-type: application/json".to_owned(),
        format!("host: localhost:{port}"),
        format!("user-agent: holdfast/{}", env!("CARGO_PKG_VERSION")),
    ];
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn sends_no_credential_where_there_is_none() {
    let upstream = Upstream::start(completion()).await;
    run(&client(&upstream), &call(request("hi"))).await.outcome.unwrap();
    assert!(!upstream.arrived()[0].head.contains("authorization"));
}

#[tokio::test]
async fn sends_the_routes_model_and_the_bound_of_the_hold() {
    for (bound_field, field, other) in [
        (BoundField::MaxTokens, "\"max_tokens\":77", "max_completion_tokens"),
        (BoundField::MaxCompletionTokens, "\"max_completion_tokens\":77", "max_tokens"),
    ] {
        let upstream = Upstream::start(completion()).await;
        let kind = Kind::OpenAi(OpenAi::new(bound_field));
        let options = HttpOptions { kind, ..options(server(&upstream.base_url())) };
        let call =
            Call { model: "gpt-route".into(), max_output_tokens: 77, ..call(request("hi there")) };
        run(&HttpProvider::new(options).unwrap(), &call).await.outcome.unwrap();
        let body = &upstream.arrived()[0].body;
        assert!(body.contains(field) && !body.contains(other), "{body}");
        assert!(body.contains("\"model\":\"gpt-route\"") && body.contains("hi there"), "{body}");
        assert!(!body.contains("holdfast/sim-1"), "{body}");
    }
}

#[tokio::test]
async fn a_base_url_may_end_with_a_slash() {
    let upstream = Upstream::start(completion()).await;
    let client = HttpProvider::new(options(server(&format!("{}/", upstream.base_url())))).unwrap();
    run(&client, &call(request("hi"))).await.outcome.unwrap();
    assert!(upstream.arrived()[0].head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"));
}

#[tokio::test]
async fn keeps_a_connection_for_the_next_call() {
    let upstream = Upstream::start(completion()).await;
    let client = client(&upstream);
    for _call in 0..3 {
        run(&client, &call(request("hi"))).await.outcome.unwrap();
        settle().await;
    }
    assert_eq!((upstream.arrived().len(), upstream.connections()), (3, 1));
}

#[tokio::test]
async fn closes_a_connection_that_idles() {
    let upstream = Upstream::start(completion()).await;
    let pool_idle = Duration::from_millis(100);
    let client =
        HttpProvider::new(options(ServerOptions { pool_idle, ..server(&upstream.base_url()) }))
            .unwrap();
    run(&client, &call(request("hi"))).await.outcome.unwrap();
    upstream.closed().await;
    run(&client, &call(request("hi"))).await.outcome.unwrap();
    assert_eq!((upstream.arrived().len(), upstream.connections()), (2, 2));
}

#[tokio::test]
async fn a_dropped_call_is_cut_upstream() {
    let upstream = Upstream::start(ScriptedReply::SendAndHang(String::new())).await;
    let client = client(&upstream);
    let asked = call(request("hi"));
    tokio::select! {
        ran = run(&client, &asked) => panic!("answered: {:?}", ran.outcome),
        () = upstream.requested() => {}
    }
    upstream.closed().await;
    assert_eq!(upstream.arrived().len(), 1);
}

/// Only keeps whether it was told of the sending.
struct SendingFlag<'a>(&'a AtomicBool);

impl Sink for SendingFlag<'_> {
    fn on_send(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }

    fn on_delta(&mut self, _delta: Delta) {}
}

#[tokio::test]
async fn what_a_connection_takes_is_told_in_that_poll_however_little_its_task_may_still_do() {
    /// What tokio lets a task do in one poll.
    const BUDGET: u32 = 128;
    let mut n_sent = 0;
    for left in (0..4).chain([BUDGET]) {
        let upstream = Upstream::start(completion()).await;
        let client = client(&upstream);
        let asked = call(request("hi"));
        // Leaves a connection that takes the next request at its first poll.
        run(&client, &asked).await.outcome.unwrap();
        settle().await;
        let told = AtomicBool::new(false);
        let mut sink = SendingFlag(&told);
        let mut running = pin!(client.run(&asked, &mut sink));
        let polled = poll_fn(|context| {
            for _unit in left..BUDGET {
                assert!(pin!(consume_budget()).poll(context).is_ready());
            }
            Poll::Ready(running.as_mut().poll(context))
        });
        assert!(polled.await.is_pending());
        // Whoever drops the call does so here: what is sent by now has to be told.
        settle().await;
        let is_sent = upstream.arrived().len() == 2;
        n_sent += u32::from(is_sent);
        let is_told = told.load(Ordering::SeqCst);
        assert!(is_told || !is_sent, "sent and not told, {left} of {BUDGET} left");
    }
    assert!(n_sent > 0, "nothing was sent in one poll");
}

#[tokio::test]
async fn connecting_is_bounded_and_answering_is_not() {
    let upstream = Upstream::start(ScriptedReply::SendAndHang(String::new())).await;
    let client = client(&upstream);
    let connect = Duration::from_secs(2);
    let asked = Call { connect, ..call(request("hi")) };
    let long_after = async {
        upstream.requested().await;
        tokio::time::sleep(connect * 2).await;
    };
    tokio::select! {
        ran = run(&client, &asked) => panic!("ended with its time to connect: {:?}", ran.outcome),
        () = long_after => {}
    }
}

#[tokio::test]
async fn an_answer_of_the_largest_size_is_read_and_a_larger_one_is_not() {
    let upstream = Upstream::start(completion()).await;
    for (response_bytes_max, failure) in [
        (COMPLETION.len(), None),
        (
            COMPLETION.len() - 1,
            Some(CallFailure::Unknown(UnknownReason::Unreadable(UnreadableReason::Long))),
        ),
    ] {
        let options = options(ServerOptions { response_bytes_max, ..server(&upstream.base_url()) });
        let ran = run(&HttpProvider::new(options).unwrap(), &call(request("hi"))).await;
        assert_eq!(ran.outcome.err(), failure);
    }
}

#[tokio::test]
async fn asks_for_as_many_choices_as_the_request() {
    let upstream = Upstream::start(completion()).await;
    let ran = run(&client(&upstream), &call(Request { n: 2, ..request("hi") })).await;
    assert_eq!(
        ran.outcome,
        Err(CallFailure::Unknown(UnknownReason::Unreadable(UnreadableReason::Choices("choices"))))
    );
    assert_eq!(ran.choices(), []);
    assert!(upstream.arrived()[0].body.contains("\"n\":2"));
}

#[tokio::test]
async fn a_pooled_connection_that_the_server_closed_is_not_used() {
    let upstream = Upstream::start(ScriptedReply::SendAndClose(answer(200, COMPLETION))).await;
    let client = client(&upstream);
    for calls in 1..=3 {
        run(&client, &call(request("hi"))).await.outcome.unwrap();
        upstream.closed().await;
        settle().await;
        assert_eq!((upstream.arrived().len(), upstream.connections()), (calls, calls));
    }
}

#[test]
fn a_base_url_is_a_server_and_a_path() {
    for url in ["https://api.openai.com/v1", "http://[::1]:8000", "http://ollama:11434/v1/"] {
        assert!(BaseUrl::try_from(url).is_ok(), "{url}");
    }
    for (url, bad) in [
        ("", BadBaseUrl::Malformed),
        ("https://api example/v1", BadBaseUrl::Malformed),
        ("http://localhost:99999/v1", BadBaseUrl::Malformed),
        ("api.openai.com/v1", BadBaseUrl::Malformed),
        ("/v1", BadBaseUrl::Server),
        ("ftp://files/v1", BadBaseUrl::Server),
        ("https://user:word@host/v1", BadBaseUrl::Userinfo),
        ("https://host/v1?region=eu", BadBaseUrl::Query),
        ("https://host/v1#top", BadBaseUrl::Query),
    ] {
        assert_eq!(BaseUrl::try_from(url), Err(bad), "{url}");
    }
}

#[test]
fn a_credential_is_visible_ascii_and_never_prints() {
    for key in ["", "two words", "line\r\nbreak", "schlüssel"] {
        assert!(UpstreamKey::try_from(key).is_err(), "{key}");
    }
    let api_key = Some(UpstreamKey::try_from("sk-operator").unwrap());
    let options = options(ServerOptions { api_key, ..server("https://host/v1") });
    let client = HttpProvider::new(options.clone()).unwrap();
    for printed in [format!("{options:?}"), format!("{client:?}")] {
        assert!(!printed.contains("sk-operator"), "{printed}");
    }
}

#[tokio::test]
async fn no_log_tells_what_was_said_or_by_whom() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    // For the whole process: a subscriber of one thread misses events that others registered first.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    let quoting = r#"{"error":{"code":"invalid_value","message":"you said prompt-words"}}"#;
    for reply in [completion(), ScriptedReply::Send(answer(400, quoting))] {
        let upstream = Upstream::start(reply).await;
        let api_key = Some(UpstreamKey::try_from("sk-operator").unwrap());
        let options = options(ServerOptions { api_key, ..server(&upstream.base_url()) });
        run(&HttpProvider::new(options).unwrap(), &call(request("prompt-words"))).await;
    }
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("class=\"answered\" status=200"), "{log}");
    assert!(log.contains("class=\"refused\" status=400"), "{log}");
    for secret in ["prompt-words", "Hello.", "sk-operator", "req_upstream", "-upstream"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn nothing_is_sent_where_connecting_takes_too_long() {
    // Accepts connections and never says a word: the TLS handshake hangs.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/v1", silent.local_addr().unwrap().port());
    let asked = Call { connect: Duration::from_millis(100), ..call(request("hi")) };
    let ran = run(&HttpProvider::new(options(server(&url))).unwrap(), &asked).await;
    assert_eq!(
        (ran.outcome, ran.was_sent),
        (Err(CallFailure::NotRun(NotRunProof::Connect)), false)
    );
}
