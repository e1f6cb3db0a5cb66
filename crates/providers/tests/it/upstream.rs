//! A server on a loopback socket that reads requests, counts them and answers byte by byte as told.
//! Not an HTTP library: what it sends may be broken on purpose.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What the server does with each request that it has read.
#[derive(Clone)]
pub(crate) enum ScriptedReply {
    /// Sends this and keeps the connection.
    Send(String),
    /// Sends this and closes the connection.
    SendAndClose(String),
    /// Sends this and then nothing more.
    SendAndHang(String),
    /// Sends these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// Resets the connection.
    Reset,
}

/// A whole answer with a JSON body.
pub(crate) fn answer(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nx-request-id: req_upstream\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

/// The head of an answer that streams in chunks of HTTP, as servers send it.
const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
     x-request-id: req_upstream\r\ntransfer-encoding: chunked\r\n\r\n";

/// An answer that streams: each of these in a chunk of HTTP of its own, and the end of the body.
pub(crate) fn stream(pieces: &[&str]) -> String {
    format!("{}0\r\n\r\n", unended(pieces))
}

/// The same without the end of the body.
pub(crate) fn unended(pieces: &[&str]) -> String {
    let chunk = |piece: &&str| format!("{:x}\r\n{piece}\r\n", piece.len());
    format!("{STREAM_HEAD}{}", pieces.iter().map(chunk).collect::<String>())
}

/// The same of bytes, with the end of the body or without it.
pub(crate) fn frames(pieces: &[Vec<u8>], is_ended: bool) -> Vec<u8> {
    let mut bytes = STREAM_HEAD.replace("text/event-stream", "application/x").into_bytes();
    for piece in pieces {
        bytes.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        bytes.extend_from_slice(piece);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(if is_ended { b"0\r\n\r\n" } else { b"" });
    bytes
}

/// A request as it arrived.
#[derive(Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) head: String,
    pub(crate) body: String,
}

/// The server. Dropping it ends it.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    shared: Arc<UpstreamState>,
    _tasks: JoinSet<()>,
}

struct UpstreamState {
    reply: ScriptedReply,
    tls: Option<TlsAcceptor>,
    arrived: Mutex<Vec<ReceivedRequest>>,
    connections: Mutex<usize>,
    requested: Notify,
    closed: Semaphore,
}

impl Upstream {
    pub(crate) async fn start(reply: ScriptedReply) -> Self {
        Self::listen(reply, None).await
    }

    pub(crate) async fn start_tls(reply: ScriptedReply, tls: TlsAcceptor) -> Self {
        Self::listen(reply, Some(tls)).await
    }

    async fn listen(reply: ScriptedReply, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shared = Arc::new(UpstreamState {
            reply,
            tls,
            arrived: Mutex::default(),
            connections: Mutex::default(),
            requested: Notify::new(),
            closed: Semaphore::new(0),
        });
        let mut tasks = JoinSet::new();
        let address = listener.local_addr().unwrap();
        tasks.spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, _tasks: tasks }
    }

    pub(crate) fn base_url(&self) -> String {
        let scheme = if self.shared.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://localhost:{}/v1", self.address.port())
    }

    /// Every request that has arrived whole.
    pub(crate) fn arrived(&self) -> Vec<ReceivedRequest> {
        self.shared.arrived.lock().unwrap().clone()
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        *self.shared.connections.lock().unwrap()
    }

    /// Waits for the next request.
    pub(crate) async fn requested(&self) {
        within(self.shared.requested.notified()).await;
    }

    /// Waits until the client has closed one more connection.
    pub(crate) async fn closed(&self) {
        within(self.shared.closed.acquire()).await.unwrap().forget();
    }
}

/// Nothing that is waited for takes this long unless it never happens.
async fn within<T>(waited_for: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), waited_for).await.expect("it never happened")
}

async fn accept(listener: TcpListener, shared: Arc<UpstreamState>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        *shared.connections.lock().unwrap() += 1;
        connections.spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(stream: TcpStream, shared: Arc<UpstreamState>) {
    if matches!(shared.reply, ScriptedReply::Reset) {
        stream.set_zero_linger().unwrap();
    }
    match &shared.tls {
        None => talk(stream, &shared).await,
        // A client that does not trust the certificate hangs up.
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                talk(stream, &shared).await;
            }
        }
    }
    shared.closed.add_permits(1);
}

/// Answers until the client hangs up or the reply says otherwise.
async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, shared: &UpstreamState) {
    while let Some(request) = read_request(&mut stream).await {
        shared.arrived.lock().unwrap().push(request);
        shared.requested.notify_one();
        let (bytes, then) = match &shared.reply {
            ScriptedReply::Send(text) => (text.as_bytes(), AfterReply::Stay),
            ScriptedReply::SendAndClose(text) => (text.as_bytes(), AfterReply::Close),
            ScriptedReply::SendAndHang(text) => (text.as_bytes(), AfterReply::Hang),
            ScriptedReply::Bytes(bytes) => (bytes.as_slice(), AfterReply::Close),
            ScriptedReply::Reset => (&b""[..], AfterReply::Close),
        };
        // The client may have hung up already; what it makes of that is its own test.
        if stream.write_all(bytes).await.is_err() || stream.flush().await.is_err() {
            return;
        }
        match then {
            AfterReply::Stay => {}
            AfterReply::Close => return,
            AfterReply::Hang => drop(stream.read(&mut [0; 1]).await),
        }
    }
}

enum AfterReply {
    Stay,
    Close,
    Hang,
}

/// One request with a `content-length`, or nothing when the client hung up.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let (head, body) = bytes.split_at(at + 4);
            let head = String::from_utf8(head.to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() == length.unwrap().parse::<usize>().unwrap() {
                return Some(ReceivedRequest {
                    head,
                    body: String::from_utf8(body.to_vec()).unwrap(),
                });
            }
        }
        match stream.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}
