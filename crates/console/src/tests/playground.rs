//! The playground over a public API of the test's own: what goes there, what comes back, what is kept.

use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use holdfast_domain::ports::Unavailable;
use http::{HeaderMap, Request, Response};

use super::site::{Call, World, shared_options};
use holdfast_admin::AnswerBody;

use crate::console::Console;
use crate::kit::ConsoleOptions;
use crate::relay::ApiRelay;

/// Keeps what it was asked, and answers.
#[derive(Debug, Default)]
struct Recorder {
    asked: Mutex<Vec<(String, HeaderMap, String)>>,
    status: u16,
}

#[async_trait]
impl ApiRelay for Recorder {
    async fn ask(
        &self,
        request: Request<Bytes>,
        _client: IpAddr,
    ) -> Result<Response<BoxStream<'static, Bytes>>, Unavailable> {
        let (head, body) = request.into_parts();
        let told = String::from_utf8(body.to_vec()).unwrap();
        let path = format!("{} {}", head.method, head.uri);
        self.asked.lock().unwrap().push((path, head.headers, told));
        let answer = Response::builder()
            .status(self.status)
            .header("content-type", "text/event-stream")
            .header("idempotent-replayed", "true")
            .header("set-cookie", "theirs=1")
            .header("x-request-id", "theirs");
        let body = stream::iter([Bytes::from_static(b"data: <b>\n\n")]).boxed();
        Ok(answer.body(body).unwrap())
    }
}

const KEY: &str = "hfk_0123456789_a-secret-that-nobody-keeps";
const REQUEST_KEY: &str = "7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11";

fn fields(message: &str) -> [(&'static str, &str); 4] {
    [("api_key", KEY), ("model", "acme/large"), ("message", message), ("request_key", REQUEST_KEY)]
}

async fn world(status: u16) -> (World, Arc<Recorder>, String) {
    let mut world = World::owned().await;
    let recorder = Arc::new(Recorder { asked: Mutex::default(), status });
    let relay: Arc<dyn ApiRelay> = Arc::<Recorder>::clone(&recorder);
    let options = ConsoleOptions { playground: Some(relay), ..shared_options() };
    world.console = Console::new(world.accounts.clone(), options);
    let cookies = world.cookies().await;
    (world, recorder, cookies)
}

#[tokio::test]
async fn a_request_goes_there_as_its_bearer_and_with_nothing_of_the_session() {
    let (world, recorder, cookies) = world(200).await;
    let call = Call::post("/playground", &fields("hello")).cookies(&cookies);
    let reply = world.send(call.header("origin", "http://localhost:8081")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let asked = recorder.asked.lock().unwrap().clone();
    let paths: Vec<_> = asked.iter().map(|(path, _, _)| path.as_str()).collect();
    let look = format!("GET /v1/operations/{REQUEST_KEY}");
    assert_eq!(paths, ["POST /v1/chat/completions", look.as_str()]);
    let (_, head, body) = &asked[0];
    let mut names: Vec<_> = head.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["authorization", "content-type", "host", "idempotency-key"]);
    assert_eq!(head["authorization"], format!("Bearer {KEY}"));
    assert!(!format!("{head:?}").contains(KEY), "it is marked as sensitive");
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!((&body["stream"], &body["model"]), (&false.into(), &"acme/large".into()));
    assert!(!reply.text.contains(KEY), "the page does not have it");
    assert!(reply.text.contains("without a run") && !reply.text.contains("<b>"), "{}", reply.text);
    assert!(reply.text.contains(REQUEST_KEY) && reply.text.contains("hello</textarea>"));
}

#[tokio::test]
async fn a_stream_is_passed_on_with_no_head_but_its_own() {
    let (world, recorder, cookies) = world(503).await;
    let call = Call::post("/playground/stream", &fields("hello")).cookies(&cookies);
    let answer = world.ask(call).await;
    let (head, body) = answer.into_parts();
    assert_eq!(head.status.as_u16(), 503);
    assert!(!head.headers.contains_key("set-cookie") && !head.headers.contains_key("x-request-id"));
    assert!(head.headers.contains_key("content-security-policy"));
    let AnswerBody::Streamed(body) = body else { panic!("it is streamed") };
    let parts: Vec<_> = body.map(Result::unwrap).collect().await;
    assert_eq!(parts.concat(), b"data: <b>\n\n");
    assert!(recorder.asked.lock().unwrap()[0].2.contains("\"stream\":true"));
}

#[tokio::test]
async fn nothing_is_sent_that_is_not_whole_or_not_ours() {
    let (world, recorder, cookies) = world(200).await;
    let long = "x".repeat((32 << 10) + 1);
    let whole = fields("hello");
    for (name, value) in [
        ("api_key", "sk-another"),
        ("api_key", ""),
        ("message", " "),
        ("message", long.as_str()),
        ("request_key", "a b"),
        ("model", ""),
    ] {
        let sent = whole.map(|(known, old)| (known, if known == name { value } else { old }));
        for path in ["/playground", "/playground/stream"] {
            let reply = world.send(Call::post(path, &sent).cookies(&cookies)).await;
            assert_eq!(reply.status, 422, "{path} {name}");
            assert!(!reply.text.contains(KEY), "{path} {name}");
        }
    }
    let foreign = Call::post("/playground/stream", &whole).cookies(&cookies);
    let foreign = foreign.header("sec-fetch-site", "cross-site");
    assert_eq!(world.send(foreign).await.status, 403);
    assert_eq!(world.send(Call::post("/playground/stream", &whole)).await.status, 303);
    assert!(recorder.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_message_of_the_longest_is_taken_whatever_its_characters() {
    let (world, recorder, cookies) = world(200).await;
    let ends = format!("x{}", "\n".repeat((32 << 10) - 1));
    for message in ["x".repeat(32 << 10), "ä".repeat(16 << 10), "€".repeat(10_922), ends] {
        // As a browser writes line ends into a form.
        let sent = message.replace('\n', "\r\n");
        recorder.asked.lock().unwrap().clear();
        for path in ["/playground", "/playground/stream"] {
            let call = Call::post(path, &fields(&sent)).cookies(&cookies);
            let status = world.ask(call).await.status().as_u16();
            assert_eq!(status, 200, "{path} {:?}", message.chars().last());
        }
        let asked = recorder.asked.lock().unwrap().clone();
        let body: serde_json::Value = serde_json::from_str(&asked[0].2).unwrap();
        assert_eq!(body["messages"][0]["content"], message);
    }
    let over = "ä".repeat((16 << 10) + 1);
    let call = Call::post("/playground", &fields(&over)).cookies(&cookies);
    let reply = world.send(call).await;
    assert!(reply.status == 422 && reply.text.contains("id=\"message-error\""));
    let form = "x".repeat(256 << 10);
    let call = Call::post("/playground", &fields(&form)).cookies(&cookies);
    assert_eq!(world.send(call).await.status, 413);
}

#[tokio::test]
async fn one_person_has_four_answers_on_the_way() {
    let (world, _recorder, cookies) = world(200).await;
    let call = Call::post("/playground/stream", &fields("hello")).cookies(&cookies);
    let mut held = Vec::new();
    for _answer in 0..4 {
        held.push(world.ask(call.clone()).await);
    }
    for path in ["/playground/stream", "/playground"] {
        let busy = world.send(Call::post(path, &fields("hello")).cookies(&cookies)).await;
        assert_eq!((busy.status, busy.header("retry-after")), (429, Some("5")), "{path}: {busy:?}");
    }
    held.pop();
    assert_eq!(world.ask(call).await.status().as_u16(), 200, "its place is free");
}
