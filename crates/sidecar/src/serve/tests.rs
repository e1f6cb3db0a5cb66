//! The whole sidecar between real sockets, with tokio's clock stopped: it goes on by itself while everybody waits.
//! The gateway is a script, since the one of the tests has a clock of its own.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::*;
use crate::{HangUpPolicy, IdenticalCalls, Options};
use holdfast_providers::Proxies;

const REQUEST: &str = "POST /v1/chat/completions HTTP/1.1\r\nhost: sidecar\r\nconnection: close\r\n\
    authorization: Bearer hfk_of_these_tests\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

fn chunk(delta: &str, finish: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl_1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"a/b\",\
         \"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
    )
}

fn events() -> [String; 4] {
    [
        chunk("{\"role\":\"assistant\",\"content\":\"Good \"}", "null"),
        chunk("{\"content\":\"day\"}", "null"),
        chunk("{}", "\"stop\""),
        "data: [DONE]\n\n".to_owned(),
    ]
}

/// Reads a request whose body has two bytes at most; its first line.
async fn request(socket: &mut TcpStream) -> String {
    let mut read = Vec::new();
    // A cancellation has no body.
    let is_whole = |read: &[u8]| {
        let is_cancel = read.starts_with(b"POST /v1/operations/");
        read.ends_with(b"\r\n\r\n{}") || is_cancel && read.ends_with(b"\r\n\r\n")
    };
    while !is_whole(&read) {
        let mut more = [0; 4_096];
        let length = socket.read(&mut more).await.unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&more[..length]);
    }
    String::from_utf8(read).unwrap().lines().next().unwrap().to_owned()
}

/// A sidecar before this gateway, on tasks of this set.
async fn sidecar(
    gateway: &TcpListener,
    hang_up: HangUpPolicy,
    (tasks, shutdown): (&mut JoinSet<()>, &CancellationToken),
) -> TcpStream {
    let upstream = format!("http://{}/v1", gateway.local_addr().unwrap());
    let options = Options {
        upstream: upstream.parse().unwrap(),
        proxies: Proxies::none(),
        journal: None,
        identical: IdenticalCalls::New,
        window: Duration::from_secs(600),
        hang_up,
        patience: Duration::from_secs(120),
    };
    let sidecar = Sidecar::open(options).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tasks.spawn(serve(listener, sidecar, shutdown.clone()));
    TcpStream::connect(address).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_falls_silent_is_asked_for_again_after_a_minute() {
    let gateway = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (mut tasks, shutdown) = (JoinSet::new(), CancellationToken::new());
    let mut client = sidecar(&gateway, HangUpPolicy::Run, (&mut tasks, &shutdown)).await;
    let began = Instant::now();
    client.write_all(REQUEST.as_bytes()).await.unwrap();
    let (all, mut open) = (events(), Vec::new());
    for told in [&all[..1], &all[..]] {
        let (mut asked, _) = gateway.accept().await.unwrap();
        request(&mut asked).await;
        asked.write_all(format!("{HEAD}{}", told.concat()).as_bytes()).await.unwrap();
        // Not closed: it says nothing more.
        open.push(asked);
    }
    let mut told = String::new();
    client.read_to_string(&mut told).await.unwrap();
    let waited = began.elapsed();
    assert!((60..90).contains(&waited.as_secs()), "{waited:?}");
    assert_eq!(told.matches("Good ").count(), 1, "{told}");
    assert!(told.contains("day") && told.contains("data: [DONE]"), "{told}");
}

/// Requests of a gateway that never answers.
async fn unanswered(gateway: &TcpListener, lines: &mut Vec<String>, open: &mut Vec<TcpStream>) {
    let (mut asked, _) = gateway.accept().await.unwrap();
    lines.push(request(&mut asked).await);
    open.push(asked);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_sidecar_cancels_nothing_and_a_hang_up_does() {
    for is_stopped in [true, false] {
        let gateway = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (mut tasks, shutdown) = (JoinSet::new(), CancellationToken::new());
        let mut client = sidecar(&gateway, HangUpPolicy::Cancel, (&mut tasks, &shutdown)).await;
        client.write_all(REQUEST.as_bytes()).await.unwrap();
        let (mut lines, mut open) = (Vec::new(), Vec::new());
        unanswered(&gateway, &mut lines, &mut open).await;
        if is_stopped {
            shutdown.cancel();
            // Within the drain nobody is cut.
            tasks.join_next().await.unwrap().unwrap();
            let more = timeout_of(unanswered(&gateway, &mut lines, &mut open)).await;
            assert!(more.is_none(), "{lines:?}");
        } else {
            drop(client);
            unanswered(&gateway, &mut lines, &mut open).await;
            assert!(lines[1].starts_with("POST /v1/operations/"), "{lines:?}");
            assert!(lines[1].contains("/cancel "), "{lines:?}");
        }
    }
}

/// None where it does not come about for as long as a cancellation may take.
async fn timeout_of<T>(future: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(DRAIN, future).await.ok()
}
