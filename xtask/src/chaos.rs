//! `cargo xtask chaos`: kills gateways under load for as long as one likes, with a report.
//!
//! The same load and the same checks as in the suite, which does a few dozen kills of it.

use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::{
    gateway,
    shell::{self, say},
    workspace::Workspace,
};

const KILLS: u32 = 200;

/// Kills as often as `args` say; whether everything was in order after each.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<bool> {
    let (kills, seed) = parse(args)?;
    let seed = seed.map_or_else(seed_of_now, Ok)?;
    let Some(gateway) = gateway::build(workspace)? else { return Ok(false) };
    // It takes long enough for somebody to build another one meanwhile.
    let gateway = gateway.kept_in(&workspace.target.join("chaos"))?;
    let mut cargo = shell::cargo(&workspace.root);
    cargo.args(["run", "--quiet", "--package", "holdfast-tests", "--bin", "chaos", "--"]);
    cargo.args(["--kills", &kills.to_string(), "--seed", &seed.to_string()]).envs(gateway.env());
    let passed = shell::run(&mut cargo)?;
    if !passed {
        say(&format!("again: cargo xtask chaos --kills {kills} --seed {seed}"))?;
    }
    Ok(passed)
}

fn parse(args: &[String]) -> Result<(u32, Option<u64>)> {
    let (mut kills, mut seed) = (KILLS, None);
    let mut args = args.iter();
    while let Some(option) = args.next() {
        let value = args.next().with_context(|| format!("{option} wants a number"))?;
        match option.as_str() {
            "--kills" => kills = value.parse().context("--kills wants a number")?,
            "--seed" => seed = Some(value.parse().context("--seed wants a number")?),
            _ => bail!("chaos takes --kills N and --seed S"),
        }
    }
    Ok((kills, seed))
}

fn seed_of_now() -> Result<u64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(now.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(args: &[&str]) -> Option<(u32, Option<u64>)> {
        let args: Vec<String> = args.iter().map(|it| (*it).to_owned()).collect();
        parse(&args).ok()
    }

    #[test]
    fn what_is_not_said_is_chosen() {
        assert_eq!(parsed(&[]), Some((KILLS, None)));
        assert_eq!(parsed(&["--seed", "7"]), Some((KILLS, Some(7))));
        assert_eq!(parsed(&["--kills", "3", "--seed", "7"]), Some((3, Some(7))));
        for bad in [&["--kills"][..], &["--kills", "many"], &["--hours", "3"]] {
            assert_eq!(parsed(bad), None, "{bad:?}");
        }
    }
}
