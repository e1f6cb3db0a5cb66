//! The command line over the network: the same commands, the same answers, the same refusals, and
//! what goes wrong on the way.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_tests::postgres::Database;
use holdfast_tests::proxy::Proxy;
use holdfast_tests::site::text;
use holdfast_tests::{Account, Config, Gateway, Ran, Site, request_key};
use serde_json::{Value, json};

use crate::bodies::sim;

/// A server, and somebody who asks it from elsewhere: without its configuration.
pub(crate) struct Remote<'a> {
    site: &'a Site,
    url: String,
    key: String,
}

impl<'a> Remote<'a> {
    /// Somebody with a new owner's key.
    pub(crate) fn owner(site: &'a Site, gateway: &Gateway) -> Self {
        let issued = site.json(&["admin-key", "issue", "--name", &name(), "--role", "owner"]);
        let url = format!("http://localhost:{}", gateway.admin_address().port());
        Self { site, url, key: text(&issued, "key") }
    }

    /// The same at another address.
    pub(crate) fn at(self, url: String) -> Self {
        Self { url, ..self }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.site.command();
        command.env_remove("HOLDFAST_CONFIG").env_remove("UPSTREAM_KEY");
        command.env("HOLDFAST_ADMIN_KEY", &self.key).args(["--server", &self.url]).args(arguments);
        command
    }

    pub(crate) fn cli(&self, arguments: &[&str]) -> Ran {
        Ran::of(&mut self.command(arguments))
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        Ran::of(self.command(arguments).arg("--json")).json()
    }
}

/// A name that nothing has yet.
fn name() -> String {
    format!("n-{}", request_key().replace('-', ""))
}

/// Minutes since the epoch.
fn this_minute() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() / 60
}

/// What a command printed through both doors: the exit code, the answer, and what was said of it.
#[track_caller]
pub(crate) fn check_same(site: &Site, remote: &Remote<'_>, arguments: &[&str]) -> Ran {
    let [text, _json] = check_forms(site, remote, arguments);
    text
}

/// The same of a command's text and of its JSON.
#[track_caller]
pub(crate) fn check_forms(site: &Site, remote: &Remote<'_>, arguments: &[&str]) -> [Ran; 2] {
    [&[][..], &["--json"]].map(|more| {
        let arguments = [arguments, more].concat();
        // Counters of a minute change with it: both doors are asked within one.
        let [file, network] = loop {
            let minute = this_minute();
            let both = [site.cli(&arguments), remote.cli(&arguments)];
            if minute == this_minute() {
                break both;
            }
        };
        assert_eq!(file, network, "{arguments:?}");
        file
    })
}

/// Names of what the walk has made.
struct Names<'a> {
    account: &'a Account,
    operation: &'a str,
    postings: [&'a str; 2],
}

/// Reads, and refusals, which bind nothing: both doors say the same.
fn compare(site: &Site, remote: &Remote<'_>, named: &Names<'_>) {
    let Names { account, operation, postings: [one, other] } = *named;
    for arguments in [
        &["wallet", "list"][..],
        &["wallet", "show", "acme"],
        &["wallet", "show", &account.wallet],
        &["wallet", "show", "nobody"],
        &["wallet", "posting", one],
        &["wallet", "posting", other],
        &["wallet", "posting", operation],
        &["key", "list"],
        &["key", "show", "bot"],
        &["key", "show", operation],
        &["operation", "list"],
        &["operation", "list", "--stale"],
        &["operation", "list", "--limit", "1"],
        &["operation", "show", operation],
        &["operation", "show", &account.id],
        &["operation", "show", "--api-key", "bot", one],
        // Refusals bind nothing, and say the same.
        &["wallet", "create", "acme", "--key", &account.id],
        &["wallet", "deposit", "acme", "1", "--key", one],
        &["wallet", "deposit", "nobody", "1"],
        &["wallet", "adjust", "acme", "-100", "--reason", "too much", "--key", &account.id],
        &["wallet", "refund", operation, "5", "--key", &account.id],
        &["wallet", "close", "acme", "--dry-run", "--key", &account.id],
        &[
            "key",
            "issue",
            "--wallet",
            "acme",
            "--name",
            "bot",
            "--reason",
            "x",
            "--key",
            &account.id,
        ],
        &[
            "key",
            "issue",
            "--wallet",
            "acme",
            "--expires",
            "2020-01-01",
            "--reason",
            "x",
            "--key",
            &account.id,
        ],
        &["key", "rotate", "nobody"],
        &["admin-key", "revoke", &account.id, "--key", &account.id, "--yes"],
        &["operation", "cancel", &account.id, "--reason", "x", "--key", &account.id],
    ] {
        drop(check_same(site, remote, arguments));
    }
}

/// Changes the wallet and the key over the network, and ends the key.
fn change_it_all(site: &Site, remote: &Remote<'_>, named: &Names<'_>) {
    let Names { account, operation, .. } = *named;
    drop(remote.json(&[
        "key",
        "update",
        "bot",
        "--rpm",
        "none",
        "--spend-limit",
        "1.00/day",
        "--no-expires",
    ]));
    let key = site.json(&["key", "show", "bot"]);
    assert_eq!(
        (&key["spend_micros"], &key["requests_per_minute"], &key["ends_at"]),
        (&json!(1_000_000), &Value::Null, &Value::Null)
    );
    drop(remote.json(&["key", "suspend", "bot", "--reason", "runs away"]));
    drop(remote.json(&["key", "resume", "bot"]));
    drop(remote.json(&["wallet", "suspend", "acme", "--reason", "unpaid"]));
    drop(remote.json(&["wallet", "resume", "acme"]));
    drop(remote.json(&["wallet", "update", "acme", "--name", "acme-eu", "--no-external-id"]));
    drop(remote.json(&["wallet", "refund", operation, "0.000001"]));
    let rotated = remote.json(&["key", "rotate", "bot", "--grace", "0s", "--reason", "lost"]);
    assert_ne!(rotated["key"], *account.key);
    drop(remote.json(&["key", "revoke", "bot", "--yes"]));
    assert_eq!(remote.json(&["operation", "reconcile"]), json!([]));
    for arguments in [
        &["key", "list"][..],
        &["wallet", "list"],
        &["key", "rotate", "bot", "--reason", "x", "--key", &request_key()],
    ] {
        drop(check_same(site, remote, arguments));
    }
}

/// Walks through everything that a key's life has, and compares the doors at each step.
fn walk(site: &Site) {
    let gateway = site.serve();
    let remote = Remote::owner(site, &gateway);
    let key = request_key();
    let make = ["wallet", "create", "acme", "--external-id", "customer-17", "--key", &key];
    let made = remote.json(&make);
    assert_eq!(remote.json(&make), made, "the same key, the same wallet");
    let (one, other) = (request_key(), request_key());
    let deposit = ["wallet", "deposit", "acme", "10.00", "--source", "bank", "--reference"];
    let deposited = remote.json(&[&deposit[..], &["1", "--key", &one]].concat());
    assert_eq!((&deposited["id"], &deposited["replayed"]), (&json!(one), &json!(false)));
    // A posting's id is its key, through either door: here it is found and not made again.
    let again = site.json(&[&deposit[..], &["1", "--key", &one]].concat());
    assert_eq!(again["id"], deposited["id"]);
    assert_eq!(remote.json(&["wallet", "show", "acme"])["available_micros"], 10_000_000);
    drop(remote.json(&["wallet", "adjust", "acme", "-0.5", "--reason", "a test", "--key", &other]));
    let issue = ["key", "issue", "--wallet", "acme", "--name", "bot", "--rpm", "60", "--expires"];
    let issued = remote.json(&[&issue[..], &["30d", "--reason", "new"]].concat());
    assert_eq!(
        (&issued["limits"]["requests_per_minute"], &issued["expires_at"]),
        (&json!(60), &issued["ends_at"])
    );
    let account =
        Account { wallet: text(&made, "id"), id: text(&issued, "id"), key: text(&issued, "key") };
    let request = request_key();
    assert_eq!(gateway.complete(&account, &request, &sim("Hello there")).status, 200);
    let shown = remote.json(&["operation", "show", "--api-key", "bot", &request]);
    let operation = text(&shown, "id");
    let named = Names { account: &account, operation: &operation, postings: [&one, &other] };
    compare(site, &remote, &named);
    change_it_all(site, &remote, &named);
    gateway.stop();
    site.verify();
}

#[test]
fn commands_mean_the_same_through_both_doors() {
    let (site, _account) = Site::funded(&Config::simulated());
    walk(&site);
}

#[test]
fn postgres_commands_mean_the_same_through_both_doors() {
    let database = Database::migrated();
    let (site, _account) = Site::funded(&database.configure(Config::simulated()));
    walk(&site);
}

#[test]
fn the_place_of_a_command_is_never_guessed() {
    let (site, _account) = Site::funded(&Config::simulated());
    let run = |variables: &[(&str, &str)], arguments: &[&str]| {
        let mut command = site.command();
        Ran::of(command.envs(variables.iter().copied()).args(arguments)).failed(2)
    };
    let server = ("HOLDFAST_SERVER", "http://localhost:1");
    let both = run(&[server], &["wallet", "list"]);
    assert!(both.contains("HOLDFAST_SERVER") && both.contains("HOLDFAST_CONFIG"), "{both}");
    // A flag wins.
    let shown = Ran::of(site.command().envs([server]).args([
        "wallet",
        "list",
        "--config",
        "holdfast.toml",
    ]));
    assert!(shown.ok().contains("main"));
    let flags =
        run(&[], &["wallet", "list", "--config", "a.toml", "--server", "http://localhost:1"]);
    assert!(flags.contains("two places"), "{flags}");
    for (url, expected) in [
        ("http://admin.example.com", "plain text"),
        ("admin.example.com", "write scheme and host"),
        ("https://admin.example.com/admin", "write scheme and host"),
        ("https://admin.example.com", "there is no admin key"),
    ] {
        let said = run(&[], &["wallet", "list", "--server", url]);
        assert!(said.contains(expected), "{url}: {said}");
    }
    for command in [&["serve"][..], &["migrate", "up"], &["check-config"]] {
        let said = run(&[], &[command, &["--server", "https://admin.example.com"]].concat());
        assert!(said.contains("does not work over the network"), "{said}");
    }
}

#[test]
fn an_admin_key_comes_from_the_environment_or_a_file_of_its_owners_alone() {
    let (site, _account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let remote = Remote::owner(&site, &gateway);
    let file = site.path("admin.key");
    std::fs::write(&file, format!("{}\n", remote.key)).unwrap();
    let mode = |mode| std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
    let list = |key: Option<&str>| {
        let mut command = remote.command(&["wallet", "list"]);
        command.env_remove("HOLDFAST_ADMIN_KEY").env("HOLDFAST_ADMIN_KEY_FILE", &file);
        Ran::of(command.envs(key.map(|key| ("HOLDFAST_ADMIN_KEY", key))))
    };
    mode(0o640);
    let said = list(None).failed(2);
    assert!(said.contains("chmod 600"), "{said}");
    mode(0o600);
    assert!(list(None).ok().contains("main"));
    let said = list(Some(&remote.key)).failed(2);
    assert!(said.contains("both set") && !said.contains(&remote.key), "{said}");
    let ended =
        Remote { key: remote.key.replace("hfa_", "hfa_0"), ..Remote::owner(&site, &gateway) };
    let wrong = ended.cli(&["wallet", "list"]).failed(1);
    assert!(wrong.contains("HOLDFAST_ADMIN_KEY") && !wrong.contains(&ended.key), "{wrong}");
    let issued = site.json(&["admin-key", "issue", "--name", "ended", "--role", "owner"]);
    drop(site.cli(&["admin-key", "revoke", &text(&issued, "id"), "--yes"]).ok());
    let ended = Remote { key: text(&issued, "key"), ..ended };
    assert_eq!(ended.cli(&["wallet", "list"]).failed(1), wrong, "the same for every cause");
    gateway.stop();
}

#[test]
fn commands_beside_the_database_need_only_the_secrets_that_they_use() {
    let config = Config::simulated()
        .set("admin", "token", "\"${ADMIN_TOKEN}\"")
        .set("server", "secrets", "[\"${HOLDFAST_SECRET}\"]")
        .set("providers.far", "kind", "\"openai\"")
        .set("providers.far", "base_url", "\"https://far.example.com/v1\"")
        .set("providers.far", "api_key", "\"${FAR_KEY}\"");
    let site = Site::configured(&config);
    drop(site.cli(&["migrate", "up"]).ok());
    assert_eq!(site.json(&["wallet", "list"]), json!([]));
    let said = site.cli(&["wallet", "create", "acme"]).failed(2);
    assert!(said.contains("HOLDFAST_SECRET") && !said.contains("FAR_KEY"), "{said}");
    let site = site.with_env("HOLDFAST_SECRET", "a-secret-of-more-than-32-bytes-of-the-tests");
    drop(site.json(&["wallet", "create", "acme"]));
    drop(site.json(&["key", "issue", "--wallet", "acme"]));
    drop(site.verify());
    let said = site.cli(&["serve"]).failed(2);
    assert!(said.contains("FAR_KEY") && said.contains("ADMIN_TOKEN"), "{said}");
}

#[test]
fn a_role_has_what_it_has_from_wherever_it_asks() {
    let (site, account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let owner = Remote::owner(&site, &gateway);
    let issue = |name: &str, role: &str, more: &[&str]| {
        let words = ["admin-key", "issue", "--name", name, "--role", role];
        let issued = owner.json(&[&words, more].concat());
        Remote { key: text(&issued, "key"), ..Remote::owner(&site, &gateway) }
    };
    let auditor = issue("reads", "auditor", &[]);
    assert!(auditor.cli(&["wallet", "list"]).ok().contains("main"));
    let said = auditor.cli(&["wallet", "suspend", "main", "--reason", "x"]).failed(1);
    assert!(said.contains("the wallet was not suspended") && said.contains("auditor"), "{said}");
    let viewer = issue("sees", "holder_viewer", &["--wallet", "main"]);
    let _other = site.account("other", "USD", "1.00");
    assert_eq!(viewer.json(&["wallet", "list"]).as_array().unwrap().len(), 1);
    let said = viewer.cli(&["wallet", "show", "other"]).failed(1);
    assert!(said.contains("there is no wallet other"), "{said}");
    // Nobody but the wallet's holder issues without a reason.
    let said = owner.cli(&["key", "issue", "--wallet", &account.wallet]).failed(2);
    assert!(said.contains("requires a reason"), "{said}");
    gateway.stop();
}

/// A gateway behind a proxy that it takes for its own address.
pub(crate) fn behind(proxy: &Proxy) -> (Site, Gateway, String) {
    let url = format!("http://localhost:{}", proxy.address().port());
    let config = Config::simulated().set("admin", "url", &format!("\"{url}\""));
    let (site, _account) = Site::funded(&config);
    let gateway = site.serve();
    proxy.turn_to(gateway.admin_address());
    (site, gateway, url)
}

#[test]
fn a_lost_answer_is_found_by_its_key() {
    let proxy = Proxy::ahead();
    let (site, gateway, url) = behind(&proxy);
    let remote = Remote::owner(&site, &gateway).at(url);
    // Of the answer to the look-up all comes, of the answer to the deposit one byte.
    proxy.cut_next(&[usize::MAX, 1]);
    let ran = remote.cli(&["wallet", "deposit", "main", "1.00"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("this deposit had been made before"), "{ran:?}");
    assert_eq!(site.json(&["wallet", "show", "main"])["available_micros"], 11_000_000);
    // None of the answers comes: the key is told, and makes the repetition safe.
    proxy.cut_next(&[usize::MAX, 1, 1, 1, 1, 1]);
    let said = remote.cli(&["wallet", "deposit", "main", "1.00"]).failed(1);
    let key = said.lines().find_map(|line| line.strip_prefix("key ")).unwrap();
    assert!(said.contains(&format!("run this again with `--key {key}`")), "{said}");
    assert!(!said.contains("nothing was"), "nobody knows that: {said}");
    let again = remote.json(&["wallet", "deposit", "main", "1.00", "--key", key]);
    assert_eq!(again["replayed"], true);
    assert_eq!(site.json(&["wallet", "show", "main"])["available_micros"], 12_000_000);
    gateway.stop();
    // Nothing was sent, so nothing may have been done.
    let said = remote.cli(&["wallet", "deposit", "main", "1.00"]).failed(1);
    assert!(!said.contains("run this again"), "{said}");
}

#[test]
fn what_is_no_administration_is_told_from_one() {
    let (site, _account) = Site::funded(&Config::simulated());
    let gateway = site.serve();
    let public = Remote::owner(&site, &gateway).at(format!("http://{}", gateway.address()));
    for arguments in [&["wallet", "list"][..], &["wallet", "create", "x"]] {
        let said = public.cli(arguments).failed(1);
        assert!(!said.contains(&public.key), "{said}");
    }
    let rebound = Remote::owner(&site, &gateway);
    let port = gateway.admin_address().port();
    let said = rebound.at(format!("http://127.0.0.2:{port}")).cli(&["wallet", "list"]).failed(1);
    assert!(said.contains("not reached") || said.contains("Host"), "{said}");
    gateway.stop();
}
