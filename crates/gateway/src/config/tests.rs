//! What a configuration is refused for, and what a good one says.

mod contract;

use std::collections::BTreeSet;
use std::time::Duration;

use holdfast_domain::usage::Kind;

use super::*;

const DEPLOYED: &str = include_str!("../../../../deploy/holdfast.toml");

/// A file that says only what it must.
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
        "OPENAI_API_KEY" => Some("sk-that-nobody-may-see".to_owned()),
        "SHORT" => Some("short-value".to_owned()),
        _ => None,
    }
}

fn good(text: &str) -> Config {
    parse("file", text, &environment).unwrap()
}

#[track_caller]
fn mistakes(text: &str) -> Vec<String> {
    match parse("file", text, &environment) {
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
    assert_eq!(config.log.level, "info");
    let model = config.models.first().unwrap();
    assert_eq!(model.timeouts.connect, Duration::from_secs(2));
    assert_eq!(model.timeouts.total, Duration::from_secs(600));
    assert_eq!(model.body_bytes, 1_048_576);
    assert_eq!(model.contract.prompt_tokens_per_byte_millionths, 1_000_000);
    assert_eq!(model.contract.prompt_overhead_tokens, None);
}

#[test]
fn a_kind_without_a_price_costs_what_its_general_kind_costs() {
    let config = good(LEAST);
    let price = config.models.first().unwrap().prices.first().unwrap();
    let rates = Kind::ALL.map(|kind| price.version.rates.rate(kind));
    assert_eq!(rates, [3, 3, 3, 3, 5, 5, 5, 0, 0]);
    assert_eq!(price.version.id.as_str(), "holdfast/sim-1/USD/2026-01-01T00:00:00Z");
    assert_eq!(price.effective_from.as_seconds(), 1_767_225_600);
}

#[test]
fn one_moment_has_one_price_version() {
    let elsewhere = LEAST.replace("2026-01-01T00:00:00Z", "2026-01-01 01:00:00+01:00");
    let config = good(&elsewhere);
    let price = config.models.first().unwrap().prices.first().unwrap();
    assert_eq!(price.version.id.as_str(), "holdfast/sim-1/USD/2026-01-01T00:00:00Z");
}

#[test]
fn routes_are_tried_by_priority_and_then_in_their_order() {
    let routes = ["2", "1", "1", "0"].map(|priority| {
        format!(
            "[[models.routes]]\nprovider = \"p{priority}\"\nmodel = \"m\"\npriority = {priority}\n"
        )
    });
    let providers = ["0", "1", "2"]
        .map(|name| format!("[providers.p{name}]\nkind = \"openai\"\nbase_url = \"http://h\"\n"));
    let text = format!("{}{LEAST}{}", providers.concat(), routes.concat());
    let config = good(&text.replace("model = \"m\"\npriority = 1", "model = \"n\"\npriority = 1"));
    let routes = &config.models.first().unwrap().routes;
    let names: Vec<_> = routes.iter().map(|route| route.provider.as_str()).collect();
    assert_eq!(names, ["sim", "p0", "p1", "p1", "p2"]);
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
fn spans_have_a_unit() {
    let drain = |text: &str| good(&format!("server.drain = \"{text}\"\n{LEAST}")).server.drain;
    assert_eq!(drain("250ms"), Duration::from_millis(250));
    assert_eq!(drain("0s"), Duration::ZERO);
    assert_eq!(drain("10m"), Duration::from_secs(600));
    assert_eq!(drain("1h"), Duration::from_secs(3_600));
    let what = "is not a span of time: write a whole number with ms, s, m or h, like 30s";
    for bad in ["", "30", "s", "1.5s", "-1s", "30 s", "30S", "1d", "99999999999999999999s"] {
        check_before(
            &format!("server.drain = \"{bad}\""),
            &format!("file:1: `server.drain` {what}"),
        );
    }
    check_before("server.drain = \"2h\"", "file:1: `server.drain` must be from 0ms to 1h");
    check_before(
        "server.drain = 30",
        "file:1: `server.drain` is an integer, but must be a text in quotes",
    );
}

#[test]
fn each_mistake_of_the_process_has_its_line() {
    for (lines, mistake) in [
        (
            "[server]\nlisten = \"localhost\"",
            "file:2: `server.listen` is not an address to listen on: write IP:PORT, like 127.0.0.1:8080 or [::1]:8080",
        ),
        (
            "[server]\nnode = \"a b\"",
            "file:2: `server.node` is not a node name: 1 to 64 letters, digits, hyphens, underscores and dots",
        ),
        (
            "[server]\nsecrets = []",
            "file:2: `server.secrets` is empty: name a secret, or remove the key to have one made beside the database",
        ),
        (
            "[server]\nsecrets = [\n  \"${HOLDFAST_SECRET}\",\n  \"${SHORT}\"]",
            "file:4: `server.secrets` has a secret of fewer than 16 bytes: make one with `openssl rand -hex 32`",
        ),
        (
            "[server]\nsecrets = [\"${MISSING}\"]",
            "file:2: `server.secrets` needs the environment variable MISSING, which is not set",
        ),
        (
            "[server]\nsecrets = [\"${MISSING\"]",
            "file:2: `server.secrets` has a `${` without a `}`",
        ),
        (
            "[server]\nsecrets = [\"${A B}\"]",
            "file:2: `server.secrets` has a `${…}` that names no environment variable",
        ),
        ("\n[admin]\ntoken = \"${HOLDFAST_ADMIN_TOKEN}\"", "file:2: `admin.listen` is missing"),
        (
            "[admin]\nlisten = \"127.0.0.1:0\"\ntoken = \"${SHORT}\"",
            "file:3: `admin.token` must be at least 16 visible ASCII characters: make one with `openssl rand -hex 32`",
        ),
        (
            "[database]\nurl = \"postgres://me:${SHORT}@db/holdfast\"",
            "file:2: `database.url` is for PostgreSQL, but this build keeps its data in SQLite: write sqlite://FILE",
        ),
        (
            "[database]\nurl = \"holdfast.db\"",
            "file:2: `database.url` is not a database URL of this build: write sqlite://FILE",
        ),
        (
            "[database]\nurl = \"sqlite://a?mode=ro\"",
            "file:2: `database.url` is not the name of a file: write sqlite://FILE, without ? # or %",
        ),
        ("[limits]\nconnections = 0", "file:2: `limits.connections` must be from 1 to 1048576"),
        (
            "[limits]\nbody_bytes = \"1M\"",
            "file:2: `limits.body_bytes` is a string, but must be a whole number",
        ),
        (
            "\n[operations]\nlease = \"10s\"",
            "file:2: `operations.lease` must be at least 3 times `operations.heartbeat`, so that one lost heartbeat does not end it",
        ),
        ("[retention]\nresults = \"0s\"", "file:2: `retention.results` must be from 1s to 87600h"),
        ("[log]\nformat = \"xml\"", "file:2: `log.format` must be \"pretty\" or \"json\""),
        (
            "[log]\nlevel = \"loud\"",
            "file:2: `log.level` is no level: write error, warn, info, debug or trace, or a list like \"info,holdfast_store=debug\"",
        ),
        ("server = 1", "file:1: `server` is an integer, but must be a table"),
    ] {
        check_before(lines, mistake);
    }
}

#[test]
fn each_mistake_of_a_provider_has_its_line() {
    let kind = "kind = \"simulated\"";
    let route = "model = \"sim-1\"\n";
    for (new, mistake) in [
        ("", "file:1: `providers.sim.kind` is missing"),
        (
            "kind = \"anthropic\"",
            "file:2: `providers.sim.kind` is not available in this version: write \"openai\" or \"simulated\"",
        ),
        ("kind = \"openai\"", "file:1: `providers.sim.base_url` is missing"),
        (
            "kind = \"openai\"\nbase_url = \"ftp://host\"",
            "file:3: `providers.sim.base_url` is not http://HOST or https://HOST",
        ),
        (
            "kind = \"openai\"\nbase_url = \"http://h\"\napi_key = \"\"",
            "file:4: `providers.sim.api_key` is not a credential: visible ASCII characters are expected",
        ),
        (
            "kind = \"simulated\"\nbase_url = \"http://h\"",
            "file:3: `providers.sim.base_url` means nothing to the simulated provider, which reaches nobody: remove it",
        ),
        (
            "kind = \"simulated\"\nregion = \"x\"",
            "file:3: unknown key `region` in providers.sim: known here are kind, base_url, api_key, pool_idle, output_bound_field",
        ),
    ] {
        check(kind, new, mistake);
    }
    check_before(
        "[providers.\"a/b\"]\nkind = \"simulated\"",
        "file:1: a provider's name has 1 to 64 letters, digits, hyphens and underscores",
    );
    check(
        "provider = \"sim\"",
        "provider = \"other\"",
        "file:12: `models.routes.provider` names no provider: write a table [providers.other]",
    );
    check(
        route,
        "model = \"gpt\"\n",
        "file:13: `models.routes.model` must be \"sim-1\", the simulated provider's only model",
    );
}

#[test]
fn each_mistake_of_a_model_has_its_line() {
    for (old, new, mistake) in [
        (
            "id = \"holdfast/sim-1\"",
            "id = \"sim-1\"",
            "file:4: `models.id` is not a model id: publisher/name, at most 128 bytes",
        ),
        ("id = \"holdfast/sim-1\"", "", "file:3: `models.id` is missing"),
        ("contract = 1", "contract = 0", "file:5: `models.contract` must be from 1 to 4294967295"),
        (
            "max_output_tokens = 100",
            "max_output_tokens = 1001",
            "file:7: `models.max_output_tokens` must be at most context_tokens, which is 1000",
        ),
        (
            "context_tokens = 1000",
            "context_tokens = 1_099_511_627_776",
            "file:6: `models.context_tokens` must be from 1 to 1099511627775",
        ),
        (
            "contract = 1",
            "contract = 1\nguarantee = \"one-charge\"",
            "file:6: `models.guarantee` \"one-charge\" is not available in this version: write \"one-run\", which sends a request to a model at most once",
        ),
        (
            "contract = 1",
            "contract = 1\ntimeout = { connect = \"2s\", total = \"1s\" }",
            "file:6: `models.timeout.total` must not be shorter than `connect`",
        ),
        (
            "contract = 1",
            "contract = 1\ntimeout = { first_token = \"60s\" }",
            "file:6: unknown key `first_token` in models.timeout: known here are connect, total",
        ),
    ] {
        check(old, new, mistake);
    }
    let twice = format!("{LEAST}{}", LEAST.split_once("\"simulated\"\n").unwrap().1);
    let mistake =
        "file:15: `models.id` holdfast/sim-1 is used by an earlier model: each has its own";
    assert_eq!(mistakes(&twice), [mistake]);
    assert_eq!(mistakes(""), ["file:1: there is no model: write a table [[models]]"]);
}

#[test]
fn each_mistake_of_a_price_or_a_route_has_its_line() {
    for (old, new, mistake) in [
        (
            "effective_from = 2026-01-01T00:00:00Z",
            "effective_from = 2026-01-01",
            "file:9: `models.prices.effective_from` must be a moment without quotes, like 2026-01-01T00:00:00Z",
        ),
        (
            "micros_per_million = { input = 3, output = 5 }",
            "micros_per_million = { input = 3 }",
            "file:10: `models.prices.micros_per_million.output` is missing",
        ),
        (
            "micros_per_million = { input = 3, output = 5 }",
            "",
            "file:8: `micros_per_million` is missing: write { input = …, output = … }",
        ),
        (
            "micros_per_million = { input = 3",
            "currency = \"usd\"\nmicros_per_million = { input = 3",
            "file:10: `models.prices.currency` is not a currency code: write three capital letters, like USD",
        ),
        (
            "input = 3",
            "input = -3",
            "file:10: `models.prices.micros_per_million.input` must be from 0 to 1000000000000000000",
        ),
        (
            "[[models.routes]]",
            "[[models.prices]]\neffective_from = 2026-01-01T01:00:00+01:00\nmicros_per_million = { input = 1, output = 1 }\n[[models.routes]]",
            "file:11: price version holdfast/sim-1/USD/2026-01-01T00:00:00Z is here twice: prices differ in currency or effective_from",
        ),
        (
            "model = \"sim-1\"",
            "model = \"sim-1\"\nweight = 1",
            "file:14: unknown key `weight` in models.routes: known here are provider, model, priority",
        ),
        (
            "[[models.routes]]\nprovider = \"sim\"\nmodel = \"sim-1\"\n",
            "",
            "file:3: the model has no route: write a table [[models.routes]]",
        ),
    ] {
        check(old, new, mistake);
    }
}

#[test]
fn all_mistakes_are_reported_together_in_the_order_of_the_file() {
    let text = r#"[server]
listen = 8080
colour = "blue"
[database]
url = "mysql://h"
[providers.one]
kind = "bedrock"
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
    let config = parse("file", LEAST, &overridden).unwrap();
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:0");
    assert_eq!(config.database.file(), Path::new("/var/lib/other.db"));
    assert_eq!(config.database.folder(), Path::new("/var/lib"));

    let nothing = |_: &str| Some(String::new());
    let config = parse("file", LEAST, &nothing).unwrap();
    assert_eq!(config.database, good(LEAST).database);

    let bad = |_: &str| Some("postgres://me:hunter2@db".to_owned());
    let Err(BadConfig::Mistakes(mistakes)) = parse("file", LEAST, &bad) else { panic!() };
    let texts: Vec<_> = mistakes.iter().map(Mistake::to_string).collect();
    assert_eq!(
        texts,
        [
            "HOLDFAST_LISTEN is not an address to listen on: write IP:PORT, like 127.0.0.1:8080 or [::1]:8080",
            "HOLDFAST_DATABASE_URL is for PostgreSQL, but this build keeps its data in SQLite: write sqlite://FILE",
        ]
    );
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

#[test]
fn the_embedded_default_is_good() {
    let config = good(EMBEDDED);
    assert_eq!(config.database, good(LEAST).database);
    assert_eq!(config.models.first().unwrap().contract.model.as_str(), "holdfast/sim-1");
}

#[test]
fn the_deployed_file_is_good_and_says_the_defaults() {
    let deployed = good(DEPLOYED);
    let least = good(LEAST);
    let show = |value: &dyn fmt::Debug| format!("{value:?}");
    assert_eq!(show(&deployed.limits), show(&least.limits));
    assert_eq!(show(&deployed.operations), show(&least.operations));
    assert_eq!(show(&deployed.retention), show(&least.retention));
    assert_eq!(show(&deployed.log), show(&least.log));
    assert_eq!(deployed.server.listen, least.server.listen);
    assert_eq!(deployed.server.drain, least.server.drain);
    assert_eq!(deployed.database, least.database);
    let (deployed, least) = (&deployed.models[0], &least.models[0]);
    assert_eq!(show(&deployed.timeouts), show(&least.timeouts));
    assert_eq!(deployed.body_bytes, least.body_bytes);
}

/// Every table of the deployed file is given a key that does not exist: the mistakes then tell every
/// key that does.
#[test]
fn the_deployed_file_has_every_key() {
    let asked = DEPLOYED
        .lines()
        .map(
            |line| if line.starts_with('[') { format!("{line}\nzzz = 1") } else { line.to_owned() },
        )
        .map(|line| if line.starts_with('#') { line } else { line.replace("{ ", "{ zzz = 1, ") });
    let text = format!("zzz = 1\n{}", asked.collect::<Vec<_>>().join("\n"));
    let found = mistakes(&text);
    let mut known = BTreeSet::new();
    for mistake in &found {
        let (_, keys) = mistake.split_once("known here are ").unwrap();
        known.extend(keys.split(", ").map(str::to_owned));
    }
    let written: BTreeSet<String> = DEPLOYED
        .lines()
        .filter(|line| !line.starts_with('#'))
        .flat_map(|line| line.split(['[', ']', '{', ',', '.']))
        .map(|piece| piece.split('=').next().unwrap_or(piece).trim().to_owned())
        .collect();
    assert_eq!(known.difference(&written).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(known.len() > 50, "{known:?}");
}
