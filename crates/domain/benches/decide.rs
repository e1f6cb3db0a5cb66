//! What deciding costs: an event and what is known of an operation to its transition. Pure, so that it is
//! all of the rules and nothing else.
#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot be made")]

use divan::{AllocProfiler, Bencher, black_box};
use holdfast_domain::limits::CounterReadings;
use holdfast_domain::operation::{Claim, Receipt, Version, decide};
use holdfast_domain::{Event, Snapshot};
use holdfast_testkit::laws::tenant::finish;
use holdfast_testkit::sample;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

fn claim() -> Claim {
    sample::claim().hold(2_000).build()
}

/// The first claim of a key.
#[divan::bench]
fn a_claim(bencher: Bencher<'_, '_>) {
    let (snapshot, claim) = (Snapshot::vacant(sample::NOW), claim());
    let event = || Event::Claim(Box::new(claim.clone()));
    bencher
        .with_inputs(event)
        .bench_local_values(|event| decide(black_box(&snapshot), event).unwrap());
}

/// The owner's end of a run, with its charge.
#[divan::bench]
fn a_finish(bencher: Bencher<'_, '_>) {
    let claim = claim();
    let vacant = Snapshot::vacant(sample::NOW);
    let admission = decide(&vacant, Event::Claim(Box::new(claim.clone()))).unwrap();
    let receipt =
        Receipt { version: Version::FIRST, at: sample::NOW, counters: CounterReadings::default() };
    let operation = admission.apply(None, receipt).unwrap();
    let end = finish(&operation, 100, 20);
    let snapshot = Snapshot {
        operation: Some(operation),
        result: None,
        lease: Some(claim.lease),
        now: sample::NOW,
    };
    let event = || end.clone();
    bencher
        .with_inputs(event)
        .bench_local_values(|event| decide(black_box(&snapshot), event).unwrap());
}
