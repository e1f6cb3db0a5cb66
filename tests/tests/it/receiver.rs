//! A receiver of webhooks on a real socket: a thread a connection, every delivery remembered, and each
//! answered as it stands then: with a status, or not before somebody says so.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use holdfast_tests::PATIENCE;

/// A delivery as it came.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) path: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

impl ReceivedRequest {
    /// Id of the event.
    pub(crate) fn id(&self) -> &str {
        &self.headers["webhook-id"]
    }
}

#[derive(Debug, Default)]
struct State {
    delivered: Vec<ReceivedRequest>,
    /// Connections that wait for an answer.
    held: usize,
    /// The answer; none while deliveries are held.
    answer: Option<String>,
}

/// The receiver. Its threads end with the process.
#[derive(Debug)]
pub(crate) struct Receiver {
    address: SocketAddr,
    state: Arc<(Mutex<State>, Condvar)>,
}

impl Receiver {
    /// One that answers with this status.
    pub(crate) fn answering(status: u16) -> Self {
        let receiver = Self::holding();
        receiver.answer(status);
        receiver
    }

    /// One that answers nothing until it is told to.
    pub(crate) fn holding() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, shared) = (stream.unwrap(), Arc::clone(&shared));
                std::thread::spawn(move || receive(stream, &shared));
            }
        });
        Self { address, state }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers with this status from now on, what is held too.
    pub(crate) fn answer(&self, status: u16) {
        self.answer_with(status, "");
    }

    /// The same with more headers, each with its line's end.
    pub(crate) fn answer_with(&self, status: u16, headers: &str) {
        let answer = format!(
            "HTTP/1.1 {status} Status\r\n{headers}content-length: 0\r\nconnection: close\r\n\r\n"
        );
        self.state.0.lock().unwrap().answer = Some(answer);
        self.state.1.notify_all();
    }

    /// All deliveries, once there are so many.
    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) -> Vec<ReceivedRequest> {
        self.wait(|state| state.delivered.len() >= count).delivered.clone()
    }

    /// Waits until so many deliveries are held at once.
    #[track_caller]
    pub(crate) fn wait_for_held(&self, count: usize) {
        drop(self.wait(|state| state.held >= count));
    }

    /// Deliveries so far.
    pub(crate) fn count(&self) -> usize {
        self.state.0.lock().unwrap().delivered.len()
    }

    #[track_caller]
    fn wait(&self, is_so: impl Fn(&State) -> bool) -> std::sync::MutexGuard<'_, State> {
        let state = self.state.0.lock().unwrap();
        let waited = self.state.1.wait_timeout_while(state, PATIENCE, |state| !is_so(state));
        let (state, _) = waited.unwrap();
        assert!(is_so(&state), "never: {state:?}");
        state
    }
}

fn receive(stream: TcpStream, shared: &(Mutex<State>, Condvar)) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    let body = String::from_utf8(body).ok()?;
    let mut state = shared.0.lock().ok()?;
    state.delivered.push(ReceivedRequest { path, headers, body });
    state.held += 1;
    shared.1.notify_all();
    let mut state = shared.1.wait_while(state, |state| state.answer.is_none()).ok()?;
    state.held -= 1;
    let answer = state.answer.clone()?;
    drop(state);
    (&stream).write_all(answer.as_bytes()).ok()
}
