//! Three gateways on one PostgreSQL database that tell each other what their runs say: a stream that is
//! joined at another node is live there, whatever becomes of the way between them, and its row has the last
//! word. Where they listen for that is written into their rows, so that a test leads them astray there.

use std::net::SocketAddr;

use holdfast_domain::RelayNonce;
use holdfast_domain::credential::Bearer;
use holdfast_tests::events::{End, chunk};
use holdfast_tests::postgres::Database;
use holdfast_tests::proxy::Proxy;
use holdfast_tests::upstream::Streaming;
use holdfast_tests::{
    Account, Config, Events, Gate, Gateway, Request, Site, Upstream, request_key,
};
use holdfast_wire::error::Code;
use serde_json::Value;

use crate::admin::{metrics, value, wait_for_waiters};
use crate::bodies::acme;
use crate::check::{content, until};
use crate::streaming::{check_broken, check_head, check_stream};

const CHARGE: i64 = 367;
const FUNDS: i64 = 10_000_000;
const PIECES: [&str; 3] = ["Good ", "day, ", "sir"];
const TEXT: &str = "Good day, sir";

/// Three nodes, and a run that the first one's caller hears from its beginning.
struct World {
    nodes: [Gateway; 3],
    site: Site,
    account: Account,
    upstream: Upstream,
    gates: [Gate; 4],
    key: String,
    database: Database,
}

impl World {
    fn new() -> Self {
        Self::with(|config| config)
    }

    fn with(set: impl FnOnce(Config) -> Config) -> Self {
        let gates: [Gate; 4] = std::array::from_fn(|_| Gate::new());
        let pieces = gates.iter().zip(PIECES);
        let said = pieces
            .fold(Streaming::new().opening(), |said, (gate, piece)| said.wait(gate).text(piece));
        let said = said.wait(&gates[3]).finish("stop").usage().done();
        let upstream = Upstream::start(said.reply());
        let database = Database::migrated();
        let config = database.configure(Config::upstream(&upstream));
        let config = set(config.set("node", "listen", "\"127.0.0.1:0\""));
        let (site, account) = Site::funded(&config);
        let nodes = [site.serve(), site.serve(), site.serve()];
        Self { nodes, site, account, upstream, gates, key: request_key(), database }
    }

    /// A stream of the run at this node.
    fn join(&self, node: usize) -> Events {
        self.join_as(&self.account, node, &streamed())
    }

    fn join_as(&self, account: &Account, node: usize, body: &str) -> Events {
        let request = Request::completion(&account.key, &self.key, body);
        let events = request.begin(self.nodes[node].address()).events();
        check_head(&events.head, &self.key, node > 0);
        events
    }

    /// The other nodes find this node at another address from now on, or at none.
    fn lead(&self, node: usize, to: Option<SocketAddr>) {
        let own = self.nodes[node].node_address();
        let to = to.map_or("NULL".to_owned(), |to| format!("'{to}'"));
        let moved = self.database.execute(&format!(
            "UPDATE nodes SET address = {to} WHERE address = '{own}' RETURNING name"
        ));
        assert_eq!(moved.len(), 1, "{own} is in one row");
    }

    /// How many relays that this node has asked for came to this.
    fn relays(&self, node: usize, outcome: &str) -> f64 {
        value(&metrics(&self.nodes[node]), "holdfast_relays_total", &format!("\"{outcome}\""))
    }

    #[track_caller]
    fn check_paid(&self) {
        assert_eq!(self.upstream.runs(), 1);
        assert_eq!(self.site.balance(&self.account), (FUNDS - CHARGE, 0));
        drop(self.site.verify());
    }
}

fn streamed() -> String {
    acme("Say hello").replacen('{', r#"{"stream":true,"#, 1)
}

fn metered() -> String {
    let options = r#"{"stream":true,"stream_options":{"include_usage":true},"#;
    acme("Say hello").replacen('{', options, 1)
}

/// The text that is told next.
fn said(events: &mut Events) -> String {
    loop {
        match content_of(&events.event()) {
            Some(text) if !text.is_empty() => return text,
            Some(_) | None => {}
        }
    }
}

/// The text of an event.
fn content_of(event: &str) -> Option<String> {
    let data = event.strip_prefix("data: ")?;
    let chunk: Value = serde_json::from_str(data).ok()?;
    Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned())
}

/// A node that is killed or stands still is believed to be dead within seconds.
fn impatient(config: Config) -> Config {
    config.set("operations", "lease", "\"6s\"").set("operations", "heartbeat", "\"1s\"").set(
        "operations",
        "orphan_grace",
        "\"1s\"",
    )
}

#[test]
fn postgres_a_stream_that_is_joined_at_another_node_is_told_as_it_is_said() {
    let world = World::new();
    let mut own = world.join(0);
    world.gates[0].open();
    assert_eq!(said(&mut own), "Good ");
    let mut second = world.join(1);
    assert_eq!(said(&mut second), "Good ", "before anything else is said");
    let mut third = world.join_as(&world.account, 2, &metered());
    let opening = chunk(&third.event());
    assert_eq!(opening.get("usage"), Some(&Value::Null), "{opening}");
    assert_eq!(said(&mut third), "Good ");
    // A relay is one of those who wait, at the node that is asked as well as here.
    wait_for_waiters(&world.nodes[0], 3);
    wait_for_waiters(&world.nodes[1], 1);
    world.gates[1].open();
    for events in [&mut own, &mut second, &mut third] {
        assert_eq!(said(events), "day, ");
    }
    world.gates[2].open();
    world.gates[3].open();
    let own = own.rest();
    assert_eq!(second.rest().events, own.events);
    let metered = third.rest();
    assert_eq!(metered.end, End::Whole);
    let used = chunk(&metered.events[metered.events.len() - 2]);
    assert_eq!(used["usage"]["customer_charge_micros"], CHARGE);
    for node in 1..=2 {
        assert_eq!(world.relays(node, "whole").to_string(), "1");
    }
    world.check_paid();
}

#[test]
fn postgres_a_relay_that_is_cut_is_asked_for_once_more_and_then_the_row_decides() {
    let world = World::new();
    let proxy = Proxy::start(world.nodes[0].node_address());
    world.lead(0, Some(proxy.address()));
    let mut own = world.join(0);
    world.gates[0].open();
    assert_eq!(said(&mut own), "Good ");
    let mut third = world.join(2);
    assert_eq!(said(&mut third), "Good ");
    // The first relay ends before that, the second within what comes next, and there is no third.
    let told = proxy.told()[0];
    proxy.cut_next(&[told / 2, told + 20]);
    let mut joined = world.join(1);
    assert_eq!(said(&mut joined), "Good ");
    world.gates[1].open();
    until("both relays are cut", || (world.relays(1, "cut").to_string() == "2").then_some(()));
    assert_eq!(proxy.told().len(), 3);
    world.gates[2].open();
    world.gates[3].open();
    let (own, rest) = (own.rest(), joined.rest());
    assert_eq!(rest.end, End::Whole);
    let left: String = rest.events.iter().filter_map(|event| content_of(event)).collect();
    assert_eq!(format!("Good {left}"), TEXT, "{rest:?}");
    assert_eq!((own.end, third.rest().end), (End::Whole, End::Whole));
    world.check_paid();
}

#[test]
fn postgres_a_relay_that_is_cut_anywhere_is_unseen_by_its_reader() {
    let world = World::new();
    let proxy = Proxy::start(world.nodes[0].node_address());
    world.lead(0, Some(proxy.address()));
    let cuts: Vec<usize> = (0..40).map(|n| 1 + 37 * n).collect();
    proxy.cut_next(&cuts);
    let mut own = world.join(0);
    for gate in &world.gates[..2] {
        gate.open();
    }
    assert_eq!([said(&mut own), said(&mut own)], ["Good ", "day, "]);
    let request = Request::completion(&world.account.key, &world.key, streamed());
    let joined: Vec<_> = (0..20).map(|_| request.begin(world.nodes[1].address())).collect();
    wait_for_waiters(&world.nodes[1], joined.len());
    world.gates[2].open();
    world.gates[3].open();
    for joined in joined {
        let told = check_stream(&joined.events().rest(), &world.key, true);
        assert_eq!(content(&told), TEXT);
    }
    assert_eq!(own.rest().end, End::Whole);
    world.check_paid();
}

#[test]
fn postgres_a_node_that_drains_tells_what_it_hears_to_the_end() {
    let World { nodes: [first, second, third], site, account, upstream, gates, key, database } =
        World::new();
    let request = Request::completion(&account.key, &key, streamed());
    let mut own = request.begin(first.address()).events();
    gates[0].open();
    assert_eq!(said(&mut own), "Good ");
    let mut joined = request.begin(second.address()).events();
    assert_eq!(said(&mut joined), "Good ");
    second.terminate();
    until("it drains", || second.said().contains("draining").then_some(()));
    for gate in &gates[1..] {
        gate.open();
    }
    let rest = joined.rest();
    assert_eq!(rest.end, End::Whole, "{rest:?}");
    assert_eq!(own.rest().end, End::Whole);
    assert_eq!(second.wait().code(), Some(0));
    assert_eq!((upstream.runs(), site.balance(&account)), (1, (FUNDS - CHARGE, 0)));
    drop((third, database));
}

#[test]
fn postgres_a_node_that_is_killed_in_the_middle_ends_what_it_told_with_an_error() {
    let World { nodes: [first, second, third], site, account, upstream, gates, key, database } =
        World::with(impatient);
    let request = Request::completion(&account.key, &key, streamed());
    let mut own = request.begin(first.address()).events();
    gates[0].open();
    assert_eq!(said(&mut own), "Good ");
    let mut joined = request.begin(second.address()).events();
    assert_eq!(said(&mut joined), "Good ");
    first.kill();
    drop(own);
    let rest = joined.rest();
    let (_said, error) = check_broken(&rest);
    assert_eq!(error["code"], Code::OutcomeUnknown.label(), "{error}");
    assert_eq!(upstream.runs(), 1);
    until("the hold is back", || (site.balance(&account) == (FUNDS, 0)).then_some(()));
    site.verify();
    drop((third, gates, database));
}

#[test]
fn postgres_a_node_that_stands_still_in_the_middle_ends_what_it_told_with_an_error() {
    let world = World::with(impatient);
    let mut own = world.join(0);
    world.gates[0].open();
    assert_eq!(said(&mut own), "Good ");
    let mut joined = world.join(1);
    assert_eq!(said(&mut joined), "Good ");
    world.nodes[0].freeze();
    let rest = joined.rest();
    let (_said, error) = check_broken(&rest);
    assert_eq!(error["code"], Code::OutcomeUnknown.label(), "{error}");
    world.nodes[0].thaw();
    assert_eq!(world.upstream.runs(), 1);
    let funds = || (world.site.balance(&world.account) == (FUNDS, 0)).then_some(());
    until("the hold is back", funds);
    world.site.verify();
}

#[test]
fn postgres_addresses_that_lead_elsewhere_gain_nothing_and_cost_nothing() {
    // A node that does not run it, whoever asks itself, a node of another version, nobody, and none.
    let elsewhere: [fn(&World) -> Option<SocketAddr>; 5] = [
        |world| Some(world.nodes[2].node_address()),
        |world| Some(world.nodes[1].node_address()),
        |world| Some(world.nodes[2].address()),
        |_world| Some(Upstream::absent()),
        |_world| None,
    ];
    for to in elsewhere {
        let world = World::new();
        let to = to(&world);
        world.lead(0, to);
        let mut own = world.join(0);
        world.gates[0].open();
        assert_eq!(said(&mut own), "Good ");
        let request = Request::completion(&world.account.key, &world.key, streamed());
        let joined = [1, 2].map(|node| request.begin(world.nodes[node].address()));
        for node in 1..=2 {
            until("it was asked for in vain", || {
                let outcomes = ["refused", "unreached"].map(|it| world.relays(node, it));
                (outcomes.iter().sum::<f64>() > 0.0).then_some(())
            });
        }
        for gate in &world.gates[1..] {
            gate.open();
        }
        for joined in joined {
            let told = check_stream(&joined.events().rest(), &world.key, true);
            assert_eq!(content(&told), TEXT);
        }
        assert_eq!(own.rest().end, End::Whole);
        for node in 1..=2 {
            assert_eq!(world.relays(node, "whole").to_string(), "0", "{to:?}");
        }
        world.check_paid();
    }
}

#[test]
fn postgres_whoever_does_not_know_the_result_key_is_told_of_no_tape() {
    let world = World::new();
    let rotated = world.site.rotate(&world.account, "1h");
    let mut own = world.join(0);
    world.gates[0].open();
    assert_eq!(said(&mut own), "Good ");
    let rows = world.database.execute("SELECT id::text || ' ' || claim::text FROM operations");
    let (operation, claim) =
        rows[0].split_once(' ').map(|(id, claim)| (uuid(id), uuid(claim))).unwrap();
    let ask = |path: &str, claim: &str, proof: &str| {
        Request::get(path)
            .header("Holdfast-Claim", claim)
            .header("Holdfast-Nonce", &request_key())
            .header("Holdfast-Proof", proof)
    };
    let (path, proof) = (format!("/tape/1/{operation}"), "0".repeat(64));
    // Who overhears an ask has nothing by asking the same again.
    let bearer = Bearer::parse(&world.account.key).unwrap();
    let result_key = bearer.secret.result_key(operation.parse().unwrap());
    let nonce: RelayNonce = request_key().parse().unwrap();
    let known = result_key.relay_proof(claim.parse().unwrap(), nonce).to_string();
    let overheard = ask(&path, &claim, &known).without("Holdfast-Nonce");
    let overheard = overheard.header("Holdfast-Nonce", &nonce.to_string());
    let mut heard = overheard.begin(world.nodes[0].node_address());
    assert!(heard.read(12).starts_with(b"HTTP/1.1 200"));
    let right = ask(&path, &claim, &proof);
    for wrong in [
        overheard,
        right.clone(),
        right.clone().bearer(&world.account.key),
        right.clone().without("Holdfast-Proof"),
        right.method("POST"),
        ask(&path, &request_key(), &proof),
        ask(&path, "", "é"),
        ask(&format!("/tape/1/{}", request_key()), &claim, &proof),
        ask(&format!("/tape/2/{operation}"), &claim, &proof),
        ask("/metrics", &claim, &proof),
        ask("/v1/models", &claim, &proof).bearer(&world.account.key),
    ] {
        let answer = wrong.send(world.nodes[0].node_address());
        assert_eq!((answer.status, answer.text()), (404, ""), "{answer:?}");
    }
    // Another credential of the same API key will not open the answer, and is not told it before.
    let request = Request::completion(&rotated.key, &world.key, streamed());
    let joined = request.begin(world.nodes[1].address());
    until("it is not told", || (world.relays(1, "refused").to_string() == "1").then_some(()));
    for gate in &world.gates[1..] {
        gate.open();
    }
    let refused = joined.answer();
    assert_eq!(refused.json()["error"]["code"], Code::ResultSealed.label(), "{refused:?}");
    assert_eq!(own.rest().end, End::Whole);
    world.check_paid();
}

/// An id as it is printed, of how PostgreSQL prints its bytes.
fn uuid(bytes: &str) -> String {
    let hex = bytes.trim_start_matches("\\x");
    let parts = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    parts.join("-")
}
