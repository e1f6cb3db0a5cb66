//! Commands that read, and those of webhooks and people: through both doors, and compared.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use holdfast_tests::postgres::Database;
use holdfast_tests::proxy::Proxy;
use holdfast_tests::site::text;
use holdfast_tests::{Account, Config, Gateway, Ran, Site, request_key};
use serde_json::{Value, json};

use crate::bodies::sim;
use crate::check::until;
use crate::receiver::Receiver;
use crate::remote::{Remote, behind, check_forms, check_same};
use crate::webhooks_delivered::allowing;

/// Completions of the walk: their transfers are more than a page of a statement has.
const COMPLETIONS: usize = 75;

/// The rows that a command lists, the same through both doors.
#[track_caller]
fn listed(site: &Site, remote: &Remote<'_>, arguments: &[&str]) -> Vec<Value> {
    let [shown, json] = check_forms(site, remote, arguments);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    json.json().as_array().unwrap().clone()
}

/// A wallet with everything that the lists are of.
fn fill(site: &Site, gateway: &Gateway, account: &Account) -> String {
    for _number in 0..COMPLETIONS {
        let done = gateway.complete(account, &request_key(), &sim("Hello there"));
        assert_eq!(done.status, 200, "{done:?}");
    }
    let newest = site.json(&["operation", "list", "--limit", "1"]);
    let operation = text(&newest[0], "id");
    drop(site.json(&["wallet", "refund", &operation, "0.000001", "--reason", "=formula"]));
    drop(site.json(&["wallet", "adjust", "main", "-0.5", "--reason", "=a test"]));
    drop(site.json(&["wallet", "update", "main", "--low-balance", "5.00"]));
    operation
}

/// Lists with their filters: each is the same through both doors, and has what it is of.
fn compare_lists(site: &Site, remote: &Remote<'_>, account: &Account, operation: &str) {
    let count = |arguments: &[&str]| listed(site, remote, arguments).len();
    for (arguments, expected) in [
        (&["operation", "list", "--wallet", "main", "--key", &account.id][..], COMPLETIONS),
        (&["operation", "list", "--status", "completed", "--charge-from", "0"], COMPLETIONS),
        (&["operation", "list", "--charge-from", "100"], 0),
        (&["operation", "list", "--charge-to", "100"], COMPLETIONS),
        (&["operation", "list", "--running"], 0),
        (&["operation", "list", "--model", "holdfast/sim-1", "--limit", "7"], 7),
        (&["operation", "list", "--model", "holdfast/sim-tools"], 0),
        (&["operation", "list", "--from", "2020-01-01", "--to", "2020-01-02"], 0),
        (&["wallet", "list", "--available-below", "5"], 0),
        (&["wallet", "list", "--available-from", "5", "--limit", "1"], 1),
        (&["key", "list", "--wallet", "main", "--limit", "1"], 1),
        (&["posting", "list", "--kind", "deposit", "--wallet", "main"], 1),
        (&["posting", "list", "--kind", "adjustment"], 1),
        (&["posting", "list", "--kind", "refund", "--wallet", "main"], 1),
        (&["audit", "list", "--use-case", "posting.adjust", "--actor", "local"], 1),
        (&["audit", "list", "--thing", &format!("wallet:{}", account.wallet), "--limit", "1"], 1),
        (&["event", "list", "--wallet", "main", "--kind", "wallet.debited"], 1),
        (&["price", "list", "--model", "holdfast/sim-1", "--currency", "USD"], 1),
        (&["price", "list", "--currency", "JPY"], 0),
        (&["admin-key", "list"], 1),
        (&["admin-key", "list", "--all"], 1),
    ] {
        assert_eq!(count(arguments), expected, "{arguments:?}");
    }
    let event = text(&listed(site, remote, &["event", "list", "--limit", "1"])[0], "id");
    let admin_key = text(&listed(site, remote, &["admin-key", "list"])[0], "id");
    for shown in [
        &["event", "show", &event][..],
        &["admin-key", "show", &admin_key],
        &["wallet", "show", "main"],
    ] {
        assert_eq!(check_same(site, remote, shown).code, Some(0), "{shown:?}");
    }
    for refused in [
        &["event", "show", operation][..],
        &["event", "list", "--kind", "wallet.eaten"],
        &["job", "show", operation],
        &["admin-key", "show", operation],
        &["audit", "list", "--thing", "a wallet"],
        &["webhook", "show", operation],
        &["webhook", "create", "http://127.0.0.1/in", "--key", operation],
    ] {
        assert_ne!(check_same(site, remote, refused).code, Some(0), "{refused:?}");
    }
    // What a server alone knows: it may say more than the configuration.
    let models = |ran: Ran| ran.ok();
    let list = ["model", "list"];
    assert_eq!(models(site.cli(&list)), models(remote.cli(&list)));
    assert_eq!(site.json(&list), remote.json(&list));
    // Heartbeats move the ends of leases.
    let node = &remote.json(&["node", "list"])[0];
    assert_eq!(
        (&node["is_alive"], &node["name"]),
        (&json!(true), &site.json(&["node", "list"])[0]["name"])
    );
}

/// Reports and statements, in each of their forms.
fn compare_reports(site: &Site, remote: &Remote<'_>) {
    for arguments in [
        &["usage", "report"][..],
        &["usage", "report", "--by", "hour,model", "--format", "csv"],
        &["usage", "report", "--by", "key,wallet", "--wallet", "main", "--key", "main"],
        &["usage", "report", "--by", "route", "--model", "holdfast/sim-1", "--from", "2026-01-01"],
        &["usage", "report", "--by", "month", "--format", "json", "--to", "2020-01-01"],
        &["wallet", "ledger", "main"],
        &["wallet", "ledger", "main", "--limit", "3"],
        &["wallet", "ledger", "main", "--limit", "201"],
        &["wallet", "ledger", "main", "--from", "2026-01-01", "--to", "2200-01-01"],
        &["wallet", "ledger", "main", "--to", "2020-01-01"],
        &["wallet", "ledger", "nobody"],
    ] {
        drop(check_same(site, remote, arguments));
    }
    let entries = &site.json(&["wallet", "ledger", "main"])["entries"];
    assert!(entries.as_array().unwrap().len() > 201, "it has more than a page");
    for form in ["--csv", "--jsonl"] {
        let arguments = ["wallet", "ledger", "main", form];
        let file = site.cli(&arguments).ok();
        assert_eq!(remote.cli(&arguments).ok(), file);
        assert!(file.contains("=a test") && file.contains("closing"), "{file}");
    }
    let said = remote.cli(&["wallet", "ledger", "main", "--csv", "--limit", "2"]).failed(2);
    assert!(said.contains("cannot be used with"), "{said}");
    let said = remote.cli(&["usage", "report", "--from", "2026-01-01T00:30:00Z"]).failed(2);
    assert!(said.contains("whole hours"), "{said}");
}

/// A webhook's life, each command through one of the doors.
fn live_webhook(site: &Site, remote: &Remote<'_>, receiver: &Receiver) {
    let url = format!("{}/in", receiver.origin());
    let key = request_key();
    let create =
        ["webhook", "create", &url, "--wallet", "main", "--kind", "wallet.low", "--key", &key];
    let made = site.json(&create);
    assert!(text(&made, "secret").starts_with("whsec_"), "{made}");
    let again = site.cli(&create);
    assert!(again.stderr.contains("webhook rotate"), "{again:?}");
    let other = remote.json(&["webhook", "create", &url, "--description", "the books"]);
    assert_eq!((&other["wallet_id"], &other["kinds"]), (&Value::Null, &Value::Null));
    let id = text(&made, "id");
    let update =
        ["webhook", "update", &id, "--kind", "wallet.credited", "--kind", "wallet.debited"];
    let updated = remote.json(&update);
    assert_eq!(updated["kinds"], json!(["wallet.credited", "wallet.debited"]));
    let updated = site.json(&["webhook", "update", &id, "--all-kinds", "--description", "all"]);
    assert_eq!((&updated["kinds"], &updated["description"]), (&Value::Null, &json!("all")));
    let rotated = remote.json(&["webhook", "rotate", &id]);
    assert_ne!(rotated["secret"], made["secret"]);
    assert_eq!(remote.json(&["webhook", "disable", &id])["state"], "disabled");
    assert_eq!(site.json(&["webhook", "enable", &id])["state"], "active");
    let test = site.json(&["webhook", "test", &id]);
    let deliveries = ["webhook", "deliveries", &id];
    let delivered = || {
        let newest = remote.json(&deliveries)[0].clone();
        (newest["state"] == "delivered").then_some(newest)
    };
    let first = until("the test is delivered", delivered);
    assert_eq!(first["event_id"], test["event_id"]);
    drop(remote.json(&["webhook", "resend", &id, &text(&test, "event_id")]));
    let _twice = receiver.wait_for(2);
    let _second = until("the test is delivered again", delivered);
    for arguments in [
        &deliveries[..],
        &["webhook", "show", &id],
        &["webhook", "list"],
        &["webhook", "list", "--wallet", "main", "--limit", "1"],
    ] {
        assert_eq!(check_same(site, remote, arguments).code, Some(0), "{arguments:?}");
    }
}

/// People's life, each command through one of the doors, and all that is read or refused through both.
fn live_people(site: &Site, remote: &Remote<'_>) {
    let key = request_key();
    let invite = ["person", "invite", "ada@example.com", "--role", "support", "--key", &key];
    let made = site.json(&invite);
    let id = text(&made, "id");
    assert!(text(&made, "url").contains("/link/"), "{made}");
    // A request key is its actor's: each door has one of its own, and both say what was done.
    let again = site.json(&invite);
    assert_eq!((&again["id"], &again["url"]), (&made["id"], &Value::Null));
    let renewed = remote.json(&["person", "link", &id]);
    assert!(renewed["url"] != made["url"] && text(&renewed, "url").contains("/link/"));
    let bob = request_key();
    let invite =
        ["person", "invite", "bob@example.com", "--role", "holder_viewer", "--wallet", "main"];
    let invite = [&invite[..], &["--name", "Bob", "--key", &bob]].concat();
    let other = text(&remote.json(&invite), "id");
    let repeated = remote.json(&invite);
    assert_eq!((text(&repeated, "id"), &repeated["url"]), (other.clone(), &Value::Null));
    for (arguments, rows) in [
        (&["person", "list"][..], 2),
        (&["person", "list", "--limit", "1"], 1),
        (&["audit", "list", "--use-case", "person.invite", "--limit", "2"], 2),
        (&["audit", "list", "--thing", &format!("person:{id}"), "--limit", "1"], 1),
    ] {
        assert_eq!(listed(site, remote, arguments).len(), rows, "{arguments:?}");
    }
    for person in [&id, &other] {
        assert_eq!(check_same(site, remote, &["person", "show", person]).code, Some(0));
    }
    let ended = ["person", "revoke", &other, "--role", "holder_viewer", "--wallet", "main"];
    assert_eq!(site.json(&ended)["id"], json!(other));
    let ended = remote.json(&["person", "end", &other, "--erase", "--yes"]);
    assert_eq!(ended["id"], json!(other));
    let shown = check_same(site, remote, &["person", "show", &other]);
    assert!(!shown.stdout.contains("bob@example.com") && shown.stdout.contains("ended"));
    // Whom it invited, nobody can say any more: it is refused and not done again.
    let refused = remote.cli(&invite).failed(1);
    assert!(refused.contains("ended"), "{refused}");
    assert_eq!(listed(site, remote, &["person", "list"]).len(), 2);
    let nobody = request_key();
    let wrong = ["person", "invite", "c@d.example", "--role", "support", "--wallet", "main"];
    for refused in [
        &["person", "show", &nobody][..],
        &["person", "link", &nobody, "--key", &nobody],
        &["person", "link", &other, "--key", &nobody],
        &["person", "end", &nobody, "--key", &nobody, "--yes"],
        &["person", "revoke", &id, "--role", "holder_admin", "--key", &nobody],
        &["person", "invite", "carl@example.com", "--role", "holder_admin", "--key", &nobody],
        &["person", "invite", "c@d.example", "--role", "support", "--wallet", "nobody"],
        &[&wrong[..], &["--key", &nobody]].concat(),
    ] {
        assert_ne!(check_same(site, remote, refused).code, Some(0), "{refused:?}");
    }
}

/// Verifications, one without a mismatch and one with, and the jobs that they leave, whichever door they went through.
fn verify_both(site: &Site, remote: &Remote<'_>) {
    let well = ["ledger", "verify"];
    let (there, here) = (remote.cli(&well), site.cli(&well));
    assert_eq!((there.code, &there.stdout), (Some(0), &here.stdout), "{there:?}");
    let elsewhere = format!("1:{}", "9".repeat(64));
    let torn = ["ledger", "verify", "--json", "--since", &elsewhere];
    let (there, here) = (remote.cli(&torn), site.cli(&torn));
    assert_eq!((there.code, there.stdout), (Some(1), here.stdout));
    let jobs = listed(site, remote, &["job", "list"]);
    let well: Vec<_> = jobs.iter().map(|job| &job["ok"]).collect();
    assert_eq!(well, [&json!(false), &json!(false), &json!(true), &json!(true)]);
    let shown = check_same(site, remote, &["job", "show", &text(&jobs[0], "id")]);
    assert!(shown.stdout.contains("the ledger: "), "a mismatch names its row: {shown:?}");
    let key = site.cli(&["ledger", "verify", "--key", &request_key()]).failed(2);
    assert!(key.contains("--server"), "{key}");
}

fn walk(config: Config) {
    let receiver = Receiver::answering(204);
    let (site, account) = Site::funded(&allowing(config, &[&receiver]));
    let gateway = site.serve();
    let remote = Remote::owner(&site, &gateway);
    let operation = fill(&site, &gateway, &account);
    compare_lists(&site, &remote, &account, &operation);
    compare_reports(&site, &remote);
    live_webhook(&site, &remote, &receiver);
    live_people(&site, &remote);
    verify_both(&site, &remote);
    gateway.stop();
}

#[test]
fn commands_that_read_say_the_same_through_both_doors() {
    walk(Config::simulated());
}

#[test]
fn postgres_commands_that_read_say_the_same_through_both_doors() {
    let database = Database::migrated();
    walk(database.configure(Config::simulated()));
}

#[test]
fn whoever_stops_waiting_stops_no_verification() {
    let proxy = Proxy::ahead();
    let (site, gateway, url) = behind(&proxy);
    let remote = Remote::owner(&site, &gateway).at(url);
    // The job is started, and no look at it is answered.
    proxy.cut_next(&[usize::MAX, 1, 1, 1, 1, 1]);
    let mut waiting = remote.command(&["ledger", "verify"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(waiting.stderr.take().unwrap()).lines().map(Result::unwrap);
    let id = said.find_map(|line| Some(line.strip_prefix("job ")?.to_owned())).unwrap();
    let pressed = Command::new("kill").args(["-INT", &waiting.id().to_string()]).status().unwrap();
    assert!(pressed.success());
    assert_eq!(waiting.wait().unwrap().code(), Some(1));
    let told: Vec<_> = said.collect();
    assert!(told.iter().any(|line| line.contains(&format!("job show {id}"))), "{told:?}");
    until("the job is done", || {
        let job = site.json(&["job", "show", &id]);
        (job["state"] == "done" && job["ok"] == true).then_some(())
    });
    gateway.stop();
}
