//! The command line on a terminal: tables that fit it, and the question before what cannot be undone. For scripts:
//! failures as JSON.
//!
//! A pseudo-terminal of a given width is the standard input, output and error of the command.

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use holdfast_tests::{Config, Site};
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

/// Runs a command on a terminal of this many columns, with this line typed: everything that it showed, and its
/// exit status.
fn on_terminal(
    site: &Site,
    columns: u16,
    typed: &str,
    arguments: &[&str],
) -> (String, Option<i32>) {
    let pty = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&pty).unwrap();
    unlockpt(&pty).unwrap();
    let size = Winsize { ws_row: 40, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&pty, size).unwrap();
    let name = ptsname(&pty, Vec::new()).unwrap();
    let terminal =
        rustix::fs::open(&*name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())
            .unwrap();
    let side = || Stdio::from(terminal.try_clone().unwrap());
    let mut child =
        site.command().args(arguments).stdin(side()).stdout(side()).stderr(side()).spawn().unwrap();
    // The command's ends are the only ones: when it has ended, a read of this side fails.
    drop(terminal);
    let mut pty = File::from(pty);
    pty.write_all(format!("{typed}\n").as_bytes()).unwrap();
    let (mut shown, mut part) = (Vec::new(), [0; 4_096]);
    while let Ok(count) = pty.read(&mut part) {
        if count == 0 {
            break;
        }
        shown.extend_from_slice(&part[..count]);
    }
    let status = child.wait().unwrap();
    (String::from_utf8(shown).unwrap().replace("\r\n", "\n"), status.code())
}

#[test]
fn tables_fit_the_terminal_and_have_names() {
    let (site, account) = Site::funded(&Config::simulated());
    let wallet = site.json(&["wallet", "show", &account.wallet]);
    let id = wallet["id"].as_str().unwrap();
    for command in [
        &["wallet", "list"][..],
        &["key", "list"],
        &["operation", "list"],
        &["usage", "report"],
        &["audit", "list"],
        &["event", "list"],
        &["price", "list"],
        &["posting", "list", "--kind", "deposit"],
        &["wallet", "ledger", "main"],
    ] {
        for columns in [80, 120] {
            let (shown, status) = on_terminal(&site, columns, "", command);
            assert_eq!(status, Some(0), "{shown}");
            let longest = shown.lines().map(|line| line.chars().count()).max();
            assert!(longest <= Some(usize::from(columns)), "{command:?} {columns}: {shown}");
        }
    }
    let (narrow, _) = on_terminal(&site, 80, "", &["wallet", "list"]);
    assert!(!narrow.contains(id) && narrow.contains("hidden columns: "), "{narrow}");
    let (wide, _) = on_terminal(&site, 80, "", &["wallet", "list", "--columns", "id,name"]);
    assert!(wide.contains(id) && !wide.contains("hidden"), "{wide}");
    let (keys, _) = on_terminal(&site, 80, "", &["key", "list"]);
    assert!(keys.contains(" main ") && !keys.contains(id), "the wallet's name: {keys}");
}

#[test]
fn what_cannot_be_undone_is_asked_before_it_is_done() {
    let (site, account) = Site::funded(&Config::simulated());
    let revoke = ["key", "revoke", account.id.as_str()];
    let revoked_at = || site.json(&["key", "show", &account.id])["revoked_at"].clone();
    let (asked, status) = on_terminal(&site, 80, "n", &revoke);
    assert!(status == Some(1) && asked.contains("cannot be undone"), "{status:?} {asked}");
    assert!(revoked_at().is_null(), "the answer was no");
    // Without a terminal there is nobody to ask: nothing is sent.
    for command in [
        &revoke[..],
        &["admin-key", "revoke", &account.id],
        &["wallet", "close", &account.wallet],
        &["person", "end", &account.id],
    ] {
        let refused = site.cli(command).failed(2);
        assert!(refused.contains("--yes"), "{command:?}: {refused}");
    }
    assert!(revoked_at().is_null(), "--yes was not given");
    let (done, status) = on_terminal(&site, 80, "y", &revoke);
    assert!(status == Some(0) && revoked_at().is_string(), "{status:?} {done}");
}

#[test]
fn failures_are_json_with_their_code() {
    let (site, account) = Site::funded(&Config::simulated());
    let other = ["wallet", "create", "main", "--json"];
    for (command, status, code, part) in [
        (&["wallet", "show", "mian", "--json"][..], 1, "not_found", "did you mean main?"),
        (&["--json", "key", "show", "nobody"], 1, "not_found", "holdfast key list"),
        (&["operation", "show", &account.id, "--json"], 1, "not_found", "holdfast operation list"),
        (&["wallet", "posting", &account.id, "--json"], 1, "not_found", "posting"),
        (&["wallet", "--json"], 2, "bad_usage", "subcommand"),
        (&other, 1, "name_taken", "main"),
        (&["wallet", "deposit", "main", "0", "--json"], 2, "bad_usage", "amount"),
        (&["wallet", "list", "--columns", "id", "--json"], 2, "bad_usage", "--columns"),
        (&["key", "revoke", &account.id, "--json"], 2, "bad_usage", "--yes"),
        (
            &["wallet", "list", "--config", "none.toml", "--json"],
            2,
            "bad_configuration",
            "none.toml",
        ),
    ] {
        let said = site.cli(command).failed(status);
        // A key that was made is printed before it is sent.
        let error = said.lines().find(|line| line.starts_with('{')).unwrap_or_default();
        let error: Value = serde_json::from_str(error).unwrap_or_default();
        assert_eq!(error["error"]["code"], code, "{command:?}: {said}");
        let message = error["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(part), "{command:?}: {said}");
    }
}
