//! Copies of the database file, made while a gateway serves it: whole, with their secret, and honest about
//! what they do not know.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use holdfast_tests::site::text;
use holdfast_tests::{Account, Config, Gateway, Ran, Site, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::sim;
use crate::check::{check_completion, error};

const CALLERS: usize = 4;
const COPY: &str = "copy.db";

/// Keys whose answers are known, asked for on several connections until it is over.
fn ask_until(is_over: &AtomicBool, gateway: &Gateway, account: &Account) -> Vec<String> {
    std::thread::scope(|scope| {
        let callers = (0..CALLERS).map(|_| {
            scope.spawn(|| {
                let mut keys = Vec::new();
                while !is_over.load(Ordering::Relaxed) {
                    let key = request_key();
                    let answer = gateway.complete(account, &key, &sim("Hello there"));
                    check_completion(&answer, &key, false);
                    keys.push(key);
                }
                keys
            })
        });
        let callers: Vec<_> = callers.collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    })
}

/// A site on another machine, with what a backup has.
fn elsewhere(config: &Config, from: &Site, files: &[&str]) -> Site {
    let site = Site::configured(config);
    for file in files {
        std::fs::copy(from.path(file), site.path(file)).unwrap();
    }
    site
}

#[track_caller]
fn check_mode(file: &Path) {
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "{}", file.display());
}

fn names(site: &Site) -> Vec<String> {
    let files = std::fs::read_dir(site.folder()).unwrap().map(|file| file.unwrap().file_name());
    let mut names: Vec<_> = files.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with("copy"));
    names.sort();
    names
}

#[test]
fn a_copy_made_under_load_is_whole_and_forgets_what_came_after_it() {
    let config = Config::simulated();
    let (site, account) = Site::funded(&config);
    let gateway = site.serve();
    let before = request_key();
    let answer = gateway.complete(&account, &before, &sim("Hello there"));
    check_completion(&answer, &before, false);
    let is_over = AtomicBool::new(false);
    let (copies, keys) = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask_until(&is_over, &gateway, &account));
        let copies: Vec<_> =
            (0..5).map(|number| site.json(&["backup", &format!("copy-{number}.db")])).collect();
        is_over.store(true, Ordering::Relaxed);
        (copies, asking.join().unwrap())
    });
    assert!(keys.len() > 2 * CALLERS, "hardly any load: {}", keys.len());
    let after = request_key();
    check_completion(&gateway.complete(&account, &after, &sim("Hello there")), &after, false);
    for (number, copy) in copies.iter().enumerate() {
        let file = format!("copy-{number}.db");
        let checked = site.json(&["restore", "--check", &file]);
        assert_eq!(checked["ok"], true, "{checked}");
        assert_eq!(checked["last_operation"], copy["last_operation"]);
        assert_eq!(copy["bytes"], std::fs::metadata(site.path(&file)).unwrap().len());
        check_mode(&site.path(&file));
        check_mode(&site.path(&format!("{file}.secret")));
    }
    gateway.stop();

    let other = elsewhere(&config, &site, &["copy-4.db", "copy-4.db.secret"]);
    let restored = Ran::of(other.command().args(["restore", "copy-4.db", "--json"]));
    let moment = text(&copies[4]["last_operation"], "created_at");
    assert!(restored.stderr.contains(&format!("after {moment} is in this copy")), "{restored:?}");
    assert_eq!(restored.json()["restored_to"], "holdfast-data/holdfast.db");
    check_mode(&other.path("holdfast-data/server.secret"));
    let gateway = other.serve();
    // The API key is known there, and so is its answer.
    let again = gateway.complete(&account, &before, &sim("Hello there"));
    check_completion(&again, &before, true);
    assert_eq!(again.body, answer.body);
    let refused = gateway.complete(&account, &after, &sim("Hello there"));
    error(Code::LedgerRestored).echo(&after).replayed(false).check(&refused);
    gateway.stop();
    other.verify();
}

#[test]
fn sqlite_a_restore_beside_the_log_of_a_killed_process_is_refused() {
    let (site, _account) = Site::funded(&Config::simulated());
    drop(site.cli(&["backup", COPY]).ok());
    let data = site.path("holdfast-data");
    std::fs::rename(data.join("holdfast.db"), data.join("broken.db")).unwrap();
    let log = data.join("holdfast.db-wal");
    std::fs::write(&log, "commits that are not of the copy").unwrap();
    let said = site.cli(&["restore", COPY]).failed(1);
    assert!(said.contains("holdfast.db-wal is there still"), "{said}");
    assert!(!data.join("holdfast.db").exists(), "{said}");
    std::fs::remove_file(&log).unwrap();
    drop(site.cli(&["restore", COPY]).ok());
    site.verify();
}

#[test]
fn a_check_leaves_the_copy_as_it_is() {
    let (site, _account) = Site::funded(&Config::simulated());
    drop(site.cli(&["backup", COPY]).ok());
    let bytes = std::fs::read(site.path(COPY)).unwrap();
    let checked = site.json(&["restore", "--check", COPY]);
    assert_eq!(checked["last_operation"], Value::Null);
    assert!(bytes == std::fs::read(site.path(COPY)).unwrap(), "it was changed");
    assert_eq!(names(&site), [COPY, "copy.db.secret"], "nothing is left beside it");
}

#[test]
fn nothing_is_written_over_and_nothing_half_is_left() {
    let (site, _account) = Site::funded(&Config::simulated());
    site.write(COPY, "mine");
    let said = site.cli(&["backup", COPY]).failed(1);
    assert!(said.contains("copy.db exists already"), "{said}");
    assert_eq!(std::fs::read_to_string(site.path(COPY)).unwrap(), "mine");
    std::fs::remove_file(site.path(COPY)).unwrap();
    site.write("copy.db.secret", "mine");
    let said = site.cli(&["backup", COPY]).failed(1);
    assert!(said.contains("copy.db.secret exists already"), "{said}");
    std::fs::remove_file(site.path("copy.db.secret")).unwrap();
    let said = site.cli(&["backup", "nowhere/copy.db"]).failed(1);
    assert!(said.contains("nowhere/copy.db cannot be written"), "{said}");
    // The database that is there stays, too.
    drop(site.cli(&["backup", COPY]).ok());
    let said = site.cli(&["restore", COPY]).failed(1);
    assert!(said.contains("holdfast-data/holdfast.db exists already"), "{said}");
    site.verify();
}

#[test]
fn a_full_disk_fails_the_backup_and_leaves_nothing() {
    let (site, _account) = Site::funded(&Config::simulated());
    let holdfast = site.command();
    let mut shell = Command::new("sh");
    // 64 KiB a file: less than the tables need. The signal that comes with the error ends nothing.
    let line = "trap '' XFSZ; ulimit -f 128; exec \"$0\" backup copy.db";
    shell.args(["-c", line]).arg(holdfast.get_program()).current_dir(site.folder()).env_clear();
    shell.envs(holdfast.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let said = Ran::of(&mut shell).failed(1);
    assert!(said.contains("nothing was backed up"), "{said}");
    assert_eq!(names(&site), [""; 0]);
    drop(site.cli(&["backup", COPY]).ok());
}

#[test]
fn a_copy_without_its_secret_is_no_backup() {
    let config = Config::simulated();
    let (site, account) = Site::funded(&config);
    drop(site.cli(&["backup", COPY]).ok());
    let secret = site.path("holdfast-data/server.secret");
    let digits = std::fs::read_to_string(&secret).unwrap();

    let bare = elsewhere(&config, &site, &[COPY]);
    let said = bare.cli(&["restore", COPY]).failed(1);
    assert!(said.contains("copy.db.secret is missing"), "{said}");
    assert!(!bare.path("holdfast-data/holdfast.db").exists());
    bare.write("copy.db.secret", &format!("{}\n", "0".repeat(64)));
    let said = bare.cli(&["restore", "--check", COPY]).failed(1);
    assert!(said.contains("without their secret no caller can authenticate"), "{said}");

    std::fs::remove_file(&secret).unwrap();
    let said = site.cli(&["backup", "copy-2.db"]).failed(1);
    assert!(said.contains("server.secret is missing"), "{said}");
    assert_eq!(names(&site), [COPY, "copy.db.secret"]);

    // A configured secret is kept where the configuration is.
    let configured = config.set("server", "secrets", "[\"${HOLDFAST_SECRET}\"]");
    site.configure(&configured);
    let site = site.with_env("HOLDFAST_SECRET", digits.trim_end());
    let told = site.json(&["backup", "copy-2.db"]);
    assert_eq!(told["secret_file"], Value::Null);
    let other = elsewhere(&configured, &site, &["copy-2.db"]);
    let other = other.with_env("HOLDFAST_SECRET", digits.trim_end());
    drop(other.cli(&["restore", "copy-2.db", "--unknown-since", "allow"]).ok());
    let gateway = other.serve();
    let key = request_key();
    check_completion(&gateway.complete(&account, &key, &sim("Hello there")), &key, false);
    gateway.stop();
}

#[test]
fn sqlite_copy_that_is_damaged_is_not_restored() {
    let config = Config::simulated();
    let (site, account) = Site::funded(&config);
    drop(site.cli(&["backup", COPY]).ok());
    let change = "UPDATE wallets SET available = available + 1 WHERE name = 'main'";
    drop(holdfast_tests::database::execute(&site.path(COPY), change));
    let other = elsewhere(&config, &site, &[COPY, "copy.db.secret"]);
    let ran = Ran::of(other.command().args(["restore", COPY, "--json"]));
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let found: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&found["ok"], &found["restored_to"]), (&json!(false), &Value::Null));
    assert!(found["mismatches"][0]["text"].as_str().unwrap().contains(&account.wallet), "{found}");
    assert!(!other.path("holdfast-data/holdfast.db").exists());
    other.write("text.db", "something else");
    assert!(other.cli(&["restore", "text.db"]).failed(1).contains("text.db was not verified"));
    assert!(other.cli(&["restore", "none.db"]).failed(2).contains("there is no copy none.db"));
}

#[test]
fn a_server_has_backups_of_its_own() {
    let server = "\"postgres://holdfast@localhost/holdfast\"";
    let config = Config::simulated().set("server", "secrets", "[\"0123456789abcdef\"]");
    let site = Site::configured(&config.set("database", "url", server));
    let said = site.cli(&["backup", COPY]).failed(2);
    assert!(
        said.contains("pg_dump") && said.contains("docs/how-to/back-up-and-restore.md"),
        "{said}"
    );
    site.write(COPY, "");
    let said = site.cli(&["restore", COPY]).failed(2);
    assert!(said.contains("pg_restore"), "{said}");
    let said = site.cli(&["backup", "other.db", "--server", "https://admin.example.com"]).failed(2);
    assert!(said.contains("backup does not work over the network"), "{said}");
}
