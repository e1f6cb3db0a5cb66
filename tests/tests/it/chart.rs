//! The chart of `deploy/helm`, rendered by Helm: held against Kubernetes' own schemas, and run as far as
//! processes can be run without a cluster: by the commands, environment, configuration, probes and grace period
//! that the rendered objects have.

use std::process::Command;
use std::time::Instant;

use holdfast_tests::deployment::{
    Deployment, Source, notes, object, objects, rendered, seconds, setting, try_rendered, words,
};
use holdfast_tests::postgres::Database;
use holdfast_tests::{Gate, Gateway, Ran, Reply, Request, Site, Upstream, request_key};
use serde_json::{Value, json};

use crate::bodies::acme;
use crate::check::{check_completion, until};
use crate::clients::given;
use crate::compose::grace_period;

/// Values that switch on what is off by itself.
const EVERYTHING: [&str; 20] = [
    "--set",
    "serviceMonitor.enabled=true",
    "--set",
    "prometheusRule.enabled=true",
    "--set",
    "prometheusRule.runbookBase=https://git.example.com/holdfast/",
    "--set-json",
    r#"networkPolicy.adminFrom=[{"namespaceSelector":{"matchLabels":{"name":"monitoring"}}}]"#,
    "--set",
    "server.url=https://api.example.com",
    "--set",
    "server.trustedProxies={10.0.0.0/8,192.0.2.1}",
    "--set",
    "admin.url=https://admin.example.com",
    "--set",
    "admin.proxies={127.0.0.0/8}",
    "--set",
    "console.url=https://wallet.example.com",
    "--set",
    "console.playground=true",
];
/// A delay that a test can wait for.
const SHORT_DELAY: [&str; 2] = ["--set", "drain.delaySeconds=6"];
const SECRETS: &str = "/run/secrets/holdfast";
const RESTORE_PAGE: &str = include_str!("../../../docs/how-to/back-up-and-restore.md");

/// The verdict of Kubernetes' schemas on these objects.
fn judge(text: &str) -> Ran {
    let site = Site::empty();
    site.write("objects.yaml", text);
    let mut python = Command::new(given("HOLDFAST_TEST_PYTHON"));
    python.args(["-m", "kubernetes_validate", "--strict", "--quiet"]);
    Ran::of(python.arg(site.path("objects.yaml")))
}

#[test]
fn helm_renders_objects_that_kubernetes_takes() {
    let judged = judge(&rendered(&EVERYTHING));
    assert_eq!(judged.code, Some(0), "{judged:?}");
    // Two are of the Prometheus operator, and in no schema of Kubernetes; nothing else is unknown.
    let output = format!("{}{}", judged.stdout, judged.stderr);
    assert_eq!(output.matches("find schema").count(), 2, "{output}");
    for kind in ["ServiceMonitor", "PrometheusRule"] {
        assert!(output.contains(&format!("kind {kind}")), "{output}");
    }
    // A field of another name is refused.
    let wrong =
        rendered(&EVERYTHING).replace("terminationGracePeriodSeconds", "gracePeriodSeconds");
    assert_eq!(judge(&wrong).code, Some(1));
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
    for name in ["shop-holdfast", "shop-holdfast-admin", "shop-holdfast-console"] {
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

#[test]
fn helm_alerts_are_those_of_the_rules_with_the_full_address_of_their_sections() {
    let rules = include_str!("../../../deploy/prometheus/rules.yml");
    let rendered_rules = |options: &[&str]| {
        let objects = objects(&rendered(options));
        object(&objects, "PrometheusRule", "shop-holdfast")["spec"].clone()
    };
    let plain = rendered_rules(&["--set", "prometheusRule.enabled=true"]);
    assert_eq!(plain, objects(rules)[0]);
    let based = rendered_rules(&EVERYTHING);
    let alerts = based["groups"][0]["rules"].as_array().unwrap();
    assert_eq!(alerts.len(), rules.matches("- alert: ").count());
    let base = "https://git.example.com/holdfast/docs/how-to/respond-to-alerts.md#holdfast";
    for alert in alerts {
        let runbook = alert["annotations"]["runbook_url"].as_str().unwrap();
        assert!(runbook.starts_with(base), "{runbook}");
    }
    assert!(!rendered(&[]).contains("PrometheusRule"));
}

#[test]
fn helm_opens_the_port_of_nodes_to_gateways_of_the_release_only() {
    let ingress = |options: &[&str]| {
        let objects = objects(&rendered(options));
        let policy = object(&objects, "NetworkPolicy", "shop-holdfast")["spec"].clone();
        let pod = &object(&objects, "Deployment", "shop-holdfast")["spec"];
        assert_eq!(policy["podSelector"], pod["selector"]);
        assert_eq!(policy["policyTypes"], json!(["Ingress"]));
        (policy["ingress"].as_array().unwrap().clone(), pod["selector"].clone())
    };
    let rule_of = |rules: &[Value], port: &str| {
        let of_port =
            |rule: &&Value| rule["ports"].as_array().unwrap().iter().any(|it| it["port"] == port);
        rules.iter().find(of_port).cloned()
    };
    let (rules, gateways) = ingress(&[]);
    assert_eq!(rule_of(&rules, "node").unwrap()["from"], json!([{ "podSelector": gateways }]));
    for open in ["http", "admin"] {
        assert_eq!(rule_of(&rules, open).unwrap().get("from"), None, "{open}");
    }
    assert_eq!(rule_of(&rules, "console"), None);
    let (rules, _) = ingress(&EVERYTHING);
    let monitoring = json!([{ "namespaceSelector": { "matchLabels": { "name": "monitoring" } } }]);
    assert_eq!(rule_of(&rules, "admin").unwrap()["from"], monitoring);
    assert!(rule_of(&rules, "console").is_some());
    assert!(!rendered(&["--set", "networkPolicy.enabled=false"]).contains("NetworkPolicy"));
}

#[test]
fn helm_names_an_image_by_its_digest_if_one_is_given() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let set = format!("image.digest={digest}");
    let text = rendered(&["--set", "image.tag=moved", "--set", &set]);
    let images: Vec<_> =
        text.lines().filter_map(|line| line.trim().strip_prefix("image: ")).collect();
    assert_eq!(images, [format!("holdfast@{digest}").as_str(); 3]);
}

#[test]
fn helm_lists_the_server_secrets_in_the_order_of_the_values() {
    let of = |entries: &str| format!("secrets = [{entries}]");
    let one = r#""${file:/run/secrets/holdfast/server-secret}""#;
    let two = r#""${file:/run/secrets/holdfast/server-secret-2}""#;
    assert!(rendered(&[]).contains(&of(one)));
    let rotated = rendered(&["--set", "server.secrets={server-secret-2,server-secret}"]);
    assert!(rotated.contains(&of(&format!("{two}, {one}"))), "{rotated}");
}

/// Processes as the rendered objects start them, on addresses and in folders of the test.
struct World {
    deployment: Deployment,
    site: Site,
    container: Value,
    _database: Database,
}

impl World {
    fn new(upstream: &Upstream, options: &'static [&'static str]) -> Self {
        let deployment = Deployment::of(Source::Chart(options), upstream);
        let objects = objects(&rendered(options));
        let pod = &object(&objects, "Deployment", "shop-holdfast")["spec"]["template"]["spec"];
        let text = object(&objects, "ConfigMap", "shop-holdfast")["data"]["holdfast.toml"].as_str();
        let text = text.unwrap();
        assert_eq!(deployment.grace.as_secs(), grace_period(text));
        assert_eq!(setting(text, "advertise = "), "${POD_IP}:8082");
        let container = pod["containers"][0].clone();
        let database = Database::make();
        let site = deployment.furnish(Site::empty(), &database);
        Self { deployment, site, container, _database: database }
    }

    fn gateway(&self) -> Gateway {
        self.deployment.start(&self.site)
    }

    /// The status that a probe of the container finds.
    fn probe(&self, name: &str, gateway: &Gateway) -> u16 {
        let get = &self.container[name]["httpGet"];
        // A flood of the public API does not keep its probes waiting.
        assert_eq!(get["port"], "admin");
        let ports = self.container["ports"].as_array().unwrap();
        assert!(ports.iter().any(|port| port["name"] == "admin"), "{ports:?}");
        Request::get(get["path"].as_str().unwrap()).send(gateway.admin_address()).status
    }
}

#[test]
fn postgres_helm_a_gateway_as_it_is_rendered_ends_within_its_grace_period_and_loses_nothing() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let world = World::new(&upstream, &SHORT_DELAY);
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
    assert!(asked.elapsed() < world.deployment.grace, "{:?}", asked.elapsed());
    check_completion(&new.complete(&account, &late, &acme("Say hello")), &late, true);
    assert_eq!(upstream.runs(), 2, "each ran once");
    world.site.verify();
    new.stop();
}

#[test]
fn postgres_helm_a_missing_credential_ends_an_upgrade_before_its_migration() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let world = World::new(&upstream, &[]);
    let objects = objects(&rendered(&[]));
    let job = &object(&objects, "Job", "shop-holdfast-migration")["spec"]["template"]["spec"];
    let check = &job["initContainers"][0];
    for member in ["image", "env", "volumeMounts"] {
        assert_eq!(check[member], world.container[member], "{member}");
    }
    let ran = || Ran::of(world.site.command().args(words(&check["args"])));
    assert_eq!(ran().code, Some(0), "{:?}", ran());
    std::fs::remove_file(world.site.path("secrets/admin-token")).unwrap();
    let ran = ran();
    assert!(ran.code == Some(2) && ran.stderr.contains("secrets/admin-token"), "{ran:?}");
}

#[test]
fn postgres_helm_the_job_of_the_manual_declares_a_restore_as_a_gateway_of_the_release() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let world = World::new(&upstream, &[]);
    let objects_of_release = objects(&rendered(&[]));
    let gateway = &object(&objects_of_release, "Deployment", "shop-holdfast")["spec"];
    let gateway = &gateway["template"]["spec"];
    let (_, below) = RESTORE_PAGE.split_once("```yaml\n").unwrap();
    let (job, _) = below.split_once("```").unwrap();
    assert_eq!(judge(job).code, Some(0), "{:?}", judge(job));
    // The page has the names of a release `holdfast`, the tests render `shop`.
    let job = job.replace("configMap: { name: holdfast }", "configMap: { name: shop-holdfast }");
    let job = &objects(&job)[0]["spec"]["template"]["spec"];
    for member in ["securityContext", "automountServiceAccountToken", "volumes"] {
        assert_eq!(job[member], gateway[member], "{member}");
    }
    let container = &job["containers"][0];
    for member in ["env", "securityContext", "volumeMounts"] {
        assert_eq!(container[member], world.container[member], "{member}");
    }
    let declared = Ran::of(world.site.command().args(words(&container["args"]))).ok();
    assert!(declared.contains("unknown_until"), "{declared}");
    let verified = world.site.cli(&["ledger", "verify"]).ok();
    assert!(verified.contains("unknown request keys are refused until"), "{verified}");
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
    let delay = seconds(setting(text.unwrap(), "drain_delay = "));
    assert!(delay > seen, "{delay} s, and the probe needs {seen}");
}

#[test]
fn postgres_helm_people_without_a_shell_are_served_at_the_addresses_of_the_values() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let world = World::new(&upstream, &EVERYTHING);
    let account = world.site.account("main", "USD", "10.00");
    let gateway = world.gateway();
    let issued = world.site.json(&["admin-key", "issue", "--name", "me", "--role", "owner"]);
    let wallets = Request::get("/admin/v1/wallets").bearer(issued["key"].as_str().unwrap());
    let admin = gateway.admin_address();
    let listed = wallets.clone().host("admin.example.com").send(admin).json();
    assert_eq!(listed["data"][0]["name"], "main", "{listed}");
    assert_eq!(wallets.send(admin).status, 421, "another host");
    let told = world.site.json(&["person", "invite", "ada@example.com", "--role", "owner"]);
    let link = told["url"].as_str().unwrap().strip_prefix("https://admin.example.com").unwrap();
    assert_eq!(Request::get(link).host("admin.example.com").send(admin).status, 200);
    let sign_in = Request::get("/sign-in").host("wallet.example.com");
    assert_eq!(sign_in.send(gateway.console_address()).status, 200);
    assert_eq!(gateway.complete(&account, &request_key(), &acme("Say hello")).status, 200);
    gateway.stop();
}

#[test]
fn helm_gives_no_page_without_tls_and_no_listener_without_an_address() {
    for table in ["admin", "console"] {
        let url = format!("{table}.url=http://{table}.example.com");
        let told = try_rendered(&["--set", &url]);
        let asked = format!("{table}.url must be the https:// address of a proxy with TLS");
        assert!(told.code == Some(1) && told.stderr.contains(&asked), "{told:?}");
    }
    let all = rendered(&[]);
    assert!(!all.contains("8083") && !all.contains("https://"), "{all}");
}

#[test]
fn helm_refuses_a_value_of_another_form_by_its_place() {
    for (value, place) in [
        ("replicas=many", "/replicas"),
        ("image.digest=sha256:short", "/image/digest"),
        ("log.level=loud", "/log/level"),
        ("drian.seconds=3", "drian"),
        ("service.port=0", "/service/port"),
        ("serviceMonitor.interval=30", "/serviceMonitor/interval"),
        ("prometheusRule.runbookBase=https://git.example.com", "/prometheusRule/runbookBase"),
        ("server.corsOrigins={https://a.example.com/path}", "/server/corsOrigins/0"),
        ("server.secrets=null", "secrets"),
    ] {
        let refused = try_rendered(&["--set", value]);
        assert!(refused.code == Some(1) && refused.stderr.contains(place), "{value}: {refused:?}");
    }
}

#[test]
fn helm_notes_name_objects_of_the_release_and_commands_of_the_gateway() {
    let objects = objects(&rendered(&[]));
    let notes = notes(&[]);
    for (kind, name) in [("Deployment", "shop-holdfast"), ("Service", "shop-holdfast")] {
        drop(object(&objects, kind, name).clone());
        assert!(notes.contains(&format!("{}/{name}", kind.to_lowercase())), "{notes}");
    }
    let commands: Vec<_> =
        notes.lines().filter_map(|line| line.split_once("/usr/local/bin/holdfast ")).collect();
    assert_eq!(commands.len(), 3, "{notes}");
    for (_, command) in commands {
        let mut verb = command.split_whitespace().take(2).collect::<Vec<_>>();
        verb.push("--help");
        let helped = Site::empty().cli(&verb);
        assert_eq!(helped.code, Some(0), "{command}: {helped:?}");
    }
    assert!(notes.contains("Operators' pages and the API of administration are off."), "{notes}");
}

#[test]
fn helm_replaces_pods_where_a_start_alone_reads_what_has_changed() {
    let mark = |options: &[&str]| {
        let objects = objects(&rendered(options));
        let deployment = object(&objects, "Deployment", "shop-holdfast");
        let mark = &deployment["spec"]["template"]["metadata"]["annotations"]["holdfast/process"];
        mark.as_str().unwrap().to_owned()
    };
    let plain = mark(&[]);
    assert_eq!(mark(&["--set", "config=# none"]), plain, "gateways take it as they run");
    assert_ne!(mark(&["--set", "server.url=https://api.example.com"]), plain);
    assert_ne!(mark(&EVERYTHING), plain);
}

#[test]
fn helm_reads_lists_that_are_empty_and_places_the_migration_as_the_gateways() {
    let options = [
        "--set",
        "server.trustedProxies=null,server.corsOrigins=null,console.playground=null",
        "--set",
        "admin.url=https://admin.example.com,admin.proxies=null",
        "--set",
        "nodeSelector.pool=gateways,tolerations[0].key=gateways",
    ];
    let objects = objects(&rendered(&options));
    let text = object(&objects, "ConfigMap", "shop-holdfast")["data"]["holdfast.toml"].as_str();
    let text = text.unwrap();
    for line in ["trusted_proxies = []", "cors_origins = []", "proxies = []", "playground = false"]
    {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
    for (kind, name) in [("Deployment", "shop-holdfast"), ("Job", "shop-holdfast-migration")] {
        let pod = &object(&objects, kind, name)["spec"]["template"]["spec"];
        assert_eq!(pod["nodeSelector"]["pool"], "gateways", "{pod}");
        assert_eq!(pod["tolerations"][0]["key"], "gateways", "{pod}");
    }
}
