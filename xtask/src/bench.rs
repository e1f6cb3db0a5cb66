//! `cargo xtask bench`: measures the gateway as it is shipped, built by the profile `dist`.
//!
//! The measurements and their methods are in the crate `bench`; its suite runs it briefly, so that it works when it
//! is needed. `--instructions` counts the instructions of a request, under valgrind, and compared with another
//! binary fails above 3 % more in sum over its rows. `--micro` measures functions instead: the benchmarks of single
//! crates, which the suites of those run once each. `--scale` reads and audits a ledger of 10^6 operations.

use std::process::Command;

use anyhow::{Result, bail, ensure};

use crate::{
    gateway::{self, Profile},
    postgres::{PostgresServer, Purpose},
    shell,
    workspace::Workspace,
};

/// Benchmarks of functions, and the crate of each.
const MICRO: &[(&str, &str)] = &[
    ("request", "holdfast-wire"),
    ("decide", "holdfast-domain"),
    ("judge", "holdfast-store"),
    ("seal", "holdfast-engine"),
    ("sse", "holdfast-wire"),
    ("answer", "holdfast-wire"),
    ("render", "holdfast-wire"),
    ("translation", "holdfast-providers"),
];

/// Database that is a server.
const SERVER: &str = "postgres";
/// Databases of a ledger of 10^6 operations.
const DATABASES: [&str; 2] = ["file", SERVER];

/// Builds the gateway and its measuring programs, then runs the benchmark that `args` name.
pub(crate) fn run(workspace: &Workspace, args: &[String]) -> Result<bool> {
    if let [first, filter @ ..] = args
        && first == "--micro"
    {
        return micro(workspace, filter);
    }
    if let [first, databases @ ..] = args
        && first == "--scale"
    {
        return scale(workspace, databases);
    }
    let (command_of_bench, args) = match args {
        [first, rest @ ..] if first == "--instructions" => {
            ensure!(
                shell::has("valgrind"),
                "there is no valgrind, which counts instructions: install it (Debian's package is \
                 `valgrind`), then again"
            );
            ("instructions", rest)
        }
        args => ("run", args),
    };
    let Some(gateway) = gateway::build(workspace, Profile::Dist)? else {
        bail!("the gateway does not build");
    };
    // Both with the profile that is shipped: a slow load generator would be measured as a slow gateway.
    let bench = ["--package", "holdfast-bench", "--bin", "holdfast-bench"];
    let Some(bench) = gateway::build_binary(workspace, &bench, &gateway::DIST)? else {
        bail!("the benchmark does not build");
    };
    let mut command = Command::new(bench);
    command.arg(command_of_bench).env("HOLDFAST_BIN", gateway);
    // Beside what was built: the usual folder for temporary files is often no disk.
    if !args.iter().any(|arg| arg == "--folder") {
        command.arg("--folder").arg(workspace.target.join("bench"));
    }
    let server = match is_on_a_server(args) {
        true => Some(PostgresServer::start(Purpose::Bench)?),
        false => None,
    };
    if let Some(server) = &server {
        command.envs(server.env());
    }
    shell::run(command.args(args))
}

/// Makes the ledger of 10^6 operations on these databases, on both if none is named, and measures its reads.
fn scale(workspace: &Workspace, named: &[String]) -> Result<bool> {
    let unknown = named.iter().find(|name| !DATABASES.contains(&name.as_str()));
    ensure!(unknown.is_none(), "--scale takes {}", DATABASES.join(" and "));
    let mut all_met = true;
    for database in DATABASES {
        if !named.is_empty() && !named.iter().any(|name| name == database) {
            continue;
        }
        let mut command = shell::cargo(&workspace.root);
        command.arg("bench").args(gateway::DIST);
        command.args(["--package", "holdfast-store", "--bench", "scale", "--", database]);
        let server = match database == SERVER {
            true => Some(PostgresServer::start(Purpose::Bench)?),
            false => None,
        };
        if let Some(server) = &server {
            command.envs(server.env());
        }
        all_met &= shell::run(&mut command)?;
    }
    Ok(all_met)
}

fn is_on_a_server(args: &[String]) -> bool {
    args.array_windows().any(|[option, value]| option == "--database" && value == SERVER)
}

/// Runs the benchmarks whose names contain one of these, all of them when none is named.
fn micro(workspace: &Workspace, names: &[String]) -> Result<bool> {
    let mut all_ran = true;
    for (bench, package) in MICRO {
        let mut command = shell::cargo(&workspace.root);
        command.arg("bench").args(gateway::DIST);
        command.args(["--package", package, "--bench", bench, "--"]);
        // All of them, also after one has failed.
        all_ran &= shell::run(command.args(names))?;
    }
    Ok(all_ran)
}
