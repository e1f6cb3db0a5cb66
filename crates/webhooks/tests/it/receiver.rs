//! A receiver on a loopback socket: it reads requests, remembers them and answers byte by byte as
//! told. Not an HTTP library, for what it sends may be broken on purpose.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// Behaviour of a receiver towards each request.
#[derive(Clone)]
pub(crate) enum Reply {
    /// Sends this and closes the connection.
    Text(String),
    /// Sends this, and then nothing more.
    Unended(String),
    /// Sends this, and a body that has no end, for as long as anybody reads it.
    Endless(String),
    /// Says nothing.
    Silence,
}

/// A whole answer without a body.
pub(crate) fn status(status: u16) -> Reply {
    Reply::Text(format!("HTTP/1.1 {status} Status\r\ncontent-length: 0\r\n\r\n"))
}

/// The receiver. Dropping it ends it.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    state: Arc<ReceiverState>,
    _tasks: JoinSet<()>,
}

struct ReceiverState {
    reply: Reply,
    tls: Option<TlsAcceptor>,
    requests: Mutex<Vec<String>>,
    names: Mutex<Vec<Option<String>>>,
    connections: Mutex<usize>,
    requested: Semaphore,
    closed: Semaphore,
}

impl Receiver {
    pub(crate) async fn start(reply: Reply) -> Self {
        Self::listen(reply, None).await
    }

    pub(crate) async fn start_tls(reply: Reply, tls: TlsAcceptor) -> Self {
        Self::listen(reply, Some(tls)).await
    }

    async fn listen(reply: Reply, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(ReceiverState {
            reply,
            tls,
            requests: Mutex::default(),
            names: Mutex::default(),
            connections: Mutex::default(),
            requested: Semaphore::new(0),
            closed: Semaphore::new(0),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&state)));
        Self { address, state, _tasks: tasks }
    }

    /// URL of the receiver under a name; `path` begins with a slash.
    pub(crate) fn url(&self, host: &str, path: &str) -> String {
        let scheme = if self.state.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{host}:{}{path}", self.address.port())
    }

    /// Every request that has arrived whole.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.requests.lock().unwrap().clone()
    }

    /// Names that clients have asked for by TLS.
    pub(crate) fn names(&self) -> Vec<Option<String>> {
        self.state.names.lock().unwrap().clone()
    }

    pub(crate) fn connections(&self) -> usize {
        *self.state.connections.lock().unwrap()
    }

    /// Waits for one more request.
    pub(crate) async fn requested(&self) {
        within(self.state.requested.acquire()).await.unwrap().forget();
    }

    /// Waits until the sender has closed one more connection.
    pub(crate) async fn closed(&self) {
        within(self.state.closed.acquire()).await.unwrap().forget();
    }
}

/// Nothing that is waited for takes this long unless it never happens.
pub(crate) async fn within<T>(waited_for: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), waited_for).await.expect("it never happened")
}

async fn accept(listener: TcpListener, state: Arc<ReceiverState>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        *state.connections.lock().unwrap() += 1;
        connections.spawn(serve(stream, Arc::clone(&state)));
    }
}

async fn serve(stream: TcpStream, state: Arc<ReceiverState>) {
    match &state.tls {
        None => talk(stream, &state).await,
        // A sender that does not trust the certificate hangs up.
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                let name = stream.get_ref().1.server_name().map(str::to_owned);
                state.names.lock().unwrap().push(name);
                talk(stream, &state).await;
            }
        }
    }
    state.closed.add_permits(1);
}

async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, state: &ReceiverState) {
    let Some(request) = read_request(&mut stream).await else { return };
    state.requests.lock().unwrap().push(request);
    state.requested.add_permits(1);
    let (head, goes_on) = match &state.reply {
        Reply::Text(text) => (text.as_str(), GoesOn::No),
        Reply::Unended(text) => (text.as_str(), GoesOn::Silently),
        Reply::Endless(text) => (text.as_str(), GoesOn::Endlessly),
        Reply::Silence => ("", GoesOn::Silently),
    };
    // The sender may have hung up already; what it makes of that is its own test.
    if stream.write_all(head.as_bytes()).await.is_err() || stream.flush().await.is_err() {
        return;
    }
    match goes_on {
        GoesOn::No => drop(stream.shutdown().await),
        GoesOn::Silently => drop(stream.read(&mut [0; 1]).await),
        GoesOn::Endlessly => while stream.write_all(&[b'x'; 4_096]).await.is_ok() {},
    }
}

enum GoesOn {
    No,
    Silently,
    Endlessly,
}

/// One request with a `content-length`, or nothing when the sender hung up.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        // A handshake of TLS, perhaps: it gets no answer.
        let Ok(text) = str::from_utf8(&bytes) else { return None };
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length.unwrap().parse() == Ok(body.len()) {
                return Some(text.to_owned());
            }
        }
        match stream.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return None,
            Ok(_) => {}
        }
    }
}
