//! Two cells as `deploy/cells` describes them: installations with a database each behind one balancer, which routes by
//! the beginning of the API key. The shipped file of the balancer runs in HAProxy, with the map that is shipped and a
//! line for an API key that is older than its cell.

use holdfast_tests::haproxy::{BalancerFile, HaProxy};
use holdfast_tests::postgres::Database;
use holdfast_tests::{Account, Config, Gateway, Reply, Request, Site, Upstream, request_key};

use crate::bodies::acme;
use crate::check::check_completion;

const BALANCER: &str = include_str!("../../../deploy/cells/haproxy.cfg");
const MAP: &str = include_str!("../../../deploy/cells/cells.map");
const FILES: [(&str, &str); 2] = [
    ("0A", include_str!("../../../deploy/cells/0A.toml")),
    ("0B", include_str!("../../../deploy/cells/0B.toml")),
];
const MAP_IN_IMAGE: &str = "/usr/local/etc/haproxy/cells.map";
const FUNDS: i64 = 10_000_000;
const CHARGE: i64 = 367;

/// An installation of one cell.
struct CellSite {
    site: Site,
    gateway: Gateway,
    account: Account,
    _database: Database,
}

impl CellSite {
    /// Installs a cell whose server secret is its own. `before` runs while the installation has no cell.
    fn start(name: &str, upstream: &Upstream, before: impl FnOnce(&Site)) -> Self {
        let database = Database::migrated();
        let config = database.configure(Config::upstream(upstream)).set(
            "server",
            "secrets",
            &format!("[\"a secret of the cell {name} alone\"]"),
        );
        let site = Site::configured(&config);
        before(&site);
        site.configure(&config.set("server", "cell", &format!("\"{name}\"")));
        let account = site.account(&format!("main-{name}"), "USD", "10.00");
        assert!(account.key.starts_with(&format!("hfk_{name}")), "{}", account.key);
        let gateway = site.serve();
        Self { site, gateway, account, _database: database }
    }

    /// Ends it, after its book was verified and has this many charges of its wallet.
    fn end(self, runs: i64) {
        assert_eq!(self.site.balance(&self.account), (FUNDS - runs * CHARGE, 0));
        self.site.verify();
        self.gateway.stop();
    }
}

#[test]
fn postgres_each_api_key_runs_in_its_own_cell_and_in_no_other() {
    let upstream = Upstream::start(Reply::saying("Good day"));
    let mut old = None;
    let first = CellSite::start("0A", &upstream, |site| {
        old = Some(site.account("old", "USD", "10.00"));
    });
    let second = CellSite::start("0B", &upstream, |_site| {});
    let old = old.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("cells.map");
    let (prefix, _secret) = old.key.rsplit_once('_').unwrap();
    std::fs::write(&map, format!("{MAP}{prefix} cell_0A\n")).unwrap();
    let map = map.display().to_string();
    let here = |file: BalancerFile| {
        let server = |file: BalancerFile, cell: &str, gateway: &Gateway| {
            let described = format!("gateway-{cell} gateway-{cell}:8080");
            file.replace(&described, &format!("gateway-{cell} {}", gateway.address()))
        };
        let file = server(file, "0a", &first.gateway);
        server(file, "0b", &second.gateway).replace(MAP_IN_IMAGE, &map)
    };
    let balancer = HaProxy::start(BALANCER, here);
    for backend in ["cell_0A", "cell_0B"] {
        balancer.wait_for(backend, 1);
    }
    let send = |bearer: &str, key: &str| {
        Request::completion(bearer, key, acme("Say hello")).send(balancer.address())
    };

    for account in [&first.account, &second.account, &old] {
        let key = request_key();
        check_completion(&send(&account.key, &key), &key, false);
        check_completion(&send(&account.key, &key), &key, true);
    }
    assert_eq!(upstream.runs(), 3);

    // The longest beginning decides: a line for all other keys takes none of these.
    drop(balancer.say(&format!("add map {map} hfk_ cell_0B")));
    for account in [&first.account, &old] {
        let key = request_key();
        check_completion(&send(&account.key, &key), &key, false);
    }
    drop(balancer.say(&format!("del map {map} hfk_")));

    // A cell that the map does not have is refused by the balancer, as a gateway refuses.
    let stranger = first.account.key.replace("hfk_0A", "hfk_0C");
    let refused = send(&stranger, &request_key());
    assert_eq!(refused.status, 401, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "invalid_api_key");

    // With a wrong map the gateway of another cell refuses, and names the cell that the key is of.
    let key = request_key();
    drop(balancer.say(&format!("set map {map} hfk_0A cell_0B")));
    let refused = send(&first.account.key, &key);
    assert_eq!(refused.status, 401, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "invalid_api_key");
    drop(balancer.say(&format!("set map {map} hfk_0A cell_0A")));
    check_completion(&send(&first.account.key, &key), &key, false);
    assert_eq!(upstream.runs(), 6, "it ran in its own cell alone");
    let said = second.site.logs();
    let named = said.lines().filter(|line| line.contains("an API key of another cell"));
    let named: Vec<_> = named.filter(|line| line.contains("0A")).collect();
    assert_eq!(named.len(), 1, "{said}");

    assert_eq!(first.site.balance(&old), (FUNDS - 2 * CHARGE, 0));
    first.end(3);
    second.end(1);
}

#[test]
fn an_admin_key_is_of_its_cell_and_another_cell_is_named() {
    let admin = Config::simulated().set("server", "cell", "\"0A\"");
    let (site, _account) = Site::funded(&admin);
    let gateway = site.serve();
    let issued = site.json(&["admin-key", "issue", "--name", "me", "--role", "owner"]);
    let key = issued["key"].as_str().unwrap();
    assert!(key.starts_with("hfa_0A"), "{key}");
    let ask = |bearer: &str| {
        let request = Request::get("/admin/v1/wallets").host("localhost").bearer(bearer);
        let request = request.host(&format!("localhost:{}", gateway.admin_address().port()));
        request.send(gateway.admin_address()).status
    };
    assert_eq!(ask(key), 200);
    assert_eq!(ask(&key.replace("hfa_0A", "hfa_0B")), 401);
    assert_eq!(ask(&key.replace("hfa_0A", "hfa_zz")), 401);
    gateway.stop();
    let said = site.logs();
    assert_eq!(said.matches("an admin key of another cell").count(), 1, "{said}");
}

#[test]
fn a_cell_that_is_none_is_refused_with_an_example() {
    let site = Site::configured(&Config::simulated().set("server", "cell", "\"7A\""));
    let checked = site.cli(&["check-config"]);
    assert_eq!(checked.code, Some(2), "{checked:?}");
    assert!(checked.stderr.contains("`server.cell` is not a cell"), "{checked:?}");
    assert!(checked.stderr.contains("0A"), "{checked:?}");
}

#[test]
fn the_files_of_two_cells_differ_in_their_names_alone() {
    let [(first, one), (second, other)] = FILES;
    assert_eq!(one.replace(first, second).replace("postgres-0a", "postgres-0b"), other);
    for (cell, config) in FILES {
        assert!(config.contains(&format!("cell = \"{cell}\"\n")));
        assert!(MAP.contains(&format!("hfk_{cell} cell_{cell}\n")));
        let small = cell.to_lowercase();
        let server = format!("backend cell_{cell}\n");
        assert_eq!(BALANCER.matches(&server).count(), 1);
        assert!(BALANCER.contains(&format!("server gateway-{small} gateway-{small}:8080")));
        let mut site = Site::empty();
        site.write("holdfast.toml", config);
        for (name, value) in
            [("DB_PASSWORD", "pw"), ("HOLDFAST_ADMIN_TOKEN", "a-token-of-the-operator")]
        {
            site.set_env(name, value);
        }
        site.set_env(&format!("HOLDFAST_SECRET_{cell}"), "0123456789abcdef0123456789abcdef");
        drop(site.cli(&["check-config"]).ok());
    }
}
