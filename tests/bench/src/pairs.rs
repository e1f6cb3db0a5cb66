//! Pairs of hold and settlement with no HTTP around them: what the store alone and the plain loop have in
//! common. Both wait to be told to begin, and say what they saw, as a load does.

use std::collections::BTreeMap;
use std::io::{self, BufRead};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::latencies::Latencies;
use crate::load::READY;
use crate::say;

/// Micros that a pair holds and then pays.
pub(crate) const HOLD: i64 = 5_000;
/// Bytes of a sealed answer.
pub(crate) const SEALED_LEN: usize = 600;

/// Plan of pairs: how many are made where, and for how long.
#[derive(Debug, Clone)]
pub struct Pairs {
    /// The database.
    pub(crate) url: String,
    /// Tasks that make one pair after the other.
    pub(crate) tasks: usize,
    /// Wallets that they share, where they make their own.
    pub(crate) wallets: i64,
    /// Nodes that they are on.
    pub(crate) nodes: usize,
    time: Duration,
}

impl Pairs {
    /// Reads the arguments; nothing when they are wrong.
    #[must_use]
    pub fn parse(arguments: &[String]) -> Option<Self> {
        let mut options = BTreeMap::new();
        for pair in arguments.chunks(2) {
            let [option, value] = pair else { return None };
            options.insert(option.strip_prefix("--")?, value.as_str());
        }
        Some(Self {
            url: (*options.get("url")?).to_owned(),
            tasks: options.get("tasks")?.parse().ok()?,
            wallets: options.get("wallets")?.parse().ok().filter(|wallets| *wallets > 0)?,
            nodes: options.get("nodes")?.parse().ok().filter(|nodes| *nodes > 0)?,
            time: Duration::from_millis(options.get("millis")?.parse().ok()?),
        })
    }

    /// Waits to be told, has every hand work until the time is over, and says what came of it.
    pub(crate) async fn measure<W>(&self, hands: Vec<W>)
    where
        W: Work + Send + 'static,
    {
        say(READY);
        line();
        let started = Instant::now();
        let until = started + self.time;
        let mut tasks = JoinSet::new();
        for hand in hands {
            tasks.spawn(work(hand, until));
        }
        let latencies: Vec<u32> = tasks.join_all().await.into_iter().flatten().collect();
        let micros = u64::try_from(started.elapsed().as_micros()).expect("less than an age");
        let latencies = Latencies::of(latencies).to_json();
        say(&json!({ "micros": micros, "answers": { "200": latencies } }).to_string());
        // Whoever asked looks at what this process has used, and hangs up.
        line();
    }
}

/// Somebody who makes pairs.
pub(crate) trait Work {
    /// Makes the pair of this turn.
    fn pair(&mut self, turn: usize) -> impl Future<Output = ()> + Send;
}

async fn work(mut hand: impl Work, until: Instant) -> Vec<u32> {
    let mut latencies = Vec::new();
    for turn in 0.. {
        let began = Instant::now();
        if began >= until {
            break;
        }
        hand.pair(turn).await;
        latencies.push(u32::try_from(began.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    latencies
}

pub(crate) fn runtime() -> Runtime {
    Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

fn line() {
    io::stdin().lock().read_line(&mut String::new()).expect("a line, or the end");
}
