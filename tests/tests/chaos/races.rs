//! Many callers at once who want the last of something, or the same thing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use holdfast_tests::chaos::racers::Track;
use holdfast_tests::{
    Account, Answer, Config, Gate, Gateway, Reply, Request, Site, Upstream, request_key,
};

use crate::{CHARGE, FUNDS, acme, check_completion, check_wallet, until};

/// Within this a revocation bites, and some for a slow machine's own time.
const REVOKED_WITHIN: Duration = Duration::from_secs(5);

/// Sends all of these at once, to each of the gateways in turn, and counts the answers as they come.
fn send_all(gateways: &[Gateway], requests: &[Request], answered: &AtomicUsize) -> Vec<Answer> {
    std::thread::scope(|scope| {
        let sent = gateways.iter().cycle().zip(requests);
        let sent: Vec<_> = sent
            .map(|(gateway, request)| scope.spawn(|| send(gateway, request, answered)))
            .collect();
        sent.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn send(gateway: &Gateway, request: &Request, answered: &AtomicUsize) -> Answer {
    let answer = gateway.send(request);
    answered.fetch_add(1, Ordering::AcqRel);
    answer
}

/// Available and held, as the API shows them.
fn wallet(gateway: &Gateway, account: &Account) -> (i64, i64) {
    let wallet = gateway.get(account, "/v1/wallet").json();
    let micros = |name: &str| wallet[name].as_i64().unwrap();
    (micros("available_micros"), micros("held_micros"))
}

/// What is held for a request like those of the race, learnt from one that nobody counts.
fn hold(site: &Site, gateway: &Gateway) -> i64 {
    let probe = site.account("probe", "USD", "1.00");
    let key = request_key();
    check_completion(&gateway.complete(&probe, &key, &acme("Request 000")));
    let operation = gateway.get(&probe, &format!("/v1/operations/{key}")).json();
    operation["hold_micros"].as_i64().unwrap()
}

#[test]
fn of_two_hundred_requests_the_hundred_run_that_can_be_paid() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, _rich) = Site::funded(&Config::upstream(&upstream));
    let gateways = [site.serve()];
    race_for_funds(&site, &gateways, &upstream);
}

#[test]
fn postgres_of_two_hundred_requests_to_three_nodes_the_hundred_run_that_can_be_paid() {
    let track = Track::new(Reply::saying("Good day"));
    race_for_funds(&track.site, &track.nodes, &track.upstream);
    track.database.check_book();
}

#[test]
fn postgres_of_sixty_four_callers_at_three_nodes_one_runs_and_all_get_its_answer() {
    let track = Track::new(Reply::saying("Good day"));
    track.race(12, |_| {});
}

fn race_for_funds(site: &Site, gateways: &[Gateway], upstream: &Upstream) {
    const REQUESTS: usize = 200;
    const HOLDS: i64 = 100;
    let gateway = &gateways[0];
    let hold = hold(site, gateway);
    let probes = upstream.runs();
    let funds = HOLDS * hold;
    let spelled = format!("{}.{:06}", funds / 1_000_000, funds % 1_000_000);
    let account = site.account("race", "USD", &spelled);
    let gate = Gate::new();
    upstream.otherwise(Reply::saying("Good day").after(&gate));
    let body = |n: usize| acme(&format!("Request {n:03}"));
    let request = |n| Request::completion(&account.key, &request_key(), body(n));
    let requests: Vec<_> = (1..=REQUESTS).map(request).collect();

    let (is_over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let answers = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut lowest = funds;
            while !is_over.load(Ordering::Acquire) {
                let (available, held) = wallet(gateway, &account);
                assert!(available >= 0 && held >= 0, "{available} available, {held} held");
                assert!(available + held <= funds, "{available} available, {held} held");
                assert_eq!(held % hold, 0, "a hold is there whole or not at all");
                lowest = lowest.min(available);
            }
            lowest
        });
        let racing = scope.spawn(|| send_all(gateways, &requests, &answered));
        upstream.wait_for(probes + 100);
        until("the wallet is spent", || (wallet(gateway, &account) == (0, funds)).then_some(()));
        // What is given back when one ends would pay for another one.
        let refused = || (answered.load(Ordering::Acquire) == REQUESTS - 100).then_some(());
        until("the rest is refused", refused);
        gate.open();
        let answers = racing.join().unwrap();
        is_over.store(true, Ordering::Release);
        assert_eq!(watching.join().unwrap(), 0, "it was watched as it was spent");
        answers
    });

    let (ran, refused): (Vec<_>, Vec<_>) =
        requests.iter().zip(&answers).partition(|(_, answer)| answer.status == 200);
    assert_eq!((ran.len(), upstream.runs() - probes), (100, 100));
    for (_, answer) in &refused {
        assert_eq!(answer.status, 402, "{answer:?}");
        assert_eq!(answer.json()["error"]["code"], "insufficient_funds");
    }
    check_wallet(gateway, &account, funds - HOLDS * CHARGE);
    assert_eq!(site.verify()["operations"], 101, "a refused claim leaves nothing");

    // What was given back pays for the rest, under the same keys.
    for (request, _) in refused {
        check_completion(&gateway.send(request));
    }
    check_wallet(gateway, &account, funds - 2 * HOLDS * CHARGE);
    for (request, answer) in ran {
        assert_eq!(gateway.send(request).body, answer.body);
    }
    assert_eq!(upstream.runs() - probes, REQUESTS);
    site.verify();
}

#[test]
fn all_who_retry_a_dead_key_at_once_get_one_answer() {
    const KEYS: usize = 4;
    const CALLERS: usize = 24;
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let requests: Vec<_> = (0..KEYS)
        .map(|_| Request::completion(&account.key, &request_key(), acme("Hello")))
        .collect();
    let gateway = site.serve();
    let _waiting: Vec<_> = requests.iter().map(|it| it.begin(gateway.address())).collect();
    upstream.wait_for(KEYS);
    gateway.kill();

    // The reconciler starts with the process: it and every caller want the same rows.
    let gateway = [site.serve()];
    let retries: Vec<_> = (0..CALLERS).flat_map(|_| requests.clone()).collect();
    let answers = send_all(&gateway, &retries, &AtomicUsize::new(0));
    let [gateway] = gateway;
    for (at, answer) in answers.iter().enumerate() {
        assert_eq!(answer.status, 502, "{answer:?}");
        assert_eq!(answer.json()["error"]["code"], "outcome_unknown");
        assert_eq!(answer.body, answers[at % KEYS].body);
    }
    gate.open();
    assert_eq!(upstream.runs(), KEYS, "never a second time");
    check_wallet(&gateway, &account, FUNDS);
    let ledger = site.json(&["wallet", "ledger", &account.wallet]);
    let kinds: Vec<_> =
        ledger["entries"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    let given_back =
        ["lapse", "release"].map(|back| kinds.iter().filter(|it| **it == back).count());
    assert_eq!(given_back, [KEYS, 0], "each hold is given back once: {kinds:?}");
    site.verify();
}

#[test]
fn a_revoked_key_is_turned_away_and_what_runs_is_settled() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let other = site.another_key(&account.wallet, "other");
    let gateway = site.serve();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Hello"));
    let waiting = request.begin(gateway.address());
    upstream.wait_for(1);
    let (_available, held) = wallet(&gateway, &account);
    assert!(held > 0);

    drop(site.cli(&["key", "revoke", &account.id, "--yes"]).ok());
    let revoked = Instant::now();
    let looked_up = until("the key is turned away", || {
        let answer = gateway.get(&account, "/v1/wallet");
        (answer.status == 401).then_some(answer)
    });
    assert!(revoked.elapsed() <= REVOKED_WITHIN * 3, "too late");
    assert_eq!(looked_up.json()["error"]["code"], "invalid_api_key");
    let new = gateway.complete(&account, &request_key(), &acme("Hello"));
    assert_eq!(new.status, 401, "{new:?}");
    assert_eq!(upstream.runs(), 1, "nothing new runs");

    gate.open();
    check_completion(&waiting.answer());
    check_wallet(&gateway, &other, FUNDS - CHARGE);
    for unreadable in
        [gateway.send(&request), gateway.get(&account, &format!("/v1/operations/{key}"))]
    {
        assert_eq!(unreadable.status, 401, "{unreadable:?}");
        assert!(!unreadable.everything().contains("Good day"));
    }
    let elsewhere = gateway.get(&other, &format!("/v1/operations/{key}"));
    assert_eq!(elsewhere.status, 404, "another API key has operations of its own");
    site.verify();
}
