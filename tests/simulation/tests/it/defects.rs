//! Broken promises: each has to be found within so many seeds.

use std::process::Command;

use holdfast_simulation::{Defect, RunPlan, simulate};

/// Seeds within which each defect is found.
const SEEDS_MAX: u64 = 10;

#[test]
fn each_defect_of_the_store_and_the_upstream_is_found() {
    let found = |defect: &Defect| {
        let plan = |seed| RunPlan { defect: Some(*defect), ..RunPlan::of_seed(seed) };
        (1..=SEEDS_MAX).any(|seed| !simulate(plan(seed)).violations.is_empty())
    };
    let missed: Vec<_> = Defect::OWN.into_iter().filter(|defect| !found(defect)).collect();
    assert_eq!(missed, Vec::<Defect>::new(), "not found within {SEEDS_MAX} seeds");
}

/// In processes of their own: a guard of the engine is broken for the life of its process.
#[test]
fn each_defect_of_the_engine_is_found_and_names_its_seed() {
    for defect in Defect::ENGINE {
        let mut command = Command::new(env!("CARGO_BIN_EXE_simulate"));
        command.args(["--seeds", &SEEDS_MAX.to_string(), "--defect", defect.label()]);
        let output = command.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(1), "{defect} is not found:\n{printed}");
        assert!(printed.contains("again: cargo xtask simulate --seeds 1 --seed "), "{printed}");
        assert!(printed.contains("repeated alike: true"), "{printed}");
    }
}
