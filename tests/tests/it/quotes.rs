//! Quotes: what a body would hold, to the micro, before anything is held.

use std::time::Duration;

use holdfast_tests::{Config, Gateway, Request, Site, Waiting, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::{sim, sim_with};
use crate::check::{check_json, error};

/// What asks for a body.
const ASKED: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

fn quote(key: &str, body: &str) -> Request {
    Request::post("/v1/quotes", body).bearer(key).header("Content-Type", "application/json")
}

#[track_caller]
fn hold(gateway: &Gateway, key: &str, id: &str) -> Value {
    let look = Request::get(&format!("/v1/operations/{id}")).bearer(key).send(gateway.address());
    look.json()["hold_micros"].clone()
}

#[test]
fn a_quote_is_the_hold_and_its_lines_add_up_to_it() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {}}}]);
    for body in [
        sim("Hello there"),
        sim_with("max_completion_tokens", json!(77)),
        sim_with("n", json!(3)),
        sim_with("tools", tools),
    ] {
        let told = check_json(&gateway.send(&quote(&account.key, &body)), 200);
        assert_eq!((&told["object"], &told["model"]), (&json!("quote"), &json!("holdfast/sim-1")));
        assert_eq!((&told["currency"], &told["contract"]), (&json!("USD"), &json!(1)));
        let sum: u64 = told["lines"].as_array().unwrap().iter().fold(0, |sum, line| {
            let number = |name: &str| line[name].as_u64().unwrap();
            sum + number("units") * number("price_micros") * (1_000_000 / number("per_units"))
        });
        assert_eq!(told["hold_micros"], sum.div_ceil(1_000_000), "{told}");
        let kinds: Vec<_> =
            told["lines"].as_array().unwrap().iter().map(|line| &line["kind"]).collect();
        assert_eq!(kinds, ["input", "output", "request"]);
        let key = request_key();
        assert_eq!(gateway.complete(&account, &key, &body).status, 200);
        assert_eq!(hold(&gateway, &account.key, &key), told["hold_micros"]);
    }
}

#[test]
fn a_quote_binds_nothing_holds_nothing_and_runs_nothing() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let key = request_key();
    let request = quote(&account.key, &sim("Hello there"));
    check_json(&gateway.send(&request), 200);
    let keyed = gateway.send(&request.header("Idempotency-Key", &key));
    assert_eq!(keyed.status, 200);
    let look = gateway.get(&account, &format!("/v1/operations/{key}"));
    assert_eq!(look.status, 404);
    assert_eq!(site.balance(&account), (10_000_000, 0));
    assert_eq!(site.verify()["operations"], 0);
}

#[test]
fn a_quote_is_refused_as_the_completion_would_be() {
    let (site, account) = Site::funded(&Config::simulated());
    let narrow = site.key_with(&account.wallet, &["--models", "holdfast/sim-1"]);
    let gateway = site.serve();
    let good = sim("Hello there");
    let ask = |request: Request| gateway.send(&request);
    error(Code::InvalidApiKey).check(&ask(quote("nonsense", &good)));
    let untyped = quote(&account.key, &good).without("Content-Type");
    error(Code::UnsupportedMediaType).check(&ask(untyped));
    error(Code::InvalidJson).check(&ask(quote(&account.key, "{")));
    let unknown = sim_with("nonsense", json!(1));
    error(Code::UnknownParameter).param("nonsense").check(&ask(quote(&account.key, &unknown)));
    let long = sim_with("max_completion_tokens", json!(501));
    error(Code::InvalidValue)
        .param("max_completion_tokens")
        .check(&ask(quote(&account.key, &long)));
    let other = good.replace("sim-1", "sim-9");
    error(Code::ModelNotFound).param("model").check(&ask(quote(&narrow.key, &other)));
    let limited = quote(&account.key, &good).header("Holdfast-Max-Charge-Micros", "1");
    error(Code::ChargeLimitExceeded).check(&ask(limited));
    let get = Request::get("/v1/quotes").bearer(&account.key);
    error(Code::MethodNotAllowed).allow("POST").check(&ask(get));
}

#[test]
fn a_quote_takes_a_place_among_the_requests_of_its_key() {
    let config = Config::simulated().set("limits", "operations_per_key", "1");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    // A body that is asked for and does not come keeps the place.
    let slow = quote(&account.key, &sim("Hello there")).header("Expect", "100-continue");
    let slow = String::from_utf8(slow.bytes()).unwrap();
    let (head, _body) = slow.split_once("\r\n\r\n").unwrap();
    let mut slow = Waiting::write(gateway.address(), format!("{head}\r\n\r\n").as_bytes());
    assert_eq!(slow.read(ASKED.len()), ASKED);
    let full = gateway.send(&quote(&account.key, &sim("Hello there")));
    error(Code::TooManyOperations).check(&full);
    assert!(slow.is_silent_for(Duration::from_millis(1)));
}
