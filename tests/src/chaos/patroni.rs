//! Database servers that Patroni runs, the ways of gateways to them, and the outages that their faults cause. The
//! faults themselves are in `failovers.rs`.
//!
//! ```text
//! gateways 0, 2 ── database.url with three hosts ──┐
//! gateways 1, 3 ── HAProxy ────────────────────────┴── three nodes (crate::patroni)
//! ```
//!
//! Callers send to all four at a steady rate. Reported is the longest time without a new 200 by each way: from the
//! last one before a fault to the first one afterwards, in which old keys that are repeated do not count.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Dice, wait_until};
use crate::haproxy::HaProxy;
use crate::patroni::Patroni;
use crate::postgres::Database;

/// Gateways of a world: two on each way.
pub(super) const GATEWAYS: usize = 4;
/// Callers of all gateways.
pub(super) const CALLERS: usize = 12;
/// Ways from a gateway to its database.
const WAYS: usize = 2;
/// Longest time in which each way has a new 200 again.
const SERVED_MAX: Duration = Duration::from_secs(90);

/// Fault of a server, or of its whole node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerFault {
    /// The primary's server dies, and its Patroni lives.
    ServerKilled,
    /// The node of the primary dies.
    NodeKilled,
    /// The node of a synchronous standby dies.
    StandbyKilled,
    /// The primary hands over on request.
    SwitchedOver,
    /// The node of the primary stops, and goes on once another one is the primary.
    NodeStopped,
    /// The primary's server stops for a while, and its Patroni lives.
    ServerStopped,
}

/// Gateways that are killed together with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Companions {
    /// No gateway.
    None,
    /// The gateway in this place.
    One(usize),
    /// One of each way to the database.
    OneOfEach(usize),
}

/// Time without a new 200 around one fault.
#[derive(Debug, Clone, Copy)]
pub struct Outage {
    /// The fault.
    pub fault: ServerFault,
    /// Gateways that were killed with it.
    pub companions: Companions,
    /// Longest time of gateways whose URL names all servers.
    pub by_hosts: Duration,
    /// Longest time of gateways behind HAProxy.
    pub by_balancer: Duration,
}

/// The servers, the balancer in front of them, and the times of new 200s.
#[derive(Debug)]
pub(super) struct Failovers {
    balancer: HaProxy,
    /// URL by way of the balancer, without a database.
    balanced_url: String,
    url: String,
    cluster: Mutex<Patroni>,
    gaps: Mutex<[Gap; WAYS]>,
}

/// Time between new 200s of one way.
#[derive(Debug, Clone, Copy)]
struct Gap {
    last: Instant,
    longest: Duration,
    count: u64,
}

impl Gap {
    fn begin() -> Self {
        Self { last: Instant::now(), longest: Duration::ZERO, count: 0 }
    }

    fn record(&mut self) {
        self.longest = self.longest.max(self.last.elapsed());
        self.last = Instant::now();
        self.count += 1;
    }
}

impl ServerFault {
    /// All of them, in their order of a run.
    pub(super) const ALL: [Self; 6] = [
        Self::ServerKilled,
        Self::NodeKilled,
        Self::StandbyKilled,
        Self::SwitchedOver,
        Self::NodeStopped,
        Self::ServerStopped,
    ];

    const fn label(self) -> &'static str {
        match self {
            Self::ServerKilled => "the primary's server is killed",
            Self::NodeKilled => "the primary's node is killed: server, Patroni and etcd",
            Self::StandbyKilled => "a synchronous standby's node is killed",
            Self::SwitchedOver => "switchover on request",
            Self::NodeStopped => "the primary's node is stopped, and goes on after its successor",
            Self::ServerStopped => "the primary's server alone is stopped for 8 s",
        }
    }
}

impl Companions {
    /// Any gateway, and perhaps one of the other way: each way keeps one that serves.
    pub(super) fn any(dice: &mut Dice) -> Self {
        let place = dice.index(GATEWAYS);
        if dice.one_in(2) { Self::One(place) } else { Self::OneOfEach(place) }
    }

    pub(super) fn places(self) -> Vec<usize> {
        match self {
            Self::None => Vec::new(),
            Self::One(place) => vec![place],
            // The neighbour has the other way.
            Self::OneOfEach(place) => vec![place, place ^ 1],
        }
    }
}

impl Failovers {
    pub(super) fn start() -> Self {
        let cluster = Patroni::start();
        let balancer = HaProxy::before_servers(cluster.balancer());
        // It takes every server for up until its first probe.
        balancer.wait_for("primary", 1);
        Self {
            balanced_url: cluster.url_by(&balancer.address().to_string()),
            url: cluster.url(),
            balancer,
            cluster: Mutex::new(cluster),
            gaps: Mutex::new([Gap::begin(); WAYS]),
        }
    }

    /// URL that names all servers, without a database.
    pub(super) fn url(&self) -> String {
        self.url.clone()
    }

    /// Environment of the gateway in a place.
    pub(super) fn env(&self, place: usize, database: &Database) -> Vec<(&'static str, PathBuf)> {
        let is_balanced = place % WAYS == 1;
        let url = is_balanced.then(|| database.url_on(&self.balanced_url));
        url.map(|url| ("HOLDFAST_DATABASE_URL", url.into())).into_iter().collect()
    }

    /// A key has its first answer, a 200, from the gateway in a place.
    pub(super) fn record_ok(&self, place: usize) {
        self.gaps()[place % WAYS].record();
    }

    pub(super) fn cluster(&self) -> MutexGuard<'_, Patroni> {
        self.cluster.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to measure, as if each way had a new 200 now.
    pub(super) fn begin_outage(&self) {
        *self.gaps() = [Gap::begin(); WAYS];
    }

    /// Longest times since then: by hosts, and by the balancer.
    pub(super) fn longest_gaps(&self) -> [Duration; WAYS] {
        self.gaps().map(|gap| gap.longest)
    }

    fn gaps(&self) -> MutexGuard<'_, [Gap; WAYS]> {
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until each way has a new 200, from now on.
    pub(super) fn wait_until_served(&self) {
        let before = self.gaps().map(|gap| gap.count);
        let is_served = || self.gaps().iter().zip(before).all(|(gap, before)| gap.count > before);
        let servers = || self.balancer.say("show stat primary 4 -1");
        assert!(wait_until(SERVED_MAX, is_served), "no new 200: {:?}\n{}", self.gaps(), servers());
    }
}

/// A row for each fault, as a table of the manual.
pub(super) fn table(outages: &[Outage]) -> Vec<String> {
    let mut lines = Vec::new();
    for fault in ServerFault::ALL {
        let done: Vec<_> = outages.iter().filter(|outage| outage.fault == fault).collect();
        let killed = done.iter().filter(|outage| outage.companions != Companions::None).count();
        let spell = |gap: fn(&Outage) -> Duration| spell(done.iter().map(|it| gap(it)).collect());
        let (hosts, balancer) = (spell(|it| it.by_hosts), spell(|it| it.by_balancer));
        let row =
            format!("| {} | {}, {killed} | {hosts} | {balancer} |", fault.label(), done.len());
        lines.extend((!done.is_empty()).then_some(row));
    }
    if !lines.is_empty() {
        let head = "| fault | times, of these with gateways killed | gap by three hosts | gap by HAProxy |";
        lines.splice(0..0, [head.to_owned(), "|---|---|---|---|".to_owned()]);
    }
    lines
}

/// Median and most, in seconds.
fn spell(mut times: Vec<Duration>) -> String {
    times.sort();
    let seconds = |time: Option<&Duration>| {
        let tenths = time.map_or(0, |time| time.as_millis() / 100);
        format!("{}.{}", tenths / 10, tenths % 10)
    };
    let median = seconds(times.get(times.len() / 2));
    if times.len() < 2 { median } else { format!("{median}, {}", seconds(times.last())) }
}
