//! Rotation: another credential for the same API key. Its operations, limits and request keys stay; what
//! was sealed for the old credential opens with that one alone, as long as it lives.

use holdfast_tests::site::text;
use holdfast_tests::{Account, Config, Gate, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;
use serde_json::Value;

use crate::admin::wait_for_waiters;
use crate::bodies::{acme, sim};
use crate::check::{charge, check_completion, check_json, error, meters, until};

#[test]
fn a_retry_across_a_rotation_is_the_same_operation() {
    let (site, old) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let key = request_key();
    let first = gateway.complete(&old, &key, &sim("Hello there"));
    let paid = charge(&check_completion(&first, &key, false));
    let new = site.rotate(&old, "24h");

    let look = |account| check_json(&gateway.get(account, &format!("/v1/operations/{key}")), 200);
    let operation = look(&new);
    assert_eq!(
        (&operation["result_state"], &operation["result"]),
        (&"sealed".into(), &Value::Null)
    );
    assert_eq!(operation["id"], look(&old)["id"], "it is the same operation");
    let sealed = error(Code::ResultSealed)
        .echo(&key)
        .replayed(true)
        .bound()
        .billed(paid, operation["meters"].clone());
    let told = sealed.check(&gateway.complete(&new, &key, &sim("Hello there")));
    assert_eq!(told["operation_id"], operation["id"]);
    let conflict = gateway.complete(&new, &key, &sim("Hello anybody"));
    error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&conflict);

    let again = gateway.complete(&old, &key, &sim("Hello there"));
    check_completion(&again, &key, true);
    assert_eq!(again.body, first.body, "the old credential still opens what was sealed for it");

    let later = request_key();
    check_completion(&gateway.complete(&new, &later, &sim("Hello there")), &later, false);
    check_completion(&gateway.complete(&new, &later, &sim("Hello there")), &later, true);
    let told = gateway.complete(&old, &later, &sim("Hello there"));
    assert_eq!((told.status, told.json()["error"]["code"].clone()), (410, "result_sealed".into()));
    assert_eq!(site.balance(&old), (10_000_000 - 2 * paid, 0));
    site.verify();
}

#[test]
fn a_rotation_does_not_disturb_what_runs() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, old) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let request = |credential: &str| Request::completion(credential, &key, acme("Say hello"));
    let running = request(&old.key).begin(gateway.address());
    upstream.wait_for(1);
    let new = site.rotate(&old, "24h");
    // Both retries wait for the operation that runs: nobody runs it again.
    let attached = [&old, &new].map(|account| request(&account.key).begin(gateway.address()));
    wait_for_waiters(&gateway, 3);
    gate.open();
    let first = running.answer();
    let paid = charge(&check_completion(&first, &key, false));
    let [by_old, by_new] = attached.map(|waiting| waiting.answer());
    check_completion(&by_old, &key, true);
    assert_eq!(by_old.body, first.body);
    let metered = check_json(&gateway.get(&new, &format!("/v1/operations/{key}")), 200);
    let sealed = error(Code::ResultSealed).echo(&key).replayed(true).bound();
    sealed.billed(paid, metered["meters"].clone()).check(&by_new);
    assert_ne!(metered["meters"], meters(&[]), "there is a bill");
    assert_eq!((upstream.runs(), site.balance(&old)), (1, (10_000_000 - paid, 0)));
    site.verify();
}

#[test]
fn rotations_and_retries_that_race_run_an_operation_once() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let (site, first) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let ask = |account: &Account| gateway.complete(account, &key, &acme("Say hello"));
    let answers = std::thread::scope(|scope| {
        let retries = scope.spawn(|| [(); 8].map(|()| ask(&first)).to_vec());
        let rotated: Vec<_> = (0..4)
            .map(|_| {
                let account = site.rotate(&first, "24h");
                let ask = &ask;
                scope.spawn(move || [ask(&account), ask(&account)].to_vec())
            })
            .collect();
        let rotated = rotated.into_iter().flat_map(|it| it.join().unwrap());
        retries.join().unwrap().into_iter().chain(rotated).collect::<Vec<_>>()
    });
    let statuses: Vec<_> = answers.iter().map(|answer| answer.status).collect();
    assert!(statuses.iter().all(|status| [200, 410].contains(status)), "{statuses:?}");
    let ran = answers.iter().filter(|it| it.header("idempotent-replayed") == Some("false"));
    assert_eq!((ran.count(), upstream.runs()), (1, 1), "{statuses:?}");
    site.verify();
}

#[test]
fn an_old_credential_ends_with_its_grace_and_like_an_unknown_one() {
    let (site, old) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let key = request_key();
    check_completion(&gateway.complete(&old, &key, &sim("Hello there")), &key, false);
    let rotated = site.json(&["key", "rotate", &old.id, "--grace", "1h"]);
    let later = text(&rotated, "previous_ends_at");
    let listed = site.json(&["key", "list"]);
    let ends = listed[0]["credentials"].as_array().unwrap().iter().map(|it| &it["ends_at"]);
    assert_eq!(ends.collect::<Vec<_>>(), [&Value::from(later.as_str()), &Value::Null]);
    let shown = site.cli(&["key", "list"]).ok();
    assert!(shown.contains(&format!("2, next end {later}")), "{shown}");
    let new = site.rotate(&old, "0s");
    let ended = until("the old credential has ended", || {
        let answer = gateway.complete(&old, &key, &sim("Hello there"));
        (answer.status == 401).then_some(answer)
    });
    error(Code::InvalidApiKey).echo(&key).check(&ended);
    let in_force = site.json(&["key", "list"])[0]["credentials"].clone();
    assert!(in_force[0]["ends_at"].is_null() && in_force[1].is_null(), "{in_force}");
    let unknown = Request::completion(&new.key.replace("hfk_", "hfk_0"), &key, sim("Hello there"));
    assert_eq!(gateway.send(&unknown).body, ended.body, "nobody learns which");
    let answer = gateway.complete(&new, &key, &sim("Hello there"));
    assert_eq!(answer.status, 410, "the new one is in force, and opens nothing of the old one");
    // One that lives on beside the newest ends at the earlier of its two ends.
    let again = site.json(&["key", "rotate", &old.id, "--grace", "2h"]);
    assert!(text(&again, "previous_ends_at") > later);
    site.verify();
}

#[test]
fn what_has_ended_is_not_rotated() {
    let (site, account) = Site::funded(&Config::simulated());
    let _view = site.json(&["key", "revoke", &account.id, "--yes"]);
    let said = site.cli(&["key", "rotate", &account.id]).failed(1);
    assert!(said.contains("is revoked or past its end"), "{said}");
    let said = site.cli(&["key", "rotate", "nobody"]).failed(1);
    assert!(said.contains("key list"), "{said}");
    for bad in ["soon", "-1h", "1.5h", ""] {
        let _said = site.cli(&["key", "rotate", &account.id, "--grace", bad]).failed(2);
    }
}

#[test]
fn limits_go_on_across_a_rotation() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, funded) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let old = site.key_with(&funded.wallet, &["--concurrency", "1"]);
    let key = request_key();
    let running = Request::completion(&old.key, &key, acme("Say hello"));
    let running = running.begin(gateway.address());
    upstream.wait_for(1);
    let new = site.rotate(&old, "24h");
    let other = request_key();
    let told = gateway.complete(&new, &other, &acme("Say hello"));
    error(Code::RateLimitExceeded).echo(&other).replayed(false).check(&told);
    gate.open();
    check_completion(&running.answer(), &key, false);
    check_completion(&gateway.complete(&new, &other, &acme("Say hello")), &other, false);
}
