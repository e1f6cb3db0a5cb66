//! Several servers in `database.url`: the primary among them is found, by every process and after each promotion.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use holdfast_tests::cluster::Cluster;
use holdfast_tests::postgres::Database;
use holdfast_tests::{Account, Config, Gateway, Ran, Reply, Request, Site, Upstream, request_key};

use tempfile::TempDir;

use crate::admin::{metrics, value};
use crate::bodies::acme;
use crate::check::{check_completion, check_json, until};

/// Part of every host's URL that no output may show.
const PASSWORD: &str = "hunter2";

/// The hosts in this order, as one URL without a database.
fn url(hosts: &[&Path]) -> String {
    let hosts: Vec<_> = hosts.iter().map(|host| host.display().to_string()).collect();
    let hosts = hosts.join(",");
    format!("postgres://holdfast:{PASSWORD}@localhost?target_session_attrs=read-write&host={hosts}")
}

/// A primary with a synchronous standby, both of which are named, and a gateway.
struct World {
    gateway: Gateway,
    site: Site,
    account: Account,
    upstream: Upstream,
    database: Database,
    /// The first host: the folder of a socket that does not exist.
    spare: PathBuf,
    cluster: Cluster,
    _elsewhere: TempDir,
}

impl World {
    /// The standby is named before its primary.
    fn start() -> Self {
        let mut cluster = Cluster::start_with(Vec::new());
        cluster.follow();
        let elsewhere = tempfile::tempdir().unwrap();
        let spare = elsewhere.path().join("spare");
        let database =
            Database::make_on(url(&[spare.as_path(), cluster.standby_folder(), cluster.folder()]));
        let upstream = Upstream::start(Reply::saying("Good day"));
        let (site, account) = Site::funded(&database.configure(Config::upstream(&upstream)));
        let gateway = site.serve();
        Self { gateway, site, account, upstream, database, spare, cluster, _elsewhere: elsewhere }
    }

    /// Name of the database.
    fn name(&self) -> String {
        let url = self.database.url();
        url.split_once('?').unwrap().0.rsplit_once('/').unwrap().1.to_owned()
    }

    fn durability(gateway: &Gateway) -> String {
        let ready = gateway.send(&Request::get("/readyz"));
        ready.json()["durability"].as_str().unwrap().to_owned()
    }

    /// Sessions whose commit of this statement waits for the standby.
    fn waiting(&self, statement: &str) -> bool {
        let sql = format!(
            "SELECT count(*) > 0 FROM pg_stat_activity
             WHERE wait_event = 'SyncRep' AND query LIKE '{statement}'"
        );
        self.database.execute(&sql) == ["t"]
    }

    /// A new key that completes, once a primary is there.
    fn complete_in_time(&self) {
        let key = request_key();
        until("a new key is answered", || {
            let answer = self.gateway.complete(&self.account, &key, &acme("Say hello"));
            (answer.status == 200).then_some(())
        });
    }
}

#[test]
fn postgres_the_primary_is_found_behind_a_standby_and_again_after_its_promotion() {
    let mut world = World::start();
    let key = request_key();
    let first = world.gateway.complete(&world.account, &key, &acme("Say hello"));
    check_completion(&first, &key, false);
    world.cluster.kill();
    drop(world.cluster.switch_over());
    world.complete_in_time();
    let again = world.gateway.complete(&world.account, &key, &acme("Say hello"));
    check_completion(&again, &key, true);
    assert_eq!(again.body, first.body);
    assert_eq!(world.upstream.runs(), 2);
    world.site.verify();
    world.database.check_book();
    let said = world.gateway.said();
    assert!(said.contains("the primary of the database was found"), "{said}");
}

#[test]
fn postgres_without_a_primary_each_host_is_named_with_its_reason() {
    let mut world = World::start();
    // As a proxy does that knows no primary.
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = proxy.local_addr().unwrap().port();
    std::thread::spawn(move || proxy.incoming().for_each(drop));
    world.cluster.kill();
    let standby = world.cluster.standby_folder().display().to_string();
    let name = world.name();
    let hosts = format!("host=/nowhere,{standby},127.0.0.1&port=5432,5432,{port}");
    let url = format!("postgres://holdfast:{PASSWORD}@localhost/{name}?{hosts}");
    let mut command = world.site.command();
    command.args(["wallet", "list"]).env("HOLDFAST_DATABASE_URL", url);
    let refused = Ran::of(&mut command).failed(1);
    for reason in [
        "none of the servers is a primary that can be used: /nowhere cannot be reached (",
        &format!("; {standby} is a standby; "),
        &format!("; 127.0.0.1:{port} closed the connection before it answered: a proxy"),
    ] {
        assert!(refused.contains(reason), "{reason}: {refused}");
    }
    // The gateway goes on by itself, and says so once.
    let reports = || world.gateway.said().contains("none of the servers is").then_some(());
    until("the gateway reports it", reports);
    assert!(!refused.contains(PASSWORD) && !world.gateway.said().contains(PASSWORD));
    world.cluster.start_again();
    world.complete_in_time();
}

#[test]
fn postgres_durability_is_shown_everywhere_and_may_be_required() {
    let world = World::start();
    let shown = |world: &World| {
        let nodes = world.site.json(&["node", "list"]);
        nodes.as_array().unwrap()[0]["durability"].as_str().unwrap().to_owned()
    };
    check_json(&world.gateway.send(&Request::get("/readyz")), 200);
    assert_eq!(
        (World::durability(&world.gateway), shown(&world)),
        ("replicated".into(), "replicated".into())
    );
    let gauge = |gateway: &Gateway| value(&metrics(gateway), "holdfast_commits_replicated", "");
    assert_eq!(gauge(&world.gateway), 1.0);
    assert!(!world.gateway.said().contains("is synchronous"));
    world.cluster.execute("ALTER SYSTEM SET synchronous_standby_names = ''");
    world.cluster.execute("SELECT pg_reload_conf()");
    let is_local = || (World::durability(&world.gateway) == "local").then_some(());
    until("a heartbeat shows it", is_local);
    assert_eq!((shown(&world), gauge(&world.gateway)), ("local".into(), 0.0));
    let other = world.site.serve();
    assert_eq!(World::durability(&other), "local");
    let warning = "no standby of the PostgreSQL server is synchronous";
    assert_eq!(other.said().matches(warning).count(), 1, "{}", other.said());
    let config = world.database.configure(Config::upstream(&world.upstream));
    world.site.configure(&config.set("database", "require_synchronous", "true"));
    let refused = world.site.cli(&["serve"]).failed(1);
    assert!(
        refused.contains("database.require_synchronous is set: set its synchronous"),
        "{refused}"
    );
    let file =
        Site::configured(&Config::simulated().set("database", "require_synchronous", "true"));
    let refused = file.cli(&["check-config"]).failed(2);
    assert!(refused.contains("`database.require_synchronous` is for a PostgreSQL"), "{refused}");
}

#[test]
fn postgres_an_old_primary_and_another_database_are_not_used() {
    let mut world = World::start();
    world.cluster.kill();
    let mut old = world.cluster.switch_over();
    world.complete_in_time();
    // Under their known addresses, and each would take writes.
    old.start_again_alone();
    let other = Cluster::start_with(Vec::new());
    other.execute(&format!("CREATE DATABASE {}", world.name()));
    std::os::unix::fs::symlink(other.folder(), &world.spare).unwrap();
    world.cluster.kill();
    let old_one = "is on timeline 1 and was replaced by a primary on timeline 2";
    let other_one = "has another system identifier than the server before it";
    until("both are refused", || {
        let key = request_key();
        let answer = world.gateway.complete(&world.account, &key, &acme("Say hello"));
        assert_eq!(answer.status, 503, "{answer:?}");
        let said = world.gateway.said();
        (said.contains(old_one) && said.contains(other_one)).then_some(())
    });
    world.cluster.start_again();
    world.complete_in_time();
    std::fs::remove_file(&world.spare).unwrap();
    drop(old);
    world.database.check_book();
}

#[test]
fn postgres_a_claim_that_only_a_restarted_primary_has_is_not_run() {
    let mut world = World::start();
    // Opens the connections that a claim needs: no new one is used from here on.
    world.complete_in_time();
    world.cluster.kill_standby();
    let key = request_key();
    let request = Request::completion(&world.account.key, &key, acme("Say hello"));
    let running = request.begin(world.gateway.address());
    until("the claim waits for its standby", || {
        world.waiting("%WHERE false; COMMIT").then_some(())
    });
    world.cluster.kill();
    world.cluster.start_again();
    assert_eq!(world.database.execute("SELECT count(*) FROM operations"), ["2"]);
    let is_proving = || world.waiting("%pg_logical_emit_message%").then_some(());
    until("the gateway does not believe it", is_proving);
    assert_eq!(world.upstream.runs(), 1);
    world.cluster.kill();
    world.cluster.start_standby_again();
    drop(world.cluster.switch_over());
    until("the key is answered", || {
        let answer = world.gateway.send(&request);
        (answer.status == 200).then_some(())
    });
    drop(running);
    assert_eq!(world.upstream.runs(), 2);
    let said = world.gateway.said();
    assert!(!said.contains("the database has lost a claim"), "{said}");
    world.site.verify();
}
