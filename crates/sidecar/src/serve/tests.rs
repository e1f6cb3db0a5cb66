//! The whole sidecar between real sockets, with tokio's clock stopped: it goes on by itself while everybody waits.
//! The gateway is a script, since the one of the tests has a clock of its own.
//!
//! Real sockets, because the sidecar judges by them: a peek, a reset and a flush have no equal in memory. A stopped
//! clock, because timeouts of minutes are tested in milliseconds and never race with the machine.
//!
//! Each part has a file: hang-ups, healing of broken answers, connections without a request, peeks at sockets.

mod hang_ups;
mod healing;
mod paces;
mod sockets;

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::*;
use crate::{HangUpPolicy, IdenticalCalls, Options};
use holdfast_net::Proxies;

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
/// Last bytes of a stream that has ended, and was not broken off.
const END: &str = "0\r\n\r\n";

/// A completion with these headers, each with its end of line.
fn post(headers: &str, body: &str) -> String {
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: sidecar\r\nconnection: close\r\n\
         authorization: Bearer hfk_of_these_tests\r\ncontent-type: application/json\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// An answer that is whole, and after which the connection ends.
fn json(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
         {headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

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

/// A sidecar, and the gateway before which it is.
struct Bench {
    gateway: TcpListener,
    address: SocketAddr,
    tasks: JoinSet<Result<(), LostJournal>>,
    shutdown: CancellationToken,
}

/// Request that has come to the gateway.
struct AskedRequest {
    head: String,
    socket: TcpStream,
}

impl Bench {
    async fn start() -> Self {
        Self::with(|options| Sidecar::open(options).unwrap()).await
    }

    /// Bench of a sidecar that is made of the usual options.
    async fn with(open: impl FnOnce(Options) -> Sidecar) -> Self {
        let gateway = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = format!("http://{}/v1", gateway.local_addr().unwrap());
        let sidecar = open(Options {
            upstream: upstream.parse().unwrap(),
            proxies: Proxies::none(),
            journal: None,
            identical: IdenticalCalls::New,
            window: Duration::from_secs(600),
            hang_up: HangUpPolicy::Run,
            patience: Duration::from_secs(120),
            hosts: vec!["sidecar".parse().unwrap()],
            origins: Vec::new(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (mut tasks, shutdown) = (JoinSet::new(), CancellationToken::new());
        tasks.spawn(serve(listener, sidecar, shutdown.clone()));
        Self { gateway, address, tasks, shutdown }
    }

    /// A client that has sent this.
    async fn send(&self, request: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.address).await.unwrap();
        client.write_all(request.as_bytes()).await.unwrap();
        client
    }

    /// The next request that comes to the gateway.
    async fn asked(&self) -> AskedRequest {
        let (mut socket, _) = self.gateway.accept().await.unwrap();
        let mut read = Vec::new();
        loop {
            let text = String::from_utf8_lossy(&read);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = header(head, "content-length").map_or(0, |it| it.parse().unwrap());
                if body.len() == length {
                    return AskedRequest { head: head.to_owned(), socket };
                }
            }
            let mut more = [0; 4_096];
            let length = socket.read(&mut more).await.unwrap();
            assert!(length > 0, "{text}");
            read.extend_from_slice(&more[..length]);
        }
    }

    /// The key of a call without one, whose client then hangs up.
    async fn key_of(&self, request: &str) -> String {
        let client = self.send(request).await;
        let key = self.asked().await.key().to_owned();
        drop(client);
        key
    }
}

impl AskedRequest {
    fn key(&self) -> &str {
        header(&self.head, "idempotency-key").unwrap()
    }

    async fn answer(&mut self, text: &str) {
        self.socket.write_all(text.as_bytes()).await.unwrap();
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

/// Text that a client receives until its connection ends.
async fn rest(mut client: TcpStream) -> String {
    let mut events_sent = String::new();
    client.read_to_string(&mut events_sent).await.unwrap();
    events_sent
}

/// Text that a client receives until this has come.
async fn until(client: &mut TcpStream, word: &str) -> String {
    let mut events_sent = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&events_sent);
        if text.contains(word) {
            return text.into_owned();
        }
        let mut more = [0; 4_096];
        let length = client.read(&mut more).await.unwrap();
        assert!(length > 0, "no {word}: {text}");
        events_sent.extend_from_slice(&more[..length]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_falls_silent_is_asked_for_again_after_a_minute() {
    let bench = Bench::start().await;
    let began = Instant::now();
    let client = bench.send(&post("", "{}")).await;
    let (all, mut open) = (events(), Vec::new());
    for events_sent in [&all[..1], &all[..]] {
        let mut asked = bench.asked().await;
        asked.answer(&format!("{HEAD}{}", events_sent.concat())).await;
        // Not closed: it says nothing more.
        open.push(asked);
    }
    let events_sent = rest(client).await;
    let waited = began.elapsed();
    assert!((60..90).contains(&waited.as_secs()), "{waited:?}");
    assert_eq!(events_sent.matches("Good ").count(), 1, "{events_sent}");
    assert!(events_sent.contains("day") && events_sent.contains("data: [DONE]"), "{events_sent}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_sidecar_cancels_nothing_and_a_hang_up_does() {
    for is_stopped in [true, false] {
        let cancelling = |options| Options { hang_up: HangUpPolicy::Cancel, ..options };
        let mut bench = Bench::with(|options| Sidecar::open(cancelling(options)).unwrap()).await;
        let client = bench.send(&post("", "{}")).await;
        let _unanswered = bench.asked().await;
        if is_stopped {
            bench.shutdown.cancel();
            // Within the drain nobody is cut.
            bench.tasks.join_next().await.unwrap().unwrap().unwrap();
            let more = tokio::time::timeout(DRAIN, bench.asked()).await;
            assert!(more.is_err(), "{}", more.unwrap().head);
        } else {
            drop(client);
            let cancelled = bench.asked().await.head;
            assert!(cancelled.starts_with("POST /v1/operations/"), "{cancelled}");
            assert!(cancelled.contains("/cancel "), "{cancelled}");
        }
    }
}
