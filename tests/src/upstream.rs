//! A provider's server on a loopback socket that reads requests, counts them and answers each by its script. Not an
//! HTTP library: its bytes may be broken on purpose.

mod answers;
mod frames;
mod gate;
mod obedience;
mod streaming;
mod tls;

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;

pub use self::answers::{MARKS, completion, error, marked};
pub use self::gate::Gate;
use self::streaming::End;
pub use self::streaming::Streaming;
pub use self::tls::Tls;
use crate::PATIENCE;

/// Reaction of the server to a request that it has read.
#[derive(Debug, Clone)]
pub enum Reply {
    /// Answers with this status and body, with headers that carry marks.
    Send(u16, String),
    /// Answers with 200 and a stream.
    Stream(Streaming),
    /// Sends these bytes and closes the connection.
    Raw(String),
    /// Waits for the gate, then goes on.
    After(Gate, Box<Self>),
    /// Waits so long, then goes on: a model that takes its time.
    Late(Duration, Box<Self>),
    /// Does what is decided by what has arrived.
    Judged(Judge),
    /// Sends no byte and waits until the client hangs up.
    Silence,
    /// Resets the connection.
    Reset,
}

impl Reply {
    /// A completion with this text, as [`completion`] has it.
    #[must_use]
    pub fn saying(text: &str) -> Self {
        Self::Send(200, completion(text).to_string())
    }

    /// The one for a requested stream, else the other.
    #[must_use]
    pub fn as_wanted(streamed: Self, whole: Self) -> Self {
        Self::Judged(Judge::new(move |arrived| {
            let is_streamed = arrived.json()["stream"] == true;
            if is_streamed { streamed.clone() } else { whole.clone() }
        }))
    }

    /// A model that follows its request: it calls the tool that it may call until it has a result, fills the schema
    /// that it is given, and else answers this text; whole or as a stream.
    #[must_use]
    pub fn obeying(text: &'static str) -> Self {
        Self::Judged(Judge::new(move |arrived| obedience::obey(arrived, text)))
    }

    /// Any JSON body.
    #[must_use]
    pub fn json(status: u16, body: &Value) -> Self {
        Self::Send(status, body.to_string())
    }

    /// The same, after a gate was opened.
    #[must_use]
    pub fn after(self, gate: &Gate) -> Self {
        Self::After(gate.clone(), Box::new(self))
    }
}

/// Decides what is done with a request when it has arrived.
#[derive(Clone)]
pub struct Judge(Arc<dyn Fn(&ArrivedRequest) -> Reply + Send + Sync>);

impl Judge {
    /// Decides so.
    pub fn new(judge: impl Fn(&ArrivedRequest) -> Reply + Send + Sync + 'static) -> Self {
        Self(Arc::new(judge))
    }
}

impl std::fmt::Debug for Judge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Judge")
    }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct ArrivedRequest {
    /// The request line and the headers.
    pub head: String,
    /// The body, as text.
    pub body: String,
    /// The body as it came: not all that is sent somewhere is text.
    pub bytes: Vec<u8>,
}

impl ArrivedRequest {
    /// Names in lower case and values of the headers, sorted.
    #[must_use]
    pub fn headers(&self) -> Vec<(String, String)> {
        let lines = self.head.trim_end().split("\r\n").skip(1);
        let split = lines.filter_map(|line| line.split_once(": "));
        let mut headers: Vec<_> =
            split.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned())).collect();
        headers.sort_unstable();
        headers
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON is sent upstream")
    }
}

/// The server. Dropping it ends it.
#[derive(Debug)]
pub struct Upstream {
    shared: Arc<SharedState>,
    address: SocketAddr,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct SharedState {
    tls: Option<Tls>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    next: VecDeque<Reply>,
    otherwise: Reply,
    arrived: Vec<ArrivedRequest>,
    hung_up: usize,
    /// Every connection without TLS, as long as it is in use.
    taken: Vec<Weak<TcpStream>>,
    is_over: bool,
}

impl SharedState {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Upstream {
    /// A server that answers every request so, unless [`Self::next`] has a reply.
    #[must_use]
    pub fn start(otherwise: Reply) -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::listen(anywhere, otherwise, None)
    }

    /// The same over TLS.
    #[must_use]
    pub fn start_tls(otherwise: Reply, tls: Tls) -> Self {
        let anywhere = SocketAddr::from(([127, 0, 0, 1], 0));
        Self::listen(anywhere, otherwise, Some(tls))
    }

    /// The same at the address of an earlier server.
    #[must_use]
    pub fn start_at(address: SocketAddr, otherwise: Reply) -> Self {
        Self::listen(address, otherwise, None)
    }

    /// An address without a listener. It is on a loopback address of this process's own, so that no other program
    /// begins to listen.
    #[must_use]
    pub fn absent() -> SocketAddr {
        let [high, mid, low] = match std::process::id().to_be_bytes() {
            [_, high, mid, low] => [high, mid, low],
        };
        let own = SocketAddr::from(([127, high.saturating_add(1), mid, low | 1], 0));
        TcpListener::bind(own).and_then(|socket| socket.local_addr()).expect("a loopback address")
    }

    fn listen(at: SocketAddr, otherwise: Reply, tls: Option<Tls>) -> Self {
        let listener = TcpListener::bind(at).expect("a loopback address");
        let address = listener.local_addr().expect("an address");
        let state = State {
            next: VecDeque::new(),
            otherwise,
            arrived: Vec::new(),
            hung_up: 0,
            taken: Vec::new(),
            is_over: false,
        };
        let shared =
            Arc::new(SharedState { tls, state: Mutex::new(state), changed: Condvar::new() });
        let accepting = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.state().is_over {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&accepting);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { shared, address, accepting: Mutex::new(Some(accepting)) }
    }

    /// Ends the server as the death of its process does: no listener any more, and every connection without TLS is
    /// cut. Its address is free for another one.
    pub fn kill(&self) -> SocketAddr {
        self.end();
        let accepting = self.accepting.lock().unwrap_or_else(PoisonError::into_inner).take();
        accepting.expect("it lives").join().expect("it listens in peace");
        let taken = std::mem::take(&mut self.shared.state().taken);
        for connection in taken.iter().filter_map(Weak::upgrade) {
            // The client may have gone first.
            drop(connection.shutdown(Shutdown::Both));
        }
        self.address
    }

    fn end(&self) {
        self.shared.state().is_over = true;
        // The next connection is the last: it finds that it is over.
        drop(TcpStream::connect(self.address));
    }

    /// Address on which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `base_url` of a provider for it.
    #[must_use]
    pub fn base_url(&self) -> String {
        match self.shared.tls {
            None => format!("http://{}/v1", self.address),
            Some(_) => format!("https://localhost:{}/v1", self.address.port()),
        }
    }

    /// The next request that has no reply yet gets this one.
    pub fn next(&self, reply: Reply) {
        self.shared.state().next.push_back(reply);
    }

    /// Every request without a reply of [`Self::next`] gets this reply from now on.
    pub fn otherwise(&self, reply: Reply) {
        self.shared.state().otherwise = reply;
    }

    /// Every request that has arrived whole.
    #[must_use]
    pub fn arrived(&self) -> Vec<ArrivedRequest> {
        self.shared.state().arrived.clone()
    }

    /// Number of requests that have arrived whole.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.shared.state().arrived.len()
    }

    /// Waits until this many requests have arrived.
    pub fn wait_for(&self, runs: usize) {
        self.wait_until("requests came", runs, |state| state.arrived.len());
    }

    /// Waits until clients have hung up on so many silences.
    pub fn wait_for_hang_ups(&self, hang_ups: usize) {
        self.wait_until("clients hung up", hang_ups, |state| state.hung_up);
    }

    fn wait_until(&self, what: &str, wanted: usize, count: impl Fn(&State) -> usize) {
        let until = Instant::now() + PATIENCE;
        let mut state = self.shared.state();
        while count(&state) < wanted {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "only {} of {wanted} {what}", count(&state));
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if !self.shared.state().is_over {
            self.end();
        }
    }
}

fn serve(stream: TcpStream, shared: &SharedState) {
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream.set_write_timeout(Some(PATIENCE)).expect("a socket");
    match &shared.tls {
        None => {
            let stream = Arc::new(stream);
            let mut state = shared.state();
            state.taken.push(Arc::downgrade(&stream));
            let is_over = state.is_over;
            drop(state);
            if !is_over {
                talk(Plain(stream), shared);
            }
        }
        // A client that does not trust the certificate hangs up.
        Some(tls) => {
            if let Some(stream) = tls.accept(stream) {
                talk(stream, shared);
            }
        }
    }
}

/// A connection that can be broken off.
pub(crate) trait Line: Read + Write {
    /// Ends the connection with a reset if that can be done.
    fn reset(self);
}

struct Plain(Arc<TcpStream>);

impl Read for Plain {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        (&*self.0).read(buffer)
    }
}

impl Write for Plain {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        (&*self.0).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        (&*self.0).flush()
    }
}

impl Line for Plain {
    fn reset(self) {
        let socket = socket2::SockRef::from(&*self.0);
        socket.set_linger(Some(Duration::ZERO)).expect("a socket");
    }
}

/// Answers until the client hangs up or a reply ends it.
fn talk(mut line: impl Line, shared: &SharedState) {
    while let Some(request) = read_request(&mut line) {
        let mut reply = {
            let mut state = shared.state();
            state.arrived.push(request.clone());
            shared.changed.notify_all();
            state.next.pop_front().unwrap_or_else(|| state.otherwise.clone())
        };
        let (bytes, stays) = loop {
            reply = match reply {
                Reply::Send(status, body) => break (answers::render(status, &body), true),
                Reply::Raw(bytes) => break (bytes, false),
                Reply::Reset => return line.reset(),
                Reply::Silence => return wait_for_hang_up(line, shared),
                Reply::Stream(streaming) => match streaming.say(&mut line) {
                    Some(End::Whole) => break (String::new(), true),
                    Some(End::Reset) => return line.reset(),
                    Some(End::Silence) => return wait_for_hang_up(line, shared),
                    Some(End::Cut) | None => return,
                },
                Reply::After(gate, then) if gate.wait() => *then,
                Reply::After(..) => return,
                Reply::Late(time, then) => {
                    std::thread::sleep(time);
                    *then
                }
                Reply::Judged(judge) => (judge.0)(&request),
            };
        };
        // The client may be gone; what it makes of that is its own test.
        if line.write_all(bytes.as_bytes()).is_err() || line.flush().is_err() || !stays {
            return;
        }
    }
}

fn wait_for_hang_up(mut line: impl Line, shared: &SharedState) {
    // Both an end and a reset hang up; only a client that waits on differs.
    let said = line.read(&mut [0]);
    if !said.is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
        shared.state().hung_up += 1;
        shared.changed.notify_all();
    }
}

/// One request, its body by its `content-length`; `None` when the client hung up.
fn read_request(line: &mut impl Read) -> Option<ArrivedRequest> {
    let mut bytes = Vec::new();
    let mut more = [0; 16_384];
    loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let (head, body) = bytes.split_at(at + 4);
            let head = String::from_utf8(head.to_vec()).expect("a head of text");
            let named = head.lines().filter_map(|line| line.split_once(": "));
            let mut lengths = named.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            let length: usize =
                lengths.next().map_or(0, |(_, length)| length.parse().expect("a length"));
            if body.len() >= length {
                let bytes = body[..length].to_vec();
                let body = String::from_utf8_lossy(&bytes).into_owned();
                return Some(ArrivedRequest { head, body, bytes });
            }
        }
        match line.read(&mut more) {
            Ok(0) | Err(_) => return None,
            Ok(read) => bytes.extend(&more[..read]),
        }
    }
}
