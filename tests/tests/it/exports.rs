//! Files of whole periods, by the real binary: more rows than a page of an export has, the row that closes each file,
//! and what becomes of one that is interrupted.

use std::time::Duration;

use holdfast_tests::proxy::Proxy;
use holdfast_tests::{Config, Gateway, Request, Site, database};
use serde_json::Value;

use crate::check::until;
use crate::console_scale::book::{FILE, fill, id};
use crate::remote::Remote;

/// Operations of the book: its first wallet has every second one, each with three entries at most.
const OPERATIONS: i64 = 16_000;
const PATIENCE: Duration = Duration::from_secs(120);

/// A gateway on a book of many operations, behind the proxy if there is one.
fn filled(proxy: Option<&Proxy>) -> (Site, Gateway) {
    let site = Site::empty_for(PATIENCE).with_env("HOLDFAST_CONFIG", "holdfast.toml");
    let config = Config::simulated();
    site.configure(&match proxy {
        Some(proxy) => {
            let url = format!("\"http://localhost:{}\"", proxy.address().port());
            config.set("admin", "url", &url)
        }
        None => config,
    });
    drop(site.cli(&["migrate", "up"]).ok());
    // A first start pins the price that the rows are at.
    site.serve().stop();
    let file = site.database();
    fill(&FILE, OPERATIONS, &|sql| drop(database::execute_within(&file, sql, PATIENCE)));
    let gateway = site.serve();
    if let Some(proxy) = proxy {
        proxy.turn_to(gateway.admin_address());
    }
    (site, gateway)
}

fn number(site: &Site, sql: &str) -> i64 {
    database::execute(&site.database(), sql)[0].parse().unwrap()
}

/// A decimal amount in micros.
fn micros(amount: &str) -> i64 {
    let (units, decimals) = amount.split_once('.').unwrap();
    let whole = format!("{units}{decimals:0<6}");
    whole.parse().unwrap()
}

#[test]
fn files_have_every_row_and_close_with_their_number() {
    let (site, gateway) = filled(None);
    let remote = Remote::owner(&site, &gateway);
    // The accountant's file, over the network into a file, and with direct database access to standard output.
    drop(remote.cli(&["ledger", "export", "--output", "all.csv"]).ok());
    let file = std::fs::read_to_string(site.path("all.csv")).unwrap();
    let lines: Vec<_> = file.lines().collect();
    let rows = &lines[1..lines.len() - 1];
    let charges = "SELECT count(*) FROM transfers WHERE leg & 7 = 1";
    let postings = "SELECT count(*) FROM postings";
    let expected = number(&site, charges) + number(&site, postings);
    assert_eq!(i64::try_from(rows.len()).unwrap(), expected);
    let closing: Vec<_> = lines[lines.len() - 1].split(',').collect();
    assert_eq!((closing[2], closing[18]), ("closing", expected.to_string().as_str()));
    let of_charges = rows.iter().filter(|row| row.contains(",charge,"));
    let sum: i64 = of_charges.map(|row| micros(row.split(',').nth(6).unwrap())).sum();
    assert_eq!(-sum, number(&site, "SELECT sum(charge) FROM operations"));
    let local = site.cli(&["ledger", "export"]).ok();
    let own: Vec<_> = local.lines().collect();
    assert_eq!(own[..own.len() - 1], lines[..lines.len() - 1], "both ways have the same rows");
    // Two commands do not write one file. A command that was killed has left one, which the next writes anew.
    site.write("all.csv.partial", "another");
    let other = std::fs::File::open(site.path("all.csv.partial")).unwrap();
    other.lock().unwrap();
    let refused = remote.cli(&["ledger", "export", "--output", "all.csv"]).failed(1);
    assert!(refused.contains("all.csv.partial is being written by another command"), "{refused}");
    assert_eq!(std::fs::read_to_string(site.path("all.csv")).unwrap(), file);
    drop(other);
    drop(remote.cli(&["ledger", "export", "--output", "all.csv"]).ok());
    let again = std::fs::read_to_string(site.path("all.csv")).unwrap();
    assert!(again.lines().take(lines.len() - 1).eq(lines[..lines.len() - 1].iter().copied()));
    assert!(!site.path("all.csv.partial").exists());
    let refused = remote.cli(&["ledger", "export", "--output", "/dev/null"]).failed(1);
    assert!(refused.contains("not a regular file"), "{refused}");
    let of_one =
        remote.cli(&["ledger", "export", "--wallet", "wallet-7", "--format", "jsonl"]).ok();
    let of_one: Vec<Value> = of_one.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let (closing, of_one) = of_one.split_last().unwrap();
    assert_eq!(closing["rows"], of_one.len());
    assert!(of_one.iter().all(|row| row["wallet"] == "wallet-7"), "{of_one:?}");
    statements(&site, &remote, &gateway);
    usage(&site, &remote);
    gateway.stop();
}

/// Usage of more rows than JSON may have: as CSV and as JSON lines, over the network and with direct database access.
fn usage(site: &Site, remote: &Remote<'_>) {
    let by = ["usage", "report", "--by", "hour,key"];
    let of = |more: &[&'static str]| [&by[..], more].concat();
    drop(remote.cli(&of(&["--output", "usage.csv"])).ok());
    let file = std::fs::read_to_string(site.path("usage.csv")).unwrap();
    let lines: Vec<Vec<_>> = file.lines().map(|line| line.split(',').collect()).collect();
    let charge_at = lines[0].iter().position(|name| *name == "charge_micros").unwrap();
    let (closing, rows) = lines[1..].split_last().unwrap();
    assert_eq!(
        (closing[0], *closing.last().unwrap()),
        ("closing", rows.len().to_string().as_str())
    );
    let groups = "SELECT count(*) FROM (SELECT 1 FROM operations WHERE finished_at IS NOT NULL
        GROUP BY finished_at / 3600000000, api_key_id)";
    assert_eq!(i64::try_from(rows.len()).unwrap(), number(site, groups));
    let sum: i64 = rows.iter().map(|row| row[charge_at].parse::<i64>().unwrap()).sum();
    // Charges of all hours are those of the settlements.
    assert_eq!(sum, number(site, "SELECT sum(amount) FROM transfers WHERE leg & 7 = 1"));
    let own = site.cli(&of(&["--format", "csv"])).ok();
    assert!(own == file, "both ways have the same rows");
    let lines = remote.cli(&of(&["--format", "jsonl"])).ok();
    let lines: Vec<Value> = lines.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let (closing, lines) = lines.split_last().unwrap();
    assert_eq!((&closing["kind"], &closing["rows"]), (&"closing".into(), &rows.len().into()));
    assert_eq!(lines.iter().map(|row| row["charge_micros"].as_i64().unwrap()).sum::<i64>(), sum);
}

/// The statement of more rows than a page has, whose opening is that of its date.
fn statements(site: &Site, remote: &Remote<'_>, gateway: &Gateway) {
    drop(remote.cli(&["wallet", "ledger", "wallet-0", "--csv", "--output", "whole.csv"]).ok());
    let whole = std::fs::read_to_string(site.path("whole.csv")).unwrap();
    let whole: Vec<_> = whole.lines().collect();
    assert!(whole.len() > 20_000, "{} rows", whole.len());
    let cell = |row: &str, at: usize| row.split(',').nth(at).unwrap().to_owned();
    let last = whole[whole.len() - 1];
    assert_eq!(
        (cell(last, 1), cell(last, 13)),
        ("closing".to_owned(), (whole.len() - 3).to_string())
    );
    assert_eq!(
        cell(last, 5),
        number(site, "SELECT available FROM wallets WHERE name = 'wallet-0'").to_string()
    );
    // From an entry in the middle on: the opening is what the entry before it left.
    let from = cell(whole[11_000], 0);
    let at = whole.iter().skip(2).position(|row| cell(row, 0) == from).unwrap() + 2;
    let part = remote.cli(&["wallet", "ledger", "wallet-0", "--from", &from, "--csv"]).ok();
    let part: Vec<_> = part.lines().collect();
    assert_eq!((cell(part[1], 0), cell(part[1], 1)), (from, "opening".to_owned()));
    assert_eq!(
        (cell(part[1], 5), cell(part[1], 6)),
        (cell(whole[at - 1], 5), cell(whole[at - 1], 6))
    );
    assert_eq!(part[2..part.len() - 1], whole[at..whole.len() - 1]);
    // Its name has the wallet and the period.
    let key = site.json(&["admin-key", "issue", "--name", "reader", "--role", "auditor"]);
    let path = format!(
        "/admin/v1/wallets/{}/statement?format=csv&from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z",
        id('w', 0)
    );
    let answer = Request::get(&path)
        .bearer(key["key"].as_str().unwrap())
        .host(&format!("localhost:{}", gateway.admin_address().port()))
        .header("Connection", "close")
        .begin(gateway.admin_address())
        .rest();
    let name = "content-disposition: attachment; filename=\"statement-wallet-0-2026-01.csv\"";
    assert!(answer.contains(name), "{answer}");
}

#[test]
fn an_interrupted_export_leaves_no_file_and_fails() {
    let proxy = Proxy::ahead();
    let (site, gateway) = filled(Some(&proxy));
    let url = format!("http://localhost:{}", proxy.address().port());
    let remote = Remote::owner(&site, &gateway).at(url);
    proxy.cut_next(&[400_000]);
    let said = remote.cli(&["ledger", "export", "--output", "cut.csv"]).failed(1);
    assert!(said.contains("the export was interrupted, and cut.csv was not written"), "{said}");
    assert!(!site.path("cut.csv").exists() && !site.path("cut.csv.partial").exists());
    // A file that is there stays as it was, and its next one takes its place.
    site.write("cut.csv", "yesterday");
    proxy.cut_next(&[400_000]);
    drop(remote.cli(&["ledger", "export", "--output", "cut.csv"]).failed(1));
    assert_eq!(std::fs::read_to_string(site.path("cut.csv")).unwrap(), "yesterday");
    assert!(!site.path("cut.csv.partial").exists());
    proxy.cut_next(&[400_000]);
    let ran = remote.cli(&["ledger", "export"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("the file is incomplete"), "{}", ran.stderr);
    assert!(ran.stdout.len() > 100_000 && !ran.stdout.contains("closing"));
    drop(remote.cli(&["ledger", "export", "--output", "cut.csv"]).ok());
    assert!(std::fs::read_to_string(site.path("cut.csv")).unwrap().contains("closing"));
    gateway.stop();
}

#[test]
fn a_third_export_is_refused_until_a_reader_is_gone_and_an_actor_has_one() {
    let (site, gateway) = filled(None);
    let remote = Remote::owner(&site, &gateway);
    let keys = ["one", "other"].map(|name| {
        let key = site.json(&["admin-key", "issue", "--name", name, "--role", "auditor"]);
        key["key"].as_str().unwrap().to_owned()
    });
    let request = |key: &str, path: &str| {
        Request::get(path)
            .bearer(key)
            .host(&format!("localhost:{}", gateway.admin_address().port()))
    };
    let statement = format!("/admin/v1/wallets/{}/statement?format=jsonl", id('w', 0));
    // Neither of them reads: each export waits for its client.
    let begin = |key: &String| {
        let mut client = request(key, &statement).begin(gateway.admin_address());
        assert!(!client.read(64).is_empty());
        client
    };
    let first = begin(&keys[0]);
    let refused = request(&keys[0], "/admin/v1/ledger").send(gateway.admin_address());
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("10")), "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "too_many_exports");
    let said = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(said.contains("admin_key:") && said.contains("one at once"), "{said}");
    let second = begin(&keys[1]);
    let said = remote.cli(&["usage", "report", "--output", "third.csv"]).failed(1);
    assert!(said.contains("2 exports are in progress"), "{said}");
    assert!(!site.path("third.csv").exists() && !site.path("third.csv.partial").exists());
    first.hang_up();
    until("a place is free", || (remote.cli(&["ledger", "export"]).code == Some(0)).then_some(()));
    // The listener ends an answer of which nothing is taken, and its place is free without its client.
    let freed = request(&keys[1], "/admin/v1/ledger?to=2026-01-01T00:00:00Z");
    let freed = freed.header("Connection", "close");
    until("the place of a reader that takes nothing is free", || {
        let answer = freed.begin(gateway.admin_address()).rest();
        answer.starts_with("HTTP/1.1 200").then_some(())
    });
    drop(second);
    gateway.stop();
}

#[test]
fn a_failure_on_the_way_ends_the_connection_and_not_the_file() {
    let (site, gateway) = filled(None);
    let key = site.json(&["admin-key", "issue", "--name", "reader", "--role", "auditor"]);
    let request = Request::get(&format!("/admin/v1/wallets/{}/statement?format=csv", id('w', 0)))
        .bearer(key["key"].as_str().unwrap())
        .host(&format!("localhost:{}", gateway.admin_address().port()));
    let mut client = request.begin(gateway.admin_address());
    let head = String::from_utf8(client.read(512)).unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    // The next page finds its table gone.
    let file = site.database();
    drop(database::execute_within(&file, "ALTER TABLE transfers RENAME TO moved", PATIENCE));
    let rest = client.rest();
    assert!(rest.contains(",hold,"), "{} bytes", rest.len());
    assert!(!rest.contains("closing") && !rest.ends_with("0\r\n\r\n"), "{} bytes", rest.len());
    drop(database::execute_within(&file, "ALTER TABLE moved RENAME TO transfers", PATIENCE));
    assert!(site.logs().contains("an export was interrupted"));
    gateway.stop();
}
