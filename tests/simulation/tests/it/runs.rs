//! Runs of the unbroken engine.

use holdfast_simulation::{RunPlan, Step, Totals, simulate};

/// Seeds of the suite: enough that each step is reached.
const SEEDS: u64 = 400;

#[test]
fn a_seed_repeats_its_run_and_another_one_is_another_run() {
    let runs: Vec<_> = (1..=12).map(|seed| simulate(RunPlan::of_seed(seed))).collect();
    for (seed, run) in (1..).zip(&runs) {
        let again = simulate(RunPlan { keeps_trace: true, ..RunPlan::of_seed(seed) });
        assert_eq!(again.digest, run.digest, "seed {seed} has two traces");
        assert_eq!((again.lines, &again.steps), (run.lines, &run.steps), "seed {seed}");
        assert_eq!(usize::try_from(again.lines).unwrap(), again.trace.len());
    }
    let mut digests: Vec<_> = runs.iter().map(|run| &run.digest).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), runs.len(), "two seeds have one trace");
}

#[test]
fn the_unbroken_engine_keeps_every_invariant_and_reaches_every_step() {
    let mut totals = Totals::default();
    for seed in 1..=SEEDS {
        let run = simulate(RunPlan::of_seed(seed));
        totals.add(&run);
        let violations: Vec<String> = run.violations.iter().map(ToString::to_string).collect();
        let again = format!("again: cargo xtask simulate --seeds 1 --seed {seed}");
        assert!(violations.is_empty(), "{}\n{again}", violations.join("\n"));
    }
    assert_eq!(totals.missing(), Vec::<Step>::new(), "\n{totals}");
}
