//! The specification's words for where an operation stands.

use holdfast_domain::operation::{Lease, Node, Operation, Situation, situation};
use holdfast_domain::ports::LeaseMode;
use holdfast_domain::{Event, Incarnation, Journal, Micros, Nodes};
use holdfast_testkit::laws::tenant::{Tenant, finish, give_up, not_run, record, refuse};
use holdfast_testkit::{MemoryJournal, sample};

async fn phases() -> Vec<(Operation, Situation, Situation)> {
    let stores = MemoryJournal::new();
    let tenant = Tenant::new(&stores, 10_000).await;
    let mut phases = Vec::new();
    let leased = tenant.admit(&tenant.claim().lease(lease(0)).build()).await;
    phases.push((leased, Situation::InProgress, Situation::Stale));
    let ends: [fn(&Operation) -> Event; 5] =
        [|o| record(o, 1, 1), not_run, |o| finish(o, 1, 1), refuse, give_up];
    let situations = [
        Situation::Stale,
        Situation::NotStarted,
        Situation::Completed,
        Situation::Completed,
        Situation::Completed,
    ];
    for (end, situation) in ends.into_iter().zip(situations) {
        let row = tenant.admit(&tenant.claim().lease(lease(0)).build()).await;
        phases.push((tenant.step(row.id, end(&row)).await, situation, situation));
    }
    phases
}

/// The sample node's row, as it stands this many microseconds before its end.
fn lease(rest: i64) -> Lease {
    let now = sample::NOW.as_micros();
    let ends_at = holdfast_domain::Timestamp::from_micros(now + rest);
    Lease { node: sample::node("a"), ends_at }
}

#[tokio::test]
async fn a_situation_is_the_phase_and_for_leased_ones_the_life_of_the_owners_lease() {
    for (operation, alive, dead) in phases().await {
        let node = Node { incarnation: Incarnation::from_u128(1), ..sample::node("a") };
        let superseded = Lease { node, ..lease(1) };
        let table = [
            (Some(lease(1)), alive),
            (Some(lease(0)), dead),
            (Some(lease(-1)), dead),
            (Some(superseded), dead),
            (None, dead),
        ];
        for (lease, expected) in table {
            let found = situation(&operation, lease.as_ref(), sample::NOW);
            assert_eq!(found, expected, "{} under {lease:?}", operation.phase.label());
        }
    }
}

#[tokio::test]
async fn a_phase_tells_what_is_held_what_is_charged_and_whether_it_ended() {
    let told = phases().await.into_iter().map(|(operation, ..)| {
        let phase = operation.phase;
        let charge = phase.charge().map(Micros::get);
        (phase.label(), phase.holds(), charge, phase.finished_at().is_some())
    });
    let expected = [
        ("leased", true, None, false),
        ("recorded", true, Some(2), false),
        ("open", false, Some(0), false),
        ("completed", false, Some(2), true),
        ("refused", false, Some(0), true),
        ("abandoned", false, Some(0), true),
    ];
    assert_eq!(told.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn an_operation_is_stale_as_soon_as_its_process_is_gone() {
    let journal = MemoryJournal::with_funds(1_000);
    let node = sample::node("a");
    journal.heartbeat(&node, sample::LEASE, LeaseMode::Take).await.unwrap();
    let change = sample::admission(&sample::claim().build());
    journal.commit(change).await.unwrap();
    let id = journal.operations().remove(0).id;
    let situation = async || {
        let read = journal.load(id).await.unwrap();
        situation(&read.operation.unwrap(), read.lease.as_ref(), read.now)
    };
    assert_eq!(situation().await, Situation::InProgress);
    journal.advance(sample::LEASE);
    assert_eq!(situation().await, Situation::Stale);
}
