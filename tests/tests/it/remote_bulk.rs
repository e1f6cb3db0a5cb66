//! Keys in bulk: a file of names becomes a file of secrets, whatever is interrupted on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use holdfast_tests::postgres::Database;
use holdfast_tests::site::text;
use holdfast_tests::{Account, Config, Gateway, Ran, Site, request_key};

use crate::check::until;
use crate::remote::Remote;

fn names(count: usize) -> String {
    (0..count).map(|number| format!("user-{number:04}\tid-{number}\n")).collect()
}

/// Secrets of the file by the names of their keys.
fn secrets(site: &Site) -> BTreeMap<String, [String; 2]> {
    let text = std::fs::read_to_string(site.path("out.tsv")).unwrap();
    assert!(text.ends_with('\n'), "no line is cut");
    let lines: Vec<Vec<_>> = text.lines().map(|line| line.split('\t').collect()).collect();
    let secrets: BTreeMap<_, _> = lines
        .iter()
        .map(|line| (line[1].to_owned(), [line[0].to_owned(), line[2].to_owned()]))
        .collect();
    assert_eq!(secrets.len(), lines.len(), "each key has one line");
    secrets
}

/// Checks that each key of the wallet has a secret in the file, and that it is its only one in
/// force.
#[track_caller]
fn check_all(site: &Site, gateway: &Gateway, wallet: &str, count: usize) {
    let secrets = secrets(site);
    assert_eq!(secrets.len(), count);
    let keys = site.json(&["key", "list"]);
    let keys: Vec<_> =
        keys.as_array().unwrap().iter().filter(|key| key["external_id"].is_string()).collect();
    assert_eq!(keys.len(), count);
    for key in &keys {
        let [id, secret] = &secrets[&text(key, "name")];
        assert_eq!(*id, text(key, "id"));
        let now = key["credentials"].as_array().unwrap();
        let in_force: BTreeSet<_> = now.iter().map(|it| text(it, "id")).collect();
        let own = secret.rsplit_once('_').unwrap().0.to_owned();
        assert_eq!(in_force, BTreeSet::from([own]), "{key}");
        assert_eq!(key["requests_per_minute"], 60);
    }
    for (id, secret) in secrets.values().take(3).map(|[id, secret]| (id, secret)) {
        let account = Account { wallet: wallet.to_owned(), id: id.clone(), key: secret.clone() };
        assert_eq!(gateway.get(&account, "/v1/wallet").status, 200);
    }
}

fn arguments(key: &str) -> Vec<&str> {
    let words =
        "key issue --wallet main --from names.tsv --secrets out.tsv --rpm 60 --reason class";
    words.split(' ').chain(["--key", key]).collect()
}

fn bulk(remote: &Remote<'_>, key: &str) -> Ran {
    remote.cli(&arguments(key))
}

/// Kills the command when so many lines are written, as often as it takes.
fn kill_at(site: &Site, remote: &Remote<'_>, key: &str, lines: usize) {
    let mut child = remote.command(&arguments(key)).spawn().unwrap();
    until("enough secrets are written", || {
        let text = std::fs::read_to_string(site.path("out.tsv")).unwrap_or_default();
        (text.lines().count() >= lines).then_some(())
    });
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success(), "it was not killed in time");
}

#[test]
fn five_thousand_keys_are_issued_in_a_minute_though_it_is_killed() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let remote = Remote::owner(&site, &gateway);
    site.write("names.tsv", &names(5_000));
    let key = request_key();
    let began = Instant::now();
    for lines in [1, 500, 1_000] {
        kill_at(&site, &remote, &key, lines);
    }
    let ran = bulk(&remote, &key);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    let mode = std::fs::metadata(site.path("out.tsv")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!(ran.stdout.contains("hfk_") || ran.stderr.contains("hfk_")), "{ran:?}");
    check_all(&site, &gateway, &account.wallet, 5_000);
    gateway.stop();
    site.verify();
}

/// Issues keys, loses a part's secrets as a lost answer does, and goes on.
fn lose_and_go_on(site: &Site, account: &Account) {
    let gateway = site.serve();
    let remote = Remote::owner(site, &gateway);
    site.write("names.tsv", &names(150));
    let key = request_key();
    assert_eq!(bulk(&remote, &key).code, Some(0));
    let whole = secrets(site);
    // The second part was made, and the command was killed in the middle of its lines.
    let text = std::fs::read_to_string(site.path("out.tsv")).unwrap();
    let end = text.match_indices('\n').nth(119).unwrap().0 + 30;
    std::fs::write(site.path("out.tsv"), &text[..end]).unwrap();
    let ran = bulk(&remote, &key);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("rotated\t30"), "{ran:?}");
    check_all(site, &gateway, &account.wallet, 150);
    let now = secrets(site);
    let kept = whole.iter().filter(|(name, secret)| now[*name] == **secret).count();
    assert_eq!(kept, 120);
    let again = bulk(&remote, &key);
    assert!(again.stdout.contains("rotated\t0"), "{again:?}");
    assert_eq!(secrets(site), now, "everything was there");
    // Another file has none of the secrets that were told: they are not ended for that.
    let mut elsewhere = arguments(&key);
    elsewhere.iter_mut().filter(|word| **word == "out.tsv").for_each(|word| *word = "new.tsv");
    let said = remote.cli(&elsewhere).failed(1);
    assert!(said.contains("--rotate-missing"), "{said}");
    check_all(site, &gateway, &account.wallet, 150);
    gateway.stop();
    site.verify();
}

#[test]
fn a_lost_part_is_rotated_and_written() {
    let (site, account) = Site::funded(&Config::simulated());
    lose_and_go_on(&site, &account);
}

#[test]
fn postgres_a_lost_part_is_rotated_and_written() {
    let database = Database::migrated();
    let (site, account) = Site::funded(&database.configure(Config::simulated()));
    lose_and_go_on(&site, &account);
}

#[test]
fn a_file_that_cannot_stand_issues_nothing() {
    let (site, _account) = Site::funded(&Config::simulated());
    let key = request_key();
    let issue = || site.cli(&arguments(&key));
    for (file, expected) in [
        ("", "no line"),
        ("a\nb\na\n", "line 3: a is there twice"),
        ("a\n\nb\n", "line 2"),
        (&request_key(), "must not look like an id"),
        ("a\tb\tc\n", "line 1"),
    ] {
        site.write("names.tsv", file);
        let said = issue().failed(2);
        assert!(said.contains(expected) && said.contains("nothing was issued"), "{said}");
    }
    site.write("names.tsv", "a\nb\n");
    for (text, mode, expected) in [
        ("notes of mine", 0o600, "other lines"),
        ("notes of mine\n", 0o600, "other lines"),
        ("", 0o644, "chmod 600"),
    ] {
        site.write("out.tsv", text);
        let mode = PermissionsExt::from_mode(mode);
        std::fs::set_permissions(site.path("out.tsv"), mode).unwrap();
        let said = issue().failed(2);
        assert!(said.contains(expected), "{said}");
        assert_eq!(std::fs::read_to_string(site.path("out.tsv")).unwrap(), text);
    }
    assert_eq!(site.json(&["key", "list"]).as_array().unwrap().len(), 1);
    std::fs::remove_file(site.path("out.tsv")).unwrap();
    drop(issue().ok());
    // The key belongs to what it was used for: other limits are another command.
    let other = site.cli(&[&arguments(&key)[..], &["--tpm", "9"]].concat()).failed(1);
    assert!(other.contains("0 of 2 keys"), "{other}");
    assert_eq!(site.json(&["key", "list"]).as_array().unwrap().len(), 3);
}
