//! What each change does to funds and counters, with numbers.

use holdfast_domain::ledger::Funds;
use holdfast_domain::limits::{Counter, CounterMove, Limits, Reservation, SpendLimit, SpendWindow};
use holdfast_domain::operation::{Event, Lease, Operation, Receipt, Snapshot, Transition, decide};
use holdfast_domain::{Micros, OperationId, Refusal, Timestamp};
use holdfast_testkit::sample::{self, CLAIM, NOW};

use super::{OTHER, arrange, finish, follow, later, leased, micros, receipt};

/// Every limit of an API key.
pub(super) const LIMITS: Limits = Limits {
    requests_per_minute: Some(60),
    tokens_per_minute: Some(9_000),
    concurrency: Some(4),
    spend: Some(SpendLimit { micros: Micros::new(5_000), window: SpendWindow::Day }),
};

#[track_caller]
fn check(transition: &Transition, funds: Funds, counters: &[(Counter, i64, Option<i64>)]) {
    let counters: Vec<CounterMove> = counters
        .iter()
        .map(|(counter, amount, bound)| CounterMove {
            counter: *counter,
            amount: *amount,
            bound: *bound,
        })
        .collect();
    assert_eq!((transition.funds, &transition.counters), (funds, &counters));
}

#[track_caller]
fn decided(name: &str, row: Option<Operation>) -> Transition {
    let (snapshot, event) = arrange(name, row);
    decide(&snapshot, event).unwrap()
}

const RESERVED: [(Counter, i64, Option<i64>); 4] = [
    (Counter::Requests, 1, Some(60)),
    (Counter::Tokens, 100, Some(9_000)),
    (Counter::Concurrency, 1, Some(4)),
    (Counter::SpendDay, 100, Some(5_000)),
];
const GIVEN_BACK: [(Counter, i64, Option<i64>); 4] = [
    (Counter::Requests, -1, None),
    (Counter::Tokens, -100, None),
    (Counter::Concurrency, -1, None),
    (Counter::SpendDay, -100, None),
];
/// A run of 30 tokens for 30 micros: the request counts, the rest shrinks to the truth.
const CORRECTED: [(Counter, i64, Option<i64>); 3] = [
    (Counter::Tokens, -70, None),
    (Counter::Concurrency, -1, None),
    (Counter::SpendDay, -70, None),
];

#[test]
fn an_admission_holds_and_reserves_within_its_bounds() {
    check(&decided("claim", None), Funds::Hold(micros(100)), &RESERVED);
}

#[test]
fn a_settlement_captures_the_charge_and_corrects() {
    let captured = Funds::Capture { hold: micros(100), charge: micros(30) };
    check(&decided("finish", Some(leased())), captured, &CORRECTED);
    let recorded = decided("record", Some(leased()));
    check(&recorded, Funds::Unmoved, &[]);
    let recorded = recorded.apply(Some(&leased()), receipt(2)).unwrap();
    check(&decided("settle", Some(recorded)), captured, &CORRECTED);
}

#[test]
fn what_has_not_run_gives_everything_back() {
    for name in ["not run", "disown, never sent", "not run, cancel asked", "disown, cancel asked"] {
        check(&decided(name, Some(leased())), Funds::Release(micros(100)), &GIVEN_BACK);
        // Whoever retries an open operation for ever is counted every time but the first.
        let again = Operation { generation: 2, ..leased() };
        let [_requests, rest @ ..] = GIVEN_BACK;
        check(&decided(name, Some(again)), Funds::Release(micros(100)), &rest);
    }
}

#[test]
fn what_may_have_run_stays_counted() {
    let [_requests, _tokens, rest @ ..] = GIVEN_BACK;
    check(&decided("refuse", Some(leased())), Funds::Release(micros(100)), &rest);
    // The book tells what was given up from what did not run.
    for name in ["give up", "reap, owner gone", "reap, past deadline", "disown, perhaps sent"] {
        check(&decided(name, Some(leased())), Funds::Lapse(micros(100)), &rest);
    }
}

#[test]
fn an_open_operation_waits_the_longer_the_more_often_it_was_reopened() {
    let waits = [(1, 0), (2, 0), (3, 2), (4, 4), (5, 8), (6, 16), (7, 32), (8, 60), (9, 60)];
    for (generation, wait) in waits.into_iter().chain([(65, 60), (66, 60), (u32::MAX, 60)]) {
        let open = follow(leased(), Event::NotRun { claim: CLAIM, attempts: sample::attempts() });
        let open = Operation { generation, ..open };
        let waits = [0, wait, wait + 9].map(|now| open.reopens_in(later(now, 0)).as_secs());
        assert_eq!(waits, [wait, 0, 0], "generation {generation}");
        let set_back = Timestamp::from_micros(0);
        assert_eq!(open.reopens_in(set_back).as_secs(), wait, "a clock that was set back");
        for (now, is_allowed) in [(later(wait, -1), wait == 0), (later(wait, 0), true)] {
            let lease = Lease { node: sample::node("a"), ends_at: later(100, 0) };
            let claim = sample::claim().claim_id(OTHER).lease(lease).build();
            let snapshot = Snapshot { operation: Some(open.clone()), ..Snapshot::vacant(now) };
            let decided = decide(&snapshot, Event::Claim(Box::new(claim)));
            let expected = if is_allowed { None } else { Some(Refusal::TooSoon) };
            assert_eq!(decided.err(), expected, "generation {generation} at {now:?}");
        }
    }
}

#[test]
fn an_ended_row_tells_what_its_ending_corrected() {
    for name in ["finish", "refuse", "give up", "not run"] {
        let ending = decided(name, Some(leased()));
        let ended = ending.apply(Some(&leased()), receipt(2)).unwrap();
        assert_eq!(ended.corrections(), ending.counters, "{name}");
    }
    let recorded = decided("record", Some(leased())).apply(Some(&leased()), receipt(2)).unwrap();
    assert_eq!([leased().corrections(), recorded.corrections()], [[], []]);
}

#[test]
fn asking_to_cancel_moves_nothing() {
    check(&decided("ask to cancel", Some(leased())), Funds::Unmoved, &[]);
}

#[test]
fn a_reopening_takes_everything_that_concerns_money_anew_and_keeps_what_it_is_bound_to() {
    let open = follow(leased(), Event::NotRun { claim: CLAIM, attempts: sample::attempts() });
    let requests = Limits { requests_per_minute: Some(1), ..Limits::default() };
    let claim = sample::claim()
        .claim_id(OTHER)
        .hold(250)
        .tokens(7)
        .limits(requests)
        .price(sample::priced("2026-05-01T00:00:00Z", 3_000_000))
        .lease(Lease { node: sample::node("b"), ends_at: later(9, 0) })
        .build();
    let snapshot = Snapshot { operation: Some(open.clone()), ..Snapshot::vacant(NOW) };
    let reopened = decide(&snapshot, Event::Claim(Box::new(claim.clone()))).unwrap();
    check(&reopened, Funds::Hold(micros(250)), &[(Counter::Requests, 1, Some(1))]);
    assert_eq!(reopened.start().map(|start| &start.price), Some(&claim.price));
    let at = later(100, 0);
    let second = reopened.apply(Some(&open), Receipt { at, ..receipt(3) }).unwrap();
    assert_eq!((second.admitted_at, second.deadline), (at, at.after(sample::TIME)));
    assert_eq!((second.created_at, second.version), (NOW, receipt(3).version));
    assert_eq!(second.reserved, Reservation::for_limits(&requests, 7));
    assert_eq!((second.owner, second.price), (claim.owner, claim.price));
    assert_eq!((second.hold, second.generation), (micros(250), 2));
    assert_eq!((second.id, second.binding), (open.id, open.binding));
    assert!(second.attempts.is_empty());
    assert_ne!(second.id.hold(2), second.id.hold(1));
}

#[test]
fn a_charge_is_priced_as_it_was_admitted_and_ends_at_the_hold() {
    let dear = sample::claim().price(sample::priced("2026-05-01T00:00:00Z", 7_000_000)).build();
    let row = super::admitted(&dear);
    assert_eq!(row.id, OperationId::of(dear.api_key, dear.request_key));
    let snapshot = Snapshot { operation: Some(row), ..Snapshot::vacant(NOW) };
    let transition = decide(&snapshot, Event::Finish(finish(CLAIM))).unwrap();
    assert_eq!(transition.funds, Funds::Capture { hold: micros(100), charge: micros(100) });
}
