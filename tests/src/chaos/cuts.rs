//! Calls without keys through a sidecar, over connections that break at any byte on both sides of it, and past the
//! deaths of the sidecar and of the gateway.
//!
//! Checks: each call ends with the whole answer or with one clear error, it ran once at most (by its body, if calls
//! differ), and the sum of the charges is that of the answers.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Dice;
use crate::config::ACME;
use crate::{Account, Config, Gateway, PATIENCE, Proxy, Reply, Request, Site, Streaming, Upstream};

const PIECES: [&str; 2] = ["Good ", "day"];
const SAID: &str = "Good day";
/// Charge of the upstream's usual completion.
const CHARGE: i64 = 367;
/// Deposit of the wallet, in whole units and in micros.
const FUNDS: (&str, i64) = ("1000", 1_000_000_000);
/// About as many bytes as an answer has.
const ANSWER: u64 = 800;
/// Calls between two kills; a kill comes while a call is under way.
pub(super) const KILL_EVERY: u32 = 10;
/// The longest time from a call to a death.
pub(super) const KILL_MS_MAX: u64 = 30;

/// Faults of calls besides cuts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deaths {
    /// No faults, and all calls are equal.
    None,
    /// The sidecar or the gateway is killed now and then.
    Now,
}

/// A sidecar and its gateway, each behind a proxy that cuts.
#[derive(Debug)]
struct Line {
    upstream: Upstream,
    site: Site,
    account: Account,
    gateway: Gateway,
    sidecar: Gateway,
    back: Proxy,
    front: Proxy,
}

/// A sidecar that its clients reach through a proxy.
fn sidecar(site: &Site, back: &Proxy, front: &Proxy) -> Gateway {
    site.sidecar(back.address(), &["--allow-host", &front.address().to_string()])
}

impl Line {
    fn new() -> Self {
        let reply = Reply::as_wanted(Streaming::saying(&PIECES).reply(), Reply::saying(SAID));
        let upstream = Upstream::start(reply);
        let config = Config::upstream(&upstream);
        let site = Site::unwatched_in(&std::env::temp_dir(), &config);
        drop(site.cli(&["migrate", "up"]).ok());
        let account = site.account("cuts", "USD", FUNDS.0);
        let gateway = site.serve();
        let back = Proxy::start(gateway.address());
        let front = Proxy::start(gateway.address());
        let sidecar = sidecar(&site, &back, &front);
        front.turn_to(sidecar.address());
        Self { upstream, site, account, gateway, sidecar, back, front }
    }

    fn kill(&mut self, is_gateway: bool) {
        if is_gateway {
            self.gateway.kill_in_place();
            self.gateway = self.site.serve();
            self.back.turn_to(self.gateway.address());
        } else {
            self.sidecar.kill_in_place();
            self.sidecar = sidecar(&self.site, &self.back, &self.front);
            self.front.turn_to(self.sidecar.address());
        }
    }
}

/// Makes so many calls; `tell` receives the progress.
pub fn cut(calls: u32, seed: u64, deaths: Deaths, mut tell: impl FnMut(u32)) {
    let mut dice = Dice(seed);
    let mut line = Line::new();
    let mut answered = 0;
    for call in 0..calls {
        let is_streamed = dice.below(2) == 0;
        let length = |factor| usize::try_from(1 + dice.below(factor * ANSWER)).expect("few");
        // A connection behind the sidecar serves several calls, one before it serves one.
        let (cuts, is_cut) = ([4, 1].map(length), dice.below(2) == 0);
        line.back.cut_next(&cuts[..1]);
        if is_cut {
            line.front.cut_next(&cuts[1..]);
        }
        let text = match deaths {
            Deaths::None => "Say hello".to_owned(),
            Deaths::Now => format!("Say hello {call}"),
        };
        let request = request(&line.account, &text, is_streamed);
        let front = line.front.address();
        let said = if deaths == Deaths::Now && call % KILL_EVERY == KILL_EVERY - 1 {
            let (pause, is_gateway) = (dice.below(KILL_MS_MAX), dice.below(2) == 0);
            std::thread::scope(|scope| {
                let asked = scope.spawn(|| ask(&request, front));
                std::thread::sleep(Duration::from_millis(pause));
                line.kill(is_gateway);
                asked.join().expect("an answer")
            })
        } else {
            ask(&request, front)
        };
        match said {
            CallOutcome::Whole(text) => {
                assert_eq!(text, SAID, "call {call} of seed {seed}");
                answered += 1;
            }
            CallOutcome::Error(code) => {
                assert_eq!(deaths, Deaths::Now, "{code}: call {call} of seed {seed}");
                assert_eq!(code, "outcome_unknown", "call {call} of seed {seed}");
            }
        }
        if call % 50 == 49 || call + 1 == calls {
            check(&line, call + 1, answered);
            match deaths {
                Deaths::None => {}
                Deaths::Now => check_bodies(&line.upstream),
            }
            tell(call + 1);
        }
    }
}

fn check(line: &Line, calls: u32, answered: i64) {
    let runs = line.upstream.runs();
    assert!(runs <= usize::try_from(calls).expect("few"), "{runs} runs of {calls} calls");
    assert_eq!(line.site.balance(&line.account), (FUNDS.1 - answered * CHARGE, 0));
    line.site.verify();
}

/// Checks that no body has run twice, if each is of one call. The sum of all runs would let a second run of one
/// call pass for that of another, which its gateway's death has left without one.
pub(super) fn check_bodies(upstream: &Upstream) {
    let mut seen = BTreeSet::new();
    for arrived in upstream.arrived() {
        assert!(!seen.contains(&arrived.body), "it ran twice: {}", arrived.body);
        seen.insert(arrived.body);
    }
}

pub(super) fn request(account: &Account, text: &str, is_streamed: bool) -> Request {
    let body = json!({
        "model": ACME, "messages": [{"role": "user", "content": text}], "stream": is_streamed,
    });
    Request::completion(&account.key, "", body.to_string()).without("Idempotency-Key")
}

/// End of a call for its client.
pub(super) enum CallOutcome {
    Whole(String),
    /// With this code.
    Error(String),
}

/// A client that repeats its request until it has an answer or an error, as an SDK does: its retries are marked.
pub(super) fn ask(request: &Request, front: std::net::SocketAddr) -> CallOutcome {
    let until = Instant::now() + PATIENCE;
    let mut tries = 0;
    loop {
        assert!(Instant::now() < until, "no answer after {tries} tries");
        let request = request.clone().header("x-stainless-retry-count", &tries.to_string());
        tries += 1;
        let told = request.try_begin(front).map(|mut waiting| waiting.rest()).unwrap_or_default();
        let Some((head, body)) = told.split_once("\r\n\r\n") else {
            // No process listens yet.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let is_whole = match length {
            Some(length) => body.len() == length.parse::<usize>().expect("a length"),
            None => body.ends_with("0\r\n\r\n"),
        };
        if is_whole && !head.starts_with("HTTP/1.1 503") {
            return said(body);
        }
        // A stream that broke in the middle has the reason.
        if let Some(code) = error(body) {
            return CallOutcome::Error(code);
        }
    }
}

/// The text of a whole answer, streamed or not, or the code of an error.
fn said(body: &str) -> CallOutcome {
    if let Ok(whole) = serde_json::from_str::<Value>(body) {
        let text = whole["choices"][0]["message"]["content"].as_str();
        let code = || whole["error"]["code"].as_str().expect("an answer or an error").to_owned();
        return text.map_or_else(
            || CallOutcome::Error(code()),
            |text| CallOutcome::Whole(text.to_owned()),
        );
    }
    let texts = datas(body).map(|chunk| {
        let text = chunk["choices"][0]["delta"]["content"].as_str();
        text.unwrap_or_default().to_owned()
    });
    CallOutcome::Whole(texts.collect())
}

fn error(body: &str) -> Option<String> {
    datas(body).find_map(|data| data["error"]["code"].as_str().map(str::to_owned))
}

fn datas(body: &str) -> impl Iterator<Item = Value> {
    let datas = body.lines().filter_map(|line| line.strip_prefix("data: "));
    datas.filter_map(|data| serde_json::from_str(data).ok())
}
