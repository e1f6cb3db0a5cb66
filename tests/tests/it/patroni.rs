//! The files of `deploy/patroni`: that they can be read, and say the same of the three machines.

use std::path::Path;
use std::process::Command;

use holdfast_tests::Ran;
use holdfast_tests::deployment::{objects, setting};
use holdfast_tests::haproxy::libraries;
use holdfast_tests::patroni::validate;

const PATRONI: &str = include_str!("../../../deploy/patroni/patroni.yml");
const BALANCER: &str = include_str!("../../../deploy/patroni/haproxy.cfg");
const ETCD: &str = include_str!("../../../deploy/patroni/etcd");
const PAGE: &str = include_str!("../../../docs/how-to/run-postgresql-with-patroni.md");

#[test]
fn patroni_loses_no_commit_and_its_times_fit_each_other() {
    let patroni = objects(PATRONI).remove(0);
    let shared = &patroni["bootstrap"]["dcs"];
    assert_eq!(shared["synchronous_mode"], "quorum");
    assert_eq!(shared["synchronous_mode_strict"], true);
    assert_eq!(shared["primary_start_timeout"], 0);
    let seconds = |name: &str| shared[name].as_u64().unwrap();
    // Patroni's rule; it would change them by itself.
    assert!(seconds("loop_wait") + 2 * seconds("retry_timeout") <= seconds("ttl"), "{shared}");
    let said = format!("`ttl` {}, `loop_wait` {}, quorum", seconds("ttl"), seconds("loop_wait"));
    assert!(PAGE.contains(&said), "{said}");
    let initdb = patroni["bootstrap"]["initdb"].as_array().unwrap();
    assert!(initdb.contains(&"data-checksums".into()), "{initdb:?}");
    assert_eq!(shared["postgresql"]["use_pg_rewind"], true);
}

#[test]
fn patroni_and_its_neighbours_name_the_same_machines() {
    let patroni = objects(PATRONI).remove(0);
    let hosts = patroni["etcd3"]["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 3);
    let rest = patroni["restapi"]["listen"].as_str().unwrap().rsplit_once(':').unwrap().1;
    let server = patroni["postgresql"]["listen"].as_str().unwrap().rsplit_once(':').unwrap().1;
    for (n, host) in hosts.iter().enumerate() {
        let (address, port) = host.as_str().unwrap().split_once(':').unwrap();
        let name = format!("pg-{}", n + 1);
        let line = format!("    server {name} {address}:{server} check port {rest}\n");
        assert!(BALANCER.contains(&line), "{line}");
        let peer = format!("{name}=http://{address}:");
        assert!(setting(ETCD, "ETCD_INITIAL_CLUSTER=").contains(&peer), "{peer}");
        assert!(PAGE.contains(&format!("{address}:{server}")), "{address}");
        assert!(n > 0 || setting(ETCD, "ETCD_ADVERTISE_CLIENT_URLS=").ends_with(port));
    }
    let own = patroni["postgresql"]["connect_address"].as_str().unwrap();
    assert!(BALANCER.contains(&format!("server {} {own} ", patroni["name"].as_str().unwrap())));
}

#[test]
fn postgres_patroni_accepts_its_shipped_file() {
    let shipped = validate(|file| file);
    assert_eq!((shipped.code, shipped.stdout.as_str()), (Some(0), ""), "{shipped:?}");
    // A wrong value is found, so the right ones were read.
    for (value, wrong) in
        [("synchronous_mode: quorum", "synchronous_mode: most"), ("ttl: 20", "ttl: 2")]
    {
        let refused = validate(|file| file.replace(value, wrong));
        let name = wrong.split(':').next().unwrap();
        assert!(refused.code == Some(1) && format!("{refused:?}").contains(name), "{refused:?}");
    }
}

#[test]
fn postgres_haproxy_understands_the_balancer_of_patroni() {
    let program =
        std::env::var_os("HOLDFAST_TEST_HAPROXY").expect("`cargo xtask test tests` sets it");
    let program = Path::new(&program);
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/patroni/haproxy.cfg");
    let mut command = Command::new(program);
    command.args(["-c", "-f"]).arg(file).env("LD_LIBRARY_PATH", libraries(program));
    let read = Ran::of(&mut command);
    assert_eq!(read.code, Some(0), "{read:?}");
    // It warns of what a person should look at.
    assert!(!format!("{read:?}").contains("WARNING"), "{read:?}");
}
