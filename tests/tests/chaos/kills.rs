//! Killed under load, at named steps and at any moment. `cargo xtask chaos` does the same for as long
//! as one likes.

use holdfast_tests::chaos::{Moments, Plan, Report, STEPS, run};

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

#[test]
fn killed_at_every_step_under_load_nothing_is_lost_or_taken_twice() {
    let rounds = u32::try_from(STEPS.len()).unwrap() * 2;
    let report = run(Plan { seed: SEED, kills: rounds, moments: Moments::Steps }, |_| {});
    assert!(report.at_steps.len() >= STEPS.len() - 1, "hardly any step was reached: {report:?}");
    check_variety(&report);
}

#[test]
fn killed_at_any_moment_under_load_nothing_is_lost_or_taken_twice() {
    let report = run(Plan { seed: SEED, kills: 22, moments: Moments::Random }, |_| {});
    check_variety(&report);
    assert!(report.unknown > 0 && report.completed > report.unknown, "{report:?}");
}
