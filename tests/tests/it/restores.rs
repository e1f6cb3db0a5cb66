//! A restored ledger: what its copy has lost does not run a second time, and what it knows answers as before.

use holdfast_tests::postgres::Database;
use holdfast_tests::site::text;
use holdfast_tests::{
    Account, Answer, Config, Gateway, Ran, Reply, Request, Site, Upstream, request_key,
};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::{acme, sim};
use crate::check::{check_completion, error, until};

const COPY: &str = "copy.db";
const SECRET: &str = "copy.db.secret";
const BODY: &str = "Say hello";

/// A ledger whose copy knows a completed key and one that has not run; a third was lost, and the second has run since.
struct LossWorld {
    upstream: Upstream,
    config: Config,
    site: Site,
    account: Account,
    known: (String, Answer),
    open: String,
    lost: String,
}

impl LossWorld {
    fn new() -> Self {
        let upstream = Upstream::start(Reply::saying("Good day"));
        let config = Config::upstream(&upstream);
        let (site, account) = Site::funded(&config);
        let gateway = site.serve();
        let [known, open, lost] = [(); 3].map(|()| request_key());
        let answer = gateway.complete(&account, &known, &acme(BODY));
        check_completion(&answer, &known, false);
        upstream.next(Reply::json(429, &json!({"error": {"message": "slow down"}})));
        let turned_away = gateway.complete(&account, &open, &acme(BODY));
        error(Code::UpstreamUnavailable).echo(&open).replayed(false).bound().check(&turned_away);
        drop(site.cli(&["backup", COPY]).ok());
        until("the route is taken again", || {
            let ran = gateway.complete(&account, &open, &acme(BODY));
            (ran.status == 200).then_some(())
        });
        check_completion(&gateway.complete(&account, &lost, &acme(BODY)), &lost, false);
        gateway.stop();
        Self { upstream, config, site, account, known: (known, answer), open, lost }
    }

    /// The copy on another machine, restored with these options.
    fn restored(&self, options: &[&str]) -> (Site, Value) {
        let site = Site::configured(&self.config);
        for file in [COPY, SECRET] {
            std::fs::copy(self.site.path(file), site.path(file)).unwrap();
        }
        let restored = site.json(&[&["restore", COPY], options].concat());
        (site, restored)
    }

    #[track_caller]
    fn check_known(&self, gateway: &Gateway) {
        let (known, answer) = &self.known;
        let again = gateway.complete(&self.account, known, &acme(BODY));
        check_completion(&again, known, true);
        assert_eq!(again.body, answer.body);
    }
}

#[track_caller]
fn check_refused(gateway: &Gateway, account: &Account, key: &str) {
    let refused = gateway.complete(account, key, &acme(BODY));
    let shown = error(Code::LedgerRestored).echo(key).replayed(false).check(&refused);
    let message = shown["message"].as_str().unwrap();
    assert!(message.contains("Nothing ran now") && message.contains("run from 20"), "{message}");
    let seconds: u32 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((30..=60).contains(&seconds), "{seconds}");
}

#[test]
fn sqlite_lost_key_does_not_run_again_and_known_keys_answer() {
    let world = LossWorld::new();
    let (site, restored) = world.restored(&[]);
    assert!(text(&restored, "unknown_until") > text(&restored, "restored_at"), "{restored}");
    let gateway = site.serve();
    let runs = world.upstream.runs();
    for key in [&world.lost, &world.open, &request_key()] {
        check_refused(&gateway, &world.account, key);
        check_refused(&gateway, &world.account, key);
    }
    assert_eq!(world.upstream.runs(), runs, "nothing was sent");
    world.check_known(&gateway);
    // A key without an answer may have had one: it is not called unused.
    let replay_only = Request::completion(&world.account.key, &world.lost, acme(BODY))
        .header("Holdfast-Replay-Only", "true");
    let refused = gateway.send(&replay_only);
    error(Code::LedgerRestored).echo(&world.lost).replayed(false).check(&refused);

    // Issued now: no request key of it is lost.
    let refused = site.cli(&["key", "issue", "--wallet", "main", "--name", "later"]).failed(1);
    assert!(refused.contains("--after-restore"), "{refused}");
    let later = site.key_with("main", &["--name", "later", "--after-restore"]);
    let key = request_key();
    check_completion(&gateway.complete(&later, &key, &acme(BODY)), &key, false);
    check_refused(&gateway, &world.account, &request_key());
    gateway.stop();
    let noted = site.verify()["notes"][0]["text"].as_str().map(str::to_owned).unwrap();
    assert!(noted.contains("unknown request keys are refused until 20"), "{noted}");
}

#[test]
fn sqlite_within_the_window_no_answer_says_that_a_lost_key_did_not_run() {
    let world = LossWorld::new();
    let (site, _restored) = world.restored(&[]);
    let gateway = site.serve();
    let bearer = &world.account.key;
    for key in [&world.lost, &world.open] {
        let path = format!("/v1/operations/{key}");
        for ask in [Request::get(&path), Request::post(&format!("{path}/cancel"), "")] {
            let answer = gateway.send(&ask.bearer(bearer));
            assert_eq!(answer.status, 409, "{answer:?}");
            assert_eq!(answer.json()["error"]["code"], "ledger_restored");
        }
    }
    // Refused by the rules of now: the key may have run by those of before.
    drop(site.cli(&["wallet", "suspend", "main", "--reason", "unpaid"]).ok());
    until("the suspension is known", || {
        let refused = gateway.complete(&world.account, &world.known.0, &acme(BODY));
        (refused.status == 200).then_some(())
    });
    for key in [&world.lost, &world.open] {
        check_refused(&gateway, &world.account, key);
    }
    drop(site.cli(&["wallet", "resume", "main"]).ok());
    // The open row is as it was: it runs once the window has ended.
    drop(site.cli(&["restore", "--declare", "--unknown-since", "allow"]).ok());
    until("the end of the window is known", || {
        let ran = gateway.complete(&world.account, &world.open, &acme(BODY));
        (ran.status == 200).then_some(())
    });
    gateway.stop();
}

#[test]
fn sqlite_restore_books_no_payment_twice_by_a_repetition() {
    let world = LossWorld::new();
    let (site, _restored) = world.restored(&[]);
    let before = site.balance(&world.account);
    let deposit = ["wallet", "deposit", "main", "1.00"];
    for command in [&deposit[..], &["wallet", "adjust", "main", "1.00", "--reason", "goodwill"]] {
        let refused = site.cli(command).failed(1);
        assert!(refused.contains("--after-restore") && refused.contains("ends at"), "{refused}");
    }
    assert_eq!(site.balance(&world.account), before);
    drop(site.cli(&[&deposit[..], &["--after-restore"]].concat()).ok());
    assert_eq!(site.balance(&world.account), (before.0 + 1_000_000, before.1));
    site.verify();
}

#[test]
fn sqlite_restore_that_allows_unknown_keys_runs_them_at_once() {
    let world = LossWorld::new();
    let (site, restored) = world.restored(&["--unknown-since", "allow"]);
    assert_eq!(restored["unknown_until"], restored["restored_at"]);
    let gateway = site.serve();
    let runs = world.upstream.runs();
    // It is what was asked for: the second run of a key that the copy has lost.
    check_completion(
        &gateway.complete(&world.account, &world.lost, &acme(BODY)),
        &world.lost,
        false,
    );
    assert_eq!(world.upstream.runs(), runs + 1);
    world.check_known(&gateway);
    drop(site.cli(&["wallet", "deposit", "main", "1.00"]).ok());
    gateway.stop();
    site.verify();
}

#[test]
fn a_declared_window_is_kept_by_a_gateway_that_runs_and_ends() {
    let (site, account) = Site::funded(&Config::simulated());
    check_declared(&site, &[site.serve()], &account);
}

#[test]
fn postgres_a_declared_window_is_kept_by_every_node_and_ends() {
    let database = Database::migrated();
    let (site, account) = Site::funded(&database.configure(Config::simulated()));
    check_declared(&site, &[site.serve(), site.serve()], &account);
}

/// Each of them has read the API key before the restore.
fn check_declared(site: &Site, nodes: &[Gateway], account: &Account) {
    let body = sim("Hello there");
    let known = request_key();
    for (node, is_again) in nodes.iter().zip([false, true]) {
        check_completion(&node.complete(account, &known, &body), &known, is_again);
    }
    let declared = site.json(&["restore", "--declare", "--window", "1h"]);
    assert!(text(&declared, "unknown_until") > text(&declared, "restored_at"), "{declared}");
    for node in nodes {
        let key = request_key();
        let refused = node.complete(account, &key, &body);
        error(Code::LedgerRestored).echo(&key).replayed(false).check(&refused);
        check_completion(&node.complete(account, &known, &body), &known, true);
    }
    let later = site.key_with("main", &["--name", "later", "--after-restore"]);
    for node in nodes {
        let key = request_key();
        check_completion(&node.complete(&later, &key, &body), &key, false);
    }
    // A shorter window ends no longer one; allow does.
    drop(site.json(&["restore", "--declare", "--window", "1s"]));
    let key = request_key();
    let refused = nodes[0].complete(account, &key, &body);
    error(Code::LedgerRestored).echo(&key).replayed(false).check(&refused);
    drop(site.json(&["restore", "--declare", "--unknown-since", "allow"]));
    until("the window is over", || {
        (nodes[0].complete(account, &key, &body).status == 200).then_some(())
    });
    drop(site.json(&["restore", "--declare", "--window", "1s"]));
    let key = request_key();
    until("the window has ended by itself", || {
        (nodes[0].complete(account, &key, &body).status == 200).then_some(())
    });
    site.verify();
}

#[test]
fn wrong_usage_of_restore_exits_with_2() {
    let (site, _account) = Site::funded(&Config::simulated());
    drop(site.cli(&["backup", COPY]).ok());
    for options in [
        &["--window", "0s"][..],
        &["--window", "367d"],
        &["--unknown-since", "allow", "--window", "1h"],
        &["--declare"],
    ] {
        drop(Ran::of(site.command().args(["restore", COPY]).args(options)).failed(2));
    }
    site.verify();
}
