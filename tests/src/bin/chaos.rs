//! Kills gateways for as long as one likes: what `cargo xtask chaos` runs once it has built them.
#![expect(clippy::print_stdout, reason = "a tool for people at a prompt")]

use std::process::ExitCode;
use std::time::Instant;

use holdfast_tests::Reply;
use holdfast_tests::chaos::chain::chain;
use holdfast_tests::chaos::cuts::{Deaths, cut};
use holdfast_tests::chaos::histories::{self, FAULTS, Recording, folder};
use holdfast_tests::chaos::matrix::{shuffled, try_cells};
use holdfast_tests::chaos::racers::Track;
use holdfast_tests::chaos::{Moments, Plan, Topology, run};
use holdfast_tests::deployment::Source;
use holdfast_tests::rolling::roll;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let started = Instant::now();
    let Some(seed) = act(&arguments, started) else {
        println!(
            "usage: chaos file|nodes|server|clocks|update|patroni|matrix|racers|histories|node-histories|FAULT|sidecar|chain|balancer N SEED"
        );
        return ExitCode::from(2);
    };
    println!("time: {} s, seed {seed}", started.elapsed().as_secs());
    ExitCode::SUCCESS
}

/// Runs the plan of the arguments; `None` if they cannot be read.
fn act(arguments: &[String], started: Instant) -> Option<u64> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [kind, count, from] = arguments[..] else { return None };
    let (count, seed): (u32, u64) = (count.parse().ok()?, from.parse().ok()?);
    println!("{kind}: {count} of them, seed {seed}");
    match kind {
        "file" => kill(count, seed, Topology::File, started),
        "nodes" => kill(count, seed, Topology::Nodes, started),
        "clocks" => kill(count, seed, Topology::Clocks, started),
        "server" => kill(count, seed, Topology::Server, started),
        "update" => kill(count, seed, Topology::Update, started),
        "patroni" => kill(count, seed, Topology::Patroni, started),
        "racers" => {
            let track = Track::new(Reply::saying("Good day"));
            track.race(usize::try_from(count).ok()?, |rounds| {
                println!("{:>5} s: {rounds:>6} rounds, all in order", started.elapsed().as_secs());
            });
        }
        "sidecar" => cut(count, seed, Deaths::Now, |done| {
            println!("{:>5} s: {done:>6} calls, all in order", started.elapsed().as_secs());
        }),
        "chain" => chain(count, seed, |done| {
            println!("{:>5} s: {done:>6} calls, all in order", started.elapsed().as_secs());
        }),
        "balancer" => {
            let sources = [Source::Compose, Source::Chart(&[])];
            let met = roll(&sources, count, |round, source, met| {
                let seconds = started.elapsed().as_secs();
                println!("{seconds:>5} s: {round:>6} rounds, now of {source:?}: {met:?}");
            });
            println!("none refused or cut, each ran and was charged once, books verified: {met:?}");
        }
        "matrix" => {
            let mut cells = shuffled(seed);
            cells.truncate(usize::try_from(count).ok()?);
            try_cells(&cells, |done| {
                println!("{:>5} s: {done:>6} cells, all in order", started.elapsed().as_secs());
            });
        }
        "histories" => judge(Recording::unbroken(seed, count, histories::Topology::File)),
        "node-histories" => judge(Recording::unbroken(seed, count, histories::Topology::Nodes)),
        fault => {
            let fault = FAULTS.into_iter().find(|name| *name == fault)?;
            let topology = histories::Topology::File;
            judge(Recording { seed, kills: count, fault: Some(fault), topology });
        }
    }
    Some(seed)
}

/// Records a history and judges it: an unbroken gateway has no violation, and a broken one has.
fn judge(recording: Recording) {
    let (path, report) = recording.judge_in(&folder());
    let name = recording.fault.unwrap_or("unbroken");
    println!("{name}: {report}: {}", path.display());
    for violation in report.violations.iter().take(3) {
        println!("{violation}");
    }
    let is_broken = recording.fault.is_some();
    assert_eq!(report.violations.is_empty(), !is_broken, "{name} was judged wrong");
}

fn kill(faults: u32, seed: u64, topology: Topology, started: Instant) {
    let report = run(Plan { seed, faults, moments: Moments::All, topology }, |report| {
        let (seconds, keys) = (started.elapsed().as_secs(), report.keys);
        match report.outages.last() {
            // Keys are counted at the end.
            Some(outage) if keys == 0 => println!("{seconds:>5} s: {outage:?}"),
            Some(_) | None => {
                println!("{seconds:>5} s: {:>6} faults, {keys} keys, all in order", report.faults);
            }
        }
    });
    for line in report.lines() {
        println!("{line}");
    }
}
