//! HTTP/1.1 by hand: a request has exactly the bytes of the test, and an answer is shown exactly as it came. One
//! request a connection.

use std::io::{Error, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

use crate::PATIENCE;

/// A request. Headers are sent in their order, and as often as they were added.
#[derive(Debug, Clone)]
pub struct Request {
    method: &'static str,
    path: String,
    host: Option<String>,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl Request {
    /// Request of a path.
    #[must_use]
    pub fn get(path: &str) -> Self {
        let (path, headers) = (path.to_owned(), Vec::new());
        Self { method: "GET", path, host: None, headers, body: None }
    }

    /// Posts a body, of no announced type.
    #[must_use]
    pub fn post(path: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { method: "POST", body: Some(body.into()), ..Self::get(path) }
    }

    /// A chat completion: a JSON body under a credential and a request key.
    #[must_use]
    pub fn completion(api_key: &str, request_key: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::post("/v1/chat/completions", body)
            .bearer(api_key)
            .header("Content-Type", "application/json")
            .header("Idempotency-Key", request_key)
    }

    /// Uses another method.
    #[must_use]
    pub fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    /// Names another host than the address that it is sent to.
    #[must_use]
    pub fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Leaves a header out.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
        self
    }

    /// Bears this credential.
    #[must_use]
    pub fn bearer(self, credential: &str) -> Self {
        self.header("Authorization", &format!("Bearer {credential}"))
    }

    /// The bytes on the wire, to a server that is not judged by its name.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes_to("gateway")
    }

    fn bytes_to(&self, name: &str) -> Vec<u8> {
        let host = self.host.as_deref().unwrap_or(name);
        let mut head = format!("{} {} HTTP/1.1\r\nHost: {host}\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("Connection: close\r\n\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend(self.body.iter().flatten());
        bytes
    }

    /// Sends it and waits for the answer.
    #[must_use]
    pub fn send(&self, to: SocketAddr) -> Answer {
        self.begin(to).answer()
    }

    /// Sends it to a server that may end at any moment; `None` if it did.
    #[must_use]
    pub fn try_send(&self, to: SocketAddr) -> Option<Answer> {
        self.try_begin(to)?.try_answer()
    }

    /// Sends it to a server that may have ended; the answer is for later.
    #[must_use]
    pub fn try_begin(&self, to: SocketAddr) -> Option<Waiting> {
        let connected = TcpStream::connect_timeout(&to, PATIENCE).ok()?;
        Some(Waiting::on(connected, &self.bytes_to(&to.to_string())))
    }

    /// Sends it; the answer is for later.
    #[must_use]
    pub fn begin(&self, to: SocketAddr) -> Waiting {
        Waiting::write(to, &self.bytes_to(&to.to_string()))
    }
}

/// A connection on which bytes were written and none was read yet. Dropping it hangs up.
#[derive(Debug)]
pub struct Waiting(pub(crate) TcpStream);

impl Waiting {
    /// Connects and writes these bytes, whatever they mean.
    #[must_use]
    pub fn write(to: SocketAddr, bytes: &[u8]) -> Self {
        Self::on(TcpStream::connect_timeout(&to, PATIENCE).expect("somebody listens"), bytes)
    }

    /// A connection on which a request was written already.
    #[must_use]
    pub const fn of(stream: TcpStream) -> Self {
        Self(stream)
    }

    fn on(mut stream: TcpStream, bytes: &[u8]) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        // A server that refuses a request early need not read it to its end.
        drop(stream.write_all(bytes));
        Self(stream)
    }

    /// Waits for the whole answer.
    #[must_use]
    pub fn answer(self) -> Answer {
        self.try_answer().expect("a whole answer")
    }

    /// Waits for the whole answer; `None` if the connection ends before it.
    #[must_use]
    pub fn try_answer(mut self) -> Option<Answer> {
        let (head, begun) = self.head()?;
        self.whole(head, begun)
    }

    /// Waits for the answer of a server of HTTP/1.0, whose body ends with the connection.
    #[must_use]
    pub fn try_answer_until_closed(mut self) -> Option<Answer> {
        let (mut answer, mut body) = self.head()?;
        while self.read_more(&mut body).is_some() {}
        answer.body = body;
        Some(answer)
    }

    /// Status and headers, and what has come of the body.
    pub(crate) fn head(&mut self) -> Option<(Answer, Vec<u8>)> {
        let mut bytes = Vec::new();
        let head_end = loop {
            match bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => self.read_more(&mut bytes)?,
            }
        };
        let body = bytes.split_off(head_end);
        Some((Answer::of_head(str::from_utf8(&bytes).expect("a head of text")), body))
    }

    pub(crate) fn whole(&mut self, mut answer: Answer, begun: Vec<u8>) -> Option<Answer> {
        if answer.header("transfer-encoding") == Some("chunked") {
            return self.whole_of_chunks(answer, begun);
        }
        let length: usize = answer.header("content-length")?.parse().expect("a length");
        answer.body = begun;
        while answer.body.len() < length {
            self.read_more(&mut answer.body)?;
        }
        assert_eq!(answer.body.len(), length, "nothing follows the answer");
        Some(answer)
    }

    fn whole_of_chunks(&mut self, mut answer: Answer, mut bytes: Vec<u8>) -> Option<Answer> {
        while !bytes.ends_with(b"\r\n0\r\n\r\n") && bytes != b"0\r\n\r\n" {
            self.read_more(&mut bytes)?;
        }
        let (body, is_whole) = unchunked(&bytes);
        answer.body = body;
        is_whole.then_some(answer)
    }

    /// Every answer until the connection ends, interim ones too. An answer without a length has no body.
    ///
    /// # Panics
    ///
    /// If the bytes are not a row of whole answers.
    #[must_use]
    pub fn answers(mut self) -> Vec<Answer> {
        let mut bytes = Vec::new();
        while self.read_more(&mut bytes).is_some() {}
        let mut answers = Vec::new();
        while !bytes.is_empty() {
            let head_end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
            let body = bytes.split_off(head_end.expect("a whole head") + 4);
            let mut answer = Answer::of_head(str::from_utf8(&bytes).expect("a head of text"));
            let length =
                answer.header("content-length").map_or(0, |it| it.parse().expect("a length"));
            assert!(body.len() >= length, "a whole body: {answer:?}");
            let (body, rest) = body.split_at(length);
            (answer.body, bytes) = (body.to_vec(), rest.to_vec());
            answers.push(answer);
        }
        answers
    }

    /// All that comes until the connection ends, as text.
    #[must_use]
    pub fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        while self.read_more(&mut bytes).is_some() {}
        String::from_utf8(bytes).expect("text")
    }

    /// Bytes until the connection ends, and at most so many.
    #[must_use]
    pub fn read(&mut self, bytes_max: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < bytes_max && self.read_more(&mut bytes).is_some() {}
        bytes.truncate(bytes_max);
        bytes
    }

    fn read_more(&mut self, bytes: &mut Vec<u8>) -> Option<()> {
        read_more(&mut self.0, bytes)
    }

    /// True if no byte comes for so long.
    #[must_use]
    pub fn is_silent_for(&mut self, time: Duration) -> bool {
        self.0.set_read_timeout(Some(time)).unwrap();
        let silent = self.0.peek(&mut [0]).is_err_and(|error| is_late(&error));
        self.0.set_read_timeout(Some(PATIENCE)).unwrap();
        silent
    }

    /// Hangs up, as a client that is ended does.
    pub fn hang_up(self) {
        hang_up(&self.0);
    }
}

/// Data of a chunked body, as far as it came, and whether its end came.
pub(crate) fn unchunked(mut body: &[u8]) -> (Vec<u8>, bool) {
    let mut text = Vec::new();
    while let Some(at) = body.windows(2).position(|window| window == b"\r\n") {
        let size = str::from_utf8(&body[..at]).expect("a chunk's size");
        let size = usize::from_str_radix(size, 16).expect("a chunk's size");
        let rest = &body[at + 2..];
        let Some(data) = rest.get(..size) else {
            text.extend(rest);
            break;
        };
        text.extend(data);
        let Some(next) = rest.get(size + 2..) else { break };
        if size == 0 {
            return (text, true);
        }
        body = next;
    }
    (text, false)
}

/// Reads the bytes that have come; `None` if the connection has ended.
pub(crate) fn read_more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let mut more = [0; 16_384];
    match stream.read(&mut more) {
        Ok(0) => None,
        Ok(read) => {
            bytes.extend(&more[..read]);
            Some(())
        }
        Err(error) => {
            assert!(!is_late(&error), "no answer within {} s", PATIENCE.as_secs());
            None
        }
    }
}

/// Ends a connection on this side.
pub(crate) fn hang_up(stream: &TcpStream) {
    // The other side may have hung up first.
    drop(stream.shutdown(Shutdown::Both));
}

fn is_late(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// An answer as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names in lower case and values, in their order.
    pub headers: Vec<(String, String)>,
    /// The exact bytes.
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn of_head(head: &str) -> Self {
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status line");
        let header = |line: &str| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Self {
            status: status.parse().expect("a status"),
            headers: lines.map(header).collect(),
            body: Vec::new(),
        }
    }

    /// The value of a header that may be there once.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is there twice: {self:?}");
        value
    }

    /// The names of all headers, sorted.
    #[must_use]
    pub fn header_names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> &str {
        str::from_utf8(&self.body).expect("a body of text")
    }

    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Head and body as text, to look for what must not be there.
    #[must_use]
    pub fn everything(&self) -> String {
        let head = self.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
        head.collect::<String>() + &String::from_utf8_lossy(&self.body)
    }
}
