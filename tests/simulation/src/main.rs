//! Command of the simulation: runs seeds, and prints the command that repeats the first one that fails.

use std::process::ExitCode;

use holdfast_simulation::report::processor_time;
use holdfast_simulation::{Defect, RunPlan, Totals, simulate};

const USAGE: &str = "\
usage: simulate [--seeds N] [--seed S] [--defect NAME] [--trace]

  --seeds N      number of seeds, one after another; 1 by default
  --seed S       the first of them; 1 by default
  --defect NAME  break a promise on purpose
  --trace        print the trace of every run";

/// Lines of the trace that a failure prints.
const LAST_LINES: usize = 40;

#[derive(Debug)]
struct SimulationOptions {
    seeds: u64,
    first: u64,
    defect: Option<Defect>,
    prints_trace: bool,
}

fn main() -> ExitCode {
    let Some(options) = parse(std::env::args().skip(1)) else {
        print(USAGE);
        return ExitCode::from(2);
    };
    if run(&options) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::print_stdout, reason = "the report of a command")]
fn print(line: &str) {
    println!("{line}");
}

/// Options of the arguments; `None` if one of them is not understood.
fn parse(mut args: impl Iterator<Item = String>) -> Option<SimulationOptions> {
    let mut options = SimulationOptions { seeds: 1, first: 1, defect: None, prints_trace: false };
    while let Some(option) = args.next() {
        match option.as_str() {
            "--trace" => options.prints_trace = true,
            "--seeds" => options.seeds = args.next()?.parse().ok()?,
            "--seed" => options.first = args.next()?.parse().ok()?,
            "--defect" => options.defect = Some(Defect::find(&args.next()?)?),
            _ => return None,
        }
    }
    Some(options)
}

/// Runs all seeds up to the first that fails; true if none did.
fn run(options: &SimulationOptions) -> bool {
    let SimulationOptions { seeds, first, defect, prints_trace } = *options;
    let mut totals = Totals::default();
    for seed in first..first.saturating_add(seeds) {
        let recording = simulate(RunPlan { seed, defect, keeps_trace: prints_trace });
        recording.trace.iter().for_each(|line| print(line));
        totals.add(&recording);
        if recording.violations.is_empty() {
            continue;
        }
        // The same run again, with its text: that it is the same is a promise of its own.
        let again = simulate(RunPlan { seed, defect, keeps_trace: true });
        let from = again.trace.len().saturating_sub(LAST_LINES);
        again.trace.iter().skip(from).for_each(|line| print(line));
        recording.violations.iter().for_each(|violation| print(&violation.to_string()));
        let is_same = again.digest == recording.digest;
        print(&format!("trace {}, repeated alike: {is_same}", recording.digest));
        let broken = defect.map_or_else(String::new, |defect| format!(" --defect {defect}"));
        print(&format!("failed after {} seeds: seed {seed}", totals.seeds));
        print(&format!("again: cargo xtask simulate --seeds 1 --seed {seed}{broken}"));
        return false;
    }
    totals.processor = processor_time();
    print(&totals.to_string());
    true
}
