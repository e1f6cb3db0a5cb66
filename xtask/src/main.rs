//! The repository's own commands: the one place that defines the checks and how they run.
//!
//! Not part of the product: no code of it is shipped, and the gateway does not know of it.

mod bench;
mod chaos;
mod clients;
mod console;
mod diagrams;
mod docs;
mod fixture;
mod fuzz;
mod gateway;
mod lines;
mod lint;
mod majors;
mod migrate;
mod mutants;
mod package;
mod postgres;
mod previous;
mod release;
mod scratch;
mod shell;
mod simulate;
mod test;
mod tidy;
mod tools;
mod workspace;

use std::{
    env,
    io::{self, Write},
    process::ExitCode,
};

use anyhow::Result;

use crate::workspace::Workspace;

const USAGE: &str = "\
usage: cargo xtask <command>

  test [suite]...     build and run the suites, all of them unless some are named:
                      domain, accounts, admin, console, failpoint, telemetry, testkit, wire, store,
                      engine, providers, receipts, webhooks, net, sidecar, http, config, bootstrap,
                      embed, thumbnails, cli, gateway, xtask,
                      checker, simulation, specification, tests, histories, browser, bench, examples, doc
  lint [check]...     run the checks, all of them unless some are named:
                      fmt, outside, tidy, commits, doors, telemetry, clippy, doc, deny, portable,
                      advisories, machete
  ci                  test, then lint
  docs                write the documents that are made from the code, and the diagrams
  lines               count the lines of code of the product's crates
  console             walk over the console in a browser as every role, on a file and on a server
  console --scale     time its pages over a million operations, on a file and on a server
  clients             drive the gateway with every client of docs/how-to/connect-a-framework.md, directly and through
                      the sidecar
  chaos               all that the next one can do, then the fuzz targets
  chaos [--on file|nodes|server|clocks|update|matrix|racers|histories|node-histories|
               sidecar|chain|balancer|patroni]
        [--kills N] [--seed S]
                      kill gateways under load and check what is left: one on a file (which
                      is meant where --on is left out), three on a database, their database
                      server, or one at each step in every way; clocks are set wrong too,
                      update replaces nodes of the release before under kills, and
                      racers are 64 callers of one key, again and again; histories records
                      what callers see and judges the file by a model, node-histories of
                      three nodes; sidecar cuts the connections of calls without keys, and
                      kills what they go through;
                      chain does so with calls through a gateway behind a gateway;
                      balancer replaces gateways under load, and kills none; patroni kills,
                      stops and replaces the servers and nodes that Patroni runs
  chaos --fuzz [--seconds N]
                      fuzz the request parser, the canonical feed and the reader of streams,
                      a minute each
  chaos --mutants [--file PATH]... [--shard K/N]
                      break the pure core and count what its tests notice
  simulate [--seeds N] [--seed S] [--defect NAME] [--trace]
                      run three engines on one store in simulated time, N seeds from S on (1 of each by default):
                      counts what was reached, and prints the seed that breaks an invariant; --defect breaks
                      a promise on purpose
  postgres [15|17|18]...
                      the store's laws on each major version of PostgreSQL, or on those named
  bench [--quick] [--rounds N] [--seconds N] [--only NAME]... [--stored N] [--streams N]
        [--log LEVEL] [--folder FOLDER] [--json FILE]
                      measure the gateway beside what it could cost at least; the names are
                      1, 32, 256, slow, replay, overload, streams, chunks, readers,
                      sidecar-1, sidecar, sidecar-streams, and those that are measured only
                      where they are named: purge, unindexed, traced, traced-gone, traced-silent
  bench --database postgres [...]
                      measure it on a PostgreSQL server of its own, beside a plain loop of
                      transactions; the names are also 32-wallets, 256-wallets, nodes,
                      nodes-wallets; without purge and --stored, which fill a file
  bench --instructions [--requests N] [--against BINARY] [--low-balance] [--traces]
                      [--folder FOLDER]
                      count the user instructions of a request by valgrind: a completion, also
                      on 32 and 256 connections, a replay, a stream, a refusal, with the
                      writer's apart; beside another binary, 3 % more in sum fail;
                      --low-balance also on a wallet with a threshold: 2 % more in sum fail
                      --traces also with no, one in a hundred and all requests traced: 1 % and 2 %
                      more in sum fail of the first two
  bench --micro [NAME]...
                      measure single functions: reading a request, deciding, judging,
                      sealing, events, translating
  bench --scale [file|postgres]...
                      a book of 10^6 operations: pages, reports of a customer, a whole audit
  package [--profile dev]
                      make a Debian package and an image in target/package, and start each
                      in a root of its own; as root. What is shipped takes minutes to build
  release [--profile dev]
                      build the newest commit twice, in two folders, compare the binaries, and put
                      one into target/release-files with what it is made of. What is shipped takes
                      some 25 minutes of processor time
  fixture NAME [--binary PATH --commit HASH]
                      write the ledgers of a release into tests/fixtures/ledger/NAME, by the newest
                      commit's gateway or by that binary of that commit, and list it there
  migrate [args]...   the gateway's own `migrate`, and its --help

Every other command answers --help with this text.";

fn main() -> ExitCode {
    let done = run();
    scratch::clear();
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Without standard error the message has no reader; the exit code still reports it.
            let written = writeln!(io::stderr(), "error: {error:#}");
            written.map_or(ExitCode::FAILURE, |()| ExitCode::from(2))
        }
    }
}

/// Runs the command of the arguments; true if all of it passed, an error if it could not run.
fn run() -> Result<bool> {
    let mut args = env::args().skip(1);
    let command = args.next();
    let rest: Vec<String> = args.collect();
    // Before any build: a benchmark would take minutes to report an unknown option.
    if command.as_deref() != Some("migrate") && rest.iter().any(|arg| is_help(arg)) {
        return shell::print_line(USAGE).map(|()| true);
    }
    let workspace = Workspace::load()?;
    match (command.as_deref(), rest.as_slice()) {
        (Some("test"), suites) => test::run(&workspace, suites),
        (Some("lint"), checks) => lint::run(&workspace, checks),
        (Some("ci"), []) => {
            let tested = test::run(&workspace, &[])?;
            let linted = lint::run(&workspace, &[])?;
            Ok(tested && linted)
        }
        (Some("clients"), []) => clients::run(&workspace),
        (Some("console"), []) => console::walk(&workspace),
        (Some("console"), [scale]) if scale == "--scale" => console::scale(&workspace),
        (Some("docs"), []) => Ok(docs::run(&workspace)? && diagrams::run(&workspace)?),
        (Some("lines"), []) => lines::run(&workspace),
        (Some("chaos"), [first, args @ ..]) if first == "--mutants" => {
            mutants::run(&workspace, args)
        }
        (Some("chaos"), [first, args @ ..]) if first == "--fuzz" => fuzz::run(&workspace, args),
        (Some("chaos"), []) => {
            let survived = chaos::run(&workspace, &[])?;
            let fuzzed = fuzz::run(&workspace, &[])?;
            Ok(survived && fuzzed)
        }
        (Some("bench"), args) => bench::run(&workspace, args),
        (Some("chaos"), args) => chaos::run(&workspace, args),
        (Some("package"), args) => package::run(&workspace, args),
        (Some("simulate"), args) => simulate::run(&workspace, args),
        (Some("postgres"), majors) => majors::run(&workspace, majors),
        (Some("release"), args) => release::run(&workspace, args),
        (Some("fixture"), args) => fixture::run(&workspace, args),
        (Some("migrate"), args) => migrate::run(args),
        (Some("help"), []) => shell::print_line(USAGE).map(|()| true),
        (Some(command), []) if is_help(command) => shell::print_line(USAGE).map(|()| true),
        (Some(_) | None, _) => anyhow::bail!("not a command\n\n{USAGE}"),
    }
}

fn is_help(arg: &str) -> bool {
    ["--help", "-h"].contains(&arg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_suite_check_and_kind_of_chaos() {
        let listed: Vec<&str> = USAGE.split(|it: char| ", \n|:]".contains(it)).collect();
        for name in test::names().into_iter().chain(lint::names()).chain(chaos::names()) {
            assert!(listed.contains(&name), "{name}");
        }
    }
}
