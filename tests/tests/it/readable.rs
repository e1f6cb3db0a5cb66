//! What earlier releases wrote stays readable: each of their ledgers is migrated up, every key that they bound is
//! used again, and every administrative change is repeated.
//!
//! Callers get the bytes that they got from the release itself, whole and as a stream. An answer of the administration
//! has every member that it had; a later version may add some.

use holdfast_tests::postgres::Database;
use holdfast_tests::releases::exchange::{Exchange, KeptAnswer, Listener};
use holdfast_tests::releases::{KeptOperation, Kind, Ledger, sign_in};
use holdfast_tests::{Gateway, Reply, Streaming, Upstream};
use serde_json::Value;

const FRESH: &str = "A fresh answer";
/// Answer of the provider to the operation that was recorded and not settled.
const RECORDED: &str = "Good day";
/// States of the operations that every ledger has.
const STATES: [&str; 6] = ["completed", "refused", "abandoned", "leased", "recorded", "open"];

fn send(gateway: &Gateway, exchange: &Exchange) -> KeptAnswer {
    let mut answer = exchange.send(match exchange.to {
        Listener::Public => gateway.address(),
        Listener::Admin => gateway.admin_address(),
    });
    // Releases whose answers were kept had no such header.
    answer.headers.remove("x-content-type-options");
    answer
}

/// Where `now` lacks something of `then`, or has another value there.
fn missing(then: &Value, now: &Value, place: &str) -> Vec<String> {
    match (then, now) {
        (Value::Object(then), Value::Object(_)) => {
            let members = then.iter();
            members
                .flat_map(|(name, then)| missing(then, &now[name], &format!("{place}.{name}")))
                .collect()
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            let pairs = then.iter().zip(now).enumerate();
            pairs
                .flat_map(|(n, (then, now))| missing(then, now, &format!("{place}[{n}]")))
                .collect()
        }
        _ if then == now => Vec::new(),
        _ => vec![format!("{place}: {then} is now {now}")],
    }
}

/// The answer has all that the kept one had.
#[track_caller]
fn check_kept(gateway: &Gateway, exchange: &Exchange) {
    let kept = exchange.answer.as_ref().unwrap();
    let answer = send(gateway, exchange);
    let name = exchange.name();
    assert_eq!(answer.status, kept.status, "{name}: {answer:?}");
    let missing = missing(&kept.json(), &answer.json(), "");
    assert_eq!(answer.headers, kept.headers, "{name}");
    assert!(missing.is_empty(), "{name}: {missing:#?}");
}

/// Both forms of an answer with this text.
#[track_caller]
fn check_says(gateway: &Gateway, operation: &KeptOperation, text: &str) {
    for (asked, is_first) in operation.asked.iter().zip([true, false]) {
        let answer = send(gateway, asked);
        assert_eq!(answer.status, 200, "{}: {answer:?}", asked.name());
        let is_run = is_first && operation.state == "open";
        assert_eq!(answer.headers["idempotent-replayed"], if is_run { "false" } else { "true" });
        assert!(answer.body.contains(text), "{}: {answer:?}", asked.name());
    }
}

/// The reply to each request for an operation is what its state has come to.
#[track_caller]
fn check_operation(gateway: &Gateway, operation: &KeptOperation) {
    match operation.state.as_str() {
        "completed" | "refused" | "abandoned" => {
            for asked in &operation.asked {
                let answer = send(gateway, asked);
                assert_eq!(Some(&answer), asked.answer.as_ref(), "{}", asked.name());
                assert_eq!(answer.headers["idempotent-replayed"], "true");
            }
        }
        "leased" => {
            for asked in &operation.asked {
                let answer = send(gateway, asked);
                assert_eq!(answer.status, 502, "{}: {answer:?}", asked.name());
                assert_eq!(answer.json()["error"]["code"], "outcome_unknown");
                assert_eq!(answer.json()["error"]["charged_micros"], 0);
            }
        }
        "recorded" => check_says(gateway, operation, RECORDED),
        "open" => check_says(gateway, operation, FRESH),
        state => panic!("{state} is checked nowhere"),
    }
}

fn check(ledger: &Ledger, database: Option<&Database>) {
    let upstream = Upstream::start(Reply::as_wanted(
        Streaming::saying(&[FRESH]).reply(),
        Reply::saying(FRESH),
    ));
    let site = ledger.restore(&upstream, database);
    drop(site.cli(&["migrate", "up"]).ok());
    site.verify();
    let exchanges = ledger.exchanges();
    let gateway = site.serve();
    for exchange in exchanges.administration.iter().chain(&exchanges.reads) {
        check_kept(&gateway, exchange);
    }
    for state in STATES {
        let of_state: Vec<_> = exchanges.operations.iter().filter(|it| it.state == state).collect();
        assert!(!of_state.is_empty(), "{}: no operation was left {state}", ledger.release);
        of_state.into_iter().for_each(|operation| check_operation(&gateway, operation));
    }
    let open = exchanges.operations.iter().filter(|it| it.state == "open").count();
    assert_eq!(upstream.runs(), open, "nothing runs but what was proven not to have run");
    assert!(!exchanges.people.is_empty(), "somebody can sign in");
    for (email, password) in &exchanges.people {
        assert_eq!(sign_in(&gateway, email, password), 303, "{email}");
    }
    gateway.stop();
    site.verify();
}

#[test]
fn file_of_every_release_is_migrated_and_replays_its_keys() {
    let ledgers = Ledger::all(Kind::Sqlite);
    assert!(!ledgers.is_empty(), "there are ledgers");
    ledgers.iter().for_each(|ledger| check(ledger, None));
}

#[test]
fn postgres_database_of_every_release_is_migrated_and_replays_its_keys() {
    let ledgers = Ledger::all(Kind::Postgres);
    assert!(!ledgers.is_empty(), "there are ledgers");
    for ledger in &ledgers {
        let database = Database::make();
        check(ledger, Some(&database));
    }
}

#[test]
fn changed_members_of_an_answer_are_found_and_new_ones_are_not() {
    let then = serde_json::json!({ "a": 1, "b": { "c": [1, { "d": null }] } });
    let more =
        serde_json::json!({ "a": 1, "b": { "c": [1, { "d": null, "e": 2 }], "f": 0 }, "g": 1 });
    assert_eq!(missing(&then, &more, ""), Vec::<String>::new());
    let other = serde_json::json!({ "b": { "c": [1, { "d": 4 }] } });
    assert_eq!(missing(&then, &other, ""), [".a: 1 is now null", ".b.c[1].d: null is now 4"]);
}
