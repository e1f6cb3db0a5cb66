//! Suspension of an API key and of a wallet: nothing new runs, and everything else goes on.

use holdfast_tests::{Account, Config, Gateway, Site, request_key};
use holdfast_wire::error::Code;

use crate::bodies::sim;
use crate::check::{check_completion, check_json, error, until};

/// New requests, until one is refused by this code.
fn refused(gateway: &Gateway, account: &Account, code: Code) {
    until("the suspension is known", || {
        let key = request_key();
        let told = gateway.complete(account, &key, &sim("Hello there"));
        (told.status != 200).then(|| error(code).echo(&key).replayed(false).check(&told))
    });
}

fn served(gateway: &Gateway, account: &Account, key: &str) {
    until("the suspension is over", || {
        let told = gateway.complete(account, key, &sim("Hello there"));
        (told.status == 200).then_some(())
    });
}

#[test]
fn what_is_suspended_runs_nothing_new_and_answers_all_else() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let name = site.json(&["key", "list"])[0]["name"].as_str().unwrap().to_owned();
    let key = request_key();
    let first = gateway.complete(&account, &key, &sim("Hello there"));
    check_completion(&first, &key, false);
    for (suspend, resume, code) in [
        (["key", "suspend", &name], ["key", "resume", &name], Code::ApiKeySuspended),
        (["wallet", "suspend", "main"], ["wallet", "resume", "main"], Code::WalletSuspended),
    ] {
        drop(site.cli(&suspend).failed(2));
        drop(site.cli(&[&suspend[..], &["--reason", "has not paid"]].concat()).ok());
        refused(&gateway, &account, code);
        let again = gateway.complete(&account, &key, &sim("Hello there"));
        check_completion(&again, &key, true);
        assert_eq!(again.body, first.body);
        check_json(&gateway.get(&account, &format!("/v1/operations/{key}")), 200);
        check_json(&gateway.get(&account, "/v1/wallet"), 200);
        // A refusal binds nothing: the same key runs once it may.
        let later = request_key();
        let told = gateway.complete(&account, &later, &sim("Hello there"));
        error(code).echo(&later).replayed(false).check(&told);
        drop(site.cli(&resume).ok());
        served(&gateway, &account, &later);
    }
    site.verify();
}

#[test]
fn a_run_finishes_though_its_key_is_suspended_meanwhile() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let name = site.json(&["key", "list"])[0]["name"].as_str().unwrap().to_owned();
    let key = request_key();
    std::thread::scope(|scope| {
        let slow =
            scope.spawn(|| gateway.complete(&account, &key, &sim("Hello there\n[[sim: slow 8s]]")));
        until("it runs", || {
            (gateway.get(&account, &format!("/v1/operations/{key}")).status == 200).then_some(())
        });
        drop(site.cli(&["key", "suspend", &name, "--reason", "runs away"]).ok());
        refused(&gateway, &account, Code::ApiKeySuspended);
        check_completion(&slow.join().unwrap(), &key, false);
    });
    site.verify();
}

#[test]
fn an_operator_cancels_what_runs() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let key = request_key();
    std::thread::scope(|scope| {
        let slow = scope
            .spawn(|| gateway.complete(&account, &key, &sim("Hello there\n[[sim: slow 60s]]")));
        let operation = until("it runs", || {
            let listed = site.json(&["operation", "list"]);
            listed[0]["id"].as_str().map(str::to_owned)
        });
        drop(site.cli(&["operation", "cancel", &operation]).failed(2));
        let cancel = ["operation", "cancel", &operation, "--reason", "runaway"];
        drop(site.cli(&cancel).ok());
        let told = slow.join().unwrap();
        assert_ne!(told.status, 200, "{told:?}");
    });
    site.verify();
}
