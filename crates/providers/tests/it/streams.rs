//! Answers that stream, from a scripted server: what is told while they come, and what it proves where
//! they do not come to their end.

use std::sync::Arc;

use holdfast_domain::answer::{Answer, Delta, FinishReason};
use holdfast_domain::ports::{
    Call, CallFailure, Provider, ResponseMode, Sink, UnknownReason, UnreadableReason,
};
use holdfast_domain::request::Request;
use holdfast_providers::kinds::{HttpOptions, Kind, OpenAi};
use holdfast_providers::{HttpProvider, ServerOptions};
use holdfast_wire::chat::upstream::{BoundField, FinishWords};
use tokio::sync::Notify;

use crate::calls::{CallResult, call, request, run};
use crate::openai::{options, server};
use crate::upstream::{ScriptedReply, Upstream, answer, stream, unended};

const NO_END: UnreadableReason = UnreadableReason::Finish("choices[].finish_reason");

const fn unreadable(why: UnreadableReason) -> CallFailure {
    CallFailure::Unknown(UnknownReason::Unreadable(why))
}

const BROKEN: CallFailure = CallFailure::Unknown(UnknownReason::Broken);

const ROLE: &str = r#"data: {"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}

"#;
const HEL: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\"}}]}\r\n\r\n";
const LO: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo.\"}}]}\n\n";
const STOP: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
const USAGE: &str =
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}\n\n";
const DONE: &str = "data: [DONE]\n\n";

fn client(upstream: &Upstream) -> HttpProvider {
    HttpProvider::new(options(server(&upstream.base_url()))).unwrap()
}

fn streamed(text: &str) -> Call {
    Call { response_mode: ResponseMode::Streamed, ..call(request(text)) }
}

async fn hear(reply: ScriptedReply) -> CallResult {
    let upstream = Upstream::start(reply).await;
    let ran = run(&client(&upstream), &streamed("hi")).await;
    assert_eq!(upstream.arrived().len(), 1, "sent once, whatever came of it");
    ran
}

#[track_caller]
fn check(ran: &CallResult, usage: Option<(u64, u64)>) {
    assert_eq!(ran.choices(), [("Hello.", Some(FinishReason::Stop))]);
    assert_eq!(ran.usage(), usage);
}

#[tokio::test]
async fn a_stream_is_asked_for_and_read() {
    let upstream =
        Upstream::start(ScriptedReply::Send(stream(&[ROLE, HEL, LO, STOP, USAGE, DONE]))).await;
    let client = client(&upstream);
    for _call in 0..2 {
        check(&run(&client, &streamed("hi")).await, Some((9, 3)));
    }
    let sent = &upstream.arrived()[0].body;
    assert!(sent.contains(r#""stream":true,"stream_options":{"include_usage":true}"#), "{sent}");
    assert_eq!(
        upstream.connections(),
        1,
        "a stream that has ended leaves its connection to others"
    );
}

#[tokio::test]
async fn pieces_of_any_size_are_one_stream() {
    let whole =
        [": OPENROUTER PROCESSING\n\n", ROLE, HEL, "data:\n\n", LO, STOP, USAGE, DONE].concat();
    let bytes: Vec<_> = whole.split_inclusive(|_: char| true).collect();
    check(&hear(ScriptedReply::Send(stream(&[&whole]))).await, Some((9, 3)));
    check(&hear(ScriptedReply::Send(stream(&bytes))).await, Some((9, 3)));
    let at_once = format!("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n{whole}");
    check(&hear(ScriptedReply::SendAndClose(at_once)).await, Some((9, 3)));
}

#[tokio::test]
async fn the_word_that_it_ends_may_be_missing_and_so_may_the_usage() {
    check(&hear(ScriptedReply::Send(stream(&[HEL, LO, STOP, USAGE]))).await, Some((9, 3)));
    check(&hear(ScriptedReply::Send(stream(&[HEL, LO, STOP]))).await, None);
    check(&hear(ScriptedReply::Send(stream(&[HEL, LO, STOP, DONE]))).await, None);
    // Everything was said: how the connection ends proves nothing against it.
    check(&hear(ScriptedReply::SendAndClose(unended(&[HEL, LO, STOP]))).await, None);
    check(&hear(ScriptedReply::SendAndClose(unended(&[HEL, LO, STOP, USAGE]))).await, Some((9, 3)));
    check(&hear(ScriptedReply::Send(stream(&[HEL, LO, STOP, "data: ...\n\n"]))).await, None);
}

#[tokio::test]
async fn what_follows_the_end_is_not_waited_for() {
    let reply = unended(&[HEL, LO, STOP, USAGE, DONE]);
    check(&hear(ScriptedReply::SendAndHang(reply)).await, Some((9, 3)));
}

#[tokio::test]
async fn an_answer_that_comes_whole_is_an_answer_too() {
    let whole = r#" {"choices":[{"index":0,"message":{"content":"Hello."},"finish_reason":"stop"}],
        "usage":{"prompt_tokens":9,"completion_tokens":3}}"#;
    check(&hear(ScriptedReply::Send(answer(200, whole))).await, Some((9, 3)));
    let (space, rest) = whole.split_at(1);
    check(&hear(ScriptedReply::Send(stream(&[space, rest]))).await, Some((9, 3)));
    let error = hear(ScriptedReply::Send(answer(200, r#"{"error":{"message":"no"}}"#))).await;
    assert_eq!(error.outcome, Err(unreadable(UnreadableReason::Error)));
}

/// Outcome of a call that asked for a whole answer.
async fn hear_whole(reply: ScriptedReply) -> CallResult {
    let upstream = Upstream::start(reply).await;
    let ran = run(&client(&upstream), &call(request("hi"))).await;
    let arrived = upstream.arrived();
    assert_eq!(arrived.len(), 1, "sent once, whatever came of it");
    assert!(!arrived[0].body.contains("stream"), "{}", arrived[0].body);
    ran
}

#[tokio::test]
async fn events_that_nobody_requested_are_folded_into_a_whole_answer() {
    let events = [ROLE, HEL, LO, STOP, USAGE, DONE];
    check(&hear_whole(ScriptedReply::Send(stream(&events))).await, Some((9, 3)));
    check(&hear_whole(ScriptedReply::SendAndHang(unended(&events))).await, Some((9, 3)));
    for (before, content_type) in [
        ("", "application/json"),
        (": keep-alive\n\n", "text/plain"),
        ("\n\n", "application/json; charset=utf-8"),
        ("event: message\n", "application/json"),
        ("id: 1\nretry: 5\n", "text/event-stream"),
    ] {
        let body = format!("{before}{}", events.concat());
        let reply = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\n\r\n{body}");
        check(&hear_whole(ScriptedReply::SendAndClose(reply)).await, Some((9, 3)));
    }
}

#[tokio::test]
async fn events_that_nobody_requested_are_as_strict_as_a_stream() {
    for (reply, failure) in [
        (ScriptedReply::Send(stream(&[HEL, DONE])), unreadable(NO_END)),
        (ScriptedReply::SendAndClose(unended(&[HEL])), BROKEN),
        (
            ScriptedReply::Send(stream(&[HEL, "data: error: engine died\n\n"])),
            unreadable(UnreadableReason::Json),
        ),
    ] {
        assert_eq!(hear_whole(reply).await.outcome, Err(failure));
    }
}

#[tokio::test]
async fn an_end_has_the_meaning_that_the_operator_gives_its_word() {
    let words = FinishWords::NONE.with("abort", FinishReason::Length).unwrap();
    let words = words.with("load", FinishReason::Length).unwrap();
    let dialect = OpenAi { finish_words: words, ..OpenAi::new(BoundField::MaxCompletionTokens) };
    for (word, finish) in [
        ("abort", Some(FinishReason::Length)),
        ("ABORT", Some(FinishReason::Length)),
        // The operator's meaning comes before the table's.
        ("load", Some(FinishReason::Length)),
        ("eos_token", Some(FinishReason::Stop)),
        ("cancelled", None),
    ] {
        let end = STOP.replace("stop", word);
        let whole = format!(
            r#"{{"choices":[{{"index":0,"message":{{"content":"Hel"}},"finish_reason":"{word}"}}]}}"#
        );
        for (reply, asked) in [
            (stream(&[HEL, &end, DONE]), streamed("hi")),
            (answer(200, &whole), call(request("hi"))),
        ] {
            let upstream = Upstream::start(ScriptedReply::Send(reply)).await;
            let kind = Kind::OpenAi(dialect.clone());
            let options = HttpOptions { server: server(&upstream.base_url()), kind };
            let ran = run(&HttpProvider::new(options).unwrap(), &asked).await;
            assert_eq!(ran.outcome.is_ok(), finish.is_some(), "{word}");
            assert_eq!(ran.choices().first().and_then(|(_, finish)| *finish), finish, "{word}");
        }
    }
}

#[tokio::test]
async fn a_refusal_is_no_stream() {
    let refused = hear(ScriptedReply::Send(answer(400, "{}"))).await;
    assert!(matches!(refused.outcome, Err(CallFailure::Refused(_))));
    let turned_away = hear(ScriptedReply::Send(answer(429, "{}"))).await;
    assert!(matches!(turned_away.outcome, Err(CallFailure::NotRun(_))));
    assert_eq!((refused.choices(), turned_away.choices()), (vec![], vec![]));
}

#[tokio::test]
async fn a_stream_that_does_not_come_to_its_end_is_unknown() {
    let error = "data: {\"error\":{\"message\":\"m\",\"code\":500}}\n\n";
    let named = "event: error\ndata: {}\n\n";
    for (reply, failure) in [
        (ScriptedReply::SendAndClose(unended(&[HEL])), BROKEN),
        (ScriptedReply::SendAndClose(unended(&[HEL, "data: {\"cho"])), BROKEN),
        (ScriptedReply::Send(stream(&[HEL])), unreadable(NO_END)),
        (ScriptedReply::Send(stream(&[HEL, DONE])), unreadable(NO_END)),
        (ScriptedReply::Send(stream(&[HEL, error, DONE])), unreadable(UnreadableReason::Error)),
        (
            ScriptedReply::Send(stream(&[HEL, named, STOP, DONE])),
            unreadable(UnreadableReason::Error),
        ),
        (
            ScriptedReply::Send(stream(&[HEL, "data: {\"choices\":\n\n", STOP])),
            unreadable(UnreadableReason::Json),
        ),
    ] {
        let ran = hear(reply).await;
        assert_eq!(ran.outcome, Err(failure));
        assert_eq!(ran.choices(), [("Hel", None)]);
    }
    for (reply, failure) in [
        (ScriptedReply::SendAndClose(unended(&[])), BROKEN),
        (ScriptedReply::Send(stream(&[])), unreadable(UnreadableReason::Choices("choices"))),
        (
            ScriptedReply::Send(stream(&["<html>no</html>"])),
            unreadable(UnreadableReason::Choices("choices")),
        ),
        (ScriptedReply::Send(stream(&[DONE])), unreadable(UnreadableReason::Choices("choices"))),
        (ScriptedReply::Reset, BROKEN),
    ] {
        let ran = hear(reply).await;
        assert_eq!(ran.outcome, Err(failure));
        assert_eq!(ran.choices(), []);
    }
}

#[tokio::test]
async fn every_choice_has_to_come_to_its_end() {
    let other = HEL.replace("\"index\":0", "\"index\":1");
    let upstream =
        Upstream::start(ScriptedReply::Send(stream(&[HEL, &other, STOP, USAGE, DONE]))).await;
    let call =
        Call { response_mode: ResponseMode::Streamed, ..call(Request { n: 2, ..request("hi") }) };
    assert_eq!(run(&client(&upstream), &call).await.outcome, Err(unreadable(NO_END)));
}

#[tokio::test]
async fn an_event_is_no_longer_than_it_may_be() {
    let whole = [HEL, LO, STOP];
    let longest = whole.iter().map(|event| event.trim_end().len()).max().unwrap();
    let upstream = Upstream::start(ScriptedReply::Send(stream(&whole))).await;
    let too_long = unreadable(UnreadableReason::LongEvent);
    for (event_bytes_max, failure) in [(longest, None), (longest - 1, Some(too_long))] {
        let server = ServerOptions { event_bytes_max, ..server(&upstream.base_url()) };
        let options = options(server);
        let ran = run(&HttpProvider::new(options).unwrap(), &streamed("hi")).await;
        assert_eq!(ran.outcome.err(), failure);
    }
}

/// Tells when something was said.
#[derive(Default)]
struct Listener {
    answer: Answer,
    heard: Arc<Notify>,
}

impl Sink for Listener {
    fn on_send(&mut self) {}

    fn on_delta(&mut self, delta: Delta) {
        self.answer.append(delta);
        self.heard.notify_one();
    }
}

#[tokio::test]
async fn a_piece_is_told_when_it_comes_and_a_dropped_call_hangs_up() {
    let upstream = Upstream::start(ScriptedReply::SendAndHang(unended(&[HEL]))).await;
    let client = client(&upstream);
    let mut listener = Listener::default();
    let heard = Arc::clone(&listener.heard);
    let asked = streamed("hi");
    tokio::select! {
        ended = client.run(&asked, &mut listener) => panic!("nothing ended it: {ended:?}"),
        () = heard.notified() => {}
    }
    assert_eq!(listener.answer.text_bytes(), 3);
    upstream.closed().await;
}
