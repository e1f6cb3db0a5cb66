//! A chain whose inner has its wallet's funds held by a run: the outer leaves the route alone for the time that the inner
//! asks for, does not take its account for wrong, and runs the request afterwards.

use holdfast_tests::{Gate, Reply, request_key};
use serde_json::Value;

use crate::chains::{FUNDS, chain, check_said, request};
use crate::check::until;

/// Micros that are available beside the hold.
const LEFT: i64 = 400;

#[test]
fn an_inner_whose_runs_hold_its_funds_is_asked_again_later() {
    let (chain, gate) = (chain(), Gate::new());
    chain.upstream.next(Reply::saying("Good day").after(&gate));
    let first = request_key();
    let running = request(&chain.outer, &first, false).begin(chain.outer.gateway.address());
    chain.upstream.wait_for(1);
    let (_available, held) = chain.inner.site.balance(&chain.inner.account);
    // Less than a hold, and more than the first run costs: once that has ended there is enough for another hold.
    let taken = FUNDS - held - LEFT;
    let amount = format!("-{}.{:06}", taken / 1_000_000, taken % 1_000_000);
    let adjusted = ["wallet", "adjust", "main", &amount, "--reason", "a small wallet"];
    let _posted = chain.inner.site.cli(&adjusted).ok();
    assert_eq!(chain.inner.site.balance(&chain.inner.account), (LEFT, held));
    let second = request_key();
    let ask = || chain.outer.gateway.send(&request(&chain.outer, &second, false));
    let refused = ask();
    assert_eq!(refused.json()["error"]["code"], "upstream_unavailable", "{refused:?}");
    assert_eq!(refused.header("x-should-retry"), Some("true"));
    let row = chain.outer.site.json(&[
        "operation",
        "show",
        "--api-key",
        &chain.outer.account.id,
        &second,
    ]);
    assert_eq!(row["status"], "open", "{row}");
    let class = |attempt: &Value| attempt["class"].as_str().map(str::to_owned);
    let classes: Vec<_> = row["attempts"].as_array().unwrap().iter().map(class).collect();
    assert_eq!(classes, [Some("not_run_rate_limited".to_owned())], "{row}");
    assert!(!chain.outer.site.logs().contains("not_run_account"), "its account is right");
    gate.open();
    assert_eq!(running.answer().status, 200);
    let answered = until("the route is asked again", || {
        let answer = ask();
        (answer.status == 200).then_some(answer)
    });
    check_said(&answered);
    assert_eq!(chain.upstream.runs(), 2);
}
