//! Notes of failed calls, through a real socket: what a provider answered, without the request and the credential.

use holdfast_providers::{HttpProvider, UpstreamKey};
use tokio::net::TcpListener;

use crate::calls::{call, request, run};
use crate::openai::{options, server};
use crate::upstream::{ScriptedReply, Upstream, answer};

const PROMPT: &str = "The treasure lies below the third oak.";

async fn note(reply: ScriptedReply) -> Option<String> {
    let upstream = Upstream::start(reply).await;
    let mut server = server(&upstream.base_url());
    server.api_key = Some(UpstreamKey::try_from("route-credential-1").unwrap());
    let client = HttpProvider::new(options(server)).unwrap();
    run(&client, &call(request(PROMPT))).await.note
}

#[tokio::test]
async fn rejected_call_notes_status_names_and_filtered_message() {
    let message = format!("No room for {PROMPT} with route-credential-1 today.");
    let body =
        serde_json::json!({"error": {"message": message, "type": "overload", "code": "busy"}});
    let note_with =
        async |status| note(ScriptedReply::Send(answer(status, &body.to_string()))).await;
    let expected = "HTTP 503, code busy, type overload: No room for … with … today.";
    assert_eq!(note_with(503).await.unwrap(), expected);
    assert_eq!(note_with(400).await, None, "a refusal of the request is no failure of the route");
}

#[tokio::test]
async fn broken_call_notes_the_kind_of_failure() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = closed.local_addr().unwrap().port();
    drop(closed);
    let client =
        HttpProvider::new(options(server(&format!("http://127.0.0.1:{port}/v1")))).unwrap();
    let note_of_refused = run(&client, &call(request(PROMPT))).await.note;
    assert_eq!(note_of_refused.unwrap(), "connection refused");
    let reset = note(ScriptedReply::Reset).await;
    assert_eq!(reset.unwrap(), "connection broken after the request was sent");
    let html = note(ScriptedReply::Send(answer(200, "<html>"))).await;
    assert_eq!(html, None, "the failure's own class says it");
}
