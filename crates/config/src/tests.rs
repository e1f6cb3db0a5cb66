//! Tests of whole configurations: the mistakes that are found, their lines and texts, and the
//! values that a good file and the embedded default have.
//!
//! Each case is the least file that is accepted, with one part replaced or added. That keeps a case short, and
//! proves that the mistake comes from the change alone. Files that are handed out, the administration's
//! settings, providers and contracts have files of their own beside this one.

mod administration;
mod contract;
mod deployed;
mod page;
mod provider;
mod settings;
mod telemetry;

use std::path::Path;
use std::time::Duration;

use holdfast_domain::price::UnitPrices;
use holdfast_domain::usage::MeterKind;
use holdfast_engine::{BreakerRules, Guarantee};

use crate::config::parse;
use crate::{BadConfig, Config, Mistake, ProviderKind, SecretUse};

const DEPLOYED: &str = include_str!("../../../deploy/holdfast.toml");

/// A file with only the required settings.
const LEAST: &str = r#"[providers.sim]
kind = "simulated"
[[models]]
id = "holdfast/sim-1"
contract = 1
context_tokens = 1000
max_output_tokens = 100
[[models.prices]]
effective_from = 2026-01-01T00:00:00Z
micros_per_million = { input = 3, output = 5 }
[[models.routes]]
provider = "sim"
model = "sim-1"
"#;

fn environment(name: &str) -> Option<String> {
    match name {
        "HOLDFAST_SECRET" => Some("a secret that nobody may ever see".to_owned()),
        "HOLDFAST_ADMIN_TOKEN" => Some("a-token-that-nobody-may-see".to_owned()),
        "OTLP_TOKEN" => Some("a-token-that-nobody-may-see".to_owned()),
        "OPENAI_API_KEY"
        | "ANTHROPIC_API_KEY"
        | "GEMINI_API_KEY"
        | "AZURE_OPENAI_API_KEY"
        | "AWS_ACCESS_KEY_ID"
        | "AWS_SECRET_ACCESS_KEY"
        | "AWS_SESSION_TOKEN"
        | "INNER_API_KEY" => Some("sk-that-nobody-may-see".to_owned()),
        "SHORT" => Some("short-value".to_owned()),
        _ => None,
    }
}

fn good(text: &str) -> Config {
    parse("file", text, &environment, SecretUse::All).unwrap()
}

#[track_caller]
fn mistakes(text: &str) -> Vec<String> {
    match parse("file", text, &environment, SecretUse::All) {
        Err(BadConfig::Mistakes(mistakes)) => mistakes.iter().map(Mistake::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

/// The one mistake of the least file after one piece of it was replaced.
#[track_caller]
fn check(old: &str, new: &str, mistake: &str) {
    assert!(LEAST.contains(old), "{old}");
    assert_eq!(mistakes(&LEAST.replacen(old, new, 1)), [mistake]);
}

/// The one mistake of the least file with lines before it.
#[track_caller]
fn check_before(lines: &str, mistake: &str) {
    assert_eq!(mistakes(&format!("{lines}\n{LEAST}")), [mistake]);
}

#[test]
fn what_is_not_set_has_its_default() {
    let config = good(LEAST);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.server.node, None);
    assert_eq!(config.server.secrets, []);
    assert_eq!(config.server.drain, Duration::from_secs(30));
    assert!(config.admin.is_none());
    assert_eq!(config.database.to_string(), "sqlite://holdfast-data/holdfast.db");
    assert_eq!(config.limits.header_bytes, 32_768);
    assert_eq!(config.limits.retry_wait, Duration::from_secs(600));
    assert_eq!(config.operations.lease, Duration::from_secs(15));
    assert_eq!(config.retention.results, Duration::from_secs(86_400));
    assert_eq!(config.retention.events, Some(Duration::from_secs(30 * 86_400)));
    assert_eq!(config.log.level, "info");
    let model = config.models.first().unwrap();
    assert_eq!(model.timeouts.connect, Duration::from_secs(2));
    assert_eq!(model.timeouts.first_token, Duration::from_secs(60));
    assert_eq!(model.timeouts.between_tokens, Duration::from_secs(30));
    assert_eq!(model.timeouts.total, Duration::from_secs(600));
    assert_eq!(model.body_bytes, 33_554_432);
    assert_eq!(model.contract.prompt_tokens_per_byte_millionths, 1_000_000);
    assert_eq!(model.contract.prompt_overhead_tokens, None);
}

#[test]
fn no_part_of_a_call_may_take_longer_than_the_whole() {
    let line = |timeout: &str| format!("max_output_tokens = 100\ntimeout = {{ {timeout} }}");
    for key in ["connect", "first_token", "between_tokens"] {
        let mistake = format!(
            "file:8: `models.timeout.total` must not be shorter than `{key}`: it bounds the whole call"
        );
        let timeout = format!("{key} = \"21s\", total = \"20s\"");
        check("max_output_tokens = 100", &line(&timeout), &mistake);
    }
    let config = good(&LEAST.replace("max_output_tokens = 100", &line("total = \"20s\"")));
    let timeouts = config.models.first().unwrap().timeouts;
    let times = [timeouts.first_token, timeouts.between_tokens, timeouts.total];
    assert_eq!(times, [Duration::from_secs(20); 3]);
    let each = "connect = \"1s\", first_token = \"2s\", between_tokens = \"3s\", total = \"4s\"";
    let config = good(&LEAST.replace("max_output_tokens = 100", &line(each)));
    let timeouts = config.models.first().unwrap().timeouts;
    let times = [timeouts.connect, timeouts.first_token, timeouts.between_tokens, timeouts.total];
    assert_eq!(times, [1, 2, 3, 4].map(Duration::from_secs));
}

#[test]
fn a_kind_without_a_price_costs_what_its_general_kind_costs() {
    let config = good(LEAST);
    let price = config.models.first().unwrap().prices.first().unwrap();
    let rates = MeterKind::ALL.map(|kind| price.version.tariff.rates().rate(kind));
    assert_eq!(rates, [3, 3, 3, 3, 5, 5, 5, 0, 0]);
    assert_eq!(price.version.id.as_str(), "holdfast/sim-1/USD/2026-01-01T00:00:00Z");
    assert_eq!(price.effective_from.as_seconds(), 1_767_225_600);
}

#[test]
fn a_price_of_the_future_needs_one_that_is_in_force() {
    let future = "effective_from = 9999-01-01T00:00:00Z";
    check(
        "effective_from = 2026-01-01T00:00:00Z",
        future,
        "file:8: no price of the model is in force yet, the first begins at 9999-01-01T00:00:00Z: \
        until then no caller could use it; add a price with an earlier effective_from",
    );
    let price =
        format!("[[models.prices]]\n{future}\nmicros_per_million = {{ input = 1, output = 1 }}\n");
    let both = LEAST.replace("[[models.routes]]", &format!("{price}[[models.routes]]"));
    assert_eq!(good(&both).models.first().unwrap().prices.len(), 2);
}

#[test]
fn longer_prompts_can_have_prices_of_their_own_and_a_route_a_cost() {
    let tiers = "{ input = 3, output = 5 }\nmicros_each = { request = 8 }\n[[models.prices.tiers]]\n\
        above_prompt_tokens = 200_000\nmicros_per_million = { input = 6, output = 7 }\n\
        [[models.prices.tiers]]\nabove_prompt_tokens = 400_000\n\
        micros_per_million = { input = 8, cached_input = 1, output = 9 }\nmicros_each = { image = 2 }";
    let cost = "model = \"sim-1\"\ncost = { currency = \"EUR\", micros_per_million = { input = 1, \
        output = 2 } }";
    let text = LEAST.replace("{ input = 3, output = 5 }", tiers);
    let config = good(&text.replace("model = \"sim-1\"", cost));
    let model = config.models.first().unwrap();
    let tariff = &model.prices.first().unwrap().version.tariff;
    let rates = |rates: &UnitPrices| MeterKind::ALL.map(|kind| rates.rate(kind));
    assert_eq!(rates(tariff.rates()), [3, 3, 3, 3, 5, 5, 5, 8, 0]);
    let tiers: Vec<_> =
        tariff.tiers().iter().map(|t| (t.above_prompt_tokens, rates(&t.rates))).collect();
    let (first, second) = ([6, 6, 6, 6, 7, 7, 7, 8, 0], [8, 1, 8, 8, 9, 9, 9, 8, 2]);
    assert_eq!(tiers, [(200_000, first), (400_000, second)]);
    let cost = model.routes.first().unwrap().cost.as_ref().unwrap();
    assert_eq!(cost.currency.as_str(), "EUR");
    assert_eq!(rates(cost.tariff.rates()), [1, 1, 1, 1, 2, 2, 2, 0, 0]);
    assert!(good(LEAST).models.first().unwrap().routes.first().unwrap().cost.is_none());
    for (above, mistake) in [
        (
            "200_000",
            "file:12: these tiers are none: each tier begins above the one before it, and the first above 0",
        ),
        ("0", "file:16: `models.prices.tiers.above_prompt_tokens` must be from 1 to 1099511627776"),
    ] {
        let text = text.replace("400_000", above);
        assert_eq!(mistakes(&text), [mistake]);
    }
}

#[test]
fn proxies_come_from_the_environment_and_are_judged_with_the_file() {
    let text = LEAST.replace("kind = \"simulated\"", "kind = \"openai\"\nbase_url = \"https://h\"");
    let proxies = |url: &'static str| {
        parse(
            "file",
            &text,
            &move |name| (name == "HTTPS_PROXY").then(|| url.to_owned()),
            SecretUse::All,
        )
    };
    let config = proxies("http://user:password@proxy:3128").unwrap();
    let Some(ProviderKind::Http(options)) = config.providers.get("sim") else { panic!() };
    let shown = format!("{:?}", options.server.proxies);
    assert!(shown.contains("proxy:3128") && !shown.contains("password"), "{shown}");
    let Err(BadConfig::Mistakes(mistakes)) = proxies("socks5://proxy") else { panic!() };
    let mistakes: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
    let mistake = "HTTPS_PROXY is a proxy of another kind: only http://HOST:PORT is known";
    assert_eq!(mistakes, [mistake]);
}

#[test]
fn every_kind_can_have_its_own_price() {
    let tokens = "{ input = 1, output = 2, cached_input = 3, cache_write = 4, reasoning = 5, \
        audio_input = 6, audio_output = 7 }\nmicros_each = { request = 8, image = 9 }";
    let config = good(&LEAST.replace("{ input = 3, output = 5 }", tokens));
    let price = config.models.first().unwrap().prices.first().unwrap();
    let rates = MeterKind::ALL.map(|kind| price.version.tariff.rates().rate(kind));
    assert_eq!(rates, [1, 3, 4, 6, 2, 5, 7, 8, 9]);
}

#[test]
fn one_moment_has_one_price_version() {
    let elsewhere = LEAST.replace("2026-01-01T00:00:00Z", "2026-01-01 01:00:00+01:00");
    let config = good(&elsewhere);
    let price = config.models.first().unwrap().prices.first().unwrap();
    assert_eq!(price.version.id.as_str(), "holdfast/sim-1/USD/2026-01-01T00:00:00Z");
}

#[test]
fn routes_have_a_priority_a_weight_and_a_bound() {
    let route = "[[models.routes]]\nprovider = \"sim\"\nmodel = \"sim-tools\"\n\
                 priority = 2\nweight = 30\nconcurrency = 4\n";
    let config = good(&format!("{LEAST}{route}"));
    let routes = &config.models.first().unwrap().routes;
    let read: Vec<_> = routes.iter().map(|it| (it.priority, it.weight, it.concurrency)).collect();
    assert_eq!(read, [(0, 1, None), (2, 30, Some(4))]);
    assert_eq!(config.models.first().unwrap().guarantee, Guarantee::OneRun);
    let other = LEAST.replace("contract = 1", "contract = 1\nguarantee = \"one-charge\"");
    assert_eq!(good(&other).models.first().unwrap().guarantee, Guarantee::OneCharge);
}

#[test]
fn a_longer_first_cool_down_moves_the_longest() {
    let read = |lines: &str| {
        let BreakerRules { failures, first, longest } =
            good(&format!("[routes]\n{lines}\n{LEAST}")).routes;
        (failures, first.as_millis(), longest.as_millis())
    };
    assert_eq!(read(""), (3, 5_000, 60_000));
    assert_eq!(read("failures = 1\ncool_down = \"10ms\""), (1, 10, 60_000));
    assert_eq!(read("cool_down = \"5m\""), (3, 300_000, 300_000));
    assert_eq!(read("cool_down = \"5m\"\ncool_down_max = \"10m\""), (3, 300_000, 600_000));
}

#[test]
fn decimals_are_read_from_their_spelling() {
    let per_byte = |text: &str| {
        let line = format!("contract = 1\nprompt_tokens_per_byte = {text}");
        let config = good(&LEAST.replace("contract = 1", &line));
        config.models.first().unwrap().contract.prompt_tokens_per_byte_millionths
    };
    assert_eq!(per_byte("1"), 1_000_000);
    assert_eq!(per_byte("0.1"), 100_000);
    assert_eq!(per_byte("0.333333"), 333_333);
    assert_eq!(per_byte("2.500_000_0"), 2_500_000);
    for bad in ["0.0000001", "1e-1", "inf", "nan", "-1.0", "0x1"] {
        let line = format!("contract = 1\nprompt_tokens_per_byte = {bad}");
        let found = mistakes(&LEAST.replace("contract = 1", &line));
        assert_eq!(found.len(), 1, "{bad}: {found:?}");
        assert!(found[0].starts_with("file:6: `models.prompt_tokens_per_byte` "), "{found:?}");
    }
    let zero = LEAST.replace("contract = 1", "contract = 1\nprompt_tokens_per_byte = 0.0");
    let range = "file:6: `models.prompt_tokens_per_byte` must be from 0.000001 to 1000.0";
    assert_eq!(mistakes(&zero), [range]);
}

#[test]
fn a_secret_may_stand_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secret");
    std::fs::write(&path, "a secret of a file\n").unwrap();
    let secrets = format!("[server]\nsecrets = [\"${{file:{}}}, ${{SHORT}}\"]\n", path.display());
    let config = good(&format!("{secrets}{LEAST}"));
    let expected =
        holdfast_domain::secret::ServerSecret::new(b"a secret of a file, short-value").unwrap();
    assert_eq!(config.server.secrets.first().unwrap().id(), expected.id());
    std::fs::remove_file(&path).unwrap();
    let found = mistakes(&format!("{secrets}{LEAST}"));
    assert_eq!(found.len(), 1, "{found:?}");
    let place = format!("file:2: `server.secrets` needs the file {}, which cannot", path.display());
    assert!(found[0].starts_with(&place), "{found:?}");
    // A command that signs nothing does not need it.
    parse("file", &format!("{secrets}{LEAST}"), &environment, SecretUse::Database).unwrap();
}

/// Keys of a text whose secrets are written in it.
fn literal(text: &str) -> Vec<String> {
    good(text).literal_secrets
}

#[test]
fn a_secret_that_is_written_in_the_text_is_noted_by_its_key() {
    let admin = "[admin]\nlisten = \"127.0.0.1:0\"\ntoken = \"a-token-of-the-text\"\n";
    assert_eq!(literal(&format!("{admin}{LEAST}")), ["admin.token"]);
    let both = "[server]\nsecrets = [\"a secret of the text\", \"another of them all\"]\n";
    assert_eq!(literal(&format!("{both}{LEAST}")), ["server.secrets"], "a key is named once");
    let half = "[server]\nsecrets = [\"of the text and ${SHORT}\"]\n";
    assert_eq!(literal(&format!("{half}{LEAST}")), Vec::<String>::new());
    let own = "secrets = [\"${HOLDFAST_SECRET}\"]\n";
    for (password, noted) in [(":hunter2", 1), (":${SHORT}", 0), ("", 0)] {
        let url = format!("postgres://holdfast{password}@127.0.0.1/${{SHORT}}?sslmode=disable");
        let text = format!("[server]\n{own}[database]\nurl = \"{url}\"\n{LEAST}");
        assert_eq!(literal(&text).len(), noted, "{password}");
    }
}

#[test]
fn the_delay_of_the_drain_is_nothing_unless_it_is_set() {
    assert_eq!(good(LEAST).server.drain_delay, Duration::ZERO);
    let delayed = good(&format!("server.drain_delay = \"3s\"\n{LEAST}"));
    assert_eq!(delayed.server.drain_delay, Duration::from_secs(3));
    check_before(
        "server.drain_delay = \"2m\"",
        "file:1: `server.drain_delay` must be from 0ms to 1m",
    );
}

#[test]
fn spans_have_a_unit() {
    let drain = |text: &str| good(&format!("server.drain = \"{text}\"\n{LEAST}")).server.drain;
    assert_eq!(drain("250ms"), Duration::from_millis(250));
    assert_eq!(drain("0s"), Duration::ZERO);
    assert_eq!(drain("10m"), Duration::from_secs(600));
    assert_eq!(drain("1h"), Duration::from_secs(3_600));
    let what = "is not a span of time: write a whole number with ms, s, m or h, like \"30s\"";
    for bad in ["", "30", "s", "1.5s", "-1s", "30 s", "30S", "1d", "99999999999999999999s"] {
        check_before(
            &format!("server.drain = \"{bad}\""),
            &format!("file:1: `server.drain` {what}"),
        );
    }
    check_before("server.drain = \"2h\"", "file:1: `server.drain` must be from 0ms to 1h");
    check_before(
        "server.drain = 30",
        "file:1: `server.drain` is an integer, but must be a span of time in quotes, with ms, s, m or h, like \"30s\"",
    );
}

#[test]
fn all_mistakes_are_reported_together_in_the_order_of_the_file() {
    let text = r#"[server]
listen = 8080
colour = "blue"
[database]
url = "mysql://h"
[providers.one]
kind = "cohere"
[[models]]
id = "a/b"
contract = 1
max_output_tokens = 0
[[models.routes]]
provider = "two"
"#;
    let lines: Vec<_> = mistakes(text)
        .iter()
        .map(|mistake| mistake.split(':').nth(1).unwrap().parse().unwrap())
        .collect::<Vec<u32>>();
    assert_eq!(lines, [2, 3, 5, 7, 8, 8, 11, 12, 13]);
}

#[test]
fn broken_toml_is_one_mistake_with_its_line() {
    let found = mistakes("[server]\nlisten = \"127.0.0.1:8080\"\nnode = = 1\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("file:3: not TOML: "), "{found:?}");
}

#[test]
fn the_environment_overrides_the_file() {
    let overridden = |name: &str| match name {
        "HOLDFAST_LISTEN" => Some("127.0.0.1:0".to_owned()),
        "HOLDFAST_DATABASE_URL" => Some("sqlite:///var/lib/other.db".to_owned()),
        _ => None,
    };
    let config = parse("file", LEAST, &overridden, SecretUse::All).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:0");
    assert_eq!(config.database.file(), Some(Path::new("/var/lib/other.db")));
    assert_eq!(config.database.folder(), Some(Path::new("/var/lib")));

    let nothing = |_: &str| Some(String::new());
    let config = parse("file", LEAST, &nothing, SecretUse::All).unwrap();
    assert_eq!(config.database, good(LEAST).database);

    let is_setting = |name: &str| {
        name.starts_with("HOLDFAST_") && !["HOLDFAST_FAILPOINT", "HOLDFAST_FAULT"].contains(&name)
    };
    let bad = |name: &str| is_setting(name).then(|| "postgres://me:hunter2@db".to_owned());
    let Err(BadConfig::Mistakes(mistakes)) = parse("file", LEAST, &bad, SecretUse::All) else {
        panic!()
    };
    let texts: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
    assert_eq!(
        texts,
        [
            "HOLDFAST_ADMIN_LISTEN is not an address to listen on: write IP:PORT or localhost:PORT, like 127.0.0.1:8080 or [::1]:8080; other names are not looked up",
            "HOLDFAST_LISTEN is not an address to listen on: write IP:PORT or localhost:PORT, like 127.0.0.1:8080 or [::1]:8080; other names are not looked up",
            "HOLDFAST_DATABASE_URL is not the name of a database: write postgres://USER:PASSWORD@HOST:PORT/DATABASE, with other characters than letters and digits percent-encoded",
        ]
    );
}

#[test]
fn a_database_of_a_server_needs_secrets() {
    let elsewhere = |name: &str| {
        let url = "postgres://me:hunter2@db/book?sslmode=verify-full";
        (name == "HOLDFAST_DATABASE_URL").then(|| url.to_owned())
    };
    let Err(BadConfig::Mistakes(mistakes)) = parse("file", LEAST, &elsewhere, SecretUse::All)
    else {
        panic!()
    };
    let texts: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
    let message = "HOLDFAST_DATABASE_URL is for PostgreSQL, where `server.secrets` is required: \
        create a secret with `openssl rand -hex 32`, and give the same one to every node";
    assert_eq!(texts, [message]);
    let secret = "0123456789abcdef0123456789abcdef";
    let config = format!("[server]\nsecrets = [\"{secret}\"]\n{LEAST}");
    let config = parse(
        "file",
        &config,
        &|name| match name {
            "HOLDFAST_DATABASE_URL" => elsewhere(name),
            _ => None,
        },
        SecretUse::All,
    );
    assert_eq!(config.unwrap().database.to_string(), "postgres://db:5432/book");
}

#[test]
fn secrets_never_print() {
    let secrets = ["nobody", "hunter2", "short-value"];
    let shown = format!("{:?}", good(DEPLOYED));
    assert!(secrets.iter().all(|secret| !shown.contains(secret)), "{shown}");

    let text = "[server]\nsecrets = [\"hunter2\", \"${SHORT}\"]\n[admin]\nlisten = \"x\"\n\
        token = \"hunter2\"\n[database]\nurl = \"mysql://hunter2@${SHORT}\"\n[providers.p]\n\
        kind = \"openai\"\nbase_url = \"https://hunter2@host\"\napi_key = \"hunter2 ${SHORT}\"\n";
    let found = mistakes(text);
    assert_eq!(found.len(), 8, "{found:?}");
    assert!(secrets.iter().all(|secret| !found.concat().contains(secret)), "{found:?}");
}
