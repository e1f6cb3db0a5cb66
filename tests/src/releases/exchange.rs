//! Request and answer as they are kept: both as text, so that every byte of an answer can be compared.
//!
//! Headers of an answer that differ each time are left out: `date`, `connection`, the request's own id, and those
//! that depend on the moment. A stream is kept as the text of its events, without comments and without its chunks'
//! bounds.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::http::unchunked;
use crate::{Answer, Request, Waiting};

/// Headers of an answer that no contract keeps the same. A length is checked while the answer is read.
const VOLATILE: [&str; 8] = [
    "connection",
    "content-length",
    "date",
    "retry-after",
    "retry-after-ms",
    "transfer-encoding",
    "x-request-id",
    "vary",
];
/// Beginning of the names of headers that count requests.
const RATE_LIMIT: &str = "x-ratelimit-";
/// Comment that keeps a stream alive.
const PING: &str = ": ping\n";

/// Listener of a gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    /// The callers' API.
    Public,
    /// The administration.
    Admin,
}

/// Answer without what differs each time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// The status.
    pub status: u16,
    /// Names in lower case and values.
    pub headers: BTreeMap<String, String>,
    /// The body, or the events of a stream.
    pub body: String,
}

/// Request and the answer that is kept of it.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Listener of the request.
    pub to: Listener,
    method: &'static str,
    path: String,
    bearer: String,
    /// The `Idempotency-Key`, if it has one.
    pub key: Option<String>,
    body: Option<String>,
    /// The kept answer; none if it depends on what happens later.
    pub answer: Option<KeptAnswer>,
}

impl Exchange {
    /// A request of a chat completion.
    #[must_use]
    pub fn completion(bearer: &str, key: &str, body: &Value) -> Self {
        let post = Self::get(Listener::Public, "/v1/chat/completions", bearer);
        Self { method: "POST", key: Some(key.to_owned()), body: Some(body.to_string()), ..post }
    }

    /// A read.
    #[must_use]
    pub fn get(to: Listener, path: &str, bearer: &str) -> Self {
        let (path, bearer) = (path.to_owned(), bearer.to_owned());
        Self { to, method: "GET", path, bearer, key: None, body: None, answer: None }
    }

    /// An administrative change under a new key.
    #[must_use]
    pub fn change(method: &'static str, path: &str, bearer: &str, body: &Value) -> Self {
        let read = Self::get(Listener::Admin, &format!("/admin/v1{path}"), bearer);
        let key = Some(crate::request_key());
        Self { method, key, body: Some(body.to_string()), ..read }
    }

    /// The same request by the bearer of another secret, with no answer yet.
    #[must_use]
    pub fn by(self, bearer: &str) -> Self {
        Self { bearer: bearer.to_owned(), answer: None, ..self }
    }

    /// Sends it to one of a gateway's listeners, at this address.
    ///
    /// # Panics
    ///
    /// If the answer is not whole.
    #[track_caller]
    #[must_use]
    pub fn send(&self, at: SocketAddr) -> KeptAnswer {
        KeptAnswer::read(&self.begin(at).rest())
    }

    /// Sends it; the answer is for later.
    #[must_use]
    pub fn begin(&self, at: SocketAddr) -> Waiting {
        let mut request = Request::get(&self.path);
        if let Some(body) = &self.body {
            request = Request::post(&self.path, body.as_str()).method(self.method);
            request = request.header("Content-Type", "application/json");
        }
        if let Some(key) = &self.key {
            request = request.header("Idempotency-Key", key);
        }
        if self.to == Listener::Admin {
            request = request.host(&format!("localhost:{}", at.port()));
        }
        request.bearer(&self.bearer).begin(at)
    }

    /// As it is kept.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let to = match self.to {
            Listener::Public => "public",
            Listener::Admin => "admin",
        };
        json!({
            "to": to, "method": self.method, "path": self.path, "bearer": self.bearer, "key": self.key,
            "body": self.body,
            "answer": self.answer.as_ref().map(|answer| json!({
                "status": answer.status, "headers": answer.headers, "body": answer.body,
            })),
        })
    }

    /// Reads what [`Self::to_json`] made.
    #[track_caller]
    pub(super) fn parse(kept: &Value) -> Self {
        let some = |name: &str| kept[name].as_str().map(str::to_owned);
        let text = |name: &str| some(name).unwrap_or_else(|| panic!("no {name} in {kept}"));
        let method = ["GET", "POST", "PATCH"].into_iter().find(|it| kept["method"] == *it);
        Self {
            to: if kept["to"] == "admin" { Listener::Admin } else { Listener::Public },
            method: method.expect("a method"),
            path: text("path"),
            bearer: text("bearer"),
            key: some("key"),
            body: some("body"),
            answer: kept["answer"].is_object().then(|| KeptAnswer::parse(&kept["answer"])),
        }
    }

    /// The request in a line, for a failed comparison.
    #[must_use]
    pub fn name(&self) -> String {
        let body = self.body.as_deref().unwrap_or_default();
        format!("{} {} {body}", self.method, self.path)
    }
}

impl KeptAnswer {
    /// The answer in all that came until the connection ended.
    #[track_caller]
    fn read(came: &str) -> Self {
        let (head, body) = came.split_once("\r\n\r\n").expect("a whole head");
        let Answer { status, headers, .. } = Answer::of_head(head);
        let header = |name: &str| headers.iter().find(|(other, _)| other == name);
        let body = match header("transfer-encoding") {
            Some(_) => {
                let (text, is_whole) = unchunked(body.as_bytes());
                assert!(is_whole, "a whole stream: {came}");
                String::from_utf8(text).expect("text").replace(PING, "")
            }
            None => {
                let length = header("content-length").expect("a length").1.parse();
                assert_eq!(length, Ok(body.len()), "the whole body: {came}");
                body.to_owned()
            }
        };
        let is_stable = |name: &str| !VOLATILE.contains(&name) && !name.starts_with(RATE_LIMIT);
        let stable = headers.into_iter().filter(|(name, _)| is_stable(name));
        Self { status, headers: stable.collect(), body }
    }

    #[track_caller]
    fn parse(kept: &Value) -> Self {
        let status = kept["status"].as_u64().and_then(|it| u16::try_from(it).ok());
        let headers = kept["headers"].as_object().expect("headers").iter();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        Self {
            status: status.expect("a status"),
            headers: headers.map(|(name, value)| (name.clone(), text(value))).collect(),
            body: text(&kept["body"]),
        }
    }

    /// The body as JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
