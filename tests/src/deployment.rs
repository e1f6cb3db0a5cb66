//! Gateways as `deploy/` describes them, read from either of its descriptions: `compose.yaml` with its files, or
//! the objects that Helm renders of the chart. Commands, environment, configuration, the balancer's checks, the
//! order of a rolling update and the grace period are the description's; addresses, folders and the provider are
//! the test's.
//!
//! No container and no cluster runs here: the processes are plain ones. A value that a description leaves out is
//! not filled in, except by a default of Kubernetes' own.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use saphyr::{LoadableYamlNode as _, Yaml};
use serde_json::{Value, json};

use crate::config::{ACME, UPSTREAM_MODEL};
use crate::postgres::Database;
use crate::{Gateway, Ran, Site, Upstream};

const COMPOSE: &str = include_str!("../../deploy/compose.yaml");
const COMPOSE_TOML: &str = include_str!("../../deploy/compose.toml");
const HAPROXY_CFG: &str = include_str!("../../deploy/haproxy.cfg");
/// The program; Helm needs no other.
const HELM: &str = "HOLDFAST_TEST_HELM";
/// Resolvers by which the shipped balancer learns addresses.
pub(crate) const RESOLVED: &str = "resolvers names init-addr last,libc,none";
const CONFIG: &str = "holdfast.toml";
const SECRETS: &str = "secrets";

/// Description of a deployment.
#[derive(Debug, Clone, Copy)]
pub enum Source {
    /// `deploy/compose.yaml`.
    Compose,
    /// The chart of `deploy/helm`, rendered with these options of Helm.
    Chart(&'static [&'static str]),
}

/// Gateways and what they need, as one description has them.
#[derive(Debug)]
pub struct Deployment {
    config: String,
    env: Vec<(String, String)>,
    secrets: Secrets,
    migrate: Vec<String>,
    serve: Vec<String>,
    /// The balancer's file: it probes the gateways as the description does.
    pub balancer: String,
    /// Number of gateways that are ready before an old one gets its signal, beyond those that serve.
    pub surge: usize,
    /// Time in which a gateway that ends serves all requests.
    pub drain_delay: Duration,
    /// Time in which a gateway has to end.
    pub grace: Duration,
}

/// Places of a gateway's secrets.
#[derive(Debug)]
enum Secrets {
    /// In variables of its environment.
    Environment,
    /// In files of this folder.
    Files(String),
}

impl Deployment {
    /// Reads a description, and adds a model of this provider to its configuration as operators do.
    #[must_use]
    pub fn of(source: Source, upstream: &Upstream) -> Self {
        match source {
            Source::Compose => Self::of_compose(upstream),
            Source::Chart(options) => Self::of_chart(options, upstream),
        }
    }

    fn of_compose(upstream: &Upstream) -> Self {
        let services = &objects(COMPOSE)[0]["services"];
        let gateway = &services["gateway-1"];
        let given = |(name, value): (&String, &Value)| {
            assert!(value.as_str().unwrap().starts_with(&format!("${{{name}:?")), "{value}");
            (name.clone(), "given-by-the-environment".to_owned())
        };
        Self {
            config: COMPOSE_TOML.to_owned() + &model(upstream),
            env: gateway["environment"].as_object().unwrap().iter().map(given).collect(),
            secrets: Secrets::Environment,
            migrate: words(&services["migrate"]["command"]),
            serve: words(&gateway["command"]),
            balancer: HAPROXY_CFG.to_owned(),
            surge: 0,
            drain_delay: Duration::from_secs(seconds(setting(COMPOSE_TOML, "drain_delay = "))),
            grace: Duration::from_secs(seconds(gateway["stop_grace_period"].as_str().unwrap())),
        }
    }

    fn of_chart(options: &[&str], upstream: &Upstream) -> Self {
        let models = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(models.path(), model(upstream)).expect("a file");
        let models = format!("config={}", models.path().display());
        let objects = objects(&rendered(&[&["--set-file", &models], options].concat()));
        let deployment = &object(&objects, "Deployment", "shop-holdfast")["spec"];
        let pod = &deployment["template"]["spec"];
        let gateway = &pod["containers"][0];
        let job = object(&objects, "Job", "shop-holdfast-migration");
        let migration = &job["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(migration["env"], gateway["env"]);
        let env = gateway["env"].as_array().unwrap().iter().filter_map(|variable| {
            let field = &variable["valueFrom"]["fieldRef"]["fieldPath"];
            match variable["name"].as_str().unwrap() {
                // The file is in the folder of the test.
                "HOLDFAST_CONFIG" if variable["value"] == "/etc/holdfast/holdfast.toml" => None,
                name if field == "status.podIP" => Some((name.to_owned(), "127.0.0.1".to_owned())),
                other => panic!("{other} is new"),
            }
        });
        let mounts = gateway["volumeMounts"].as_array().unwrap();
        let secrets = mounts.iter().find(|mount| mount["name"] == "secrets").unwrap();
        let config = object(&objects, "ConfigMap", "shop-holdfast")["data"][CONFIG].as_str();
        let config = config.unwrap();
        let update = &deployment["strategy"]["rollingUpdate"];
        assert_eq!(update["maxUnavailable"], 0, "a new gateway comes first");
        Self {
            config: config.to_owned(),
            env: env.collect(),
            secrets: Secrets::Files(secrets["mountPath"].as_str().unwrap().to_owned()),
            migrate: words(&migration["args"]),
            serve: words(&gateway["args"]),
            balancer: probing(&gateway["readinessProbe"]),
            surge: usize::try_from(update["maxSurge"].as_u64().unwrap()).unwrap(),
            drain_delay: Duration::from_secs(seconds(setting(config, "drain_delay = "))),
            grace: Duration::from_secs(pod["terminationGracePeriodSeconds"].as_u64().unwrap()),
        }
    }

    /// Puts all that a gateway reads into an empty folder, and makes the tables.
    #[must_use]
    pub fn furnish(&self, mut site: Site, database: &Database) -> Site {
        let mut config = here(&self.config);
        site.set_env("HOLDFAST_CONFIG", CONFIG);
        for (name, value) in &self.env {
            site.set_env(name, value);
        }
        match &self.secrets {
            Secrets::Environment => {
                site.write(CONFIG, &config);
                // The file's own address of the database is understood, though no server has it.
                drop(site.cli(&["check-config"]).ok());
                site.set_env("HOLDFAST_DATABASE_URL", database.url());
            }
            Secrets::Files(folder) => {
                config = config.replace(folder, &site.path(SECRETS).display().to_string());
                site.write(CONFIG, &config);
                write_secrets(&site, database);
            }
        }
        drop(Ran::of(site.command().args(&self.migrate)).ok());
        site
    }

    /// Starts a gateway in a folder that is furnished, and waits until it listens.
    #[must_use]
    pub fn start(&self, site: &Site) -> Gateway {
        let mut command = site.command();
        command.args(&self.serve);
        site.start(command)
    }
}

/// The entries of the Secret that the chart names, as Kubernetes mounts them.
fn write_secrets(site: &Site, database: &Database) {
    std::fs::create_dir(site.path(SECRETS)).expect("a folder");
    for (name, secret) in [
        ("server-secret", "0123456789abcdef0123456789abcdef".to_owned()),
        ("admin-token", "a-token-of-the-operator".to_owned()),
        ("database-url", database.url()),
    ] {
        let file = format!("{SECRETS}/{name}");
        site.write(&file, &secret);
        let mode = Permissions::from_mode(0o440);
        std::fs::set_permissions(site.path(&file), mode).expect("a file");
    }
}

/// A configuration with addresses of this machine. The kernel chooses its ports, which no file can name.
fn here(config: &str) -> String {
    let lines = config.lines().filter(|line| !line.starts_with("advertise = "));
    let lines = lines.map(|line| match line.starts_with("listen = ") {
        true => "listen = \"127.0.0.1:0\"\n".to_owned(),
        false => format!("{line}\n"),
    });
    lines.collect()
}

/// The balancer's file for gateways with this probe. As in a cluster, no request is sent twice there: a router must
/// have seen in time that a gateway ends.
fn probing(probe: &Value) -> String {
    let get = &probe["httpGet"];
    // The balancer of these tests probes the callers' port of each gateway, which has the same answer.
    assert_eq!(get["port"], "admin");
    let path = get["path"].as_str().unwrap();
    let [period, timeout, fall] = ["periodSeconds", "timeoutSeconds", "failureThreshold"]
        .map(|name| probe[name].as_u64().unwrap_or_else(|| panic!("no {name}")));
    let rise = probe["successThreshold"].as_u64().unwrap_or(1);
    let mut text = HAPROXY_CFG.to_owned();
    for (words, probed) in [
        ("retries ", "0".to_owned()),
        ("http-check send meth GET uri ", format!("{path} ver HTTP/1.1 hdr Host gateway")),
        ("timeout check ", format!("{timeout}s")),
        ("default-server check ", format!("inter {period}s fall {fall} rise {rise} {RESOLVED}")),
    ] {
        let shipped = setting(&text, words).to_owned();
        text = text.replace(&format!("{words}{shipped}\n"), &format!("{words}{probed}\n"));
    }
    text
}

/// The objects of the chart as text, with these options of Helm.
#[must_use]
pub fn rendered(options: &[&str]) -> String {
    try_rendered(options).ok()
}

/// Output of Helm for the chart with these options.
#[must_use]
pub fn try_rendered(options: &[&str]) -> Ran {
    helm(&["template", "shop"], options)
}

/// The text that Helm prints after an installation of release `shop`.
#[must_use]
pub fn notes(options: &[&str]) -> String {
    let ran = helm(&["install", "shop", "--dry-run=client"], options);
    let (_, notes) = ran.stdout.split_once("NOTES:\n").unwrap_or_else(|| panic!("{ran:?}"));
    notes.to_owned()
}

fn helm(command: &[&str], options: &[&str]) -> Ran {
    let program = std::env::var_os(HELM).map(PathBuf::from);
    let program = program.expect("HOLDFAST_TEST_HELM: `cargo xtask test tests` sets it");
    let chart = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/helm/holdfast");
    let mut helm = Command::new(program);
    helm.args(command).arg(chart).args(options).env_clear();
    Ran::of(&mut helm)
}

/// The object of this kind and name.
#[track_caller]
#[must_use]
pub fn object<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let mut found =
        objects.iter().filter(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.next().unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// The documents of a text, their aliases followed.
#[must_use]
pub fn objects(text: &str) -> Vec<Value> {
    Yaml::load_from_str(text).expect("a text in YAML").iter().map(value).collect()
}

fn value(yaml: &Yaml<'_>) -> Value {
    if let Some(members) = yaml.as_mapping() {
        let name = |key: &Yaml<'_>| key.as_str().expect("a name").to_owned();
        members.iter().map(|(key, member)| (name(key), value(member))).collect()
    } else if let Some(items) = yaml.as_sequence() {
        items.iter().map(value).collect()
    } else if let Some(text) = yaml.as_str() {
        json!(text)
    } else if let Some(number) = yaml.as_integer() {
        json!(number)
    } else if let Some(flag) = yaml.as_bool() {
        json!(flag)
    } else {
        panic!("neither text, number nor flag: {yaml:?}")
    }
}

/// The words of a list.
#[must_use]
pub fn words(list: &Value) -> Vec<String> {
    let words = list.as_array().expect("a list").iter();
    words.map(|word| word.as_str().expect("a word").to_owned()).collect()
}

/// Seconds of a span like `30s` or `15m`.
#[must_use]
pub fn seconds(span: &str) -> u64 {
    let (number, unit) = span.split_at(span.len() - 1);
    let unit = match unit {
        "s" => 1,
        "m" => 60,
        other => panic!("{other} is no unit"),
    };
    number.parse::<u64>().expect("a number") * unit
}

/// The rest of the line that begins with these words.
#[track_caller]
#[must_use]
pub fn setting<'t>(text: &'t str, words: &str) -> &'t str {
    let mut found = text.lines().filter_map(|line| line.trim().strip_prefix(words));
    found.next().unwrap_or_else(|| panic!("no {words}")).trim().trim_matches('"')
}

/// A model of the test's provider, as an operator adds one.
fn model(upstream: &Upstream) -> String {
    let base_url = upstream.base_url();
    format!(
        r#"
[providers.acme]
kind = "openai"
base_url = "{base_url}"
[[models]]
id = "{ACME}"
contract = 1
context_tokens = 8_000
max_output_tokens = 500
[[models.prices]]
effective_from = 2026-01-01T00:00:00Z
micros_per_million = {{ input = 2_500_000, cached_input = 250_000, output = 10_000_000 }}
micros_each = {{ request = 7 }}
[[models.routes]]
provider = "acme"
model = "{UPSTREAM_MODEL}"
"#
    )
}
