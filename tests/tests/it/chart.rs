//! The chart of `deploy/helm`, rendered by Helm: held against Kubernetes' own schemas, and run as far as
//! processes can be run without a cluster: by the commands, environment, configuration, probes and grace period
//! that the rendered objects have.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use holdfast_tests::postgres::Database;
use holdfast_tests::{Gate, Gateway, Ran, Reply, Request, Site, Upstream, request_key};
use saphyr::{LoadableYamlNode as _, Yaml};
use serde_json::{Value, json};

use crate::bodies::acme;
use crate::check::{check_completion, until};
use crate::compose::{grace_period, model, setting, value, words};

/// Values that switch on what is off by itself.
const EVERYTHING: [&str; 2] = ["--set", "serviceMonitor.enabled=true"];
const SECRETS: &str = "/run/secrets/holdfast";

fn from_env(name: &str) -> PathBuf {
    let path = std::env::var_os(name).map(PathBuf::from);
    path.unwrap_or_else(|| panic!("{name}: `cargo xtask test tests` sets it"))
}

fn chart() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/helm/holdfast")
}

/// The objects of the chart as text, with these options of Helm.
fn rendered(options: &[&str]) -> String {
    let mut helm = Command::new(from_env("HOLDFAST_TEST_HELM"));
    helm.args(["template", "shop"]).arg(chart()).args(options).env_clear();
    Ran::of(&mut helm).ok()
}

fn objects(text: &str) -> Vec<Value> {
    Yaml::load_from_str(text).unwrap().iter().map(value).collect()
}

#[track_caller]
fn object<'a>(objects: &'a [Value], kind: &str, name: &str) -> &'a Value {
    let mut found =
        objects.iter().filter(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.next().unwrap_or_else(|| panic!("no {kind} {name}"))
}

#[test]
fn helm_renders_objects_that_kubernetes_takes() {
    let site = Site::empty();
    site.write("rendered.yaml", &rendered(&EVERYTHING));
    let judge = |file: &str| {
        let mut python = Command::new(from_env("HOLDFAST_TEST_PYTHON"));
        python.args(["-m", "kubernetes_validate", "--strict", "--quiet"]).arg(site.path(file));
        Ran::of(&mut python)
    };
    let judged = judge("rendered.yaml");
    assert_eq!(judged.code, Some(0), "{judged:?}");
    // The monitor is of the Prometheus operator, and in no schema of Kubernetes; nothing else is unknown.
    let said = format!("{}{}", judged.stdout, judged.stderr);
    assert_eq!(said.matches("find schema").count(), 1, "{said}");
    assert!(said.contains("kind ServiceMonitor"), "{said}");
    // A field of another name is refused.
    let wrong =
        rendered(&EVERYTHING).replace("terminationGracePeriodSeconds", "gracePeriodSeconds");
    site.write("wrong.yaml", &wrong);
    assert_eq!(judge("wrong.yaml").code, Some(1));
}

#[test]
fn helm_objects_name_each_other_and_no_secret() {
    let objects = objects(&rendered(&EVERYTHING));
    let deployment = &object(&objects, "Deployment", "shop-holdfast")["spec"];
    let pod = &deployment["template"];
    let labels = pod["metadata"]["labels"].as_object().unwrap();
    let selects = |selector: &Value| {
        let selector = selector.as_object().unwrap();
        selector.iter().all(|(name, value)| labels.get(name) == Some(value))
    };
    assert!(selects(&deployment["selector"]["matchLabels"]));
    let budget = &object(&objects, "PodDisruptionBudget", "shop-holdfast")["spec"];
    assert!(selects(&budget["selector"]["matchLabels"]));
    let ports = pod["spec"]["containers"][0]["ports"].as_array().unwrap();
    for name in ["shop-holdfast", "shop-holdfast-admin"] {
        let service = object(&objects, "Service", name);
        assert!(selects(&service["spec"]["selector"]), "{name}");
        let target = &service["spec"]["ports"][0]["targetPort"];
        assert!(ports.iter().any(|port| port["name"] == *target), "{name}");
    }
    let monitor = &object(&objects, "ServiceMonitor", "shop-holdfast")["spec"];
    let admin = &object(&objects, "Service", "shop-holdfast-admin")["metadata"]["labels"];
    for (name, value) in monitor["selector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(&admin[name], value);
    }
    assert_eq!(monitor["endpoints"][0]["authorization"]["credentials"]["name"], "holdfast");
    let job = object(&objects, "Job", "shop-holdfast-migration");
    for pod in [&pod["spec"], &job["spec"]["template"]["spec"]] {
        let volumes = pod["volumes"].as_array().unwrap();
        let secret = volumes.iter().find(|volume| volume["name"] == "secrets").unwrap();
        assert_eq!(secret["secret"]["secretName"], "holdfast");
        let config = volumes.iter().find(|volume| volume["name"] == "config").unwrap();
        let config = config["configMap"]["name"].as_str().unwrap();
        let text = object(&objects, "ConfigMap", config)["data"]["holdfast.toml"].as_str().unwrap();
        for secret in ["secrets = [\"", "token = \"", "url = \""] {
            assert!(text.contains(&format!("{secret}${{file:{SECRETS}/")), "{secret}");
        }
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        assert!(mounts.iter().any(|it| it["name"] == "secrets" && it["mountPath"] == SECRETS));
        assert!(
            mounts.iter().any(|it| it["name"] == "config" && it["mountPath"] == "/etc/holdfast")
        );
    }
    assert!(objects.iter().all(|it| it["kind"] != "Secret"), "secrets are made elsewhere");
}

/// Processes as the rendered objects start them, on addresses and in folders of the test.
struct World {
    site: Site,
    container: Value,
    grace: Duration,
    _database: Database,
}

impl World {
    fn new(upstream: &Upstream) -> Self {
        let mut site = Site::empty();
        site.write("models.toml", &model(upstream));
        let models = format!("config={}", site.path("models.toml").display());
        let objects = objects(&rendered(&["--set", "drain.delaySeconds=2", "--set-file", &models]));
        let pod = &object(&objects, "Deployment", "shop-holdfast")["spec"]["template"]["spec"];
        let text = object(&objects, "ConfigMap", "shop-holdfast")["data"]["holdfast.toml"].as_str();
        let text = text.unwrap();
        let grace = pod["terminationGracePeriodSeconds"].as_u64().unwrap();
        assert_eq!(grace, grace_period(text));
        let database = Database::make();
        std::fs::create_dir(site.path("secrets")).unwrap();
        for (name, secret) in [
            ("server-secret", "0123456789abcdef0123456789abcdef".to_owned()),
            ("admin-token", "a-token-of-the-operator".to_owned()),
            ("database-url", database.url()),
        ] {
            let file = format!("secrets/{name}");
            site.write(&file, &secret);
            std::fs::set_permissions(site.path(&file), Permissions::from_mode(0o440)).unwrap();
        }
        let mut config = text.replace(SECRETS, &site.path("secrets").display().to_string());
        for port in ["8080", "8081", "8082"] {
            config = config.replace(&format!("\"0.0.0.0:{port}\""), "\"127.0.0.1:0\"");
        }
        // The kernel chooses the port here: the file cannot say it.
        let advertise = setting(text, "advertise = ");
        assert_eq!(advertise, "${POD_IP}:8082");
        config = config.replace(&format!("advertise = \"{advertise}\"\n"), "");
        site.write("holdfast.toml", &config);
        let container = pod["containers"][0].clone();
        for variable in container["env"].as_array().unwrap() {
            site = match variable["name"].as_str().unwrap() {
                "POD_IP" => site.with_env("POD_IP", "127.0.0.1"),
                "HOLDFAST_CONFIG" => {
                    assert_eq!(variable["value"], "/etc/holdfast/holdfast.toml");
                    site.with_env("HOLDFAST_CONFIG", "holdfast.toml")
                }
                other => panic!("{other} is new"),
            };
        }
        let job = object(&objects, "Job", "shop-holdfast-migration");
        let migration = &job["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(migration["env"], container["env"]);
        drop(site.cli(&words(&migration["args"])).ok());
        Self { site, container, grace: Duration::from_secs(grace), _database: database }
    }

    fn gateway(&self) -> Gateway {
        let mut command = self.site.command();
        command.args(words(&self.container["args"]));
        self.site.start(command)
    }

    /// The status that a probe of the container finds.
    fn probe(&self, name: &str, gateway: &Gateway) -> u16 {
        let get = &self.container[name]["httpGet"];
        assert_eq!(get["port"], "http");
        gateway.send(&Request::get(get["path"].as_str().unwrap())).status
    }
}

#[test]
fn postgres_helm_a_gateway_as_it_is_rendered_ends_within_its_grace_period_and_loses_nothing() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let world = World::new(&upstream);
    let account = world.site.account("main", "USD", "10.00");
    let [old, new] = [world.gateway(), world.gateway()];
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert_eq!(world.probe(probe, &old), 200, "{probe}");
    }
    let running = request_key();
    let begun = Request::completion(&account.key, &running, acme("Say hello")).begin(old.address());
    upstream.wait_for(1);
    let asked = Instant::now();
    old.terminate();
    until("it is not ready", || (world.probe("readinessProbe", &old) == 503).then_some(()));
    assert_eq!(world.probe("livenessProbe", &old), 200, "nobody kills what drains");
    // It is served on until whoever routes has seen that.
    let late = request_key();
    let late_begun =
        Request::completion(&account.key, &late, acme("Say hello")).begin(old.address());
    upstream.wait_for(2);
    gate.open();
    check_completion(&begun.answer(), &running, false);
    check_completion(&late_begun.answer(), &late, false);
    assert!(old.wait().success());
    assert!(asked.elapsed() < world.grace, "{:?}", asked.elapsed());
    check_completion(&new.complete(&account, &late, &acme("Say hello")), &late, true);
    assert_eq!(upstream.runs(), 2, "each ran once");
    world.site.verify();
    new.stop();
}

#[test]
fn helm_gives_a_new_pod_before_it_takes_an_old_one() {
    let objects = objects(&rendered(&[]));
    let spec = &object(&objects, "Deployment", "shop-holdfast")["spec"];
    assert_eq!(spec["strategy"]["rollingUpdate"], json!({"maxSurge": 1, "maxUnavailable": 0}));
    let readiness = &spec["template"]["spec"]["containers"][0]["readinessProbe"];
    let seen = readiness["periodSeconds"].as_u64().unwrap()
        * readiness["failureThreshold"].as_u64().unwrap()
        + readiness["timeoutSeconds"].as_u64().unwrap();
    let text = object(&objects, "ConfigMap", "shop-holdfast")["data"]["holdfast.toml"].as_str();
    let delay = crate::compose::seconds(setting(text.unwrap(), "drain_delay = "));
    assert!(delay > seen, "{delay} s, and the probe needs {seen}");
}
