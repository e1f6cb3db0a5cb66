//! `holdfast` alone in an empty folder: no configuration, no account anywhere, and it works.

use std::process::Command;

use holdfast_tests::{Account, Gateway, Ran, Site};
use serde_json::Value;

use crate::check::{charge, check_completion, check_json, content};

/// What the first start puts into its wallet.
const GIFT: i64 = 10_000_000;

pub(crate) fn empty() -> Site {
    Site::empty().with_env("HOLDFAST_LISTEN", "127.0.0.1:0")
}

/// `holdfast` without any argument.
pub(crate) fn start(site: &Site) -> Gateway {
    site.start(site.command())
}

/// The key that was printed, in whatever line.
pub(crate) fn printed_key(gateway: &Gateway) -> Option<String> {
    let printed = gateway.printed();
    let at = printed.find("hfk_")?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    Some(printed[at..].chars().take_while(|c| is_part(*c)).collect())
}

/// The `curl` line exactly as it was printed.
fn printed_curl(gateway: &Gateway) -> String {
    format!("curl {}", gateway.printed_after("curl "))
}

/// Runs what a user would paste: head and body of the answer, and its body alone.
fn paste(site: &Site, line: &str) -> (String, Value) {
    let pasted = format!("{line} --silent --show-error --include");
    let shell = || {
        let mut shell = Command::new("sh");
        shell.current_dir(site.folder()).arg("-c").arg(&pasted);
        shell
    };
    let answer = Ran::of(&mut shell()).ok();
    let (_head, body) = answer.split_once("\r\n\r\n").unwrap();
    let body = serde_json::from_str(body).unwrap();
    (answer, body)
}

fn only_wallet(site: &Site) -> Value {
    let wallets = site.json(&["wallet", "list"]);
    assert_eq!(wallets.as_array().unwrap().len(), 1, "{wallets}");
    wallets[0].clone()
}

#[test]
fn a_forgotten_configuration_leads_into_no_second_book() {
    let site = empty();
    for command in [
        &["migrate", "up"][..],
        &["migrate", "down"],
        &["wallet", "list"],
        &["wallet", "create", "acme", "--currency", "USD"],
        &["ledger", "verify"],
        &["usage", "report"],
    ] {
        let said = site.cli(command).failed(2);
        assert!(said.contains("HOLDFAST_CONFIG") && !said.contains("migrate up"), "{said}");
        assert!(!site.path("holdfast-data").exists(), "{command:?} has made something");
    }
    start(&site).stop();
    assert_eq!(only_wallet(&site)["name"], "default");
}

#[test]
fn the_printed_curl_line_works_and_a_second_time_replays() {
    let site = empty();
    let gateway = start(&site);
    let line = printed_curl(&gateway);

    let (first, answer) = paste(&site, &line);
    assert!(first.starts_with("HTTP/1.1 200 OK\r\n"), "{first}");
    assert!(first.contains("idempotent-replayed: false\r\n"), "{first}");
    assert!(content(&answer).starts_with("You said: "), "{answer}");
    let (second, again) = paste(&site, &line);
    assert!(second.starts_with("HTTP/1.1 200 OK\r\n"), "{second}");
    assert!(second.contains("idempotent-replayed: true\r\n"), "{second}");
    let body = |answer: &str| answer.split_once("\r\n\r\n").unwrap().1.to_owned();
    assert_eq!(body(&first), body(&second));
    assert_eq!(answer, again);

    let wallet = only_wallet(&site);
    assert_eq!(wallet["currency"], "USD");
    assert!(charge(&answer) > 0);
    assert_eq!(wallet["available_micros"], GIFT - charge(&answer), "charged once");
    assert_eq!(wallet["held_micros"], 0);
    let verified = site.verify();
    assert_eq!(verified["operations"], 1);
    let page = format!("http://{}/docs", gateway.address());
    assert!(gateway.printed().contains(&page), "{}", gateway.printed());
    gateway.stop();
}

#[test]
fn a_restart_keeps_everything_and_prints_no_key_again() {
    let site = empty();
    let gateway = start(&site);
    let _until_printed = printed_curl(&gateway);
    let key = printed_key(&gateway).unwrap();
    let account = Account { wallet: String::new(), id: String::new(), key };
    let request_key = holdfast_tests::request_key();
    let body = crate::bodies::sim("Hello again");
    let first = gateway.complete(&account, &request_key, &body);
    check_completion(&first, &request_key, false);
    gateway.stop();

    let gateway = start(&site);
    let again = gateway.complete(&account, &request_key, &body);
    check_completion(&again, &request_key, true);
    assert_eq!(again.body, first.body);
    assert_eq!(printed_key(&gateway), None, "{}", gateway.printed());
    assert_eq!(site.json(&["key", "list"]).as_array().unwrap().len(), 1);
    gateway.stop();
    assert_eq!(site.json(&["wallet", "list"]).as_array().unwrap().len(), 1);
}

#[test]
fn a_second_process_on_the_same_data_is_refused() {
    let site = empty();
    let gateway = start(&site);
    let said = site.cli(&["serve"]).failed(1);
    assert!(said.contains("holdfast.db"), "it says what is taken: {said}");
    let ready = gateway.send(&holdfast_tests::Request::get("/readyz"));
    assert_eq!(check_json(&ready, 200)["status"], "ready");
    gateway.stop();
}

#[test]
fn the_secret_beside_the_database_is_the_owners_alone() {
    use std::os::unix::fs::PermissionsExt;

    let site = empty();
    start(&site).stop();
    let secret = std::fs::metadata(site.path("holdfast-data/server.secret")).unwrap();
    assert_eq!(secret.permissions().mode() & 0o777, 0o600);
}
