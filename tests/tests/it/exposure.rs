//! What may have run counts: refused, abandoned and cancelled runs cost their caller nothing, and use up
//! its limits by the minute; the operator is told what they may have cost. What has not run may run
//! again, the later the more often it was tried.

use std::time::{Duration, Instant};

use holdfast_tests::{
    Account, Answer, Config, Gateway, Reply, Request, Site, Upstream, request_key,
};
use holdfast_wire::error::Code;
use serde_json::json;

use crate::admin::{metrics, value};
use crate::bodies::acme;
use crate::check::{check_completion, check_json, error, until};
use crate::rates::{ACME_HOLDS, in_one_minute, limits, take_rates};

/// What `acme("Say hello")` may use: bytes, 16 for the message, 64 for any, and 500 out.
const ACME_TOKENS: i64 = 9 + 16 + 64 + 500;
const FUNDS: i64 = 10_000_000;

/// A gateway that leaves no route alone, before an upstream that answers so.
fn world(reply: Reply) -> (Upstream, Site, Account, Gateway) {
    let upstream = Upstream::start(reply);
    let config = Config::upstream(&upstream).set("routes", "failures", "1_000_000");
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    (upstream, site, account, gateway)
}

/// Sends a request that its caller cancels as soon as it has arrived.
fn cancelled(gateway: &Gateway, upstream: &Upstream, account: &Account, key: &str) -> Answer {
    let runs = upstream.runs();
    let running = Request::completion(&account.key, key, acme("Say hello"));
    let running = running.begin(gateway.address());
    upstream.wait_for(runs + 1);
    let cancel = Request::post(&format!("/v1/operations/{key}/cancel"), "").bearer(&account.key);
    let _leased = check_json(&gateway.send(&cancel), 202);
    running.answer()
}

#[test]
fn what_was_refused_abandoned_or_cancelled_stays_counted_and_is_reported() {
    let refused = Reply::Send(400, r#"{"error": {"message": "no"}}"#.to_owned());
    let broken = Reply::Send(500, r#"{"error": {"message": "no"}}"#.to_owned());
    let (upstream, site, funded, gateway) = world(Reply::Silence);
    for (reason, reply, code) in [
        ("refused", refused, Code::ProviderRefused),
        ("abandoned", broken.clone(), Code::OutcomeUnknown),
        ("cancelled", Reply::Silence, Code::OutcomeUnknown),
    ] {
        let play = |account: &Account| {
            upstream.otherwise(reply.clone());
            let mut told = Vec::new();
            for left in [1, 0] {
                let key = request_key();
                let mut answer = if reason == "cancelled" {
                    cancelled(&gateway, &upstream, account, &key)
                } else {
                    gateway.complete(account, &key, &acme("Say hello"))
                };
                let remaining = take_rates(&mut answer)[0].as_ref().map(|rate| rate.remaining);
                told.push((key, answer, remaining, left));
            }
            // Where the minute turns, it is sent after all: then nobody waits for it, and this is played again.
            upstream.otherwise(broken.clone());
            let (key, runs) = (request_key(), upstream.runs());
            let mut third = gateway.complete(account, &key, &acme("Say hello"));
            let _rates = take_rates(&mut third);
            let is_sent = upstream.runs() > runs;
            (told, (key, third, is_sent), limits(&gateway, account))
        };
        let options = ["--rpm", "2", "--tpm", "100000", "--spend-limit", "1.00/day"];
        let wallet = &funded.wallet;
        let (_, (told, (key, third, is_sent), used)) =
            in_one_minute(&site, &gateway, wallet, &options, play);
        for (key, answer, remaining, left) in &told {
            error(code).echo(key).replayed(false).bound().check(answer);
            assert_eq!(*remaining, Some(*left), "{reason}");
        }
        error(Code::RateLimitExceeded).echo(&key).replayed(false).check(&third);
        assert!(!is_sent, "{reason}: a third request reached the provider");
        let used = ["requests_per_minute", "tokens_per_minute", "concurrency"]
            .map(|name| used[name]["used"].clone())
            .into_iter()
            .chain([used["spend"]["used_micros"].clone()])
            .collect::<Vec<_>>();
        assert_eq!(json!(used), json!([2, 2 * ACME_TOKENS, null, 0]), "{reason}");
    }
    let told = metrics(&gateway);
    assert!(told.contains("holdfast_exposure_micros_total{currency=\"USD\""));
    let told = ["refused", "abandoned", "cancelled"]
        .map(|reason| value(&told, "holdfast_exposure_micros_total", reason));
    let exposed = i64::try_from(upstream.runs()).unwrap() * ACME_HOLDS;
    let sum: f64 = told.iter().sum();
    assert!((sum - f64::from(i32::try_from(exposed).unwrap())).abs() < 0.5, "{told:?}");
    assert!(told.iter().all(|told| *told > 0.5), "of each: {told:?}");
    let report = site.json(&["usage", "report", "--by", "wallet"]);
    assert_eq!(report[0]["exposure_micros"], exposed, "{report}");
    assert_eq!(report[0]["charge_micros"], 0);
    assert_eq!(site.balance(&funded), (FUNDS, 0), "nobody pays for it");
    site.verify();
}

/// How long an answer tells its caller to wait.
fn wait_of(answer: &Answer) -> Duration {
    Duration::from_millis(answer.header("retry-after-ms").unwrap().parse().unwrap())
}

#[test]
fn a_key_that_keeps_not_running_is_told_to_wait_the_longer_the_oftener() {
    let turned_away = Reply::Send(429, r#"{"error": {"message": "later"}}"#.to_owned());
    let (upstream, site, account, gateway) = world(turned_away);
    let ask = |key: &str| gateway.complete(&account, key, &acme("Say hello"));
    let generation = |key: &str| {
        gateway.get(&account, &format!("/v1/operations/{key}")).json()["generation"].clone()
    };
    let unavailable = |key: &str| error(Code::UpstreamUnavailable).echo(key).bound();
    let [key, other] = [request_key(), request_key()];
    for key in [&key, &other] {
        for generation in 1..=3_u64 {
            let told = ask(key);
            unavailable(key).replayed(false).check(&told);
            let is_soon = wait_of(&told) <= Duration::from_millis(2_100);
            assert!(is_soon || generation == 3, "{generation}: {told:?}");
        }
    }
    let entries = || {
        let ledger = site.json(&["wallet", "ledger", &account.wallet]);
        ledger["entries"].as_array().unwrap().len()
    };
    // A round that takes longer than its wait is tried once more within it; the next wait is twice as long.
    let (before, told) = until("a round within its wait", || {
        let before = (upstream.runs(), entries(), generation(&key));
        let told: Vec<_> = (0..40).map(|_retry| ask(&key)).collect();
        (generation(&key) == before.2).then_some((before, told))
    });
    for told in &told {
        unavailable(&key).replayed(true).check(told);
    }
    assert_eq!((upstream.runs(), entries(), generation(&key)), before);
    let (runs, _, tried) = before;
    assert!(tried != 3 || wait_of(&told[39]) <= Duration::from_millis(3_100), "{told:?}");

    // As long as it was told to wait, as a client that obeys does: then it is tried again.
    std::thread::sleep(wait_of(&told[39]));
    let asked = Instant::now();
    let fourth = ask(&key);
    unavailable(&key).replayed(false).check(&fourth);
    assert_eq!((upstream.runs(), generation(&key)), (runs + 1, json!(tried.as_u64().unwrap() + 1)));
    let told = ask(&key);
    unavailable(&key).replayed(true).check(&told);
    let wait = wait_of(&told) + asked.elapsed();
    assert!(wait > Duration::from_secs(2), "the next wait is longer: {told:?}");

    upstream.otherwise(Reply::saying("Good day"));
    check_completion(&ask(&other), &other, false);
    assert_eq!(generation(&other), json!(4));
    site.verify();
}
