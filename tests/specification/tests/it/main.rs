//! The models keep every law, each broken rule breaks the law that is named beside it, and each situation is reached: a
//! model that could not fail, or in which a case cannot occur any more, would say nothing.
#![expect(
    clippy::panic,
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test that cannot go on ends, at the line that says why"
)]
#![expect(clippy::print_stdout, reason = "counts of each search, for people")]

mod models;
mod page;
mod traces;

use std::{env, path::Path};

use specification::{Report, Search, Spin, Violation};

use crate::models::Model;

/// Path of Spin, if it is not on the `PATH`.
const SPIN: &str = "HOLDFAST_TEST_SPIN";

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn spin() -> Spin {
    let program = env::var_os(SPIN).unwrap_or_else(|| "spin".into());
    Spin::new(program.into(), root().join("models"))
}

#[track_caller]
fn search(model: &Model, more: &[String], search: Search) -> Report {
    let flags = model.flags.iter().map(|&flag| flag.to_owned());
    let definitions: Vec<String> = flags.chain(more.iter().cloned()).collect();
    let report = spin().check(model.file, &definitions, search);
    let report = report.unwrap_or_else(|error| panic!("{} {definitions:?}: {error}", model.file));
    let outcome = match &report.violation {
        None => "every law holds",
        Some(Violation::Assertion(text)) => text,
        Some(Violation::Cycle) => "a cycle",
    };
    let name = format!("{}.pml {}", model.file, definitions.join(" "));
    println!("{name:<78} {:>9} states, {:>3} deep: {outcome}", report.states, report.depth);
    report
}

/// Checks a model: as it is, with each rule broken, and that each situation is reached.
#[track_caller]
fn check(model: &Model) {
    let whole = if model.is_formula { Search::Cycles } else { Search::Whole };
    let report = search(model, &[], whole);
    assert_eq!(report.violation, None, "{}", model.file);
    for (mutants, law) in model.mutants {
        assert_eq!(broken(model, mutants, law), Some(expected(model, law)), "{mutants:?} {law}");
    }
    for mutants in model.covered {
        let report = search(model, &[format!("MUTANT_{mutants}")], whole);
        assert_eq!(report.violation, None, "{mutants} is covered by another rule");
    }
    for probe in model.probes {
        let report = search(model, &[format!("PROBE={probe}")], Search::Shortest);
        assert!(report.violation.is_some(), "{} never reaches {probe}", model.file);
    }
    page::has_figures(model, &report);
}

/// The violation with these rules broken, if only one law is judged.
#[track_caller]
fn broken(model: &Model, mutants: &[&str], law: &str) -> Option<Violation> {
    let mut definitions: Vec<_> = mutants.iter().map(|it| format!("MUTANT_{it}")).collect();
    if model.is_formula {
        return search(model, &definitions, Search::Cycles).violation;
    }
    definitions.push(format!("ONLY={law}"));
    search(model, &definitions, Search::Shortest).violation
}

fn expected(model: &Model, law: &str) -> Violation {
    if model.is_formula { Violation::Cycle } else { Violation::Assertion(law.to_owned()) }
}

#[test]
fn spin_commits_whose_answers_are_lost() {
    check(&models::COMMIT);
}

#[test]
fn spin_operations_over_processes() {
    check(&models::OPERATION);
}

#[test]
fn spin_takeovers_with_every_fault() {
    check(&models::TAKEOVER);
}

#[test]
fn spin_wallets() {
    check(&models::WALLET);
}

#[test]
fn spin_wallets_under_a_cap() {
    check(&models::CAP);
}

#[test]
fn spin_routes() {
    check(&models::ROUTES);
}

#[test]
fn spin_routes_under_one_charge() {
    check(&models::ONE_CHARGE);
}

#[test]
fn spin_replays() {
    check(&models::REPLAY);
}

#[test]
fn spin_other_requests() {
    check(&models::CONFLICT);
}

#[test]
fn spin_limits_by_the_minute() {
    check(&models::LIMITS);
}

#[test]
fn spin_limits_over_two_keys() {
    check(&models::TWO_KEYS);
}

#[test]
fn spin_operations_come_to_rest() {
    check(&models::REST);
}

#[test]
fn spin_chains_of_gateways() {
    check(&models::CHAIN);
}

#[test]
fn spin_chains_to_servers_that_ignore_keys() {
    check(&models::IGNORES_KEYS);
}

/// The judge of mutants can fail: a definition that breaks no rule breaks no law.
#[test]
fn spin_a_mutant_that_breaks_no_rule_stands() {
    assert_eq!(broken(&models::CHAIN, &["NOTHING"], "no_second_run"), None);
    let report = search(&models::CHAIN, &["PROBE=false".to_owned()], Search::Shortest);
    assert_eq!(report.violation, None);
}
