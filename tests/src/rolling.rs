//! Rolling updates under load: gateways as `deploy/` describes them, behind the balancer that it ships, each
//! replaced in turn while callers send and streams run. No caller gets a 503, no stream is cut that is shorter than
//! the drain, and the ledgers balance.
//!
//! The balancer is HAProxy with `deploy/haproxy.cfg`; before gateways of the chart it probes as their readiness
//! probe does, and sends no request twice. Its address (a socket that it is given) and its way to learn the address
//! of a new gateway differ: by its own command, while containers have names.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::config::ACME;
use crate::deployment::{Deployment, Source};
use crate::events::End;
use crate::haproxy::{BalancerFile, HaProxy};
use crate::postgres::Database;
use crate::upstream::Judge;
use crate::{Account, Gateway, Reply, Request, Site, Streaming, Upstream, request_key};

/// Name of the gateways in the balancer's file.
const BACKEND: &str = "gateways";
/// Gateways that serve at any time.
const GATEWAYS: usize = 2;
const CALLERS: usize = 18;
/// Callers with streams that last: most only wait.
const SLOW_CALLERS: usize = 12;
const CHARGE: i64 = 367;
const FUNDS: i64 = 100_000_000;
const PIECES: [&str; 4] = ["Good ", "day", " to", " you"];
/// A round of a test lasts less.
const ROUND_MAX: Duration = Duration::from_secs(120);
/// Streams that are slow outlast the delay of a gateway that ends by so much: it must drain for them.
const DRAINED: Duration = Duration::from_secs(3);
const SLOWLY: &str = "Say hello slowly";

/// Answers that callers got. Any other answer ends the update at once.
#[derive(Debug, Default)]
pub struct RollReport {
    /// Whole answers.
    pub answers: AtomicUsize,
    /// Whole streams that last a moment.
    pub streams: AtomicUsize,
    /// Whole streams that outlast the delay of a gateway that ends.
    pub slow_streams: AtomicUsize,
    /// Milliseconds that the slowest end of a gateway took.
    pub slowest_end_ms: AtomicU64,
}

/// Replaces all gateways of one source after the other, so many times, while callers send to all of them, and
/// checks the results; reports each round, and returns the answers of each source.
///
/// # Panics
///
/// If a check fails.
#[track_caller]
pub fn roll(
    sources: &[Source],
    rounds: u32,
    tell: impl Fn(u32, Source, &RollReport),
) -> Vec<RollReport> {
    let sets: Vec<_> = sources.iter().map(|source| GatewaySet::of(*source, rounds)).collect();
    let mut gateways: Vec<_> = sets.iter().map(GatewaySet::start).collect();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (set, caller) in sets.iter().flat_map(|set| (0..CALLERS).map(move |it| (set, it))) {
            let is_over = &is_over;
            scope.spawn(move || {
                let end = EndGuard(is_over);
                for turn in caller.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    set.ask(Wish::of(caller, turn));
                }
                std::mem::forget(end);
            });
        }
        let end = EndGuard(&is_over);
        let order = (0..sources.len()).cycle();
        for (round, place) in (1..=rounds).zip(order) {
            sets[place].replace_all(&mut gateways[place]);
            tell(round, sources[place], &sets[place].met);
            assert!(!is_over.load(Ordering::Relaxed), "a caller met something else");
        }
        drop(end);
    });
    gateways.iter().flatten().flatten().for_each(Gateway::terminate);
    gateways.into_iter().flatten().flatten().for_each(|gateway| assert!(gateway.wait().success()));
    sets.into_iter().map(GatewaySet::checked).collect()
}

/// Request of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Answer,
    Stream,
    SlowStream,
}

impl Wish {
    /// Callers of slow streams begin with some quick ones, the more the later they come: a gateway that gets its
    /// signal then has streams of every age.
    fn of(caller: usize, turn: usize) -> Self {
        if caller < SLOW_CALLERS {
            return if turn < caller + caller / 2 { Self::Stream } else { Self::SlowStream };
        }
        if turn.is_multiple_of(2) { Self::Stream } else { Self::Answer }
    }
}

/// Gateways of one description on a database of their own, behind its balancer, and their callers. The caller
/// decides the gateway in a slot of the balancer; slots of a surge are empty at first.
struct GatewaySet {
    deployment: Deployment,
    upstream: Upstream,
    site: Site,
    account: Account,
    balancer: HaProxy,
    met: RollReport,
    _database: Database,
}

impl GatewaySet {
    fn of(source: Source, rounds: u32) -> Self {
        let upstream = Upstream::start(Reply::Silence);
        let deployment = Deployment::of(source, &upstream);
        upstream.otherwise(replies(deployment.drain_delay + DRAINED));
        let database = Database::migrated();
        let site = Site::empty_for(ROUND_MAX * (rounds + 1));
        let site = deployment.furnish(site, &database);
        let account = site.account("main", "USD", "100.00");
        let slots = GATEWAYS + deployment.surge;
        let balancer = HaProxy::start(&deployment.balancer, |file| with_slots(file, slots));
        // It takes every server for up until its first probe.
        balancer.wait_for(BACKEND, 0);
        let met = RollReport::default();
        Self { deployment, upstream, site, account, balancer, met, _database: database }
    }

    /// Starts the first gateways.
    fn start(&self) -> Vec<Option<Gateway>> {
        let mut slots: Vec<_> = (0..GATEWAYS + self.deployment.surge).map(|_| None).collect();
        (0..GATEWAYS).for_each(|slot| self.begin(&mut slots, slot));
        slots
    }

    /// Replaces every gateway, each in the order of the description.
    fn replace_all(&self, slots: &mut [Option<Gateway>]) {
        let all: Vec<_> = (0..slots.len()).filter(|slot| slots[*slot].is_some()).collect();
        for slot in all {
            if let Some(free) = slots.iter().position(Option::is_none) {
                self.begin(slots, free);
                self.end(slots, slot);
            } else {
                self.end(slots, slot);
                self.begin(slots, slot);
            }
        }
    }

    /// Starts a gateway in a slot that is free, and waits until it gets requests.
    fn begin(&self, slots: &mut [Option<Gateway>], slot: usize) {
        let gateway = self.deployment.start(&self.site);
        self.turn(slot, gateway.address());
        slots[slot] = Some(gateway);
        self.balancer.wait_for(BACKEND, slots.iter().flatten().count());
    }

    /// Ends the gateway in a slot, in order and in time.
    fn end(&self, slots: &mut [Option<Gateway>], slot: usize) {
        let asked = Instant::now();
        slots[slot].take().expect("a gateway").stop();
        let took = asked.elapsed();
        assert!(took < self.deployment.grace, "a supervisor would have killed it: {took:?}");
        let took_ms = u64::try_from(took.as_millis()).expect("a short time");
        self.met.slowest_end_ms.fetch_max(took_ms, Ordering::Relaxed);
        // Another program may listen there soon.
        self.turn(slot, Upstream::absent());
    }

    /// Sends what goes to this slot to another address from now on.
    fn turn(&self, slot: usize, gateway: SocketAddr) {
        let (ip, port) = (gateway.ip(), gateway.port());
        let server = format!("{BACKEND}/gateway-{}", slot + 1);
        drop(self.balancer.say(&format!("set server {server} addr {ip} port {port}")));
    }

    /// One request, which is answered whole.
    fn ask(&self, wish: Wish) {
        let (met, count) =
            (&self.met, |counter: &AtomicUsize| counter.fetch_add(1, Ordering::Relaxed));
        let content = if wish == Wish::SlowStream { SLOWLY } else { "Say hello" };
        let body = json!({
            "model": ACME, "stream": wish != Wish::Answer,
            "messages": [{"role": "user", "content": content}],
        });
        let request = Request::completion(&self.account.key, &request_key(), body.to_string());
        if wish == Wish::Answer {
            let answer = request.send(self.balancer.address());
            assert_eq!(answer.status, 200, "{answer:?}");
            count(&met.answers);
            return;
        }
        let told = request.begin(self.balancer.address()).events().rest();
        assert_eq!(told.head.status, 200, "{told:?}");
        assert_eq!(told.end, End::Whole, "{told:?}");
        assert_eq!(told.events.last().map(String::as_str), Some("data: [DONE]\n\n"), "{told:?}");
        count(if wish == Wish::Stream { &met.streams } else { &met.slow_streams });
    }

    /// Each request ran once and was charged once, and the books are in order.
    fn checked(self) -> RollReport {
        let met = [&self.met.answers, &self.met.streams, &self.met.slow_streams];
        let ran: usize = met.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        assert_eq!(self.upstream.runs(), ran, "each ran once");
        let charged = i64::try_from(ran).expect("few") * CHARGE;
        assert_eq!(self.site.balance(&self.account), (FUNDS - charged, 0), "each was charged once");
        drop(self.site.verify());
        self.met
    }
}

/// Answers, streams, and slow streams on request.
fn replies(slow: Duration) -> Reply {
    let streamed = |pause: Duration| {
        let stream = PIECES
            .iter()
            .fold(Streaming::new().opening(), |stream, piece| stream.text(piece).pause(pause));
        stream.finish("stop").usage().done().reply()
    };
    let slow = streamed(slow / 4);
    let quick = Reply::as_wanted(streamed(Duration::from_millis(150)), Reply::saying("Good day"));
    Reply::Judged(Judge::new(move |arrived| {
        if arrived.body.contains(SLOWLY) { slow.clone() } else { quick.clone() }
    }))
}

/// Ends the load with its scope, however that is left.
pub(crate) struct EndGuard<'a>(pub(crate) &'a AtomicBool);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The slots of a test in place of the described gateways, none of which is reached yet.
fn with_slots(file: BalancerFile, slots: usize) -> BalancerFile {
    let server = |slot: usize, address: &str| format!("    server gateway-{slot} {address}\n");
    let described = (1..=GATEWAYS).map(|slot| server(slot, &format!("gateway-{slot}:8080")));
    let nobody = Upstream::absent().to_string();
    let here = (1..=slots).map(|slot| server(slot, &nobody));
    file.replace(&described.collect::<String>(), &here.collect::<String>())
}
