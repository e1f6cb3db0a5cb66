//! `holdfast migrate copy`: a ledger moves from a file to a server with its keys, balances and answers, whole or not at
//! all, and only one of the two is served afterwards.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Child, Stdio};

use holdfast_tests::postgres::Database;
use holdfast_tests::{Account, Config, Gateway, Ran, Request, Site, request_key};

use crate::bodies::sim;
use crate::check::{check_completion, until};

/// A configuration with secrets of its own, which the copy keeps.
fn on_a_file(database: &Database) -> Config {
    database.configure(Config::simulated()).set("database", "url", "\"sqlite://holdfast.db\"")
}

/// A file with answered, refused, open and abandoned operations, and changes of administration.
fn filled(site: &Site, account: &Account) -> Vec<(String, String)> {
    let gateway = site.serve();
    let bodies = [
        sim("Hello there"),
        sim("A second question,\twith a tab and a \\ in it"),
        sim("A third one: ü"),
        sim("[[sim: fail-before]]"),
        sim("[[sim: refuse]]"),
        sim("[[sim: fail-after]]"),
    ];
    let keys: Vec<_> = bodies.into_iter().map(|body| (request_key(), body)).collect();
    for (key, body) in &keys {
        drop(gateway.complete(account, key, body));
    }
    gateway.stop();
    let _another = site.account("umlaut-ä", "EUR", "3.50");
    let _rotated = site.rotate(account, "1h");
    keys
}

/// A copy that has come to this step and stands there.
fn until_written(site: &Site, database: &Database, failpoint: &str) -> Child {
    let mut command = site.command_until(failpoint);
    command.args(["migrate", "copy", "--to", &database.url()]);
    let mut copying = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(copying.stderr.take().unwrap()).lines();
    let is_reached = |line: String| line.starts_with("failpoint ") && line.ends_with(" reached");
    assert!(lines.map(Result::unwrap).any(is_reached), "it ended before {failpoint}");
    copying
}

fn answers(gateway: &Gateway, account: &Account, keys: &[(String, String)]) -> Vec<String> {
    let answers = keys.iter().map(|(key, body)| gateway.complete(account, key, body));
    answers.map(|answer| format!("{} {}", answer.status, answer.text())).collect()
}

#[test]
fn postgres_a_copied_ledger_replays_its_keys_and_the_file_is_served_no_more() {
    let database = Database::migrated();
    let (site, account) = Site::funded(&on_a_file(&database));
    let keys = filled(&site, &account);
    let gateway = site.serve();
    let before = answers(&gateway, &account, &keys);
    gateway.stop();
    let balance = site.balance(&account);
    let verified = site.verify();

    let copied = site.json(&["migrate", "copy", "--to", &database.url()]);
    let rows = |table: &str| {
        let copied = copied.as_array().unwrap().iter().find(|it| it["table"] == table);
        copied.unwrap()["rows"].as_u64().unwrap()
    };
    assert_eq!((rows("wallets"), rows("operations")), (2, 6));

    let server = Site::configured(&database.configure(Config::simulated()));
    assert_eq!(server.balance(&account), balance);
    assert_eq!(server.verify()["operations"], verified["operations"]);
    let gateway = server.serve();
    assert_eq!(answers(&gateway, &account, &keys), before);
    assert_eq!(server.balance(&account), balance, "a replay costs nothing");
    let new = request_key();
    check_completion(&gateway.complete(&account, &new, &sim("Hello there")), &new, false);
    let _later = server.account("later", "USD", "1.00");
    gateway.stop();
    let _balanced = server.verify();

    let again = site.cli(&["migrate", "copy", "--to", &Database::migrated().url()]).failed(2);
    assert!(again.contains("was copied before"), "{again}");
    let refused = site.cli(&["wallet", "deposit", &account.wallet, "1.00"]).failed(1);
    assert!(refused.contains("was copied to a server"), "{refused}");
    assert_eq!(site.balance(&account), balance, "it is read, and not written");

    let refused = site.cli(&["serve"]).failed(1);
    assert!(refused.contains("was copied to a server") && refused.contains("--again"), "{refused}");
    let mut again = site.command();
    again.args(["serve", "--again"]);
    let gateway = site.start(again);
    assert_eq!(answers(&gateway, &account, &keys), before);
    gateway.stop();
    site.serve().stop();
}

#[test]
fn sqlite_a_copy_sends_the_password_of_the_environment() {
    let (site, _account) = Site::funded(&Config::simulated());
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://owner@{}/ledger?sslmode=disable", server.local_addr().unwrap());
    // A server that demands the password in plain text, and ends after it.
    let server = std::thread::spawn(move || {
        let (mut stream, _address) = server.accept().unwrap();
        let mut message = |has_tag: bool| {
            let mut head = vec![0; if has_tag { 5 } else { 4 }];
            stream.read_exact(&mut head).unwrap();
            let length = head.last_chunk::<4>().map(|it| u32::from_be_bytes(*it)).unwrap();
            let mut body = vec![0; usize::try_from(length).unwrap() - 4];
            stream.read_exact(&mut body).unwrap();
            stream.write_all(b"R\0\0\0\x08\0\0\0\x03").unwrap();
            body
        };
        drop(message(false));
        message(true)
    });
    let mut copy = site.command();
    copy.args(["migrate", "copy", "--to", &url]).env("PGPASSWORD", "s3cret");
    let refused = Ran::of(&mut copy).failed(1);
    assert_eq!(server.join().unwrap(), b"s3cret\0");
    assert!(!refused.contains("s3cret"), "{refused}");
}

#[test]
fn postgres_a_copy_is_refused_before_anything_is_written() {
    let database = Database::migrated();
    let (site, account) = Site::funded(&on_a_file(&database));
    let copy = |to: &str| site.cli(&["migrate", "copy", "--to", to]);
    let url = database.url();

    let secret = "postgres://holdfast:pass%zzword@";
    let refused = copy(secret).failed(2);
    assert!(refused.contains("--to") && !refused.contains("pass"), "{refused}");
    let refused = copy("sqlite://other.db").failed(2);
    assert!(refused.contains("is not a PostgreSQL server"), "{refused}");
    let refused = copy(&Database::make().url()).failed(1);
    assert!(refused.contains("migrate up"), "{refused}");
    let gateway = site.serve();
    let refused = copy(&url).failed(1);
    assert!(refused.contains("another `holdfast serve`"), "{refused}");
    gateway.stop();
    let own = Site::configured(&database.configure(Config::simulated()));
    let _other = own.account("other", "USD", "1.00");
    let refused = copy(&url).failed(2);
    assert!(refused.contains("has rows"), "{refused}");
    let refused = own.cli(&["migrate", "copy", "--to", &url]).failed(2);
    assert!(refused.contains("is not a SQLite file"), "{refused}");

    let gateway = site.serve();
    let key = request_key();
    check_completion(&gateway.complete(&account, &key, &sim("Hello there")), &key, false);
    gateway.stop();
}

#[test]
fn postgres_an_interrupted_copy_leaves_an_empty_database_and_begins_again() {
    let database = Database::migrated();
    let (site, account) = Site::funded(&on_a_file(&database));
    let keys = filled(&site, &account);
    let mut copying = until_written(&site, &database, "command_written:1");
    copying.kill().unwrap();
    let _killed = copying.wait().unwrap();

    let count = "SELECT count(*) FROM operations";
    assert_eq!(database.execute(count), ["0"]);
    site.serve().stop();
    let _copied = site.json(&["migrate", "copy", "--to", &database.url()]);
    assert_eq!(database.execute(count), [keys.len().to_string()]);
    let off = "SELECT count(*) FROM pg_trigger WHERE tgenabled = 'D' AND NOT tgisinternal";
    assert_eq!(database.execute(off), ["0"], "the triggers are on again");
}

#[test]
fn postgres_a_deposit_during_a_copy_is_refused_or_copied() {
    let database = Database::migrated();
    let (site, account) = Site::funded(&on_a_file(&database));
    let mut copying = until_written(&site, &database, "command_written:1");
    // The transaction of the copy keeps other writers out until it has ended.
    let refused = site.cli(&["wallet", "deposit", &account.wallet, "1.00"]).failed(1);
    assert!(!refused.is_empty());
    copying.kill().unwrap();
    let _killed = copying.wait().unwrap();
    let _deposited = site.json(&["wallet", "deposit", &account.wallet, "1.00"]);
    site.serve().stop();
}

#[test]
fn postgres_a_copy_that_dies_before_its_commit_leaves_the_file_marked_and_the_server_empty() {
    let database = Database::migrated();
    let (site, account) = Site::funded(&on_a_file(&database));
    let keys = filled(&site, &account);
    let mut copying = until_written(&site, &database, "command_committed:1");
    copying.kill().unwrap();
    let _killed = copying.wait().unwrap();
    assert_eq!(database.execute("SELECT count(*) FROM operations"), ["0"]);
    let refused = site.cli(&["serve"]).failed(1);
    assert!(refused.contains("--again"), "{refused}");
    let mut again = site.command();
    again.args(["serve", "--again"]);
    site.start(again).stop();
    let _copied = site.json(&["migrate", "copy", "--to", &database.url()]);
    let count = "SELECT count(*) FROM operations";
    assert_eq!(database.execute(count), [keys.len().to_string()]);
}

#[test]
fn postgres_a_copied_operation_that_ran_is_reaped_on_the_server() {
    let database = Database::migrated();
    let (site, account) = Site::funded(&on_a_file(&database));
    let gateway = site.serve_until("answered:1");
    let key = request_key();
    let request = Request::completion(&account.key, &key, sim("Hello there"));
    let _cut = request.begin(gateway.address());
    until("answered", || gateway.is_stopped().then_some(()));
    gateway.kill();
    let _copied = site.json(&["migrate", "copy", "--to", &database.url()]);
    assert_eq!(database.execute("SELECT count(*) FROM running"), ["1"]);
}
