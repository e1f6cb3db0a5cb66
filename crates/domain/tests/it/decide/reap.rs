//! When whoever meets a leased operation may give it up: every state of its node's row, before and
//! after each border.

use std::time::Duration;

use holdfast_domain::operation::{Effect, Event, Lease, Node, Snapshot, decide};
use holdfast_domain::{Incarnation, Refusal, Timestamp};
use holdfast_testkit::sample::{self, TIME};

use super::{later, leased};

const GRACE: Option<Duration> = Some(Duration::from_secs(60));

/// The row of the node's name: its own until so many seconds after the admission, another
/// incarnation's, or none.
enum Row {
    Own(u64),
    Superseded(u64),
    Missing,
}

#[track_caller]
fn check(row: Row, now: Timestamp, orphan_grace: Option<Duration>, is_reaped: bool) {
    let operation = leased();
    let node = operation.owner.node.clone();
    let lease = match row {
        Row::Own(seconds) => Some(Lease { node, ends_at: later(seconds, 0) }),
        Row::Superseded(seconds) => {
            let node = Node { incarnation: Incarnation::from_u128(1), ..node };
            Some(Lease { node, ends_at: later(seconds, 0) })
        }
        Row::Missing => None,
    };
    let snapshot = Snapshot { operation: Some(operation), result: None, lease, now };
    match decide(&snapshot, Event::Reap { orphan_grace }) {
        Ok(transition) => {
            assert!(is_reaped, "it may not be reaped");
            // Never open: nothing about a dead owner proves that it had not sent.
            assert_eq!(transition.effect, Effect::Abandon { attempts: [].into() });
        }
        Err(refusal) => assert_eq!((refusal, is_reaped), (Refusal::OwnerAlive, false)),
    }
}

#[test]
fn a_live_owner_is_left_alone() {
    check(Row::Own(15), later(14, 999_999), GRACE, false);
    check(Row::Own(15), later(0, 0), None, false);
}

#[test]
fn a_dead_lease_is_reaped_after_the_grace_and_not_before() {
    check(Row::Own(15), later(15, 0), GRACE, false);
    check(Row::Own(15), later(15, 1), GRACE, false);
    check(Row::Own(15), later(75, 0), GRACE, false);
    check(Row::Own(15), later(75, 1), GRACE, true);
    check(Row::Own(15), later(15, 0), Some(Duration::ZERO), false);
    check(Row::Own(15), later(15, 1), Some(Duration::ZERO), true);
}

#[test]
fn a_dead_lease_is_left_alone_by_a_process_that_has_only_just_come_back() {
    check(Row::Own(15), later(600, 0), None, false);
}

#[test]
fn a_superseded_owner_is_reaped_at_once_whatever_its_successor_does() {
    for ends_at in [0, 15, 1_000] {
        check(Row::Superseded(ends_at), later(1, 0), GRACE, true);
        check(Row::Superseded(ends_at), later(1, 0), None, true);
    }
}

#[test]
fn an_owner_without_a_row_is_reaped_at_once() {
    check(Row::Missing, later(0, 0), GRACE, true);
    check(Row::Missing, later(0, 0), None, true);
}

#[test]
fn after_the_deadline_it_is_reaped_however_alive_its_node_looks() {
    let deadline = TIME.as_secs();
    check(Row::Own(10_000), later(deadline, 0), None, false);
    check(Row::Own(10_000), later(deadline, 1), None, true);
    check(Row::Own(15), later(deadline, 1), None, true);
    assert_eq!(leased().deadline, sample::NOW.after(TIME));
}
