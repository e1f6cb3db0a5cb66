//! What an API key may use up: exact whoever asks at once, told by name, and free for whoever retries.

use std::cell::Cell;
use std::sync::Mutex;

use holdfast_tests::{
    Account, Answer, Config, Gate, Gateway, Reply, Request, Site, Upstream, request_key,
};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::admin::wait_for_waiters;
use crate::bodies::{acme, sim};
use crate::check::{check_completion, check_json, error, until};

/// What `sim("Hello there")` and `acme("Say hello")` may use: bytes, 16 for the message, 64 for any,
/// and 500 out.
const SIM_TOKENS: u64 = 11 + 16 + 64 + 500;
/// What `acme("Say hello")` holds, and what it costs.
pub(crate) const ACME_HOLDS: i64 = 223 + 5_000 + 7;
const ACME_COSTS: i64 = 367;

/// The headers of one limit by the minute.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Rate {
    limit: u64,
    pub(crate) remaining: u64,
    reset_ms: u64,
}

/// Takes the headers of limits off an answer: those of requests and those of tokens.
#[track_caller]
pub(crate) fn take_rates(answer: &mut Answer) -> [Option<Rate>; 2] {
    let rates = ["requests", "tokens"].map(|kind| {
        let header = |what: &str| answer.header(&format!("x-ratelimit-{what}-{kind}"));
        let [limit, remaining, reset] = ["limit", "remaining", "reset"].map(header);
        assert!(limit.is_some() == remaining.is_some() && limit.is_some() == reset.is_some());
        let number = |text: &str| text.parse().unwrap();
        let (limit, remaining) = (number(limit?), number(remaining?));
        Some(Rate { limit, remaining, reset_ms: millis(reset?) })
    });
    answer.headers.retain(|(name, _)| !name.starts_with("x-ratelimit-"));
    rates
}

/// Reads `20ms`, `1.5s` and `1m0s`.
#[track_caller]
fn millis(span: &str) -> u64 {
    if let Some(millis) = span.strip_suffix("ms") {
        return millis.parse().unwrap();
    }
    let span = span.strip_suffix('s').unwrap();
    let (minutes, seconds) = span.split_once('m').unwrap_or(("0", span));
    let (whole, fraction) = seconds.split_once('.').unwrap_or((seconds, "0"));
    let number = |text: &str| text.parse::<u64>().unwrap();
    number(minutes) * 60_000 + number(whole) * 1_000 + number(&format!("{fraction:0<3}"))
}

#[track_caller]
pub(crate) fn limits(gateway: &Gateway, account: &Account) -> Value {
    let wallet = check_json(&gateway.get(account, "/v1/wallet"), 200);
    wallet["api_key"]["limits"].clone()
}

/// Plays with a fresh API key until it has begun and ended in the same minute.
pub(crate) fn in_one_minute<T>(
    site: &Site,
    gateway: &Gateway,
    wallet: &str,
    options: &[&str],
    play: impl Fn(&Account) -> T,
) -> (Account, T) {
    let probe = site.key_with(wallet, &["--rpm", "1"]);
    let minute = || limits(gateway, &probe)["requests_per_minute"]["window_start"].clone();
    in_one_window(minute, || site.key_with(wallet, options), play)
}

/// Plays with a fresh API key until the play has begun and ended in the same window.
fn in_one_window<T>(
    window: impl Fn() -> Value,
    fresh: impl Fn() -> Account,
    play: impl Fn(&Account) -> T,
) -> (Account, T) {
    loop {
        let (account, begun) = (fresh(), window());
        let played = play(&account);
        if window() == begun {
            return (account, played);
        }
    }
}

#[test]
fn a_minute_runs_as_many_requests_as_it_may_and_no_more() {
    let (site, funded) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let storm = |account: &Account| {
        let told = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _client in 0..50 {
                scope.spawn(|| {
                    let key = request_key();
                    let answer = gateway.complete(account, &key, &sim("Hello there"));
                    told.lock().unwrap().push((key, answer));
                });
            }
        });
        let used = limits(&gateway, account)["requests_per_minute"].clone();
        (told.into_inner().unwrap(), used)
    };
    let (account, (told, used)) =
        in_one_minute(&site, &gateway, &funded.wallet, &["--rpm", "10"], storm);
    assert_eq!([&used["limit"], &used["used"], &used["remaining"]], [10, 10, 0]);
    let mut left = Vec::new();
    for (key, mut answer) in told {
        let [requests, tokens] = take_rates(&mut answer);
        assert_eq!(tokens, None, "there is no such limit");
        let Rate { limit, remaining, reset_ms } = requests.unwrap();
        assert!(limit == 10 && reset_ms <= 60_000, "{reset_ms}");
        if answer.status == 200 {
            check_completion(&answer, &key, false);
            left.push(remaining);
            let again = gateway.complete(&account, &key, &sim("Hello there"));
            check_completion(&again, &key, true);
            continue;
        }
        let limited = error(Code::RateLimitExceeded).echo(&key).replayed(false);
        let said = limited.check(&answer)["message"].to_string();
        assert!(said.contains("may run 10 requests a minute"), "{said}");
        assert_eq!(remaining, 0);
        let wait: u64 = answer.header("retry-after-ms").unwrap().parse().unwrap();
        assert!(wait >= reset_ms.min(60_000), "{wait} ends before the minute: {reset_ms}");
        let nothing = gateway.get(&account, &format!("/v1/operations/{key}"));
        assert_eq!(nothing.status, 404, "a refusal binds nothing");
    }
    left.sort_unstable();
    assert_eq!(left, (0..10).collect::<Vec<_>>(), "each is told what it left");
    site.verify();
}

#[test]
fn a_minute_uses_as_many_tokens_as_it_may_and_no_more() {
    let (site, funded) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let small = site.key_with(&funded.wallet, &["--tpm", "590"]);
    let key = request_key();
    let mut never = gateway.complete(&small, &key, &sim("Hello there"));
    let rates = take_rates(&mut never);
    assert_eq!(rates[1].as_ref().unwrap().remaining, 590, "nothing was used");
    let limited = error(Code::RateLimitExceeded).echo(&key).replayed(false);
    let said = limited.clone().for_good().check(&never)["message"].to_string();
    assert!(said.contains("may use 591 tokens") && said.contains("590 a minute"), "{said}");

    let play = |account: &Account| {
        let keys = [request_key(), request_key()];
        let told = keys.clone().map(|key| gateway.complete(account, &key, &sim("Hello there")));
        (keys, told, limits(&gateway, account)["tokens_per_minute"].clone())
    };
    let (_account, (keys, [mut runs, mut refused], used)) =
        in_one_minute(&site, &gateway, &funded.wallet, &["--tpm", "591"], play);
    let rate = take_rates(&mut runs)[1].take().unwrap();
    let completion = check_completion(&runs, &keys[0], false);
    let tokens = completion["usage"]["total_tokens"].as_u64().unwrap();
    assert!((1..SIM_TOKENS).contains(&tokens), "{tokens}");
    assert_eq!((rate.limit, rate.remaining), (SIM_TOKENS, SIM_TOKENS - tokens), "what was used");
    let rate = take_rates(&mut refused)[1].take().unwrap();
    assert_eq!(rate.remaining, SIM_TOKENS - tokens);
    let said = limited.echo(&keys[1]).check(&refused)["message"].to_string();
    assert!(said.contains(&format!("{} of this minute's are left", rate.remaining)), "{said}");
    assert_eq!(used["used"], tokens);
}

#[test]
fn an_api_key_runs_so_many_operations_at_once_and_no_more() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, funded) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let account = site.key_with(&funded.wallet, &["--concurrency", "3"]);
    let keys: Vec<_> = (0..20).map(|_| request_key()).collect();
    let request = |key: &str| Request::completion(&account.key, key, acme("Say hello"));
    let waiting: Vec<_> = keys.iter().map(|key| request(key).begin(gateway.address())).collect();
    upstream.wait_for(3);
    until("the others are refused", || {
        (gateway.said().matches("rate_limit_exceeded").count() >= 17).then_some(())
    });
    let running = &limits(&gateway, &account)["concurrency"];
    let shown = json!({
        "limit": 3, "used": 3, "remaining": 0, "window_start": null, "resets_at": null,
    });
    assert_eq!(*running, shown);
    gate.open();
    let mut refused = Vec::new();
    for (key, waiting) in keys.iter().zip(waiting) {
        let told = waiting.answer();
        if told.status == 200 {
            check_completion(&told, key, false);
            continue;
        }
        let limited = error(Code::RateLimitExceeded).echo(key).replayed(false);
        let said = limited.check(&told)["message"].to_string();
        assert!(said.contains("may run 3 operations at once"), "{said}");
        refused.push(key);
    }
    assert_eq!((refused.len(), upstream.runs()), (17, 3));
    check_completion(&gateway.send(&request(refused[0])), refused[0], false);
    assert_eq!(limits(&gateway, &account)["concurrency"]["used"], 0);
    site.verify();
}

#[test]
fn an_api_key_holds_no_more_than_its_spend_limit_and_is_counted_by_what_it_pays() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, funded) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    // Room for three holds, and for nothing beside them.
    assert_eq!(3 * ACME_HOLDS, 15_690);
    let account = site.key_with(&funded.wallet, &["--spend-limit", "0.01569/total"]);
    let keys: Vec<_> = (0..10).map(|_| request_key()).collect();
    let begin = |key: &String| {
        Request::completion(&account.key, key, acme("Say hello")).begin(gateway.address())
    };
    let waiting: Vec<_> = keys.iter().map(begin).collect();
    upstream.wait_for(3);
    until("the others are refused", || {
        (gateway.said().matches("spend_limit_exceeded").count() >= 7).then_some(())
    });
    gate.open();
    let mut refused = 0;
    for (key, waiting) in keys.iter().zip(waiting) {
        let told = waiting.answer();
        if told.status == 200 {
            check_completion(&told, key, false);
            continue;
        }
        let limited = error(Code::SpendLimitExceeded).echo(key).replayed(false);
        let said = limited.check(&told)["message"].to_string();
        assert!(said.contains("may spend 15690 micros in total, 0 of them are left"), "{said}");
        assert!(said.contains("up to 5230") && said.contains("or use another API key"), "{said}");
        refused += 1;
    }
    assert_eq!((refused, upstream.runs()), (7, 3));
    let spend = &limits(&gateway, &account)["spend"];
    let shown = json!({
        "window": "total", "limit_micros": 15_690, "used_micros": 3 * ACME_COSTS,
        "remaining_micros": 15_690 - 3 * ACME_COSTS, "window_start": null, "resets_at": null,
    });
    assert_eq!(*spend, shown, "what was held and not paid is there again");
    let key = request_key();
    check_completion(&gateway.complete(&account, &key, &acme("Say hello")), &key, false);
    site.verify();
}

#[test]
fn a_spend_limit_of_a_day_or_a_month_says_when_there_is_more() {
    let (site, funded) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let ask = |account: &Account| {
        let key = request_key();
        let told = gateway.complete(account, &key, &sim("Hello there"));
        (key, told)
    };
    let message = |(key, told): (String, Answer)| {
        let limited = error(Code::SpendLimitExceeded).echo(&key).replayed(false);
        limited.check(&told)["message"].to_string()
    };
    for window in ["total", "day", "month"] {
        let account =
            site.key_with(&funded.wallet, &["--spend-limit", &format!("0.0001/{window}")]);
        let said = message(ask(&account));
        assert!(said.contains("this API key may spend 100 "), "{said}");
        assert!(said.contains("or use an API key with a higher limit") && !said.contains("wait"));
        let spend = &limits(&gateway, &account)["spend"];
        assert_eq!((&spend["window"], &spend["used_micros"]), (&json!(window), &json!(0)));
    }
    let key = request_key();
    check_completion(&gateway.complete(&funded, &key, &sim("Hello there")), &key, false);
    let ran = check_json(&gateway.get(&funded, &format!("/v1/operations/{key}")), 200);
    let number = |name: &str| ran[name].as_i64().unwrap();
    let (hold, charge) = (number("hold_micros"), number("charge_micros"));
    let runs = Cell::new(1);
    for (window, more) in [("day", "the next day (UTC)"), ("month", "the next month (UTC)")] {
        let limit = format!("{}.{:06}/{window}", hold / 1_000_000, hold % 1_000_000);
        let probe = site.key_with(&funded.wallet, &["--spend-limit", &format!("1/{window}")]);
        let start = || limits(&gateway, &probe)["spend"]["window_start"].clone();
        assert!(start().is_string());
        let fresh = || site.key_with(&funded.wallet, &["--spend-limit", &limit]);
        // A day that ends between the two would give the second one its money too.
        let (_account, ((key, ran), refused, limits)) = in_one_window(start, fresh, |account| {
            runs.set(runs.get() + 1);
            (ask(account), ask(account), limits(&gateway, account))
        });
        check_completion(&ran, &key, false);
        let said = message(refused);
        let left = hold - charge;
        let state = format!("may spend {hold} micros a {window}, {left} of them are left");
        assert!(said.contains(&state), "{said}");
        assert!(said.contains(&format!("wait for {more}, or use another API key")), "{said}");
        let spend = &limits["spend"];
        assert_eq!((&spend["window"], &spend["used_micros"]), (&json!(window), &json!(charge)));
        assert!(spend["window_start"].is_string() && spend["resets_at"].is_string(), "{spend}");
    }
    assert_eq!(site.balance(&funded), (10_000_000 - runs.get() * charge, 0));
}

#[test]
fn a_retry_of_what_did_not_run_counts_again_and_any_other_retry_does_not() {
    let (site, funded) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let body = sim("[[sim: fail-before-once]]\nHello");
    let play = |account: &Account| {
        let (open, other) = (request_key(), request_key());
        let not_run = gateway.complete(account, &open, &body);
        let runs = gateway.complete(account, &other, &sim("Hello there"));
        let refused = gateway.complete(account, &open, &body);
        let replayed = gateway.complete(account, &other, &sim("Hello there"));
        (open, other, [not_run, runs, refused, replayed])
    };
    let (account, (open, other, told)) =
        in_one_minute(&site, &gateway, &funded.wallet, &["--rpm", "1"], play);
    let mut told = told.into_iter();
    let mut next = || {
        let mut answer = told.next().unwrap();
        let [requests, _tokens] = take_rates(&mut answer);
        (answer, requests.map(|rate| rate.remaining))
    };
    let (not_run, left) = next();
    error(Code::UpstreamUnavailable).echo(&open).replayed(false).bound().check(&not_run);
    assert_eq!(left, Some(1), "what did not run is given back");
    let (runs, left) = next();
    check_completion(&runs, &other, false);
    assert_eq!(left, Some(0));
    let (refused, left) = next();
    error(Code::RateLimitExceeded).echo(&open).replayed(false).check(&refused);
    assert_eq!(left, Some(0));
    let (replayed, left) = next();
    check_completion(&replayed, &other, true);
    assert_eq!(left, None, "a replay counts against nothing and says nothing of limits");
    let operation = check_json(&gateway.get(&account, &format!("/v1/operations/{open}")), 200);
    assert_eq!(operation["status"], "open", "a refusal leaves it as it was");
    site.verify();
}

#[test]
fn a_retry_that_waits_for_the_run_is_told_nothing_of_limits() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, funded) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let account = site.key_with(&funded.wallet, &["--rpm", "5", "--tpm", "100000"]);
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(1);
    let attached = request.begin(gateway.address());
    wait_for_waiters(&gateway, 2);
    gate.open();
    let mut told = running.answer();
    let [requests, tokens] = take_rates(&mut told).map(Option::unwrap);
    let completion = check_completion(&told, &key, false);
    assert_eq!((requests.limit, requests.remaining), (5, 4));
    let used = completion["usage"]["total_tokens"].as_u64().unwrap();
    assert_eq!((tokens.limit, tokens.remaining), (100_000, 100_000 - used));
    let mut told = attached.answer();
    assert_eq!(take_rates(&mut told), [None, None]);
    check_completion(&told, &key, true);
}
