//! Kills gateways until told to stop: what `cargo xtask chaos` runs once it has built them.
#![expect(clippy::print_stdout, reason = "a tool for people at a prompt")]

use std::process::ExitCode;
use std::time::Instant;

use holdfast_tests::chaos::{Moments, Plan, run};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(plan) = plan(&arguments) else {
        println!("usage: chaos --kills N --seed S");
        return ExitCode::from(2);
    };
    println!("seed {}, {} kills", plan.seed, plan.kills);
    let started = Instant::now();
    let report = run(plan, |report| {
        let (seconds, keys) = (started.elapsed().as_secs(), report.keys);
        println!("{seconds:>5} s: {:>6} kills, {keys} keys, all in order", report.kills);
    });
    for line in report.lines() {
        println!("{line}");
    }
    println!("time: {} s, seed {}", started.elapsed().as_secs(), plan.seed);
    ExitCode::SUCCESS
}

fn plan(arguments: &[String]) -> Option<Plan> {
    let [kills, count, seed, from] = arguments else { return None };
    let is_spelled = (kills.as_str(), seed.as_str()) == ("--kills", "--seed");
    let plan = Plan { seed: from.parse().ok()?, kills: count.parse().ok()?, moments: Moments::All };
    is_spelled.then_some(plan)
}
