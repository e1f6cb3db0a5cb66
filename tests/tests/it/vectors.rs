//! The pairs that must or must not be one request, and the bodies that must be refused, through a
//! running gateway: what shares a key's answer, what is a conflict, and what binds nothing.

use holdfast_tests::config::ACME;
use holdfast_tests::{Config, Reply, Request, Upstream, database, request_key};
use holdfast_wire::error::Code;
use serde_json::Value;

use crate::check::{check_completion, content, error};
use crate::streaming::check_stream;
use crate::world::World;

const PAIRS: &str = include_str!("../../../crates/wire/tests/vectors/fingerprint-vectors.json");
const REJECTS: &str = include_str!("../../../crates/wire/tests/vectors/fingerprint-reject.json");
/// What they differ in is how the answer travels.
const STREAMS: [&str; 2] = ["16-include_obfuscation-is-transport", "26-stream-flag"];
/// It is about two configurations.
const CONTRACTS: &str = "34-contract-version";

fn world() -> World {
    World::with(Reply::saying("Good day"), |upstream| under(1, upstream))
}

/// The model under a contract version that takes what the pairs ask for.
fn under(contract: u32, upstream: &Upstream) -> Config {
    let takes = format!("contract = {contract}\naccepts = [\"top_k\"]\nallow = [\"service_tier\"]");
    Config::upstream(upstream).replace("contract = 1", &takes)
}

/// The vectors name a model that nobody has.
fn load(text: &str) -> Vec<Value> {
    let vectors: Vec<Value> = serde_json::from_str(&text.replace("gpt-x", ACME)).unwrap();
    assert!(!vectors.is_empty());
    vectors
}

fn text<'a>(vector: &'a Value, name: &str) -> &'a str {
    vector[name].as_str().unwrap()
}

impl World {
    /// The second body under the key that the first has bound.
    fn check_pair(&self, name: &str, first: &str, second: &str, same: bool) {
        let key = request_key();
        let answer = self.complete(&key, first);
        assert_eq!(answer.status, 200, "{name}: {answer:?}");
        check_completion(&answer, &key, false);
        let runs = self.upstream.runs();
        let again = self.complete(&key, second);
        if same {
            assert_eq!(again.status, 200, "{name}: {again:?}");
            check_completion(&again, &key, true);
            assert_eq!(again.body, answer.body, "{name}");
        } else {
            assert_eq!(again.status, 409, "{name}: {again:?}");
            error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&again);
        }
        assert_eq!(self.upstream.runs(), runs, "{name}");
    }
}

#[test]
fn pairs_share_an_answer_exactly_when_they_ask_for_the_same() {
    let world = world();
    let mut runs = 0;
    for pair in load(PAIRS) {
        let (name, a, b) = (text(&pair, "name"), text(&pair, "a"), text(&pair, "b"));
        let is_stream = [a, b].iter().any(|body| body.contains("\"stream\":true"));
        assert_eq!(is_stream, STREAMS.contains(&name), "{name}");
        assert_eq!(pair.get("contract_b").is_some(), name == CONTRACTS, "{name}");
        if is_stream || name == CONTRACTS {
            continue;
        }
        let same = pair["same"].as_bool().unwrap();
        world.check_pair(name, a, b, same);
        world.check_pair(name, b, a, same);
        runs += 2;
    }
    assert_eq!(world.upstream.runs(), runs);
    assert_eq!(world.site.verify()["operations"], runs);
}

#[test]
fn pairs_that_travel_differently_share_an_answer() {
    let world = world();
    let said = |key: &str, body: &str, replayed: bool| {
        if !body.contains("\"stream\":true") {
            return check_completion(&world.complete(key, body), key, replayed);
        }
        let request = Request::completion(&world.account.key, key, body);
        check_stream(&request.begin(world.gateway.address()).events().rest(), key, replayed)
    };
    let pairs = load(PAIRS);
    let pairs: Vec<_> = pairs.iter().filter(|it| STREAMS.contains(&text(it, "name"))).collect();
    assert_eq!(pairs.len(), STREAMS.len());
    for pair in pairs {
        for bodies in [["a", "b"], ["b", "a"]] {
            let [one, two] = bodies.map(|name| text(pair, name));
            let (key, runs) = (request_key(), world.upstream.runs());
            let (first, again) = (said(&key, one, false), said(&key, two, true));
            assert_eq!((&first["id"], content(&first)), (&again["id"], content(&again)));
            assert_eq!(world.upstream.runs(), runs + 1);
        }
    }
}

#[test]
fn bodies_that_must_be_refused_bind_nothing() {
    let world = world();
    for vector in load(REJECTS) {
        let (name, key) = (text(&vector, "name"), request_key());
        let answer = world.complete(&key, text(&vector, "body"));
        assert_eq!(answer.status, 400, "{name}: {answer:?}");
        let code = answer.json()["error"]["code"].clone();
        assert!(code == "invalid_json" || code == "invalid_value", "{name}: {code}");
        let path = format!("/v1/operations/{key}");
        let found = world.gateway.send(&Request::get(&path).bearer(&world.account.key));
        assert_eq!(found.status, 404, "{name}: {found:?}");
    }
    assert_eq!(world.upstream.runs(), 0);
    assert_eq!(world.site.verify()["operations"], 0);
}

#[test]
fn sqlite_fingerprints_differ_between_contract_versions_of_one_model() {
    let World { upstream, site, account, gateway } = world();
    let pairs = load(PAIRS);
    let pair = pairs.iter().find(|pair| text(pair, "name") == CONTRACTS).unwrap();
    let (a, b) = (text(pair, "a"), text(pair, "b"));
    let keys = [request_key(), request_key(), request_key()];
    for key in &keys[..2] {
        check_completion(&gateway.complete(&account, key, a), key, false);
    }
    gateway.stop();
    site.configure(&under(8, &upstream));
    let gateway = site.serve();
    check_completion(&gateway.complete(&account, &keys[2], b), &keys[2], false);
    // A key that is bound stays bound under the version that it was bound under.
    check_completion(&gateway.complete(&account, &keys[0], a), &keys[0], true);
    gateway.stop();
    let rows = "SELECT contract, hex(fingerprint) FROM operations ORDER BY contract";
    let rows = database::execute(&site.database(), rows);
    let [one, two, three] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!(one, two, "the same request under one version");
    let split = |row: &str| row.split_once('|').map(|(c, f)| (c.to_owned(), f.to_owned())).unwrap();
    let ((old, before), (new, after)) = (split(one), split(three));
    assert_eq!((old.as_str(), new.as_str()), ("1", "8"));
    assert_ne!(before, after, "another version is another operation");
}
