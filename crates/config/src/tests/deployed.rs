//! Files that are handed out: the embedded default is good, and `deploy/holdfast.toml` is held to its
//! word: the values that it shows are the defaults, and it has every key.

use std::collections::BTreeSet;
use std::fmt;

use super::{DEPLOYED, LEAST, good, mistakes};
use crate::config::EMBEDDED;

#[test]
fn the_embedded_default_is_good() {
    let config = good(EMBEDDED);
    assert_eq!(config.database, good(LEAST).database);
    let models: Vec<_> = config.models.iter().map(|it| it.contract.model.as_str()).collect();
    assert_eq!(models, ["holdfast/sim-1", "holdfast/sim-tools"]);
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

/// The lines of the deployed file that are commented out are accepted too, once they are in force.
#[test]
fn what_is_left_out_of_the_deployed_file_is_good_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let logo = folder.path().join("logo.svg");
    std::fs::write(&logo, "<svg/>").unwrap();
    let text = DEPLOYED
        .replace("sqlite://holdfast-data/holdfast.db", "postgres://h@127.0.0.1/h?sslmode=disable")
        .replace("/etc/holdfast/logo.svg", logo.to_str().unwrap());
    let mut asked: Vec<_> = text.lines().map(|line| line.to_owned()).collect();
    for line in &mut asked {
        if line.starts_with('#') && !line.starts_with("# ") {
            line.remove(0);
        }
    }
    let whole = good(&asked.join("\n"));
    let holders = whole.console.holders.unwrap();
    assert!(holders.url.is_some() && whole.server.url.is_some() && !whole.console.playground);
    assert_eq!(whole.console.brand.logo.unwrap().media_type, "image/svg+xml");
    let node = whole.node.unwrap();
    assert_eq!(node.listen.first().port(), node.advertise.unwrap().port());
}

/// Every table of the deployed file is given a key that does not exist: the mistakes then tell
/// every key that does.
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
        .filter(|line| !line.starts_with("# "))
        .map(|line| line.trim_start_matches('#'))
        .flat_map(|line| line.split(['[', ']', '{', ',', '.']))
        .map(|piece| piece.split('=').next().unwrap_or(piece).trim().to_owned())
        .collect();
    assert_eq!(known.difference(&written).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(known.len() > 50, "{known:?}");
}
