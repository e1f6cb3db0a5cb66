//! What else works on the file of a running gateway: the command line, readers, and whoever moves files.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use holdfast_tests::database::Reader;
use holdfast_tests::{Account, Config, Gateway, Request, Site, request_key};

use crate::bodies::sim;
use crate::check::{check_completion, until};

/// Far more than a commit takes on a busy machine, and less than the five seconds that a checkpoint once kept the
/// right to write while it waited for a reader.
const HELD_UP: Duration = Duration::from_secs(3);

/// The longest of requests that are sent one after another as long as there is `work`.
fn longest_beside(gateway: &Gateway, account: &Account, work: impl FnOnce()) -> Duration {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !is_done.load(Ordering::Relaxed) {
                let (key, begun) = (request_key(), Instant::now());
                let answer = gateway.complete(account, &key, &sim("Hello there"));
                longest = longest.max(begun.elapsed());
                check_completion(&answer, &key, false);
            }
            longest
        });
        work();
        is_done.store(true, Ordering::Relaxed);
        sending.join().unwrap()
    })
}

#[test]
fn lock_of_a_reader_and_commands_hold_no_commit_up() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let before = request_key();
    check_completion(&gateway.complete(&account, &before, &sim("Hello")), &before, false);
    let reader = Reader::begin(&site.database());
    let after = request_key();
    check_completion(&gateway.complete(&account, &after, &sim("Hello")), &after, false);
    let longest = || {
        longest_beside(&gateway, &account, || {
            for command in [["wallet", "list"], ["ledger", "verify"], ["wallet", "list"]] {
                drop(site.cli(&command).ok());
            }
            drop(site.cli(&["wallet", "deposit", "main", "1.00"]).ok());
        })
    };
    // A machine that stands still holds up some rounds, a lock every one.
    let rounds: Vec<_> = (0..3).map(|_round| longest()).take_while(|it| *it >= HELD_UP).collect();
    assert!(rounds.len() < 3, "{rounds:?}");
    drop(reader);
    gateway.stop();
    let log = site.database().with_extension("db-wal");
    assert_eq!(
        std::fs::metadata(log).map_or(0, |log| log.len()),
        0,
        "serve folds its log in the end"
    );
    site.verify();
}

#[test]
fn an_audit_says_how_far_it_is_where_it_is_asked_to() {
    let (site, account) = Site::funded(&Config::simulated());
    let (gateway, key) = (site.serve(), request_key());
    check_completion(&gateway.complete(&account, &key, &sim("Hello")), &key, false);
    let asked = site.cli(&["ledger", "verify", "--progress"]);
    let parts = ["operations", "postings", "wallets", "API keys"];
    let mut ends = parts.map(|part| format!("{part}: 1 of 1\n")).concat();
    ends.push_str("admin keys: 0 of 0\npeople: 0 of 0\nwebhooks: 0 of 0\n");
    // The wallet, its deposit and its key.
    ends.push_str("trail: 3 of 3\nroots: 0 of 0\nusage: 1 of 1\n");
    assert_eq!((asked.code, &asked.stderr), (Some(0), &ends));
    let json = site.cli(&["ledger", "verify", "--progress", "--json"]);
    let result: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&result["ok"], json.stderr), (&true.into(), ends), "the result alone is on stdout");
    let quiet = site.cli(&["ledger", "verify"]);
    assert_eq!((quiet.stdout, quiet.stderr), (asked.stdout, String::new()));
    gateway.stop();
}

fn beating() -> Config {
    Config::simulated().set("operations", "lease", "\"6s\"").set(
        "operations",
        "heartbeat",
        "\"1s\"",
    )
}

/// A gateway whose file is no longer its own: it says so, is not ready, and ends.
fn check_ends(site: &Site, change: impl FnOnce(), says: &str) {
    let gateway = site.serve();
    assert_eq!(gateway.send(&Request::get("/readyz")).status, 200);
    change();
    until("it is told", || {
        gateway.said().contains("the served database is not the opened one").then_some(())
    });
    let said = gateway.said();
    let line = said.lines().find(|line| line.contains("the served database is not"));
    assert!(line.is_some_and(|line| line.contains("ERROR") && line.contains(says)), "{said}");
    assert_eq!(gateway.wait().code(), Some(1));
    assert!(site.logs().contains("error: the database"), "{}", site.logs());
}

#[test]
fn a_file_that_is_removed_ends_who_serves_it() {
    let (site, _account) = Site::funded(&beating());
    check_ends(&site, || std::fs::remove_file(site.database()).unwrap(), "was removed");
}

#[test]
fn a_file_that_is_replaced_ends_who_serves_it() {
    let (site, _account) = Site::funded(&beating());
    let copy = site.path("backup.db");
    std::fs::copy(site.database(), &copy).unwrap();
    check_ends(&site, || std::fs::rename(&copy, site.database()).unwrap(), "it was replaced");
}

#[test]
fn a_file_with_a_second_name_is_not_served() {
    let (site, account) = Site::funded(&beating());
    let second = site.database().with_file_name("second.db");
    let link = || std::fs::hard_link(site.database(), &second).unwrap();
    check_ends(&site, link, "2 names");
    for command in [&["serve"][..], &["wallet", "list"]] {
        let refused = site.cli(command).failed(1);
        assert!(refused.contains("hard links"), "{refused}");
    }
    std::fs::remove_file(&second).unwrap();
    let (gateway, key) = (site.serve(), request_key());
    check_completion(&gateway.complete(&account, &key, &sim("Hello")), &key, false);
    gateway.stop();
    site.verify();
}

/// Runs a gateway whose log, index or file goes under it while it answers, and looks after a restart for everything
/// that it acknowledged.
fn check_nothing_acknowledged_is_lost(change: impl FnOnce(&Site), mend: impl FnOnce(&Site)) {
    // A call whose claim had no verdict is in hand until the drain ends.
    let (site, account) = Site::funded(&Config::simulated().set("server", "drain", "\"1s\""));
    let gateway = site.serve();
    let mut answered = Vec::new();
    let complete = |key: &str| gateway.complete(&account, key, &sim("Hello there"));
    for _ in 0..5 {
        let key = request_key();
        check_completion(&complete(&key), &key, false);
        answered.push(key);
    }
    drop(site.cli(&["wallet", "deposit", "main", "1.00"]).ok());
    let before = request_key();
    check_completion(&complete(&before), &before, false);
    answered.push(before);
    let balance = site.balance(&account);
    // Where it stands it does not look at its files, however long the commands take.
    gateway.freeze();
    change(&site);
    for command in
        [&["wallet", "list"][..], &["wallet", "deposit", "main", "1.00"], &["migrate", "status"]]
    {
        let refused = site.cli(command).failed(1);
        assert!(
            refused.contains("replaced") || refused.contains("removed"),
            "{command:?}: {refused}"
        );
    }
    // Whatever is answered from here on, the first as the others, is not acknowledged. It may end without an answer.
    let late = Request::completion(&account.key, &request_key(), sim("Hello there"));
    let late = late.begin(gateway.address());
    gateway.thaw();
    assert_ne!(late.try_answer().map(|answer| answer.status), Some(200));
    until("it is told", || {
        gateway.said().contains("the served database is not the opened one").then_some(())
    });
    assert_eq!(gateway.wait().code(), Some(1));
    mend(&site);
    let gateway = site.serve();
    for key in answered {
        check_completion(&gateway.complete(&account, &key, &sim("Hello there")), &key, true);
    }
    assert_eq!(site.balance(&account), balance);
    gateway.stop();
    site.verify();
}

#[test]
fn a_log_and_index_that_are_removed_end_serve_and_lose_nothing_that_was_acknowledged() {
    let remove = |site: &Site| {
        for suffix in ["-wal", "-shm"] {
            let name = format!("{}{suffix}", site.database().display());
            std::fs::remove_file(name).unwrap();
        }
    };
    check_nothing_acknowledged_is_lost(remove, |_site| {});
}

#[test]
fn a_file_that_is_moved_behind_a_link_ends_serve_and_loses_nothing_that_was_acknowledged() {
    let moved = |site: &Site| site.database().with_file_name("moved.db");
    let change = |site: &Site| {
        std::fs::rename(site.database(), moved(site)).unwrap();
        std::os::unix::fs::symlink(moved(site), site.database()).unwrap();
    };
    // The log has stayed where the file was: both are together again.
    let mend = |site: &Site| std::fs::rename(moved(site), site.database()).unwrap();
    check_nothing_acknowledged_is_lost(change, mend);
}
