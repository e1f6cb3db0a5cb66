//! Want of funds that passes by itself: running requests hold what is missing, so that a retry helps.

use holdfast_tests::{Account, Answer, Config, Gateway, Request, Site, request_key};
use serde_json::json;

use crate::bodies::{sim, sim_with};
use crate::check::until;

/// Micros that one run holds, and one that is twice as dear does not find beside it.
const FUNDS: &str = "0.003000";

fn ask(gateway: &Gateway, account: &Account, body: &str) -> Answer {
    gateway.complete(account, &request_key(), body)
}

#[track_caller]
fn check_refused(answer: &Answer, is_held: bool) {
    assert_eq!(answer.status, 402, "{answer:?}");
    let error = &answer.json()["error"];
    assert_eq!(
        (&error["code"], &error["charged_micros"]),
        (&json!("insufficient_funds"), &json!(0))
    );
    assert_eq!(error.get("operation_id"), None, "nothing is bound: {error}");
    let hint = answer.header("x-should-retry");
    assert_eq!(hint, Some(if is_held { "true" } else { "false" }), "{answer:?}");
    let wait = answer.header("retry-after").map(|wait| wait.parse::<u64>().unwrap());
    assert_eq!(wait.is_some_and(|wait| (2..=10).contains(&wait)), is_held, "{answer:?}");
}

#[test]
fn funds_that_running_requests_hold_are_told_with_the_time_to_come_again() {
    let (site, _account) = Site::funded(&Config::simulated());
    let account = site.account("small", "USD", FUNDS);
    let hidden = site.key_with("small", &["--name", "hidden", "--hide-balance"]);
    let gateway = site.serve();
    let running = request_key();
    std::thread::scope(|scope| {
        let run = scope
            .spawn(|| gateway.complete(&account, &running, &sim("a long way\n[[sim: slow 10m]]")));
        let held = until("the first one runs", || {
            let wallet = gateway.get(&account, "/v1/wallet").json();
            wallet["held_micros"].as_i64().filter(|held| *held > 0)
        });
        let key = request_key();
        let refused = gateway.complete(&account, &key, &sim("Hello"));
        check_refused(&refused, true);
        assert_eq!(refused.json()["error"]["held_micros"], held, "{refused:?}");
        let unseen = ask(&gateway, &hidden, &sim("Hello"));
        check_refused(&unseen, true);
        let error = unseen.json()["error"].clone();
        assert_eq!(error.get("held_micros"), None, "{error}");
        assert!(!error["message"].as_str().unwrap().contains(&held.to_string()), "{error}");
        // No end of what runs makes up for this one.
        let dear = ask(&gateway, &account, &sim_with("n", json!(2)));
        check_refused(&dear, false);
        assert_eq!(dear.json()["error"].get("held_micros"), None, "{dear:?}");
        let cancel = format!("/v1/operations/{running}/cancel");
        let cancelled = gateway.send(&Request::post(&cancel, "").bearer(&account.key));
        assert!([200, 202].contains(&cancelled.status), "{cancelled:?}");
        let answered = until("the same key has its answer", || {
            let answer = gateway.complete(&account, &key, &sim("Hello"));
            (answer.status == 200).then_some(answer)
        });
        assert_eq!(answered.header("idempotent-replayed"), Some("false"));
        drop(run.join().unwrap());
    });
    site.verify();
}
