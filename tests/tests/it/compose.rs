//! What `deploy/` describes: that its files say the same, and that the gateways which they start, behind a
//! balancer and on one PostgreSQL database, are replaced one after the other without losing a request. No
//! container runs here: the processes are plain ones, started by the commands, the environment and the
//! configuration file that `compose.yaml` names.

use std::net::SocketAddr;

use holdfast_tests::deployment::{Deployment, Source, objects, seconds, setting, words};
use holdfast_tests::postgres::Database;
use holdfast_tests::{
    Account, Balancer, Gate, Gateway, Reply, Request, Site, Upstream, Waiting, request_key,
};
use serde_json::{Value, json};

use crate::bodies::acme;
use crate::check::{check_completion, until};

const COMPOSE: &str = include_str!("../../../deploy/compose.yaml");
const CONFIG: &str = include_str!("../../../deploy/compose.toml");
const BALANCER: &str = include_str!("../../../deploy/haproxy.cfg");
const CONTAINERFILE: &str = include_str!("../../../deploy/Containerfile");
const CONFIG_IN_IMAGE: &str = "/etc/holdfast/holdfast.toml";
const CHARGE: i64 = 367;
const FUNDS: i64 = 10_000_000;

/// `compose.yaml`, its aliases followed.
fn compose() -> Value {
    let mut documents = objects(COMPOSE);
    assert_eq!(documents.len(), 1);
    documents.remove(0)
}

/// Seconds that docs/how-to/rolling-updates.md asks of the supervisor of a gateway with this configuration.
pub(crate) fn grace_period(config: &str) -> u64 {
    let has_delay = config.contains("drain_delay = ");
    let delay = if has_delay { seconds(setting(config, "drain_delay = ")) } else { 0 };
    delay + seconds(setting(config, "drain = ")) + 40
}

#[test]
fn gateways_wait_for_the_tables_and_are_given_the_time_to_end() {
    let compose = compose();
    let services = &compose["services"];
    let gateways = ["gateway-1", "gateway-2"];
    assert_eq!(services["migrate"]["command"], json!(["migrate", "up"]));
    let healthy = json!({"condition": "service_healthy"});
    assert_eq!(services["migrate"]["depends_on"], json!({"postgres": healthy}));
    assert_eq!(services["migrate"]["restart"], "no");
    for name in gateways {
        let gateway = &services[name];
        assert_eq!(gateway["command"], json!(["serve"]));
        let migrated = json!({"migrate": {"condition": "service_completed_successfully"}});
        assert_eq!(gateway["depends_on"], migrated);
        for member in ["image", "build", "environment", "volumes"] {
            assert_eq!(gateway[member], services["migrate"][member], "{member}");
        }
        let asked = words(&gateway["healthcheck"]["test"]);
        let port = setting(CONFIG, "listen = ").rsplit_once(':').unwrap().1;
        assert_eq!(asked.last(), Some(&format!("http://127.0.0.1:{port}/healthz")));
        assert!(BALANCER.contains(&format!("server {name} {name}:{port}\n")));
        assert_eq!(services["balancer"]["depends_on"][name], healthy);
        let patience = seconds(gateway["stop_grace_period"].as_str().unwrap());
        assert_eq!(patience, grace_period(CONFIG));
    }
    let server = services["postgres"]["image"].as_str().unwrap();
    let major = server.strip_prefix("postgres:").and_then(|tag| tag.split_once('-')).unwrap().0;
    let manual = include_str!("../../../docs/reference/postgresql-settings.md");
    assert!(manual.contains(&format!("PostgreSQL {major} is what is tested")), "{server}");
    assert!(BALANCER.contains("uri /readyz "));
    assert_eq!(BALANCER.matches("    server ").count(), gateways.len());
}

#[test]
fn the_balancer_outlasts_a_run_and_sends_nothing_twice() {
    // limits.retry_wait is not set, and its default is what holdfast.toml shows.
    assert!(!CONFIG.contains("retry_wait"));
    let shown = include_str!("../../../deploy/holdfast.toml");
    let longest = seconds(setting(shown, "retry_wait = "));
    for side in ["timeout client ", "timeout server "] {
        assert!(seconds(setting(BALANCER, side)) > longest, "{side}");
    }
    assert_eq!(setting(BALANCER, "retry-on "), "conn-failure");
    assert!(BALANCER.contains("option http-server-close\n"));
    assert!(!BALANCER.contains("option http-buffer-request"));
}

#[test]
fn the_balancer_sends_a_retry_where_its_key_is() {
    assert_eq!(setting(BALANCER, "balance "), "hdr(Idempotency-Key)");
    assert_eq!(setting(BALANCER, "hash-type "), "consistent");
}

#[test]
fn each_gateway_is_reached_by_the_other_at_its_own_name() {
    let table = CONFIG.split_once("[node]").unwrap().1;
    let port = setting(table, "listen = ").rsplit_once(':').unwrap().1;
    assert_eq!(setting(table, "advertise = "), format!("${{HOSTNAME}}:{port}"));
    for listener in ["[server]", "[admin]"] {
        let other = setting(CONFIG.split_once(listener).unwrap().1, "listen = ");
        assert!(!other.ends_with(&format!(":{port}")), "{listener}");
    }
}

#[test]
fn secrets_are_in_none_of_the_files_and_the_image_runs_as_nobody() {
    let compose = compose();
    let services = &compose["services"];
    for (name, service) in services.as_object().unwrap() {
        let variables = service.get("environment").and_then(Value::as_object);
        for (variable, value) in variables.into_iter().flatten() {
            let is_secret = !["POSTGRES_USER", "POSTGRES_DB"].contains(&variable.as_str());
            let value = value.as_str().unwrap();
            assert_eq!(value.starts_with("${") && value.ends_with('}'), is_secret, "{name}");
            assert_eq!(value.contains(":?"), is_secret, "{name}: {variable} must be given");
        }
    }
    let inside = [("postgres", 1), ("migrate", 1), ("gateway-1", 2), ("gateway-2", 2)];
    for (name, networks) in inside {
        assert_eq!(services[name]["networks"].as_array().unwrap().len(), networks, "{name}");
    }
    assert_eq!(compose["networks"]["inside"], json!({"internal": true}));
    assert_eq!(services["balancer"]["networks"], json!(["outside"]));
    for (service, file) in [("gateway-1", CONFIG_IN_IMAGE), ("balancer", "haproxy.cfg")] {
        let mounted = services[service]["volumes"][0].as_str().unwrap();
        assert!(mounted.ends_with(&format!("{file}:ro")), "{mounted}");
    }
    for (name, service) in services.as_object().unwrap() {
        // The image of the gateway names its user itself.
        let is_ours = service["image"] == "holdfast";
        assert_eq!(service.get("user").is_some(), !is_ours, "{name}");
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"], json!(["ALL"]), "{name}");
        assert_eq!(service["security_opt"], json!(["no-new-privileges:true"]), "{name}");
    }
    let build = json!({"context": "..", "dockerfile": "deploy/Containerfile"});
    assert_eq!(services["gateway-2"]["build"], build);
    assert!(CONTAINERFILE.contains("USER 10001:10001\n"));
    assert_eq!(setting(CONTAINERFILE, "ENV HOLDFAST_CONFIG="), CONFIG_IN_IMAGE);
    let toolchain = include_str!("../../../rust-toolchain.toml");
    let version = setting(toolchain, "channel = ").rsplit_once('.').unwrap().0;
    assert!(CONTAINERFILE.contains(&format!("rust:{version}-")), "{version}");
}

/// Everything but the containers: processes that are started as `compose.yaml` says, on addresses of the
/// test, and one model more.
struct World {
    deployment: Deployment,
    site: Site,
    account: Account,
    upstream: Upstream,
    _database: Database,
}

impl World {
    fn new(gate: &Gate) -> Self {
        let upstream = Upstream::start(Reply::saying("Good day").after(gate));
        let database = Database::make();
        let deployment = Deployment::of(Source::Compose, &upstream);
        let site = deployment.furnish(Site::empty(), &database);
        let account = site.account("main", "USD", "10.00");
        Self { deployment, site, account, upstream, _database: database }
    }

    fn gateway(&self) -> Gateway {
        self.deployment.start(&self.site)
    }

    fn begin(&self, to: SocketAddr, key: &str) -> Waiting {
        Request::completion(&self.account.key, key, acme("Say hello")).begin(to)
    }

    /// Stops a gateway while it runs something, and asks for more meanwhile; `other` is there too.
    fn replace(&self, gate: &Gate, old: Gateway, other: &Gateway, balancer: &Balancer) -> Gateway {
        self.upstream.otherwise(Reply::saying("Good day").after(gate));
        let before = self.upstream.runs();
        let key = request_key();
        let on_old = self.begin(old.address(), &key);
        let mut asked: Vec<(String, Waiting)> = Vec::new();
        let ask = |asked: &mut Vec<_>| {
            let key = request_key();
            let waiting = self.begin(balancer.address(), &key);
            asked.push((key, waiting));
        };
        (0..6).for_each(|_| ask(&mut asked));
        self.upstream.wait_for(before + 7);
        old.terminate();
        until("it drains", || (old.send(&Request::get("/readyz")).status == 503).then_some(()));
        (0..6).for_each(|_| ask(&mut asked));
        self.upstream.wait_for(before + 13);
        // Asked for again, over the balancer: another gateway's run is waited for.
        let again = self.begin(balancer.address(), &key);
        gate.open();
        let told = on_old.answer();
        check_completion(&told, &key, false);
        let replayed = again.answer();
        check_completion(&replayed, &key, true);
        assert_eq!(replayed.body, told.body);
        for (key, waiting) in asked {
            check_completion(&waiting.answer(), &key, false);
        }
        assert!(old.wait().success());
        assert_eq!(self.upstream.runs(), before + 13, "each ran once");
        let new = self.gateway();
        balancer.turn_to(&[new.address(), other.address()]);
        check_completion(&self.begin(balancer.address(), &key).answer(), &key, true);
        new
    }
}

#[test]
fn postgres_gateways_are_replaced_one_by_one_and_no_request_is_lost() {
    let gate = Gate::new();
    let world = World::new(&gate);
    let [first, second] = [world.gateway(), world.gateway()];
    let balancer = Balancer::before(&[first.address(), second.address()]);
    let third = world.replace(&gate, first, &second, &balancer);
    let fourth = world.replace(&Gate::new(), second, &third, &balancer);
    let runs = i64::try_from(world.upstream.runs()).unwrap();
    assert_eq!(runs, 26);
    assert_eq!(world.site.balance(&world.account), (FUNDS - runs * CHARGE, 0));
    world.site.verify();
    third.stop();
    fourth.stop();
}
