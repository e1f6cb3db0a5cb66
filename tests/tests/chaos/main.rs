//! What happens when something dies, fills up or races: the real binary, killed at named steps and at
//! any moment, on a disk that takes nothing, under callers that all want the same.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "helpers of tests end the test where something is not as it should be"
)]

mod administration;
mod faults;
mod kills;
mod races;
mod steps;

use std::time::{Duration, Instant};

use holdfast_tests::config::ACME;
use holdfast_tests::{Account, Answer, Gateway, PATIENCE};
use serde_json::json;

/// What an account begins with.
const FUNDS: i64 = 10_000_000;
/// What the upstream's usual completion costs.
const CHARGE: i64 = 367;

/// A request to the upstream's model.
fn acme(text: &str) -> String {
    json!({"model": ACME, "messages": [{"role": "user", "content": text}]}).to_string()
}

/// It is a completion at the usual price.
#[track_caller]
fn check_completion(answer: &Answer) {
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["usage"]["customer_charge_micros"], CHARGE);
}

/// So much is available, and nothing is held.
#[track_caller]
fn check_wallet(gateway: &Gateway, account: &Account, available: i64) {
    let wallet = gateway.get(account, "/v1/wallet").json();
    let seen = (&wallet["available_micros"], &wallet["held_micros"]);
    assert_eq!(seen, (&json!(available), &json!(0)));
}

/// Looks again and again at what tells no one when it changes.
#[track_caller]
fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < end, "never: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
