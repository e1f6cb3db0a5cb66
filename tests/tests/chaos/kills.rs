//! Killed under load, at named steps and at any moment. `cargo xtask chaos` does the same for as long
//! as one likes.

use holdfast_tests::chaos::matrix::{Fault, some_cells, try_cells};
use holdfast_tests::chaos::steps::STEPS;
use holdfast_tests::chaos::{Moments, Plan, Report, Topology, run};

/// Kills met requests in the middle, and these asked and left in every way.
#[track_caller]
fn check_variety(report: &Report) {
    assert!(report.cutting * 2 > report.kills, "hardly anything was cut: {report:?}");
    let is_mixed = report.streams * 4 > report.sent && report.streams * 4 < report.sent * 3;
    assert!(is_mixed, "one way only: {report:?}");
    assert!(report.hang_ups * 5 > report.keys, "hardly anybody hung up: {report:?}");
    assert!(report.begun * 20 > report.keys, "hardly a stream was heard in part: {report:?}");
}

/// Any other will do as well; this one makes a failure come back.
const SEED: u64 = 20_261_120;

const fn plan(faults: u32, moments: Moments, topology: Topology) -> Plan {
    Plan { seed: SEED, faults, moments, topology }
}

#[test]
fn killed_at_every_step_under_load_nothing_is_lost_or_taken_twice() {
    let rounds = u32::try_from(STEPS.len()).unwrap() * 2;
    let report = run(plan(rounds, Moments::Steps, Topology::File), |_| {});
    assert!(report.at_steps.len() >= STEPS.len() - 1, "hardly any step was reached: {report:?}");
    check_variety(&report);
}

#[test]
fn killed_at_any_moment_under_load_nothing_is_lost_or_taken_twice() {
    let report = run(plan(22, Moments::Random, Topology::File), |_| {});
    check_variety(&report);
    assert!(report.unknown > 0 && report.completed > report.unknown, "{report:?}");
}

#[test]
fn a_log_or_index_removed_under_load_loses_nothing_that_was_answered() {
    let report = run(plan(6, Moments::FilesRemoved, Topology::File), |_| {});
    assert_eq!((report.files_removed, report.kills), (6, 6));
    assert!(report.completed > report.unknown, "{report:?}");
}

#[test]
fn postgres_nodes_killed_under_load_lose_nothing_and_take_nothing_twice() {
    let report = run(plan(6, Moments::Random, Topology::Nodes), |_| {});
    assert_eq!(report.kills, 6);
    assert!(report.cutting > 2, "hardly anything was cut: {report:?}");
    assert!(report.completed > report.unknown, "{report:?}");
}

#[test]
fn postgres_nodes_killed_at_steps_under_load_lose_nothing_and_take_nothing_twice() {
    let rounds = u32::try_from(STEPS.len()).unwrap();
    let report = run(plan(rounds, Moments::Steps, Topology::Nodes), |_| {});
    assert!(report.at_steps.len() >= STEPS.len() - 2, "hardly any step was reached: {report:?}");
}

#[test]
fn postgres_nodes_stopped_past_their_lease_change_nothing_when_they_go_on() {
    let report = run(plan(3, Moments::Frozen, Topology::Nodes), |_| {});
    assert_eq!(report.frozen, 3);
    assert!(report.unknown > 0, "nothing was taken over: {report:?}");
}

#[test]
fn postgres_commits_that_are_cut_in_the_middle_are_found_out_about() {
    let report = run(plan(3, Moments::CommitsCut, Topology::Server), |_| {});
    assert!(report.commits_cut > 12, "hardly anything was cut: {report:?}");
}

#[test]
fn postgres_a_server_killed_under_load_loses_nothing_that_was_told() {
    let report = run(plan(3, Moments::ServerKilled, Topology::Server), |_| {});
    assert_eq!(report.server_kills, 3);
}

#[test]
fn postgres_a_standby_promoted_under_load_has_everything_that_was_told() {
    let report = run(plan(2, Moments::Promoted, Topology::Server), |_| {});
    assert_eq!(report.promotions, 2);
}

#[test]
fn postgres_a_standby_promoted_beside_its_primary_has_everything_that_was_told() {
    let report = run(plan(2, Moments::SwitchedOver, Topology::Server), |_| {});
    assert_eq!(report.switch_overs, 2);
}

#[test]
fn postgres_previous_version_replaced_node_by_node_under_load_loses_nothing() {
    let report = run(plan(6, Moments::All, Topology::Update), |_| {});
    assert!(report.updated > 0 && report.deposits == 4, "{report:?}");
    assert!(report.completed > report.unknown, "{report:?}");
}

#[test]
fn postgres_clock_of_a_node_an_hour_wrong_changes_nothing() {
    let report = run(plan(3, Moments::Random, Topology::Clocks), |_| {});
    assert_eq!(report.kills, 3);
    assert!(report.completed > report.unknown, "{report:?}");
}

#[test]
fn postgres_clock_of_the_server_that_steps_costs_nobody_anything() {
    let report = run(plan(3, Moments::ClockStepped, Topology::Clocks), |_| {});
    assert_eq!(report.clock_steps, 6);
}

#[test]
fn postgres_killed_at_each_step_a_key_comes_to_rest_in_every_way() {
    try_cells(&some_cells(Fault::Killed, SEED), |_| {});
}

#[test]
fn postgres_stopped_at_each_step_past_its_lease_a_process_takes_nothing_back() {
    try_cells(&some_cells(Fault::Frozen, SEED), |_| {});
}
