//! `cargo xtask chaos`: kills gateways under load for as long as one likes, with a report.
//!
//! The same loads and the same checks as in the suite, which does a few dozen of each.

use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::{
    gateway,
    postgres::{PostgresServer, Purpose},
    previous,
    shell::{self, print_line},
    tools::{debian, helm, patroni},
    workspace::Workspace,
};

/// Kinds of chaos, and the default number of runs of each.
const KINDS: [(&str, u32); 13] = [
    ("file", 200),
    ("nodes", 60),
    ("server", 24),
    ("clocks", 24),
    (UPDATE, 24),
    ("matrix", 288),
    ("racers", 1_000),
    (HISTORIES, 200),
    ("node-histories", 60),
    (SIDECAR, 500),
    (CHAIN, 300),
    (BALANCER, 20),
    (PATRONI, 6),
];
/// The one that needs the release before.
const UPDATE: &str = "update";
/// The one that needs the balancer, and the chart.
const BALANCER: &str = "balancer";
/// The one whose servers Patroni runs.
const PATRONI: &str = "patroni";
/// Kinds that need no database server.
const FILE: &str = "file";
const SIDECAR: &str = "sidecar";
const CHAIN: &str = "chain";
const HISTORIES: &str = "histories";

#[derive(Debug, PartialEq, Eq)]
struct ChaosRun {
    kind: &'static str,
    kills: u32,
    seed: Option<u64>,
}

/// Runs the kinds that `args` name, all in turn if none is named; true if all passed.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<bool> {
    let asked = parse(args)?;
    let Some(built) = gateway::build(workspace, gateway::Profile::Dev)? else { return Ok(false) };
    // It takes so long that another build may replace the binary meanwhile.
    let gateway = gateway::put_aside(&built, &workspace.target.join("chaos"))?;
    let server =
        match asked.iter().all(|asked| [FILE, SIDECAR, CHAIN, HISTORIES].contains(&asked.kind)) {
            true => None,
            false => Some(PostgresServer::start(Purpose::Tests)?),
        };
    let mut passed = true;
    for ChaosRun { kind, kills, seed } in asked {
        // Printed with a failure: the same seed repeats the same loads and kills.
        let seed = seed.map_or_else(seed_of_now, Ok)?;
        let mut cargo = shell::cargo(&workspace.root);
        cargo.args(["run", "--quiet", "--package", "holdfast-tests", "--bin", "chaos", "--"]);
        cargo.args([kind, &kills.to_string(), &seed.to_string()]).env("HOLDFAST_BIN", &gateway);
        cargo.env("HOLDFAST_HISTORIES", workspace.target.join(HISTORIES));
        if let Some(server) = &server {
            cargo.envs(server.env());
        }
        if kind == UPDATE {
            cargo.env(previous::VARIABLE, previous::build(workspace)?);
        }
        if kind == BALANCER {
            cargo.env("HOLDFAST_TEST_HAPROXY", debian::find(workspace, debian::HAPROXY)?);
            cargo.env("HOLDFAST_TEST_HELM", helm::find(workspace)?);
        }
        if kind == PATRONI {
            cargo.env("HOLDFAST_TEST_HAPROXY", debian::find(workspace, debian::HAPROXY)?);
            cargo.env("HOLDFAST_TEST_ETCD", debian::find(workspace, debian::ETCD)?);
            cargo.env("HOLDFAST_TEST_PATRONI", patroni::find(workspace)?);
        }
        if !shell::run(&mut cargo)? {
            print_line(&format!(
                "again: cargo xtask chaos --on {kind} --kills {kills} --seed {seed}"
            ))?;
            passed = false;
        }
    }
    Ok(passed)
}

fn parse(args: &[String]) -> Result<Vec<ChaosRun>> {
    let (mut wanted, mut kills, mut seed) = (None, None, None);
    let mut options = args.iter();
    while let Some(option) = options.next() {
        let value = options.next().with_context(|| format!("{option} wants a value"))?;
        match option.as_str() {
            "--on" => wanted = Some(kind(value)?),
            "--kills" => kills = Some(value.parse().context("--kills wants a number")?),
            "--seed" => seed = Some(value.parse().context("--seed wants a number")?),
            _ => bail!("chaos takes --on KIND, --kills N and --seed S"),
        }
    }
    let kinds = match (args.is_empty(), wanted) {
        (true, _) => KINDS.to_vec(),
        (false, Some(kind)) => vec![kind],
        (false, None) => KINDS.into_iter().filter(|(kind, _)| *kind == FILE).collect(),
    };
    let asked = |(kind, usual)| ChaosRun { kind, kills: kills.unwrap_or(usual), seed };
    Ok(kinds.into_iter().map(asked).collect())
}

fn kind(name: &str) -> Result<(&'static str, u32)> {
    let kind = KINDS.into_iter().find(|(kind, _)| *kind == name);
    kind.with_context(|| format!("--on wants one of {}", names().join(", ")))
}

/// Names of all kinds.
pub(crate) fn names() -> [&'static str; KINDS.len()] {
    KINDS.map(|(kind, _)| kind)
}

fn seed_of_now() -> Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(now.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Option<Vec<ChaosRun>> {
        let args: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
        parse(&args).ok()
    }

    #[test]
    fn what_is_not_said_is_chosen() {
        let all = parsed(&[]).unwrap();
        let all: Vec<_> = all.into_iter().map(|asked| (asked.kind, asked.kills)).collect();
        assert_eq!(all, KINDS);
        let file = |kills, seed| Some(vec![ChaosRun { kind: FILE, kills, seed }]);
        assert_eq!(parsed(&["--seed", "7"]), file(200, Some(7)));
        assert_eq!(parsed(&["--kills", "3", "--seed", "7"]), file(3, Some(7)));
        let nodes = vec![ChaosRun { kind: "nodes", kills: 60, seed: None }];
        assert_eq!(parsed(&["--on", "nodes"]), Some(nodes));
        for bad in [&["--kills"][..], &["--kills", "many"], &["--hours", "3"], &["--on", "fire"]] {
            assert_eq!(parsed(bad), None, "{bad:?}");
        }
    }
}
