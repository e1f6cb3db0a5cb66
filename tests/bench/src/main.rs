//! The benchmark and the processes that it is made of, under one name.
#![expect(clippy::print_stderr, reason = "a tool for people at a prompt")]

use std::process::ExitCode;

use holdfast_bench::{
    bench, instructions, journal, load, pairs::Pairs, passthrough, plain, store, upstream,
};

const USAGE: &str = "\
usage: holdfast-bench run [--database sqlite|postgres] [--quick] [--rounds N] [--seconds N]
                          [--only NAME]... [--stored N] [--streams N] [--log LEVEL]
                          [--folder FOLDER] [--json FILE]
       holdfast-bench instructions [--requests N] [--against BINARY] [--low-balance] [--traces]
                          [--folder FOLDER]
       holdfast-bench upstream [--delay-ms N] [--chunks N] [--gap-ms N]
       holdfast-bench passthrough --to ADDRESS
       holdfast-bench load --to ADDRESS[,ADDRESS]... --connections N --millis N
                           --bearer TOKEN | --bearers FILE
                           [--key KEY|--keys none] [--rate N] [--requests N]
                           [--streams own|shared]
       holdfast-bench journal --file FILE --batch N --millis N
       holdfast-bench store|plain --url URL --tasks N --wallets N --nodes N --millis N";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    if command.as_deref() == Some("instructions")
        && let Some(plan) = instructions::Plan::parse(&rest)
    {
        return if instructions::run(&plan) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let done = match command.as_deref() {
        Some("run") => bench::Plan::parse(&rest).map(|plan| bench::run(&plan)),
        Some("upstream") => upstream::parse(&rest).map(upstream::run),
        Some("passthrough") => passthrough::parse(&rest).map(passthrough::run),
        Some("load") => load::Load::parse(&rest).map(|load| load::run(&load)),
        Some("journal") => journal::Journal::parse(&rest).map(|journal| journal::run(&journal)),
        Some("store") => Pairs::parse(&rest).map(|pairs| store::run(&pairs)),
        Some("plain") => Pairs::parse(&rest).map(|pairs| plain::run(&pairs)),
        Some(_) | None => None,
    };
    match done {
        Some(()) => ExitCode::SUCCESS,
        None => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}
