//! Random histories of several operations, wallets, API keys and processes, judged by `decide` and
//! kept by the journal in memory. After every step I1 to I9 hold, and at its end each comes to rest.
//!
//! The model checker goes to every state of small worlds; these are larger worlds, real rows and a
//! real book, and no promise to have been everywhere. What a history does is a function of its seed.

mod invariants;
mod tasks;
mod world;

use std::collections::BTreeSet;

use self::world::World;

const SEEDS: std::ops::RangeInclusive<u64> = 1..=900;
const STEPS: usize = 160;
/// What is shown of a history that breaks an invariant.
const STEPS_SHOWN: usize = 40;

/// What happened in some history: one that never gets there proves nothing.
const SOMEWHERE: [&str; 44] = [
    "Admit",
    "Reopen",
    "Complete",
    "Record",
    "Settle",
    "AskCancel",
    "Open",
    "Refuse",
    "Abandon",
    "Deposit",
    "Refund",
    "Adjustment",
    "Conflict",
    "InsufficientFunds",
    "LimitReached(Concurrency)",
    "LimitReached(SpendTotal)",
    "Collision",
    "Overloaded",
    "Unavailable",
    "Uncertain",
    "OtherRequest",
    "Ended",
    "Leased",
    "Recorded",
    "NotRunning",
    "NotOwner",
    "ClaimUsed",
    "LeaseLost",
    "TooSoon",
    "OwnerAlive",
    "CancelAsked",
    "Missing",
    "found its lost claim",
    "result came too late",
    "next route",
    "ran after a reopening",
    "disowned as never sent",
    "disowned as perhaps sent",
    "disowned after a run",
    "cut short",
    "ended with an answer after a cancel",
    "generation 3",
    "expired",
    "shortfall",
];

#[tokio::test]
async fn no_random_history_breaks_an_invariant() {
    let mut happened = BTreeSet::new();
    for seed in SEEDS {
        let mut world = World::new(seed).await;
        for n in 1..=STEPS {
            world.step().await;
            check(&mut world, seed, n).await;
        }
        world.come_to_rest().await;
        check(&mut world, seed, STEPS + 1).await;
        assert!(world.rests().await, "seed {seed} does not come to rest: {}", shown(&world));
        happened.append(&mut world.happened);
    }
    let missing: Vec<_> = SOMEWHERE.iter().filter(|it| !happened.contains(**it)).collect();
    assert_eq!(missing, Vec::<&&str>::new(), "never happened; what did: {happened:?}");
}

/// Names the invariants that a step broke.
async fn check(world: &mut World, seed: u64, n: usize) {
    let broken = invariants::broken(world).await;
    assert!(broken.is_empty(), "seed {seed}, step {n} breaks {broken:?}: {}", shown(world));
}

fn shown(world: &World) -> String {
    let skipped = world.trail.len().saturating_sub(STEPS_SHOWN);
    let steps = world.trail.iter().skip(skipped);
    steps.fold(String::new(), |all, step| format!("{all}\n  {step}"))
}
