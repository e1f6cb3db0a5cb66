//! The load: connections that are kept, each with one request at a time, HTTP/1.1 by hand so that it
//! takes little of the machine itself.
//!
//! Closed loop: the next request is sent when the last was answered. With a rate, each connection
//! sends no earlier than its share of the rate, and one that is late does not catch up.
//!
//! It says `ready` once all connections stand, and begins at a line on its standard input, so that whoever
//! measures looks at the target's counters right before and right after. A load that breaks a connection
//! counts status 0 and goes on with the others: the run decides what that means.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::task::JoinSet;
use uuid::{Builder, Uuid};

use crate::latencies::Latencies;
use crate::listen::{StreamReader, StreamSamples};
use crate::say;
use crate::scenario::KeySharing;

/// Body of a usual chat: a few hundred bytes.
pub(crate) const BODY: &str = r#"{"model":"acme/large-1","messages":[{"role":"system","content":"You are a helpful assistant who answers in plain words."},{"role":"user","content":"What happens to the money of a request between its arrival and its answer? Please keep it to one sentence, and name who pays when the answer is lost."}],"temperature":0.7,"max_completion_tokens":256}"#;
/// Said when every connection stands; the load begins when a line is sent back.
pub(crate) const READY: &str = "ready";
/// Value of `--keys` for requests without one.
pub(crate) const NO_KEYS: &str = "none";
const KEY_LEN: usize = 36;

/// Plan of a load: what is sent where, and for how long.
#[derive(Debug, Clone)]
pub struct Load {
    /// Each connection is to the next one.
    to: Vec<SocketAddr>,
    connections: u64,
    time: Duration,
    /// The most requests of a connection.
    requests: u64,
    /// Each request bears the next one; they are equally long.
    bearers: Arc<[String]>,
    /// The one key of all requests; else a fresh one for each.
    key: Option<String>,
    /// Requests a second, of all connections.
    rate: Option<u64>,
    /// Requests have no keys: each has the id of a user instead, so that no two are alike.
    is_keyless: bool,
    /// Asks for streams; all connections for the same one at a time, or each for its own.
    streams: Option<KeySharing>,
}

/// Samples of one connection: latencies in microseconds by status, 0 where there was no whole answer, and
/// what it heard of streams.
#[derive(Debug, Default)]
struct LoadSamples {
    answers: BTreeMap<u16, Vec<u32>>,
    heard: StreamSamples,
}

impl Load {
    /// Reads the arguments; nothing when they are wrong.
    #[must_use]
    pub fn parse(arguments: &[String]) -> Option<Self> {
        let mut options = BTreeMap::new();
        for pair in arguments.chunks(2) {
            let [option, value] = pair else { return None };
            options.insert(option.strip_prefix("--")?, value.as_str());
        }
        let rate = options.get("rate");
        let streams = match options.get("streams").copied() {
            None => None,
            Some(name) => Some(
                [KeySharing::Own, KeySharing::Shared].into_iter().find(|it| it.name() == name)?,
            ),
        };
        let is_keyless = match options.get("keys").copied() {
            None => false,
            Some(keys) => Some(true).filter(|_| keys == NO_KEYS)?,
        };
        let to = options.get("to")?.split(',').map(str::parse);
        let bearers = match (options.get("bearer"), options.get("bearers")) {
            (Some(bearer), None) => Arc::<[String]>::from([(*bearer).to_owned()]),
            (None, Some(file)) => {
                std::fs::read_to_string(file).ok()?.lines().map(str::to_owned).collect()
            }
            (Some(_) | None, _) => return None,
        };
        Some(Self {
            to: to.collect::<Result<_, _>>().ok()?,
            connections: options.get("connections")?.parse().ok()?,
            time: Duration::from_millis(options.get("millis")?.parse().ok()?),
            requests: options.get("requests").map_or(Ok(u64::MAX), |it| it.parse()).ok()?,
            bearers,
            key: options.get("key").map(|key| (*key).to_owned()),
            rate: rate.map(|rate| rate.parse()).transpose().ok()?,
            is_keyless,
            streams,
        })
    }

    /// The key of a request that has a new one: the same for all connections in the same turn where they
    /// share it.
    fn key_of(&self, turn: u64) -> Uuid {
        match self.streams {
            None | Some(KeySharing::Own) => Uuid::new_v4(),
            Some(KeySharing::Shared) => {
                let of_this_load = u128::from(std::process::id()) << 64 | u128::from(turn);
                Builder::from_random_bytes(of_this_load.to_be_bytes()).into_uuid()
            }
        }
    }

    /// The bytes of a request, and where its bearer and its key begin.
    fn request(&self) -> (Vec<u8>, usize, usize) {
        let bearer = self.bearers.first().expect("a bearer");
        let key = self.key.clone().unwrap_or_else(|| Uuid::nil().to_string());
        let body = match self.streams {
            None => BODY.to_owned(),
            Some(_) => BODY.replacen('{', r#"{"stream":true,"#, 1),
        };
        // A sidecar answers its own address alone; gateways answer any.
        let host = self.to.first().expect("an address");
        let head =
            format!("POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer ");
        let bearer_at = head.len();
        let head = format!(
            "{head}{bearer}\r\ncontent-type: application/json\r\nuser-agent: holdfast-bench\r\n\
             content-length: "
        );
        let (before, after) = if self.is_keyless {
            const USER: &str = r#"{"user":""#;
            let rest = body.strip_prefix('{').expect("an object");
            let length = USER.len() + KEY_LEN + r#"","#.len() + rest.len();
            (format!("{head}{length}\r\n\r\n{USER}"), format!("\",{rest}"))
        } else {
            let head = format!("{head}{}\r\nidempotency-key: ", body.len());
            (head, format!("\r\n\r\n{body}"))
        };
        let at = before.len();
        (format!("{before}{key}{after}").into_bytes(), bearer_at, at)
    }
}

/// Connects, waits for a line, sends, and says what came of it as one line of JSON.
pub fn run(load: &Load) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut seen = LoadSamples::default();
    let took = runtime.block_on(async {
        let mut streams = Vec::new();
        for to in load.to.iter().cycle().zip(0..load.connections).map(|(to, _)| *to) {
            let stream = TcpStream::connect(to).await.expect("somebody listens");
            stream.set_nodelay(true).expect("a socket");
            streams.push(stream);
        }
        say(READY);
        io::stdin().lock().read_line(&mut String::new()).expect("a line");
        let started = Instant::now();
        let until = started + load.time;
        let mut connections = JoinSet::new();
        for (at, stream) in streams.into_iter().enumerate() {
            connections.spawn(talk(stream, at, load.clone(), until));
        }
        while let Some(ended) = connections.join_next().await {
            let LoadSamples { answers, heard } = ended.expect("a connection does not panic");
            for (status, latencies) in answers {
                seen.answers.entry(status).or_default().extend(latencies);
            }
            seen.heard.add(heard);
        }
        started.elapsed()
    });
    let flow = load.streams.map(|_keys| seen.heard.flow().to_json());
    let answers: BTreeMap<String, Latencies> = seen
        .answers
        .into_iter()
        .map(|(status, latencies)| (status.to_string(), Latencies::of(latencies)))
        .collect();
    let answers: serde_json::Map<_, _> =
        answers.into_iter().map(|(status, latencies)| (status, latencies.to_json())).collect();
    let micros = u64::try_from(took.as_micros()).expect("less than an age");
    say(&json!({ "micros": micros, "answers": answers, "flow": flow }).to_string());
    // Whoever asked looks at what this process has used, and hangs up.
    io::stdin().lock().read_line(&mut String::new()).expect("a line, or the end");
}

async fn talk(mut stream: TcpStream, at: usize, load: Load, until: Instant) -> LoadSamples {
    let (mut request, bearer_at, key_at) = load.request();
    // Connections begin apart and go on in step, so that together they use all bearers alike.
    let step = usize::try_from(load.connections).expect("so many fit");
    let mut bearers = load.bearers.iter().cycle().skip(at).step_by(step);
    let mut buffer = Vec::with_capacity(16_384);
    let mut seen = LoadSamples::default();
    let mut reader = StreamReader::default();
    let pause = load.rate.and_then(|rate| {
        let nanos = 1_000_000_000_u64.saturating_mul(load.connections).checked_div(rate)?;
        Some(Duration::from_nanos(nanos))
    });
    let mut next = Instant::now();
    let mut turn = 0_u64;
    while Instant::now() < until && turn < load.requests {
        turn += 1;
        if let Some(pause) = pause {
            next = (next + pause).max(Instant::now());
            tokio::time::sleep_until(next.into()).await;
        }
        if load.key.is_none()
            && let Some(key) = request.get_mut(key_at..key_at + KEY_LEN)
        {
            load.key_of(turn).hyphenated().encode_lower(key);
        }
        if let Some(bearer) = bearers.next()
            && let Some(place) = request.get_mut(bearer_at..bearer_at + bearer.len())
        {
            place.copy_from_slice(bearer.as_bytes());
        }
        let sent = Instant::now();
        let status = match stream.write_all(&request).await {
            Err(_broken) => 0,
            Ok(()) => match load.streams {
                None => answer(&mut stream, &mut buffer).await,
                Some(_) => reader.read(&mut stream, sent, &mut seen.heard).await,
            }
            .unwrap_or(0),
        };
        let micros = u32::try_from(sent.elapsed().as_micros()).unwrap_or(u32::MAX);
        seen.answers.entry(status).or_default().push(micros);
        if status == 0 {
            break;
        }
    }
    seen
}

/// The status of one whole answer; nothing when the connection broke, or announced no length.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<u16> {
    buffer.clear();
    loop {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
        let Some(head) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else {
            continue;
        };
        let text = str::from_utf8(buffer.get(..head)?).ok()?;
        let status = text.get(9..12)?.parse().ok()?;
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: "))?;
        let whole = head + 4 + length.parse::<usize>().ok()?;
        while buffer.len() < whole {
            if stream.read_buf(buffer).await.ok()? == 0 {
                return None;
            }
        }
        return Some(status);
    }
}
