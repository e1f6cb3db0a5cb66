//! The loop over the ports, on a journal that loses commits on demand.

mod claiming;
mod concluding;
mod performing;
mod upkeep;

use std::time::Duration;

use holdfast_domain::conduct::{ClaimOutcome, Conduct};
use holdfast_domain::operation::{Claim, Operation, Phase, Snapshot};
use holdfast_domain::ports::LeaseMode;
use holdfast_domain::{Micros, Nodes};
use holdfast_testkit::{Fault, MemoryJournal, NoPause, sample};

const GRACE: Duration = Duration::from_secs(60);

/// Every way in which the answer to one commit can be lost, alone and one after another.
const LOSSES: [&[Fault]; 7] = [
    &[Fault::Landed],
    &[Fault::NotLanded],
    &[Fault::LandsLate],
    &[Fault::Landed, Fault::Unavailable, Fault::Overloaded],
    &[Fault::NotLanded, Fault::Unavailable, Fault::NotLanded],
    &[Fault::LandsLate, Fault::LandsLate],
    &[Fault::NotLanded, Fault::Landed, Fault::Unavailable],
];

fn conduct(journal: &MemoryJournal) -> Conduct<'_> {
    Conduct { journal, pause: &NoPause, orphan_grace: Some(GRACE) }
}

/// A thousand micros in the wallet, and the sample node's lease is live.
async fn journal() -> MemoryJournal {
    let journal = MemoryJournal::with_funds(1_000);
    journal.heartbeat(&sample::node("a"), sample::LEASE, LeaseMode::Take).await.unwrap();
    journal
}

/// Claims, and expects to run it.
async fn claimed(journal: &MemoryJournal, claim: &Claim) -> Operation {
    let claimed = conduct(journal).claim(&sample::order(claim)).await.unwrap();
    let ClaimOutcome::Mine(operation, _) = claimed else {
        panic!("it should be mine: {claimed:?}")
    };
    *operation
}

#[track_caller]
fn check_wallet(journal: &MemoryJournal, available: i64, held: i64) {
    let wallet = journal.wallet(sample::WALLET).unwrap();
    assert_eq!((wallet.available, wallet.held), (Micros::new(available), Micros::new(held)));
}

/// How often the book has a transfer of this kind.
fn transfers(journal: &MemoryJournal, kind: &str) -> usize {
    journal.lines().iter().filter(|line| line.entry.kind == kind).count()
}

fn phase(snapshot: &Snapshot) -> &'static str {
    snapshot.operation.as_ref().map_or("none", |operation| operation.phase.label())
}

#[track_caller]
fn row(journal: &MemoryJournal) -> Operation {
    let mut operations = journal.operations();
    assert_eq!(operations.len(), 1);
    operations.remove(0)
}

fn charge(operation: &Operation) -> Option<i64> {
    match &operation.phase {
        Phase::Recorded(usage) | Phase::Completed { usage, .. } => Some(usage.charge.get()),
        Phase::Leased | Phase::Open | Phase::Refused { .. } | Phase::Abandoned { .. } => None,
    }
}
