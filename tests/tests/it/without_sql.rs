//! Work of an operator that once wanted SQL: each line of it by the command line, from elsewhere than the
//! database's host.

use holdfast_tests::{Account, Config, Gateway, Site};
use serde_json::json;

use crate::bodies::sim;
use crate::remote::Remote;

struct Desk<'a> {
    remote: Remote<'a>,
    account: Account,
    gateway: Gateway,
}

impl Desk<'_> {
    /// The answer of a command holds each of these.
    #[track_caller]
    fn says(&self, arguments: &[&str], all: &[&str]) {
        let said = self.remote.cli(arguments).ok();
        for part in all {
            assert!(said.contains(part), "{arguments:?}: {part}: {said}");
        }
    }

    fn complete(&self) -> String {
        let key = holdfast_tests::request_key();
        let answer = self.gateway.complete(&self.account, &key, &sim("Hello there"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["id"].as_str().unwrap().to_owned()
    }
}

/// A key is changed, stopped, let in again, and gives its name up before it is revoked.
fn change_keys(desk: &Desk<'_>) {
    let issue = ["key", "issue", "--wallet", "main", "--name", "euro-1", "--reason", "by mail"];
    desk.says(&issue, &["hfk_"]);
    let change = ["key", "update", "euro-1", "--rpm", "7", "--models", "holdfast/sim-1"];
    desk.says(&[&change[..], &["--expires", "90d"]].concat(), &["euro-1"]);
    desk.says(&["key", "show", "euro-1"], &["7", "holdfast/sim-1"]);
    desk.says(
        &["key", "suspend", "euro-1", "--reason", "has not paid"],
        &["euro-1", "suspended_at"],
    );
    desk.says(&["key", "resume", "euro-1"], &["euro-1"]);
    desk.says(&["key", "update", "euro-1", "--name", "euro-1-old"], &["euro-1-old"]);
    desk.says(&["key", "revoke", "euro-1-old", "--yes"], &["euro-1-old"]);
    desk.says(&issue, &["hfk_"]);
}

/// Wallets are renamed, stopped, let in again and closed.
fn change_wallets(desk: &Desk<'_>) {
    desk.says(&["wallet", "create", "other"], &["other"]);
    desk.says(&["wallet", "update", "other", "--name", "another"], &["another"]);
    desk.says(&["wallet", "suspend", "another", "--reason", "has not paid"], &["another"]);
    desk.says(&["wallet", "resume", "another"], &["another"]);
    desk.says(&["wallet", "close", "another", "--yes"], &["another"]);
}

/// What is used of limits, and whatever is to be found among many.
fn look(desk: &Desk<'_>, operation: &str) {
    let spent = desk.remote.json(&["key", "show", "main"])["counters"].to_string();
    assert!(spent.contains("spend"), "{spent}");
    desk.says(&["key", "list", "--wallet", "main"], &["euro-1"]);
    desk.says(&["wallet", "list", "--available-from", "1.00"], &["main"]);
    desk.says(&["wallet", "list", "--available-below", "1.00"], &["another"]);
    let id = desk.remote.json(&["operation", "show", operation])["id"].clone();
    for filter in [
        &["--wallet", "main"][..],
        &["--key", "main"],
        &["--model", "holdfast/sim-1"],
        &["--status", "completed"],
        &["--from", "2026-01-01"],
        &["--limit", "1"],
    ] {
        let listed = desk.remote.json(&[&["operation", "list"], filter].concat());
        assert_eq!(listed[0]["id"], id, "{filter:?}: {listed}");
    }
    let gone = ["operation", "cancel", operation, "--reason", "too late"];
    assert!(!desk.remote.cli(&gone).stderr.is_empty(), "it has ended, which is said");
    desk.says(&["price", "list"], &["holdfast/sim-1"]);
    desk.says(&["node", "list"], &["embedded"]);
    desk.says(&["model", "list"], &["holdfast/sim-1"]);
}

/// What a customer's invoice is made of.
fn invoice(desk: &Desk<'_>) {
    let report = ["usage", "report", "--wallet", "main", "--by", "model,month"];
    desk.says(&report, &["holdfast/sim-1"]);
    desk.says(&["usage", "report", "--by", "key,wallet"], &["main"]);
    desk.says(&["wallet", "ledger", "main", "--csv"], &["opening", "closing"]);
    let deposit =
        ["wallet", "deposit", "main", "1.00", "--source", "bank", "--reference", "2026-17"];
    let made = desk.remote.json(&[&deposit[..], &["--note", "invoice 17"]].concat());
    let shown = desk.remote.json(&["wallet", "posting", made["id"].as_str().unwrap()]);
    let said = ["source", "external_reference", "note"].map(|name| shown[name].clone());
    assert_eq!(said, [json!("bank"), json!("2026-17"), json!("invoice 17")]);
    assert!(shown["actor"].as_str().is_some_and(|it| it.starts_with("admin_key:")), "{shown}");
}

#[test]
fn an_operator_does_without_sql_what_once_wanted_it() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let remote = Remote::owner(&site, &gateway);
    let wallet = remote.json(&["wallet", "show", &account.wallet])["name"].clone();
    let key = remote.json(&["key", "show", &account.id])["name"].clone();
    for (what, name) in [("wallet", wallet), ("key", key)] {
        let name = name.as_str().unwrap().to_owned();
        drop(remote.cli(&[what, "update", &name, "--name", "main"]).ok());
    }
    let desk = Desk { remote, account, gateway };
    let operation = desk.complete();
    change_keys(&desk);
    change_wallets(&desk);
    look(&desk, &operation);
    invoice(&desk);
    assert_eq!(site.verify()["mismatches"], json!([]));
}
