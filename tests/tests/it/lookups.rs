//! What callers may look at: their operations in every state, their wallet, the models.

use holdfast_tests::config::{ACME, SIM};
use holdfast_tests::{
    Account, Config, Gate, Gateway, Reply, Request, Site, Upstream, Waiting, request_key,
};
use holdfast_wire::error::Code;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::bodies::{acme, sim};
use crate::check::{check_completion, check_json, error, members, meters};

/// The members of an operation as its caller sees it.
const OPERATION: [&str; 20] = [
    "api_key_id",
    "charge_micros",
    "contract",
    "created_at",
    "finished_at",
    "generation",
    "hold_id",
    "hold_micros",
    "id",
    "idempotency_key",
    "meters",
    "meters_source",
    "model",
    "price_version",
    "result",
    "result_state",
    "shortfall_micros",
    "situation",
    "status",
    "usage_id",
];

#[track_caller]
fn look(gateway: &Gateway, account: &Account, key: &str) -> Value {
    let answer = gateway.get(account, &format!("/v1/operations/{key}"));
    let operation = check_json(&answer, 200);
    assert_eq!(members(&operation), OPERATION);
    assert_eq!(operation["idempotency_key"], key);
    assert_eq!(operation["api_key_id"], account.id.as_str());
    assert_eq!(operation["contract"], 1);
    for id in ["id", "hold_id"] {
        let id = operation[id].as_str().unwrap();
        assert_eq!(Uuid::parse_str(id).unwrap().get_version_num(), 8, "{id}");
    }
    check_moment(&operation["created_at"]);
    operation
}

/// `2026-11-20T11:16:19.000000Z`
#[track_caller]
fn check_moment(moment: &Value) {
    let text = moment.as_str().unwrap();
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000000Z");
}

/// The members that tell how an operation stands.
fn standing(operation: &Value) -> [&Value; 4] {
    ["situation", "status", "charge_micros", "result_state"].map(|name| &operation[name])
}

#[test]
fn a_completed_operation_shows_its_bill_and_its_result() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let key = request_key();
    let completion =
        check_completion(&gateway.complete(&account, &key, &sim("Hello there")), &key, false);
    let operation = look(&gateway, &account, &key);
    assert_eq!(
        standing(&operation),
        [&json!("completed"), &json!("completed"), &json!(37), &json!("kept")]
    );
    assert_eq!(operation["result"], completion);
    assert_eq!(operation["model"], SIM);
    assert_eq!(operation["generation"], 1);
    assert_eq!(operation["hold_micros"], 2_189);
    assert_eq!(operation["shortfall_micros"], 0);
    assert_eq!(operation["meters"], meters(&[("input", 3), ("output", 6), ("request", 1)]));
    assert_eq!(operation["meters_source"], "reported");
    assert_eq!(operation["price_version"], "holdfast/sim-1/USD/2026-01-01T00:00:00Z");
    assert!(Uuid::parse_str(operation["usage_id"].as_str().unwrap()).is_ok());
    check_moment(&operation["finished_at"]);
    let id = operation["id"].as_str().unwrap().replace('-', "");
    assert_eq!(completion["id"], format!("chatcmpl_{id}"));
}

#[test]
fn an_operation_is_its_api_keys_alone() {
    let (site, account) = Site::funded(&Config::simulated());
    let other = site.another_key(&account.wallet, "other");
    let gateway = site.serve();
    let key = request_key();
    check_completion(&gateway.complete(&account, &key, &sim("Hello there")), &key, false);
    error(Code::NotFound).check(&gateway.get(&other, &format!("/v1/operations/{key}")));
    let nobody = Request::get(&format!("/v1/operations/{key}"));
    error(Code::InvalidApiKey).check(&gateway.send(&nobody));
}

#[test]
fn an_operation_that_did_not_complete_shows_why_there_is_no_bill() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    for (directive, situation, status, state) in [
        ("refuse", "completed", "refused", "kept"),
        ("fail-after", "completed", "abandoned", "none"),
        ("fail-before", "not_started", "open", "none"),
    ] {
        let key = request_key();
        let body = sim(&format!("[[sim: {directive}]]\nHello"));
        let told = gateway.complete(&account, &key, &body);
        let operation = look(&gateway, &account, &key);
        let expected = [&json!(situation), &json!(status), &json!(0), &json!(state)];
        assert_eq!(standing(&operation), expected);
        let result = if state == "kept" { told.json() } else { Value::Null };
        assert_eq!(operation["result"], result);
        for name in ["meters", "meters_source", "usage_id"] {
            assert_eq!(operation[name], json!(null));
        }
        assert_eq!(operation["shortfall_micros"], 0);
        assert_eq!(operation["finished_at"].is_null(), status == "open");
    }
    assert_eq!(site.balance(&account), (10_000_000, 0));
}

#[test]
fn a_running_operation_and_its_hold_are_seen() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(1);
    let operation = look(&gateway, &account, &key);
    let null = json!(null);
    assert_eq!(
        standing(&operation),
        [&json!("in_progress"), &json!("leased"), &null, &json!("none")]
    );
    for name in ["result", "meters", "usage_id", "shortfall_micros", "finished_at"] {
        assert_eq!(operation[name], null);
    }
    let hold = operation["hold_micros"].as_i64().unwrap();
    let wallet = check_json(&gateway.get(&account, "/v1/wallet"), 200);
    assert_eq!(
        wallet,
        json!({
            "id": account.wallet, "currency": "USD", "available_micros": 10_000_000 - hold,
            "held_micros": hold,
            "api_key": {
                "id": account.id, "models": null, "expires_at": null,
                "limits": {
                    "requests_per_minute": null, "tokens_per_minute": null, "concurrency": null,
                    "spend": null,
                },
            },
        })
    );
    gate.open();
    check_completion(&running.answer(), &key, false);
    let wallet = check_json(&gateway.get(&account, "/v1/wallet"), 200);
    assert_eq!(wallet["available_micros"], 10_000_000 - 367);
    assert_eq!(wallet["held_micros"], 0);
}

#[test]
fn models_show_what_they_promise_and_cost() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let model = json!({
        "id": SIM,
        "object": "model",
        "created": 1_767_225_600,
        "owned_by": "holdfast",
        "context_length": 8_000,
        "max_output_tokens": 500,
        "contract": 1,
        "prices": [{
            "currency": "USD",
            "effective_from": "2026-01-01T00:00:00Z",
            "price_version": "holdfast/sim-1/USD/2026-01-01T00:00:00Z",
            "micros_per_million": {
                "input": 2_000_000, "cached_input": 2_000_000, "cache_write": 2_000_000,
                "audio_input": 2_000_000, "output": 4_000_000, "reasoning": 4_000_000,
                "audio_output": 4_000_000,
            },
            "micros_each": {"request": 7, "image": 0},
            "tiers": [],
        }],
    });
    let list = check_json(&gateway.get(&account, "/v1/models"), 200);
    assert_eq!(list, json!({"object": "list", "data": [model]}));
    let one = check_json(&gateway.get(&account, &format!("/v1/models/{SIM}")), 200);
    assert_eq!(one, model);
    error(Code::ModelNotFound).check(&gateway.get(&account, &format!("/v1/models/{ACME}")));
    error(Code::InvalidApiKey).check(&gateway.send(&Request::get("/v1/models")));
}

#[test]
fn health_and_readiness_need_no_credential() {
    let (site, _account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let ask = |path| check_json(&gateway.send(&Request::get(path)), 200);
    assert_eq!(ask("/healthz"), json!({"status": "ok"}));
    assert_eq!(ask("/readyz"), json!({"status": "ready", "durability": "local"}));
    for path in ["/healthz", "/readyz"] {
        let get = gateway.send(&Request::get(path));
        let head = format!("HEAD {path} HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n");
        let mut head = Waiting::write(gateway.address(), head.as_bytes());
        let told = head.rest();
        assert!(told.starts_with("HTTP/1.1 200 OK\r\n") && told.ends_with("\r\n\r\n"), "{told}");
        assert!(told.contains(&format!("content-length: {}\r\n", get.body.len())), "{told}");
    }
}
