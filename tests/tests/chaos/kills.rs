//! Killed under load, at named steps and at any moment. `cargo xtask chaos` does the same for as long
//! as one likes.

use holdfast_tests::chaos::{Moments, Plan, STEPS, run};

/// Any other will do as well; this one makes a failure come back.
const SEED: u64 = 20_261_120;

#[test]
fn killed_at_every_step_under_load_nothing_is_lost_or_taken_twice() {
    let rounds = u32::try_from(STEPS.len()).unwrap() * 2;
    let report = run(Plan { seed: SEED, kills: rounds, moments: Moments::Steps }, |_| {});
    assert!(report.at_steps.len() >= STEPS.len() - 1, "hardly any step was reached: {report:?}");
    assert!(report.cutting * 2 > report.kills, "hardly anything was cut: {report:?}");
}

#[test]
fn killed_at_any_moment_under_load_nothing_is_lost_or_taken_twice() {
    let report = run(Plan { seed: SEED, kills: 22, moments: Moments::Random }, |_| {});
    assert!(report.cutting * 2 > report.kills, "hardly anything was cut: {report:?}");
    assert!(report.unknown > 0 && report.completed > report.unknown, "{report:?}");
}
