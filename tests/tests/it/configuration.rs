//! Configuration files: all mistakes at once, each with its line, and nothing that is not known.

use std::fs::{Permissions, set_permissions};
use std::net::{Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use holdfast_tests::{Config, Ran, Request, Site};
use serde_json::json;

use crate::check::until;

#[track_caller]
fn check_mistakes(text: &str, mistakes: &[(&str, &str)]) {
    let site = Site::configured(&Config::simulated());
    site.write("holdfast.toml", text);
    for command in ["check-config", "serve", "migrate"] {
        let arguments: &[&str] = if command == "migrate" { &["migrate", "up"] } else { &[command] };
        let said = site.cli(arguments).failed(2);
        for (place, what) in mistakes {
            let told = said.lines().find(|line| line.contains(place));
            let told = told.unwrap_or_else(|| panic!("nothing about {place}: {said}"));
            assert!(told.contains(what), "{told}");
        }
        let places = said.lines().filter(|line| line.contains("holdfast.toml:"));
        assert_eq!(places.count(), mistakes.len(), "{said}");
    }
    assert!(!site.path("holdfast-data").exists(), "nothing was made");
}

/// The number of the line that begins so, as it is told.
fn line(text: &str, beginning: &str) -> String {
    let number = text.lines().position(|line| line.starts_with(beginning)).unwrap() + 1;
    format!("holdfast.toml:{number}:")
}

#[test]
fn every_mistake_is_told_at_once_with_its_line() {
    let text = Config::simulated()
        .set("server", "drain", "\"soon\"")
        .set("limits", "connections", "0")
        .set("limits", "conections", "7")
        .replace("provider = \"sim\"", "provider = \"nobody\"")
        .replace("contract = 1", "contract = -1")
        .render();
    check_mistakes(
        &text,
        &[
            (&line(&text, "drain"), "span of time"),
            (&line(&text, "connections"), "must be from 1"),
            (&line(&text, "conections"), "unknown key `conections`"),
            (&line(&text, "provider = "), "names no provider"),
            (&line(&text, "contract"), "must be from 1"),
        ],
    );
}

#[test]
fn a_text_that_is_no_toml_is_told_by_its_line() {
    let text = Config::simulated().render().replace("[server]", "[server");
    check_mistakes(&text, &[("holdfast.toml:", "not TOML")]);
}

#[test]
fn a_missing_variable_of_the_environment_is_named_and_others_are_not_told() {
    let text = Config::simulated().set("admin", "token", "\"${NO_SUCH_VARIABLE}\"").render();
    let site = Site::configured(&Config::simulated());
    site.write("holdfast.toml", &text);
    for command in ["check-config", "serve"] {
        let said = site.cli(&[command]).failed(2);
        let told = said.lines().find(|told| told.contains(&line(&text, "token"))).unwrap();
        assert!(told.contains("NO_SUCH_VARIABLE"), "{told}");
    }
    let site = Site::configured(&Config::simulated().set("admin", "token", "\"${SHORT}\""));
    let site = site.with_env("SHORT", "shortsecret");
    let said = site.cli(&["check-config"]).failed(2);
    assert!(!said.contains("shortsecret"), "{said}");
}

#[test]
fn a_file_that_is_not_there_is_no_embedded_default() {
    let site = Site::empty();
    let said = site.cli(&["serve", "--config", "nowhere.toml"]).failed(2);
    assert!(said.contains("nowhere.toml"), "{said}");
    let site = site.with_env("HOLDFAST_CONFIG", "elsewhere.toml");
    let said = site.cli(&["serve"]).failed(2);
    assert!(said.contains("elsewhere.toml"), "{said}");
    assert!(!site.path("holdfast-data").exists(), "nothing was made");
}

#[test]
fn with_a_file_nothing_is_migrated_or_made_by_itself() {
    let site = Site::configured(&Config::simulated());
    let said = site.cli(&["serve"]).failed(1);
    assert!(said.contains("migrate up"), "{said}");
    drop(site.cli(&["migrate", "up"]).ok());
    let gateway = site.serve();
    assert!(!gateway.printed().contains("hfk_"), "{}", gateway.printed());
    assert_eq!(site.json(&["wallet", "list"]), json!([]));
    assert_eq!(site.json(&["key", "list"]), json!([]));
}

#[test]
fn a_known_price_version_keeps_its_numbers() {
    let config = Config::simulated();
    let (site, _account) = Site::funded(&config);
    site.serve().stop();
    let other = config.clone().replace("output = 4_000_000", "output = 5_000_000");
    site.configure(&other);
    let said = site.cli(&["serve"]).failed(2);
    let text = other.render();
    let of_price = line(&text, "[[models.prices]]");
    let told =
        said.lines().find(|told| told.contains(&of_price)).unwrap_or_else(|| panic!("{said}"));
    assert!(told.contains("holdfast/sim-1/USD/2026-01-01T00:00:00Z"), "{told}");
    site.configure(&config);
    site.serve().stop();
}

#[test]
fn an_address_that_is_taken_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (site, _account) = Site::funded(&Config::simulated());
    let site = site.with_env("HOLDFAST_LISTEN", address.as_str());
    let said = site.cli(&["serve"]).failed(1);
    assert!(said.contains(&address) && said.contains("or HOLDFAST_LISTEN"), "{said}");
}

#[test]
fn two_listeners_have_two_addresses() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    for ip in ["127.0.0.1", "0.0.0.0"] {
        let (public, admin) = (format!("{ip}:{port}"), format!("127.0.0.1:{port}"));
        let config = Config::simulated().set("server", "listen", &format!("\"{public}\""));
        let text = config.set("admin", "listen", &format!("\"{admin}\"")).render();
        check_mistakes(&text, &[(&line(&text, "[admin]"), "write another port")]);
    }
}

#[test]
fn a_field_that_every_model_takes_is_not_one_to_accept() {
    for name in ["messages", "stream", "store"] {
        let accepts = format!("contract = 1\naccepts = [\"{name}\"]");
        let text = Config::simulated().replace("contract = 1", &accepts).render();
        check_mistakes(&text, &[(&line(&text, "accepts"), "leave it out")]);
    }
}

#[test]
fn a_checked_file_is_named_in_json_also_where_it_is_wrong() {
    let site = Site::configured(&Config::simulated().set("limits", "connections", "0"));
    for (file, mistake) in [("holdfast.toml", "must be from 1"), ("nowhere.toml", "cannot be read")]
    {
        let ran = site.cli(&["check-config", "--json", "--config", file]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(said["file"], file, "{said}");
        assert!(said["mistakes"][0].as_str().unwrap().contains(mistake), "{said}");
    }
}

#[test]
fn the_environment_overrides_the_file() {
    let site = Site::configured(&Config::simulated());
    let site = site.with_env("HOLDFAST_DATABASE_URL", "sqlite://elsewhere/book.db");
    drop(site.cli(&["migrate", "up"]).ok());
    assert!(site.path("elsewhere/book.db").exists());
    assert!(!site.path("holdfast-data").exists());
    let site = site.with_env("HOLDFAST_LISTEN", "nowhere");
    let said = site.cli(&["check-config"]).failed(2);
    assert!(said.contains("HOLDFAST_LISTEN"), "{said}");
}

#[test]
fn the_deployed_example_is_a_good_configuration() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/holdfast.toml");
    let site = Site::empty()
        .with_env("HOLDFAST_SECRET", "a-secret-of-at-least-thirty-two-bytes")
        .with_env("HOLDFAST_ADMIN_TOKEN", "a-token-of-the-operators-own")
        .with_env("OPENAI_API_KEY", "sk-example")
        .with_env("ANTHROPIC_API_KEY", "sk-example")
        .with_env("GEMINI_API_KEY", "sk-example")
        .with_env("AZURE_OPENAI_API_KEY", "sk-example")
        .with_env("AWS_ACCESS_KEY_ID", "sk-example")
        .with_env("AWS_SECRET_ACCESS_KEY", "sk-example")
        .with_env("AWS_SESSION_TOKEN", "sk-example")
        .with_env("INNER_API_KEY", "sk-example");
    let mut check = site.command();
    check.arg("--config").arg(file).args(["check-config", "--json"]);
    let checked = Ran::of(&mut check).json();
    assert_eq!(checked["ok"], true, "{checked}");
    assert_eq!(checked["mistakes"], json!([]));
}

#[test]
fn a_lost_server_secret_is_not_replaced_by_another() {
    let (site, account) = Site::funded(&Config::simulated());
    let secret = site.path("holdfast-data/server.secret");
    let kept = site.path("kept.secret");
    std::fs::rename(&secret, &kept).unwrap();
    for command in [&["serve"][..], &["key", "issue", "--wallet", "main"]] {
        let said = site.cli(command).failed(1);
        assert!(said.contains("server.secret"), "{said}");
    }
    assert!(!secret.exists());
    std::fs::rename(&kept, &secret).unwrap();
    let gateway = site.serve();
    assert_eq!(gateway.get(&account, "/v1/wallet").status, 200);
}

/// With `server.secrets` of these variables; unset, the one beside the database.
fn with_secrets(names: &[&str]) -> Config {
    let entries: Vec<_> = names.iter().map(|name| format!("\"${{{name}}}\"")).collect();
    match names {
        [] => Config::simulated(),
        _ => Config::simulated().set("server", "secrets", &format!("[{}]", entries.join(", "))),
    }
}

#[test]
fn a_server_secret_that_fits_no_api_key_is_refused_before_it_turns_everybody_away() {
    let (site, account) = Site::funded(&with_secrets(&[]));
    let beside = std::fs::read_to_string(site.path("holdfast-data/server.secret")).unwrap();
    let site = site
        .with_env("BESIDE", beside.trim_end())
        .with_env("NEW", "a-new-secret-of-more-than-32-bytes")
        .with_env("WRONG", "a-wrong-secret-of-more-than-32-bytes");
    site.configure(&with_secrets(&["NEW"]));
    for command in
        [&["serve"][..], &["key", "issue", "--wallet", "main"], &["key", "rotate", "main-key"]]
    {
        let said = site.cli(command).failed(1);
        let advice = "they were made with the one in holdfast-data/server.secret: add its content to \
                      server.secrets as an entry, or leave server.secrets out";
        assert!(said.contains("server.secrets has no secret") && said.contains(advice), "{said}");
        assert!(!said.contains(beside.trim_end()), "{said}");
    }
    assert_eq!(site.json(&["key", "list"]).as_array().unwrap().len(), 1);

    // The embedded default's secret goes on as an entry, below a new one that writes.
    site.configure(&with_secrets(&["NEW", "BESIDE"]));
    let newer = site.another_key(&account.wallet, "newer");
    let gateway = site.serve();
    for account in [&account, &newer] {
        assert_eq!(gateway.get(account, "/v1/wallet").status, 200);
    }
    assert!(!gateway.said().contains("ERROR"), "{}", gateway.said());
    gateway.stop();

    // Some are left: it starts, and somebody has to act.
    site.configure(&with_secrets(&["NEW"]));
    let gateway = site.serve();
    let said = gateway.said();
    let error =
        said.lines().find(|line| line.contains("ERROR")).unwrap_or_else(|| panic!("{said}"));
    assert!(error.contains("1 of 2 API keys in force"), "{error}");
    assert_eq!(gateway.get(&account, "/v1/wallet").status, 401);
    assert_eq!(gateway.get(&newer, "/v1/wallet").status, 200);
    gateway.stop();

    std::fs::remove_file(site.path("holdfast-data/server.secret")).unwrap();
    site.configure(&with_secrets(&["WRONG"]));
    let said = site.cli(&["serve"]).failed(1);
    assert!(said.contains("put that secret back into server.secrets"), "{said}");

    // Without a credential in force there is nothing to keep a secret for.
    for key in ["main-key", "newer"] {
        let _revoked = site.json(&["key", "revoke", key, "--yes"]);
    }
    let latest = site.another_key(&account.wallet, "latest");
    let gateway = site.serve();
    assert_eq!(gateway.get(&latest, "/v1/wallet").status, 200);
    gateway.stop();
}

#[test]
fn localhost_is_listened_on_at_both_loopback_addresses() {
    let localhost = |config: Config, table: &str| config.set(table, "listen", "\"localhost:0\"");
    let config = localhost(localhost(Config::simulated(), "server"), "admin");
    let config = localhost(config, "console");
    let site = Site::configured(&config);
    drop(site.cli(&["migrate", "up"]).ok());
    let gateway = site.serve();
    let has_six = TcpListener::bind("[::1]:0").is_ok();
    for address in [gateway.address(), gateway.admin_address(), gateway.console_address()] {
        assert!(address.is_ipv4() && address.ip().is_loopback(), "{address}");
        let six = SocketAddr::from((Ipv6Addr::LOCALHOST, address.port()));
        for at in [Some(address), has_six.then_some(six)].into_iter().flatten() {
            assert_eq!(Request::get("/healthz").send(at).status, 200, "{at}");
        }
    }
    // A second listener at one of the two is told of before anything is bound.
    let config =
        config.set("server", "listen", "\"localhost:7\"").set("admin", "listen", "\"[::1]:7\"");
    site.configure(&config);
    let said = site.cli(&["check-config"]).failed(2);
    assert!(
        said.contains("`admin.listen` has the address of server.listen (localhost:7)"),
        "{said}"
    );
    gateway.stop();
}

#[test]
fn a_secret_in_a_file_that_others_may_read_is_warned_of_by_its_key() {
    let site =
        Site::configured(&Config::simulated().set("admin", "token", "\"a-token-of-the-file\""));
    let file = site.path("holdfast.toml");
    let allow = |mode| set_permissions(&file, Permissions::from_mode(mode)).unwrap();
    let warnings = || site.json(&["check-config"])["warnings"].clone();
    allow(0o600);
    assert_eq!(warnings(), json!(null), "it is its owner's alone");
    allow(0o644);
    let warning = warnings()[0].as_str().unwrap().to_owned();
    for part in ["`admin.token`", "chmod 600", "holdfast.toml", "${file:"] {
        assert!(warning.contains(part) && !warning.contains("a-token"), "{warning}");
    }
    let said = site.cli(&["check-config"]).ok();
    assert_eq!(said.matches("others may read").count(), 1, "{said}");
    drop(site.cli(&["migrate", "up"]).ok());
    let gateway = site.serve();
    let count = || gateway.said().matches("others may read").count();
    assert_eq!(count(), 1, "{}", gateway.said());
    gateway.hang_up();
    until("a warning of the reload", || (count() == 2).then_some(()));
    // What others may not read is read without a word.
    allow(0o600);
    gateway.hang_up();
    let reloads = || gateway.said().matches("nothing to reload").count();
    until("a reload of the mended file", || (reloads() >= 2).then_some(()));
    assert_eq!(count(), 2, "{}", gateway.said());
    assert!(!gateway.said().contains("a-token-of"), "{}", gateway.said());
    gateway.stop();
}

#[test]
fn switched_off_guard_and_armed_step_are_reported_at_the_start() {
    let site = Site::configured(&Config::simulated()).with_fault("hold_kept");
    drop(site.cli(&["migrate", "up"]).ok());
    let gateway = site.serve_until("sending:9");
    let said = gateway.said();
    for (text, label) in [("a guard switched off", "hold_kept"), ("stops at a step", "sending")] {
        let mut errors = said.lines().filter(|line| line.contains("ERROR"));
        assert!(errors.any(|line| line.contains(text) && line.contains(label)), "{said}");
    }
    gateway.stop();
}
