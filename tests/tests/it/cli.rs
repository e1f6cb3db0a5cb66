//! The command line: what each command does, how its JSON looks, and how it fails.

use holdfast_tests::config::SIM;
use holdfast_tests::site::text;
use holdfast_tests::{Config, Gate, Reply, Request, Site, Upstream, database, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::bodies::{acme, sim};
use crate::check::{check_completion, error, members};

#[test]
fn a_wallet_is_created_funded_and_shown() {
    let site = Site::configured(&Config::simulated());
    drop(site.cli(&["migrate", "up"]).ok());
    let wallet = site.json(&["wallet", "create", "acme", "--currency", "EUR"]);
    let id = text(&wallet, "id");
    let with = |available: i64| {
        json!({
            "id": id, "name": "acme", "currency": "EUR", "available_micros": available,
            "held_micros": 0, "external_id": null, "low_balance_micros": null,
            "key_spend_micros": null, "key_spend_window": null, "edited": 0,
            "created_at": wallet["created_at"], "state": "active", "suspended_at": null,
            "closed_at": null,
        })
    };
    assert_eq!(wallet, with(0));
    let deposit = site.json(&["wallet", "deposit", "acme", "10.000001"]);
    assert!(Uuid::parse_str(&text(&deposit, "id")).is_ok());
    let posting = json!({
        "id": deposit["id"], "wallet_id": id, "kind": "deposit", "amount_micros": 10_000_001,
        "operation_id": null, "reason": null, "note": null, "source": "cli",
        "external_reference": deposit["id"], "actor": "local",
        "created_at": deposit["created_at"], "wallet": with(10_000_001), "replayed": false,
    });
    assert_eq!(deposit, posting);
    for name in [id.as_str(), "acme"] {
        assert_eq!(site.json(&["wallet", "show", name]), with(10_000_001));
    }
    let other = site.json(&["wallet", "create", "other"]);
    assert_eq!(other["currency"], "USD");
    assert_eq!(site.json(&["wallet", "list"]), json!([with(10_000_001), other]));
    let ledger = site.json(&["wallet", "ledger", "acme"]);
    let entry = json!({
        "at": ledger["entries"][0]["at"], "kind": "deposit", "debit": "funding",
        "credit": "available", "amount_micros": 10_000_001, "operation_id": null,
        "generation": null, "posting_id": deposit["id"], "reason": null,
        "available_micros": 10_000_001, "held_micros": 0,
    });
    let statement = json!({
        "wallet_id": id, "currency": "EUR", "from": null, "to": null, "omitted_entries": 0,
        "opening": {"available_micros": 0, "held_micros": 0}, "entries": [entry],
        "closing": {"available_micros": 10_000_001, "held_micros": 0},
    });
    assert_eq!(ledger, statement);
    let shown = site.cli(&["wallet", "show", "acme"]).ok();
    assert!(shown.contains("10.000001") && shown.contains("EUR"), "{shown}");
}

#[test]
fn a_deposit_with_a_known_key_is_a_replay_or_a_conflict() {
    let (site, account) = Site::funded(&Config::simulated());
    let key = request_key();
    let deposit =
        |amount: &str| ["wallet", "deposit", "main", amount, "--key", &key].map(str::to_owned);
    let json = |amount: &str| {
        let arguments = deposit(amount);
        site.json(&arguments.each_ref().map(String::as_str))
    };
    let first = json("2.50");
    assert_eq!(
        (&first["id"], &first["replayed"]),
        (&Value::from(key.as_str()), &Value::from(false))
    );
    assert_eq!(json("2.5")["replayed"], true);
    let conflict = site.cli(&deposit("2.51").each_ref().map(String::as_str)).failed(1);
    assert!(conflict.contains(&key), "{conflict}");
    let _wallet = site.json(&["wallet", "create", "other"]);
    let elsewhere = site.cli(&["wallet", "deposit", "other", "2.50", "--key", &key]).failed(1);
    assert!(elsewhere.contains(&key), "{elsewhere}");
    assert_eq!(site.balance(&account), (12_500_000, 0));
    site.verify();
}

#[test]
fn amounts_that_are_none_move_nothing() {
    let (site, account) = Site::funded(&Config::simulated());
    for bad in ["0", "0.00", "-1", "1.0000001", "1,5", "1e3", "ten", "", "9223372036854.775808"] {
        let _said = site.cli(&["wallet", "deposit", "main", bad]).failed(2);
    }
    let _said = site.cli(&["wallet", "deposit", "main", "9223372036854.775807"]).failed(1);
    assert_eq!(site.balance(&account), (10_000_000, 0));
    site.verify();
}

#[test]
fn a_key_that_is_made_is_told_before_the_posting_is_offered() {
    let (site, account) = Site::funded(&Config::simulated());
    // More than a wallet can hold: the offer does not succeed.
    let said = site.cli(&["wallet", "deposit", "main", "9223372036854.775807"]).failed(1);
    let key = said.lines().find_map(|line| line.strip_prefix("key ")).unwrap_or_default();
    assert!(Uuid::parse_str(key).is_ok(), "{said}");
    assert!(said.find("key ") < said.find("nothing was deposited"), "{said}");
    let deposit = site.json(&["wallet", "deposit", "main", "1.00", "--key", key]);
    assert_eq!((&deposit["id"], &deposit["replayed"]), (&json!(key), &json!(false)));
    assert_eq!(site.balance(&account), (11_000_000, 0));
}

#[test]
fn what_is_not_there_is_not_made_up() {
    let (site, account) = Site::funded(&Config::simulated());
    let nobody = request_key();
    for command in [
        &["wallet", "show", "nobody"][..],
        &["wallet", "show", &nobody],
        &["wallet", "deposit", "nobody", "1.00"],
        &["wallet", "ledger", "nobody"],
        &["wallet", "create", "main"],
        &["key", "issue", "--wallet", "nobody"],
        &["key", "issue", "--wallet", "main", "--name", "main-key"],
        &["key", "revoke", "nobody", "--yes"],
        &["operation", "show", &nobody],
        &["operation", "show", "--api-key", "main-key", &nobody],
        &["operation", "show", "--api-key", "nobody", &nobody],
    ] {
        let _said = site.cli(command).failed(1);
    }
    for command in [
        &["nonsense"][..],
        &["wallet"],
        &["wallet", "create", "x", "--currency", "usd"],
        &["key", "issue"],
        &["operation", "show", "seven"],
        &["serve", "--port", "1"],
    ] {
        let _said = site.cli(command).failed(2);
    }
    assert_eq!(site.balance(&account), (10_000_000, 0));
    assert_eq!(site.json(&["wallet", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_key_is_shown_whole_once() {
    let (site, account) = Site::funded(&Config::simulated());
    let issued = site.json(&["key", "issue", "--wallet", "main", "--name", "laptop"]);
    let listed = [
        "balance",
        "concurrency",
        "created_at",
        "edited",
        "ends_at",
        "expires_at",
        "external_id",
        "hide_balance",
        "id",
        "limits",
        "models",
        "name",
        "requests_per_minute",
        "revoked_at",
        "spend_micros",
        "spend_window",
        "suspended_at",
        "tokens_per_minute",
        "usage",
        "wallet_id",
    ];
    let mut with_key = [&listed[..], &["key"]].concat();
    with_key.sort_unstable();
    assert_eq!(members(&issued), with_key);
    assert_eq!(issued["wallet_id"], account.wallet.as_str());
    assert_eq!(issued["name"], "laptop");
    let key = text(&issued, "key");
    let parts: Vec<_> = key.split('_').collect();
    assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [3, 22, 43]);

    let list = site.json(&["key", "list"]);
    let names: Vec<_> = list.as_array().unwrap().iter().map(|key| &key["name"]).collect();
    assert_eq!(names, ["main-key", "laptop"]);
    let mut with_credentials = [&listed[..], &["credentials"]].concat();
    with_credentials.sort_unstable();
    assert_eq!(members(&list[1]), with_credentials);
    let credential = &list[1]["credentials"][0];
    assert_eq!(members(credential), ["created_at", "ends_at", "id"]);
    assert_eq!(credential["id"], format!("hfk_{}", parts[1]), "what its bearer's text begins with");
    assert_eq!(list[1]["revoked_at"], Value::Null);
    assert!(!list.to_string().contains(parts[2]));

    let revoked = site.json(&["key", "revoke", "laptop", "--yes"]);
    assert!(revoked["revoked_at"].is_string(), "{revoked}");
    let again = site.json(&["key", "revoke", "laptop", "--yes"]);
    assert_eq!(again, revoked, "a second time changes nothing");
    assert_eq!(site.json(&["key", "list"])[1]["credentials"], json!([]));
    let taken = site.cli(&["key", "issue", "--wallet", "main", "--name", "laptop"]).failed(1);
    assert!(taken.contains("it is revoked, and its name stays taken"), "{taken}");
}

#[test]
fn an_operation_is_shown_by_each_of_its_names() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let key = request_key();
    let answer = gateway.complete(&account, &key, &sim("Hello there"));
    let completion = text(&check_completion(&answer, &key, false), "id");
    let shown = site.json(&["operation", "show", "--api-key", "main-key", &key]);
    let id = text(&shown, "id");
    assert_eq!(site.json(&["operation", "show", &id]), shown);
    assert_eq!(site.json(&["operation", "show", &completion]), shown);
    let caller = gateway.get(&account, &format!("/v1/operations/{key}")).json();
    let mut expected = caller;
    let operator = expected.as_object_mut().unwrap();
    operator.remove("result");
    operator.remove("result_state");
    operator.insert("node".to_owned(), json!("embedded"));
    operator.insert("wallet_id".to_owned(), account.wallet.as_str().into());
    operator.insert("currency".to_owned(), json!("USD"));
    let own = json!({"refunded_micros": 0, "provider_cost_micros": null, "cancel_asked": false, "usage_reasons": []});
    operator.extend(own.as_object().unwrap().clone());
    assert_eq!(shown["price_lines"].as_array().unwrap().len(), 3, "input, output, the request");
    operator.insert("price_lines".to_owned(), shown["price_lines"].clone());
    let attempt = &shown["attempts"][0];
    assert_eq!(members(attempt), ["class", "latency_ms", "may_be_billed", "reason", "route"]);
    assert_eq!(attempt["route"], "sim/sim-1");
    assert_eq!(attempt["class"], "finished");
    operator.insert("attempts".to_owned(), json!([attempt]));
    assert_eq!(shown, expected);
    let list = site.json(&["operation", "list"]);
    assert_eq!(list.as_array().unwrap().len(), 1);
    assert_eq!(list[0]["id"], id.as_str());
    assert_eq!(site.json(&["operation", "list", "--stale"]), json!([]));
    assert_eq!(list[0]["model"], SIM);

    let _refund = site.json(&["wallet", "refund", &completion, "0.000003"]);
    assert_eq!(site.json(&["operation", "list"])[0]["refunded_micros"], 3);
    let text = site.cli(&["operation", "show", &id]).ok();
    for field in ["wallet_id", "contract", "hold_id", "usage_id"] {
        let line = format!("{field}\t{}\n", shown[field].to_string().trim_matches('"'));
        assert!(text.contains(&line), "{line}: {text}");
    }
    assert!(text.contains("refunded\t0.000003 USD\n"), "{text}");
    assert!(text.contains("shortfall\t0.00 USD\n"), "{text}");
    let other = request_key();
    check_completion(&gateway.complete(&account, &other, &sim("Hello there")), &other, false);
    let cut = site.cli(&["operation", "list", "--limit", "1"]);
    assert!(cut.stderr.contains("there are more"), "{cut:?}");
    let row = cut.ok();
    assert!(row.contains("\tmain-key\t") && row.contains("\tUSD\t"), "{row}");
    assert_eq!(site.cli(&["operation", "list", "--limit", "2"]).stderr, "");
}

#[test]
fn an_operation_that_is_not_there_is_told_by_what_was_typed() {
    let (site, _account) = Site::funded(&Config::simulated());
    let key = request_key();
    let said = site.cli(&["operation", "show", &key]).failed(1);
    assert!(said.contains(&key) && said.contains("--api-key"), "{said}");
    let said = site.cli(&["operation", "show", "--api-key", "main-key", &key]).failed(1);
    assert!(said.contains(&key) && said.contains("API key main-key"), "{said}");
    for (command, advice) in [
        (&["operation", "show", "chatcmpl_x"][..], "32 hexadecimal digits"),
        (&["wallet", "refund", "chatcmpl_x", "1"], "32 hexadecimal digits"),
        (&["wallet", "deposit", "main", "1", "--key", "inv-1"], "uuidgen"),
        (&["wallet", "deposit", "main", "99999999999999"], "too large for an amount: at most"),
    ] {
        let said = site.cli(command).failed(2);
        assert!(said.contains(advice), "{said}");
    }
}

#[test]
fn what_a_dead_process_left_is_brought_to_rest_without_a_live_one() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let _waiting = request.begin(gateway.address());
    upstream.wait_for(1);
    gateway.kill();
    assert_ne!(site.balance(&account).1, 0);
    let show = ["operation", "show", "--api-key", "main-key", key.as_str()];
    assert_eq!(site.json(&show)["status"], "leased");

    let _reconciled = site.json(&["operation", "reconcile"]);
    assert_eq!(site.json(&show)["status"], "abandoned");
    assert_eq!(site.balance(&account), (10_000_000, 0));
    site.verify();
    assert_eq!(site.json(&["operation", "list", "--stale"]), json!([]));
    let gateway = site.serve();
    let told = gateway.send(&request);
    error(Code::OutcomeUnknown).echo(&key).replayed(true).bound().check(&told);
    gate.open();
}

#[test]
fn reconciling_beside_a_live_process_leaves_its_work_alone() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(1);
    let _ran = site.cli(&["operation", "reconcile"]);
    let show = ["operation", "show", "--api-key", "main-key", key.as_str()];
    assert_eq!(site.json(&show)["status"], "leased");
    gate.open();
    check_completion(&running.answer(), &key, false);
    site.verify();
}

#[test]
fn sqlite_rows_that_were_tampered_with_do_not_verify() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let key = request_key();
    check_completion(&gateway.complete(&account, &key, &sim("Hello there")), &key, false);
    gateway.stop();
    let verified = site.verify();
    assert_eq!(
        members(&verified),
        ["mismatches", "ok", "operations", "trail", "transfers", "wallets"]
    );
    assert_eq!((&verified["wallets"], &verified["operations"]), (&json!(1), &json!(1)));

    for change in ["available = available + 1", "held = held + 1"] {
        drop(database::execute(&site.database(), &format!("UPDATE wallets SET {change}")));
        let ran = site.cli(&["ledger", "verify", "--json"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let said: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(said["ok"], false);
        let mismatch = &said["mismatches"][0];
        assert_eq!(mismatch["wallet_id"], account.wallet.as_str(), "{said}");
        let back = change.replace('+', "-");
        drop(database::execute(&site.database(), &format!("UPDATE wallets SET {back}")));
        site.verify();
    }
}

#[test]
fn migrations_are_listed_applied_and_taken_back() {
    let site = Site::configured(&Config::simulated());
    let status = site.json(&["migrate", "status"]);
    let steps = status.as_array().unwrap();
    assert!(!steps.is_empty() && steps.iter().all(|step| step["applied_at"].is_null()), "{status}");
    assert_eq!(members(&steps[0]), ["applied_at", "name", "version"]);
    let said = site.cli(&["wallet", "list"]).failed(1);
    let missing = "there is no database at holdfast-data/holdfast.db: run `holdfast migrate up`";
    assert_eq!(said, format!("error: {missing}\n"));
    let said = site.cli(&["migrate", "down"]).failed(1);
    assert_eq!(said, format!("error: nothing was taken back: {missing}\n"));
    assert!(!site.path("holdfast-data").exists(), "nothing was made");

    assert_eq!(site.json(&["migrate", "up"]).as_array().unwrap().len(), steps.len());
    assert_eq!(site.json(&["migrate", "up"]), json!([]), "nothing is missing any more");
    let status = site.json(&["migrate", "status"]);
    assert!(status.as_array().unwrap().iter().all(|step| step["applied_at"].is_string()));
    assert_eq!(site.json(&["wallet", "list"]), json!([]));

    let taken = site.json(&["migrate", "down"]);
    assert_eq!(taken["version"], steps.len());
    let _said = site.cli(&["wallet", "list"]).failed(1);
    let _up = site.json(&["migrate", "up"]);
    assert_eq!(site.json(&["wallet", "list"]), json!([]));
}

#[test]
fn a_book_is_deleted_only_when_that_is_asked_for() {
    let (site, account) = Site::funded(&Config::simulated());
    let is_applied =
        |version: usize| site.json(&["migrate", "status"])[version - 1]["applied_at"].is_string();
    // The last steps have made nothing that is in use.
    while is_applied(6) {
        let _taken = site.json(&["migrate", "down"]);
    }
    let said = site.cli(&["migrate", "down"]).failed(2);
    assert!(said.contains("delete 2 events"), "{said}");
    assert_eq!(site.json(&["migrate", "down", "--yes"])["version"], 5);
    while is_applied(3) {
        let _taken = site.json(&["migrate", "down"]);
    }
    let said = site.cli(&["migrate", "down"]).failed(2);
    assert!(said.contains("delete 0 admin keys and 3 rows of the audit log"), "{said}");
    assert_eq!(site.json(&["migrate", "down", "--yes"])["version"], 2);
    let said = site.cli(&["migrate", "down"]).failed(2);
    assert!(said.contains("delete 1 wallet, 1 API key, 0 operations and 1 posting"), "{said}");
    assert!(said.contains("--yes"), "{said}");
    let _up = site.json(&["migrate", "up"]);
    assert_eq!(site.balance(&account), (10_000_000, 0));
    while is_applied(2) {
        let _taken = site.json(&["migrate", "down", "--yes"]);
    }
    let taken = site.json(&["migrate", "down", "--yes"]);
    assert_eq!(taken["version"], 1);
    let _up = site.json(&["migrate", "up"]);
    assert_eq!(site.json(&["wallet", "list"]), json!([]));
}

#[test]
fn nothing_is_migrated_under_a_process_that_serves() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let _said = site.cli(&["migrate", "down"]).failed(1);
    assert_eq!(site.balance(&account), (10_000_000, 0));
    gateway.stop();
}

#[test]
fn sqlite_file_of_a_newer_version_is_left_alone() {
    let (site, account) = Site::funded(&Config::simulated());
    let newer = "INSERT INTO holdfast_migrations SELECT 999, 'newer', digest, applied_at FROM \
                 holdfast_migrations LIMIT 1";
    drop(database::execute(&site.database(), newer));
    for command in [
        &["serve"][..],
        &["migrate", "up"],
        &["migrate", "down"],
        &["wallet", "show", "main"],
        &["ledger", "verify"],
    ] {
        let said = site.cli(command).failed(1);
        assert!(said.contains("999"), "{said}");
    }
    let older = "DELETE FROM holdfast_migrations WHERE version = 999";
    drop(database::execute(&site.database(), older));
    assert_eq!(site.balance(&account), (10_000_000, 0));
}

#[test]
fn sqlite_file_of_somebody_else_is_left_alone() {
    let site = Site::configured(&Config::simulated());
    std::fs::create_dir(site.path("holdfast-data")).unwrap();
    drop(database::execute(&site.database(), "CREATE TABLE wallets (theirs TEXT)"));
    drop(database::execute(&site.database(), "INSERT INTO wallets VALUES ('all their money')"));
    for command in [&["serve"][..], &["migrate", "up"], &["wallet", "list"], &["ledger", "verify"]]
    {
        let _said = site.cli(command).failed(1);
    }
    let rows = database::execute(&site.database(), "SELECT * FROM wallets");
    assert_eq!(rows, ["all their money"]);
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let site = Site::configured(&Config::simulated());
    std::fs::create_dir(site.path("holdfast-data")).unwrap();
    let text = "a letter to a friend, longer than the head of a database file. ".repeat(100);
    site.write("holdfast-data/holdfast.db", &text);
    for command in [&["serve"][..], &["migrate", "up"], &["wallet", "list"]] {
        let _said = site.cli(command).failed(1);
    }
    assert_eq!(std::fs::read_to_string(site.database()).unwrap(), text);
}

#[test]
fn the_command_line_works_beside_a_busy_gateway() {
    const DEPOSITS: i64 = 12;
    const CLIENTS: i64 = 4;
    const REQUESTS: i64 = 40;
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    std::thread::scope(|scope| {
        for _client in 0..CLIENTS {
            scope.spawn(|| {
                for _request in 0..REQUESTS {
                    let key = request_key();
                    let answer = gateway.complete(&account, &key, &sim("Hello there"));
                    check_completion(&answer, &key, false);
                }
            });
        }
        for _deposit in 0..DEPOSITS {
            let _posting = site.json(&["wallet", "deposit", "main", "0.01"]);
            site.verify();
        }
    });
    let expected = 10_000_000 + DEPOSITS * 10_000 - CLIENTS * REQUESTS * 37;
    assert_eq!(site.balance(&account), (expected, 0));
    site.verify();
}

#[test]
fn one_deposit_offered_many_times_at_once_is_made_once() {
    const OFFERS: usize = 8;
    let (site, account) = Site::funded(&Config::simulated());
    let key = request_key();
    let replayed = std::thread::scope(|scope| {
        let offer = || site.json(&["wallet", "deposit", "main", "1.00", "--key", &key]);
        let offers: Vec<_> = (0..OFFERS).map(|_| scope.spawn(offer)).collect();
        let postings = offers.into_iter().map(|offer| offer.join().unwrap());
        postings.filter(|posting| posting["replayed"] == true).count()
    });
    assert_eq!(replayed, OFFERS - 1);
    assert_eq!(site.balance(&account), (11_000_000, 0));
    site.verify();
}
