//! Another configuration while the process runs: taken as a whole for what begins, never for what runs,
//! and not at all where it has a mistake.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc;
use std::thread;

use holdfast_tests::config::{ACME, SIM};
use holdfast_tests::database::WriteLock;
use holdfast_tests::{
    Account, Config, Gate, Gateway, PATIENCE, Reply, Request, Site, Upstream, Waiting, request_key,
};
use serde_json::json;

use crate::admin::{metrics, value};
use crate::bodies::{acme, sim};
use crate::check::{charge, check_completion, check_json, until};

/// How many reloads came to this outcome.
fn count(gateway: &Gateway, outcome: &str) -> u64 {
    let count = value(&metrics(gateway), "holdfast_config_reloads_total", outcome);
    count.to_string().parse().unwrap()
}

#[track_caller]
fn wait_for(gateway: &Gateway, outcome: &str, times: u64) {
    until(outcome, || (count(gateway, outcome) == times).then_some(()));
}

fn models(gateway: &Gateway, account: &Account) -> Vec<String> {
    let list = gateway.get(account, "/v1/models").json();
    let ids = list["data"].as_array().unwrap().iter();
    ids.map(|model| model["id"].as_str().unwrap().to_owned()).collect()
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// A pipe's end to write to, once somebody waits at the other.
fn opened_by_reader(pipe: &Path) -> File {
    let (sender, receiver) = mpsc::channel();
    let pipe = pipe.to_path_buf();
    thread::spawn(move || sender.send(File::options().write(true).open(pipe)));
    receiver.recv_timeout(PATIENCE).unwrap().unwrap()
}

/// The price of output is another from a later moment on, which has passed too.
fn dearer(config: &Config) -> Config {
    config
        .clone()
        .replace("2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z")
        .replace("output = 10_000_000", "output = 20_000_000")
}

#[test]
fn what_runs_ends_under_its_own_configuration_and_what_begins_under_the_next() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream);
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    upstream.next(Reply::saying("Good day").after(&gate));
    let early = request_key();
    let running = Request::completion(&account.key, &early, acme("Say hello"));
    let running = running.begin(gateway.address());
    upstream.wait_for(1);

    let warning = "a price starts in the past and is first seen now";
    assert!(!gateway.said().contains(warning), "the first price replaces none");
    site.configure(&dearer(&config));
    wait_for(&gateway, "applied", 1);
    assert!(gateway.said().contains(warning), "{}", gateway.said());
    let late = request_key();
    let answer = gateway.complete(&account, &late, &acme("Say hello"));
    assert_eq!(charge(&check_completion(&answer, &late, false)), 150 + 10 + 400 + 7);

    // The model is gone, and the run of it is not.
    let other = config.replace("acme/large-1", "acme/large-2");
    site.configure(&other);
    wait_for(&gateway, "applied", 2);
    assert_eq!(models(&gateway, &account), ["acme/large-2"]);
    let gone = gateway.complete(&account, &request_key(), &acme("Say hello"));
    assert_eq!(gone.json()["error"]["code"], "model_not_found");
    gate.open();
    let answer = running.answer();
    assert_eq!(charge(&check_completion(&answer, &early, false)), 150 + 10 + 200 + 7);
    // A bound key has its answer, whatever today's models are.
    let again = gateway.complete(&account, &late, &acme("Say hello"));
    assert_eq!(charge(&check_completion(&again, &late, true)), 150 + 10 + 400 + 7);

    let said = gateway.said();
    assert!(
        said.contains(r#"configuration reloaded file=holdfast.toml models_changed="acme/large-1""#),
        "{said}"
    );
    assert!(
        said.contains(r#"models_added="acme/large-2" models_removed="acme/large-1""#),
        "{said}"
    );
    gateway.stop();
    site.verify();
}

#[test]
fn every_request_sees_one_configuration_from_start_to_end() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let one = Config::upstream(&upstream);
    let two = dearer(&one).replace("max_output_tokens = 500", "max_output_tokens = 400");
    let (site, account) = Site::funded(&one);
    let gateway = site.serve();
    for turn in 0..30 {
        site.configure(if turn % 2 == 0 { &two } else { &one });
        let keys: Vec<_> = (0..4).map(|_| request_key()).collect();
        let begin = |key: &String| {
            Request::completion(&account.key, key, acme("Say hello")).begin(gateway.address())
        };
        let mut waiting: Vec<_> = keys[..2].iter().map(begin).collect();
        gateway.hang_up();
        waiting.extend(keys[2..].iter().map(begin));
        for (key, answer) in keys.iter().zip(waiting) {
            let completion = check_completion(&answer.answer(), key, false);
            let operation = gateway.get(&account, &format!("/v1/operations/{key}")).json();
            // 9 bytes, 16 for the frame, 64 for any prompt, at 2.5; the model's bound; the request.
            let prompt = 223;
            let (hold, cost) = match operation["price_version"].as_str().unwrap() {
                "acme/large-1/USD/2026-01-01T00:00:00Z" => (prompt + 500 * 10 + 7, 367),
                "acme/large-1/USD/2026-02-01T00:00:00Z" => (prompt + 400 * 20 + 7, 567),
                other => panic!("{other}"),
            };
            assert_eq!(operation["hold_micros"], hold);
            assert_eq!(charge(&completion), cost);
        }
    }
    assert_eq!(count(&gateway, "refused"), 0, "{}", gateway.said());
    assert!(count(&gateway, "applied") > 0);
    site.verify();
}

#[test]
fn a_signal_has_the_file_read_at_once_and_the_same_text_changes_nothing() {
    let (site, _account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    gateway.hang_up();
    wait_for(&gateway, "unchanged", 1);
    assert_eq!((count(&gateway, "applied"), count(&gateway, "refused")), (0, 0));
    let told = "nothing to reload: the file has the settings in force";
    assert_eq!(gateway.said().matches(told).count(), 1, "{}", gateway.said());

    // What only another start would take changes nothing either, but it is not what runs.
    site.configure(&Config::simulated().set("server", "drain", "\"1s\""));
    wait_for(&gateway, "unchanged", 2);
    let said = gateway.said();
    assert!(said.contains("setting=\"server.drain\""), "{said}");
    assert_eq!(said.matches(told).count(), 1, "{said}");
    gateway.stop();
}

#[test]
fn without_a_file_the_signal_asks_for_the_end() {
    let site = Site::empty().with_env("HOLDFAST_LISTEN", "127.0.0.1:0");
    let gateway = site.serve();
    gateway.hang_up();
    assert_eq!(gateway.wait().code(), Some(0));
}

#[test]
fn a_file_that_is_replaced_or_linked_elsewhere_is_noticed() {
    let config = Config::simulated();
    let renamed = config.clone().replace(SIM, "holdfast/sim-3");
    let linked = config.clone().replace(SIM, "holdfast/sim-2");
    let (site, account) = Site::funded(&config);
    // As Kubernetes mounts a ConfigMap: the file is a link through a folder's link, which is swapped.
    std::fs::remove_file(site.path("holdfast.toml")).unwrap();
    for (folder, config) in [("first", &config), ("second", &linked)] {
        std::fs::create_dir(site.path(folder)).unwrap();
        std::fs::write(site.path(folder).join("holdfast.toml"), config.render()).unwrap();
    }
    symlink("first", site.path("data")).unwrap();
    symlink("data/holdfast.toml", site.path("holdfast.toml")).unwrap();
    let gateway = site.serve();
    assert_eq!(models(&gateway, &account), [SIM]);
    symlink("second", site.path("data-new")).unwrap();
    std::fs::rename(site.path("data-new"), site.path("data")).unwrap();
    wait_for(&gateway, "applied", 1);
    assert_eq!(models(&gateway, &account), ["holdfast/sim-2"]);

    // As editors and `mv` do it.
    site.write("holdfast.toml.new", &renamed.render());
    std::fs::rename(site.path("holdfast.toml.new"), site.path("holdfast.toml")).unwrap();
    wait_for(&gateway, "applied", 2);
    assert_eq!(models(&gateway, &account), ["holdfast/sim-3"]);
    gateway.stop();
}

#[test]
fn a_file_with_mistakes_changes_nothing_and_tells_them_all() {
    let config = Config::simulated();
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let other = config.replace(SIM, "holdfast/other-1");
    let wrong = other.clone().set("limits", "conections", "7").set("server", "drain", "\"soon\"");
    site.configure(&wrong);
    wait_for(&gateway, "refused", 1);
    let said = gateway.said();
    for (key, what) in [("conections", "unknown key"), ("drain", "span of time")] {
        let line = wrong.render().lines().position(|line| line.starts_with(key)).unwrap() + 1;
        let place = format!("holdfast.toml:{line}:");
        let told = said.lines().find(|told| told.contains(&place));
        assert!(told.is_some_and(|told| told.contains(what)), "{place} {said}");
    }
    assert_eq!(models(&gateway, &account), [SIM]);

    // Half of a file is refused too, and so is none; the next whole one is taken.
    let whole = other.render();
    let (half, _) = whole.split_once("micros_per_million").unwrap();
    site.write("holdfast.toml", half);
    wait_for(&gateway, "refused", 2);
    std::fs::remove_file(site.path("holdfast.toml")).unwrap();
    wait_for(&gateway, "refused", 3);
    assert_eq!(models(&gateway, &account), [SIM]);
    assert_eq!(count(&gateway, "applied"), 0);
    site.write("holdfast.toml", &whole);
    wait_for(&gateway, "applied", 1);
    assert_eq!(models(&gateway, &account), ["holdfast/other-1"]);
    gateway.stop();
}

#[test]
fn a_pipe_is_not_read_again() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    pipe(&site.path("pipe"));
    std::fs::rename(site.path("pipe"), site.path("holdfast.toml")).unwrap();
    // The look that finds the file changed, and the signal.
    wait_for(&gateway, "refused", 1);
    gateway.hang_up();
    wait_for(&gateway, "refused", 2);
    assert!(gateway.said().contains("it is no regular file"), "{}", gateway.said());
    assert_eq!(models(&gateway, &account), [SIM]);
    gateway.stop();
}

#[test]
fn a_reload_that_waits_for_a_file_holds_nobody_up() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let config = Config::upstream(&upstream);
    let (site, account) = Site::funded(&config);
    let roots = site.path("roots.pem");
    std::fs::write(&roots, "").unwrap();
    let site = site.with_env("SSL_CERT_FILE", &roots);
    let gateway = site.serve();
    // The roots are read with every provider that is made.
    std::fs::remove_file(&roots).unwrap();
    pipe(&roots);
    let other = config.replace(ACME, "acme/large-2");
    site.configure(&other.clone().set("providers.acme", "pool_idle", "\"7s\""));
    let waiting = opened_by_reader(&roots);
    let key = request_key();
    check_completion(&gateway.complete(&account, &key, &acme("Say hello")), &key, false);
    assert_eq!(count(&gateway, "applied"), 0);
    drop(waiting);
    wait_for(&gateway, "applied", 1);
    assert_eq!(models(&gateway, &account), ["acme/large-2"]);

    // Nor does the end wait for it.
    site.configure(&other.set("providers.acme", "pool_idle", "\"8s\""));
    let waiting = opened_by_reader(&roots);
    gateway.stop();
    drop(waiting);
}

#[test]
fn other_numbers_under_a_known_price_version_refuse_the_whole_reload() {
    let config = Config::simulated();
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let cheaper = config.replace("output = 4_000_000", "output = 1");
    let rates = "input = 1_000_000, output = 1_000_000";
    site.configure(&cheaper.model("holdfast/more-1", "sim", "sim-1", rates));
    wait_for(&gateway, "refused", 1);
    let said = gateway.said();
    assert!(said.contains("holdfast/sim-1/USD/2026-01-01T00:00:00Z is known with other numbers"));
    assert_eq!(models(&gateway, &account), [SIM]);
    let key = request_key();
    let charged = charge(&check_completion(
        &gateway.complete(&account, &key, &sim("Hello there")),
        &key,
        false,
    ));
    let operation = gateway.get(&account, &format!("/v1/operations/{key}")).json();
    let meters = &operation["meters"];
    let tokens = |kind: &str| meters[kind].as_i64().unwrap();
    assert_eq!(charged, tokens("input") * 2 + tokens("output") * 4 + 7);
    gateway.stop();
}

#[test]
fn lock_under_which_a_reload_fails_ends_and_the_same_file_is_taken() {
    let config = Config::simulated();
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let lock = WriteLock::take(&site.database());
    site.configure(&config.replace(SIM, "holdfast/sim-2"));
    wait_for(&gateway, "refused", 1);
    assert!(gateway.said().contains("not reloaded yet"), "{}", gateway.said());
    assert_eq!(models(&gateway, &account), [SIM]);
    drop(lock);
    wait_for(&gateway, "applied", 1);
    assert_eq!(models(&gateway, &account), ["holdfast/sim-2"]);
    assert_eq!(count(&gateway, "refused"), 1);
    gateway.stop();
}

#[test]
fn what_cannot_change_keeps_its_value_and_is_named() {
    let config = Config::simulated();
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let other = config
        .set("server", "listen", "\"127.0.0.2:0\"")
        .set("server", "node", "\"another\"")
        .set("server", "secrets", "[\"another secret of the server\"]")
        .set("server", "drain", "\"1s\"")
        .set("server", "trusted_proxies", "[\"127.0.0.1\"]")
        .set("admin", "token", "\"another-token-of-the-operator\"")
        .set("database", "url", "\"sqlite://elsewhere/holdfast.db\"")
        .set("limits", "commit_queue", "9")
        .set("operations", "lease", "\"30s\"")
        .set("operations", "heartbeat", "\"5s\"")
        .set("operations", "orphan_grace", "\"5s\"")
        .set("log", "format", "\"json\"")
        .set("limits", "body_bytes", "2_000");
    let (key, large) = (request_key(), sim(&"x".repeat(2_000)));
    check_completion(&gateway.complete(&account, &key, &large), &key, false);
    site.configure(&other);
    wait_for(&gateway, "applied", 1);
    let said = gateway.said();
    for setting in [
        "server.listen",
        "server.node",
        "server.secrets",
        "server.drain",
        "server.trusted_proxies",
        "admin",
        "database.url",
        "limits.commit_queue",
        "operations.lease",
        "operations.heartbeat",
        "operations.orphan_grace",
        "log.format",
    ] {
        let told = said.lines().find(|line| line.contains(&format!("setting=\"{setting}\"")));
        assert!(told.is_some_and(|line| line.contains("WARN")), "{setting} {said}");
    }
    assert!(!said.contains("another secret") && !said.contains("another-token"), "{said}");
    assert!(!site.path("elsewhere").exists());
    // The rest is taken, and a body is measured before its key is looked at.
    for key in [&key, &request_key()] {
        let answer = gateway.complete(&account, key, &large);
        assert_eq!(answer.json()["error"]["code"], "request_too_large");
    }
    let bound = check_json(&gateway.get(&account, &format!("/v1/operations/{key}")), 200);
    assert_eq!(bound["result_state"], "kept");
    // Nobody is believed who was not before.
    let request = Request::completion(&account.key, &request_key(), acme("Say hello"));
    let refused = gateway.send(&request.header("X-Forwarded-For", "192.0.2.7"));
    assert_eq!(refused.json()["error"]["code"], "model_not_found");
    let said = gateway.said();
    let line = said.lines().find(|line| line.contains("model_not_found")).unwrap();
    assert!(line.contains("client.address=127.0.0.1"), "{line}");
    gateway.stop();
}

#[test]
fn limits_and_the_log_are_taken() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let config = Config::upstream(&upstream);
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let quiet = config
        .set("log", "level", "\"error\"")
        .set("limits", "header_bytes", "2_000")
        .set("limits", "connections", "2")
        .set("limits", "operations_per_key", "1")
        .set("limits", "waiters_per_operation", "1")
        .set("limits", "retry_wait", "\"1ms\"");
    site.configure(&quiet);
    wait_for(&gateway, "applied", 1);
    let before = gateway.said().len();
    let long = Request::get("/v1/wallet").bearer(&account.key).header("x-long", &"x".repeat(3_000));
    assert_eq!(gateway.send(&long).json()["error"]["code"], "headers_too_large");
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(1);
    let one_more = || gateway.complete(&account, &request_key(), &acme("Say hello"));
    until("there is a connection for it", || {
        (one_more().json()["error"]["code"] == "too_many_operations").then_some(())
    });
    // Dialled anew each time: what came before may still hold the place, and this one be turned away.
    let idle = until("both connections are taken", || {
        let idle = Waiting::write(gateway.address(), b"GET /healthz HTTP/1.1\r\n");
        (one_more().json()["error"]["code"] == "overloaded").then_some(idle)
    });
    idle.hang_up();
    gate.open();
    check_completion(&running.answer(), &key, false);
    assert_eq!(gateway.said().len(), before, "an error would be told, requests are not");
    gateway.stop();
}

#[test]
fn another_promise_under_the_same_contract_is_told() {
    let config = Config::simulated();
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let key = request_key();
    let first = gateway.complete(&account, &key, &sim("Hello there"));
    check_completion(&first, &key, false);
    site.configure(&config.clone().replace("max_output_tokens = 500", "max_output_tokens = 400"));
    wait_for(&gateway, "applied", 1);
    let told = "the model changes under the same contract";
    assert!(gateway.said().contains(told), "{}", gateway.said());
    let counted = config
        .replace("max_output_tokens = 500", "max_output_tokens = 300")
        .replace("contract = 1", "contract = 2");
    site.configure(&counted);
    wait_for(&gateway, "applied", 2);
    assert_eq!(gateway.said().matches(told).count(), 1, "{}", gateway.said());
    // A bound key is compared under the contract that it was bound under.
    let again = gateway.complete(&account, &key, &sim("Hello there"));
    assert_eq!(again.body, first.body);
    check_completion(&again, &key, true);
    gateway.stop();
}

#[test]
fn a_provider_that_is_gone_still_answers_what_it_was_asked() {
    let gate = Gate::new();
    let first = Upstream::start(Reply::saying("From the first").after(&gate));
    let second = Upstream::start(Reply::saying("From the second"));
    let (site, account) = Site::funded(&Config::upstream(&first));
    let gateway = site.serve();
    let early = request_key();
    let running = Request::completion(&account.key, &early, acme("Say hello"));
    let running = running.begin(gateway.address());
    first.wait_for(1);
    site.configure(&Config::upstream(&second));
    wait_for(&gateway, "applied", 1);
    let late = request_key();
    let answer = gateway.complete(&account, &late, &acme("Say hello"));
    assert!(check_completion(&answer, &late, false)["choices"].to_string().contains("the second"));
    gate.open();
    let answer = check_completion(&running.answer(), &early, false);
    assert!(answer["choices"].to_string().contains("the first"));
    assert_eq!(answer["model"], json!(ACME));
    assert_eq!((first.runs(), second.runs()), (1, 1));
    gateway.stop();
}
