//! Traces of the simulation, followed by the models: whatever three engines committed under faults is a path of the
//! specification, and traces that are made up against it are none.

use std::collections::BTreeSet;

use holdfast_simulation::{RunPlan, Step, TracedChange, simulate};
use specification::Change;

use crate::spin;

/// Seeds of the suite: from them each transition is in a trace.
const SEEDS: u64 = 150;
/// The transitions of the models.
const TRANSITIONS: [&str; 12] =
    ["T1", "T2", "T2a", "T2b", "T2c", "T3", "T4", "T5", "T5c", "T6", "T7", "disowned"];

/// The change by the names of the models; `None` if a task that does not own the row made an owner's change.
fn named(traced: &TracedChange) -> Option<Change> {
    let TracedChange { step, is_owners, phase, version, generation } = *traced;
    let (transition, needs_owner) = match step {
        Step::Claim => ("T1", false),
        Step::Finish => ("T2", true),
        Step::Record => ("T2a", true),
        Step::Settle => ("T2b", false),
        Step::Cancel => ("T2c", false),
        Step::NotRun | Step::NotRunCancelled => ("T3", true),
        Step::Refuse => ("T4", true),
        Step::GiveUp => ("T5", true),
        Step::CancelOpen => ("T5c", false),
        Step::ReapDeadLease | Step::ReapMissingRow | Step::ReapSuperseded | Step::ReapDeadline => {
            ("T6", false)
        }
        Step::DisownSent | Step::DisownUnsent => ("disowned", false),
        Step::Reopen => ("T7", false),
        other => panic!("{other} commits nothing"),
    };
    (is_owners || !needs_owner).then_some(Change { transition, phase, version, generation })
}

/// A trace in a line: transition, phase after it, version and generation of each change.
fn line(trace: &[Change]) -> String {
    let changes = trace
        .iter()
        .map(|it| format!("{} {} v{} g{}", it.transition, it.phase, it.version, it.generation));
    changes.collect::<Vec<_>>().join(", ")
}

#[test]
fn spin_follows_every_trace_of_the_simulation() {
    let mut traces = BTreeSet::new();
    for seed in 1..=SEEDS {
        for (operation, changes) in simulate(RunPlan::of_seed(seed)).changes {
            let trace: Option<Vec<Change>> = changes.iter().map(named).collect();
            traces.insert(trace.unwrap_or_else(|| panic!("seed {seed}, {operation}: {changes:?}")));
        }
    }
    let traces: Vec<_> = traces.into_iter().collect();
    println!("{} different traces of {SEEDS} seeds", traces.len());
    let seen: BTreeSet<_> = traces.iter().flatten().map(|change| change.transition).collect();
    assert_eq!(seen, TRANSITIONS.into());
    let followed = spin().follow(&traces).unwrap();
    let lost: Vec<_> =
        traces.iter().zip(followed).filter(|(_, is_followed)| !is_followed).collect();
    let lost: Vec<_> = lost.into_iter().map(|(trace, _)| line(trace)).collect();
    assert!(lost.is_empty(), "the specification has no such path:\n{}", lost.join("\n"));
}

/// A trace written as [`line`] prints it.
fn parsed(text: &'static str) -> Vec<Change> {
    let change = |text: &'static str| {
        let [transition, phase, version, generation] = text.split(' ').collect::<Vec<_>>()[..]
        else {
            panic!("{text}")
        };
        let number = |text: &str| text[1..].parse().unwrap();
        Change { transition, phase, version: number(version), generation: number(generation) }
    };
    text.split(", ").map(change).collect()
}

#[test]
fn spin_follows_no_trace_against_a_rule() {
    let allowed = [
        "T1 leased v1 g1, T2 completed v2 g1",
        "T1 leased v1 g1, T3 open v2 g1, T7 leased v3 g2, T6 abandoned v4 g2",
        "T1 leased v1 g1, T2a recorded v2 g1, T2b completed v3 g1",
    ];
    let forbidden = [
        // A run without a claim, and a second claim of a row that is there.
        "T2 completed v1 g1",
        "T1 leased v1 g1, T1 leased v2 g1",
        // An end after the end: a late result, a second settlement, a reopening.
        "T1 leased v1 g1, T6 abandoned v2 g1, T2 completed v3 g1",
        "T1 leased v1 g1, T2 completed v2 g1, T2 completed v3 g1",
        "T1 leased v1 g1, T5 abandoned v2 g1, T7 leased v3 g2",
        "T1 leased v1 g1, T4 refused v2 g1, T3 open v3 g1",
        // A reap of a record, a settlement without one, and a reap that lets it run again.
        "T1 leased v1 g1, T2a recorded v2 g1, T6 abandoned v3 g1",
        "T1 leased v1 g1, T2b completed v2 g1",
        "T1 leased v1 g1, T6 open v2 g1",
        // A cancelled operation opens again.
        "T1 leased v1 g1, T2c leased v2 g1, T3 open v3 g1",
        // Versions and generations that skip or stay.
        "T1 leased v1 g1, T2 completed v3 g1",
        "T1 leased v1 g1, T2c leased v1 g1",
        "T1 leased v1 g1, T3 open v2 g1, T7 leased v3 g1",
        "T1 leased v1 g1, T3 open v2 g1, T7 leased v3 g3",
    ];
    let traces: Vec<_> = allowed.iter().chain(&forbidden).map(|text| parsed(text)).collect();
    let followed = spin().follow(&traces).unwrap();
    for ((nth, text), is_followed) in allowed.iter().chain(&forbidden).enumerate().zip(followed) {
        assert_eq!(is_followed, nth < allowed.len(), "{text}");
    }
}
