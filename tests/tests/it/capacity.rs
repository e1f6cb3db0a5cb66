//! What one API key can take of a process by reading: places, bytes on the way, and nobody else's time.
//!
//! The shape of the attack is that of `one_key_that_reads_large_results…`, scaled to a debug build: it lasts until it
//! has read more than one answer and the others have had so many. The full one, on an optimized build of the gateway:
//!
//! ```text
//! HOLDFAST_BIN=… HOLDFAST_CAPACITY=1000x9000000x2000 cargo nextest run -p holdfast-tests large_results
//! ```

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

use holdfast_tests::postgres::Database;
use holdfast_tests::{
    Account, Answer, Config, Gateway, PATIENCE, Reply, Request, Site, Upstream, request_key,
};
use socket2::{Domain, Socket, Type};

use crate::bodies::{acme, sim};
use crate::check::{check_completion, check_json, content, until};

/// An answer that no buffer on its way takes whole.
const LARGE: usize = 4 << 20;
/// Those of another wallet who send beside the attack.
const OTHERS: usize = 6;
/// Connections of the attack, bytes of an answer, and requests of each of the others, unless by hand.
const USUAL: [usize; 3] = [200, LARGE, 12];

/// A gateway with one stored answer of so many bytes.
struct World {
    gateway: Gateway,
    site: Site,
    account: Account,
    key: String,
    text: String,
    _upstream: Upstream,
}

impl World {
    fn new(bytes: usize, set: impl FnOnce(Config) -> Config) -> Self {
        let text = "0123456789abcdef".repeat(bytes >> 4);
        let upstream = Upstream::start(Reply::saying("Good day"));
        upstream.next(Reply::saying(&text));
        let with_sim = Config::upstream(&upstream)
            .set("providers.sim", "kind", "\"simulated\"")
            .model("holdfast/sim-1", "sim", "sim-1", "input = 2_000_000, output = 4_000_000");
        let (site, account) = Site::funded(&set(with_sim));
        let gateway = site.serve();
        let key = request_key();
        let told = gateway.complete(&account, &key, &acme("Say much"));
        assert_eq!(content(&check_completion(&told, &key, false)), text);
        Self { gateway, site, account, key, text, _upstream: upstream }
    }

    fn look_up(&self) -> Request {
        Request::get(&format!("/v1/operations/{}", self.key)).bearer(&self.account.key)
    }

    fn replay(&self, body: &str) -> Request {
        Request::completion(&self.account.key, &self.key, body)
    }

    /// Sends a request until it is served, and reads the first bytes of its answer, no more.
    fn begin(&self, request: &Request) -> TcpStream {
        until("there is a place", || self.try_begin(request))
    }

    fn try_begin(&self, request: &Request) -> Option<TcpStream> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.set_recv_buffer_size(16_384).unwrap();
        socket.connect(&self.gateway.address().into()).unwrap();
        let mut stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&request.bytes()).unwrap();
        let mut first = [0; 15];
        stream.read_exact(&mut first).unwrap();
        (&first == b"HTTP/1.1 200 OK").then_some(stream)
    }
}

#[test]
fn a_request_has_its_place_until_its_answer_is_written() {
    let world = World::new(LARGE, |config| config.set("limits", "operations_per_key", "1"));
    let streamed = acme("Say much").replacen('{', r#"{"stream":true,"#, 1);
    for request in [world.look_up(), world.replay(&acme("Say much")), world.replay(&streamed)] {
        let unread = world.begin(&request);
        let cancel = format!("/v1/operations/{}/cancel", world.key);
        let cancel = Request::post(&cancel, "").bearer(&world.account.key);
        for other in [&world.look_up(), &cancel, &world.replay(&acme("Say much"))] {
            check_refused(&world.gateway.send(other));
        }
        drop(unread);
    }
}

#[test]
fn a_key_waits_for_room_for_its_results_and_nobody_else_does() {
    let world =
        World::new(LARGE, |config| config.set("limits", "result_bytes_per_key", "1_048_576"));
    let unread = world.begin(&world.look_up());
    let began = Instant::now();
    std::thread::scope(|scope| {
        let waiting = [world.look_up(), world.replay(&acme("Say much"))]
            .map(|request| scope.spawn(|| world.gateway.send(&{ request })));
        // What is small needs no room, and another key has its own.
        let other = world.site.another_key(&world.account.wallet, "other");
        let key = request_key();
        let told = world.gateway.complete(&other, &key, &sim("Say hello"));
        check_completion(&told, &key, false);
        for refused in waiting {
            check_refused(&refused.join().unwrap());
        }
    });
    assert!(began.elapsed() > Duration::from_secs(4), "room is waited for");
    drop(unread);
    let told =
        check_completion(&world.gateway.send(&world.replay(&acme("Say much"))), &world.key, true);
    assert_eq!(content(&told), world.text);
    let seen = check_json(&world.gateway.send(&world.look_up()), 200);
    assert_eq!(content(&seen["result"]), world.text);
}

#[track_caller]
fn check_refused(answer: &Answer) {
    assert_eq!(answer.status, 429, "{answer:?}");
    assert_eq!(answer.json()["error"]["code"], "too_many_operations");
    assert_eq!(answer.header("x-should-retry"), Some("true"));
}

/// The numbers of [`USUAL`], or those that are given by hand.
#[expect(clippy::disallowed_methods, reason = "tests have no configuration to read it from")]
fn shape() -> [usize; 3] {
    let Ok(shape) = std::env::var("HOLDFAST_CAPACITY") else {
        return USUAL;
    };
    let numbers: Vec<usize> = shape.split('x').map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// Asks again and again, reads all of each answer, and forgets it.
fn read_over_and_over(to: SocketAddr, request: &[u8], is_over: &AtomicBool, read: &AtomicUsize) {
    let mut buffer = vec![0; 1 << 16];
    while !is_over.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(to) else { continue };
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        drop(stream.write_all(request));
        while let Ok(more) = stream.read(&mut buffer)
            && more > 0
            && !is_over.load(Ordering::Relaxed)
        {
            read.fetch_add(more, Ordering::Relaxed);
        }
    }
}

/// How long each of the others' requests took, while one key reads all it can.
fn attack(world: &World, connections: usize, requests: usize) -> Vec<Duration> {
    let other = world.site.account("other", "USD", "10.00");
    let (is_over, read) = (AtomicBool::new(false), AtomicUsize::new(0));
    let to = world.gateway.address();
    let request = world.look_up().bytes();
    let took = std::thread::scope(|scope| {
        for _ in 0..connections {
            let small = std::thread::Builder::new().stack_size(256 << 10);
            let (is_over, read, request) = (&is_over, &read, &request);
            small
                .spawn_scoped(scope, move || read_over_and_over(to, request, is_over, read))
                .unwrap();
        }
        let others: Vec<_> = (0..OTHERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut took = Vec::new();
                    // Until the attack is one, too; one that is refused from the start is none.
                    let is_small = || read.load(Ordering::Relaxed) <= LARGE;
                    while took.len() < requests || is_small() && took.len() < 50 * requests {
                        let (key, sent) = (request_key(), Instant::now());
                        let told = world.gateway.complete(&other, &key, &sim("Say hello"));
                        took.push(sent.elapsed());
                        check_completion(&told, &key, false);
                    }
                    took
                })
            })
            .collect();
        while !others.iter().all(ScopedJoinHandle::is_finished) {
            until("it is ready", || {
                (world.gateway.send(&Request::get("/readyz")).status == 200).then_some(())
            });
        }
        let took = others.into_iter().flat_map(|other| other.join().unwrap()).collect();
        is_over.store(true, Ordering::Relaxed);
        took
    });
    assert!(read.load(Ordering::Relaxed) > LARGE, "it is an attack");
    took
}

#[expect(clippy::print_stderr, reason = "the figures of a run by hand")]
fn check_that_others_are_served(set: impl FnOnce(Config) -> Config) {
    let shape @ [connections, bytes, requests] = shape();
    let world = World::new(bytes, |config| set(config.set("log", "level", "\"info\"")));
    let mut took = attack(&world, connections, requests);
    took.sort_unstable();
    let (median, longest) = (took[took.len() / 2], took[took.len() - 1]);
    // Of an optimized build on a machine of its own it is less than 50 ms.
    let bound = if shape == USUAL { 500 } else { 50 };
    let figures = format!("{} requests, median {median:?}, longest {longest:?}", took.len());
    assert!(median < Duration::from_millis(bound), "{figures}");
    eprintln!("{figures}");
}

#[test]
fn one_key_that_reads_large_results_over_and_over_leaves_others_alone() {
    check_that_others_are_served(|config| config);
}

#[test]
fn postgres_one_key_that_reads_large_results_over_and_over_leaves_others_alone() {
    let database = Database::migrated();
    check_that_others_are_served(|config| database.configure(config));
}
