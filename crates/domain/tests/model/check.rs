//! How a world is explored and what is said of it: how many states, and the shortest way to whatever
//! is broken.

use std::collections::BTreeMap;
use std::time::Instant;

use stateright::{Checker, HasDiscoveries, Model, Path};

use crate::configuration::Configuration;
use crate::explore::{Action, Explorer};
use crate::invariants::Invariant;
use crate::mutants::Mutant;
use crate::world::World;

type Trace = Path<World, Action>;

/// Whether the large worlds are asked for.
pub(crate) fn is_large() -> bool {
    std::env::var_os("HOLDFAST_MODEL").is_some_and(|size| size == "large")
}

/// Every reachable state keeps every invariant, and each of `reached` is reached.
#[track_caller]
#[expect(clippy::disallowed_methods, reason = "how long it took is for people to read")]
pub(crate) fn explore(configuration: Configuration, reached: &[Invariant]) {
    let mut explorer = Explorer::new(configuration);
    explorer.reached = reached.to_vec();
    let started = Instant::now();
    let checker = explorer.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    println!(
        "{} states, {} steps, {} deep, {:.1?}",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        started.elapsed()
    );
    let mut broken = checker.discoveries();
    let mut missed: Vec<_> = reached.iter().map(|(name, _)| *name).collect();
    missed.retain(|name| broken.remove(name).is_none());
    for (name, trace) in &broken {
        print(name, trace);
    }
    assert!(broken.is_empty(), "broken: {:?}", broken.keys());
    assert!(missed.is_empty(), "not reached: {missed:?}");
}

/// With these rules broken, `expected` is among the first invariants to fall.
#[track_caller]
pub(crate) fn breaks(mutants: &[Mutant], configuration: &Configuration, expected: &str) {
    let mut broken = fallen(mutants, configuration, usize::MAX);
    // What the search finds first is almost the shortest: look again for something shorter.
    while let Some(length) = broken.values().map(length).min() {
        let shorter = fallen(mutants, configuration, length);
        if shorter.is_empty() {
            broken.retain(|_, trace| self::length(trace) == length);
            break;
        }
        broken = shorter;
    }
    println!("{mutants:?} break {:?}", broken.keys());
    let Some(trace) = broken.remove(expected) else { panic!("{expected} stands") };
    print(expected, &trace);
}

/// With these rules broken every invariant still stands: something else covers them.
#[track_caller]
pub(crate) fn breaks_nothing(mutants: &[Mutant], configuration: &Configuration) {
    let broken = fallen(mutants, configuration, usize::MAX);
    for (name, trace) in &broken {
        print(name, trace);
    }
    assert!(broken.is_empty(), "{mutants:?} break {:?}", broken.keys());
}

/// The invariants that fall within so many states from the start, each with a way there.
fn fallen(
    mutants: &[Mutant],
    configuration: &Configuration,
    depth: usize,
) -> BTreeMap<&'static str, Trace> {
    let explorer = Explorer::new(configuration.clone()).with(mutants);
    let checker = explorer.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.target_max_depth(depth).spawn_bfs().join();
    checker.discoveries().into_iter().collect()
}

/// States on the way, both ends included.
fn length(trace: &Trace) -> usize {
    trace.clone().into_states().len()
}

fn print(name: &str, trace: &Trace) {
    println!("the way to {name}:");
    let mut number = 0;
    let mut states = trace.clone().into_vec().into_iter().peekable();
    while let Some((_, action)) = states.next() {
        let (Some(action), Some((next, _))) = (action, states.peek()) else { continue };
        number += 1;
        println!("{number:>4}. {:<28} {}", format!("{action:?}"), summary(next));
    }
}

fn summary(world: &World) -> String {
    let of = |(operation, row): (usize, &Option<crate::world::Row>)| {
        let ghost = &world.ghosts[operation];
        row.map_or_else(
            || format!("{operation}: no row, runs {}", ghost.runs),
            |row| {
                format!(
                    "{operation}: {:?} v{} g{} of task {}, runs {}, {:?}, told {:?}",
                    row.stand,
                    row.version,
                    row.generation,
                    row.claim,
                    ghost.runs,
                    ghost.hold,
                    ghost.told[0]
                )
            },
        )
    };
    let rows: Vec<String> = world.rows.iter().enumerate().map(of).collect();
    rows.join(" | ")
}
