//! Laws of counters: reserved within their bounds, and corrected to what each ending leaves, in the
//! window of the admission.
//!
//! `ENDINGS` is the table of the operation's specification, run through a store: a run that may have happened
//! stays counted, and only proof that it did not gives requests and tokens back, the request to the first
//! generation alone.
//!
//! Stores have clocks of their own, so a law that a minute's turn would spoil runs again.
//!
//! # Panics
//!
//! A law panics on a store that breaks it, or whose port fails.
//!
//! ```
//! use holdfast_testkit::{MemoryJournal, laws::counters};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! counters::a_bound_holds_among_concurrent_claims(&MemoryJournal::new()).await;
//! # }
//! ```
#![expect(clippy::panic, clippy::unwrap_used, reason = "a law that fails panics")]

use std::sync::Arc;

use holdfast_domain::limits::{Counter, CounterReadings, Limits, SpendLimit, SpendWindow};
use holdfast_domain::operation::{
    Claim, Disown, Operation, Phase, Receipt, SendStatus, Transition,
};
use holdfast_domain::ports::CommitError;
use holdfast_domain::{Event, Micros, OperationId, Timestamp};

use super::Stores;
use super::tenant::{Tenant, finish, give_up, judged, not_run, operation_change, record, refuse};
use crate::join::join_all;
use crate::sample;

const DAYS_40: i64 = 40 * 86_400_000_000;

/// Each counter, with limits under which ten claims of `hold` 100 and 100 tokens fit.
fn limits_of_ten() -> [(Counter, Limits); 6] {
    let none = Limits::default();
    let spend = |window| {
        let limit = SpendLimit { micros: Micros::new(1_000), window };
        Limits { spend: Some(limit), ..none }
    };
    [
        (Counter::Requests, Limits { requests_per_minute: Some(10), ..none }),
        (Counter::Tokens, Limits { tokens_per_minute: Some(1_000), ..none }),
        (Counter::Concurrency, Limits { concurrency: Some(10), ..none }),
        (Counter::SpendTotal, spend(SpendWindow::Total)),
        (Counter::SpendDay, spend(SpendWindow::Day)),
        (Counter::SpendMonth, spend(SpendWindow::Month)),
    ]
}

/// Limits under which one claim of `hold` 100 and 100 tokens fits, and what is left is countable.
fn limits_of_one() -> Limits {
    Limits {
        requests_per_minute: Some(2),
        tokens_per_minute: Some(100),
        concurrency: Some(1),
        spend: Some(SpendLimit { micros: Micros::new(100), window: SpendWindow::Total }),
    }
}

/// Thirty claims race for room for ten; the refusals of the others name the counter.
pub async fn a_bound_holds_among_concurrent_claims(stores: &dyn Stores) {
    for (counter, limits) in limits_of_ten() {
        let verdicts = in_one_minute(stores, async || {
            let tenant = Tenant::new(stores, 10_000).await;
            let claims: Vec<_> = (0..30).map(|_| tenant.claim().limits(limits).build()).collect();
            let verdicts = join_all(claims.iter().map(|claim| tenant.offer(claim))).await;
            assert_eq!(tenant.balances().await.1 % 100, 0);
            verdicts
        })
        .await;
        let admitted = verdicts.iter().filter(|verdict| verdict.is_ok()).count();
        assert_eq!(admitted, 10, "{counter:?}");
        for refused in verdicts.into_iter().filter_map(Result::err) {
            assert!(is_limit(&refused, counter), "{counter:?}: {refused:?}");
        }
    }
}

/// A claim beyond a limit is refused by name, binds no key, holds no money and counts nowhere.
pub async fn a_limit_names_its_counter_and_changes_nothing(stores: &dyn Stores) {
    for (counter, limits) in limits_of_ten() {
        let (refused, exact) = in_one_minute(stores, async || {
            let tenant = Tenant::new(stores, 10_000).await;
            for _ in 0..9 {
                tenant.admit(&tenant.claim().limits(limits).build()).await;
            }
            // Twice the room that is left, if the counter counts by amount.
            let large = tenant.claim().limits(limits).hold(200).tokens(200).build();
            let refused = tenant.offer(&large).await;
            let bound = tenant.load(operation_of(&large)).await.operation;
            assert_eq!(bound.is_some(), refused.is_ok());
            (refused, tenant.offer(&tenant.claim().limits(limits).build()).await)
        })
        .await;
        match counter {
            Counter::Requests | Counter::Concurrency => {
                assert!(refused.is_ok() && is_limit(&exact.unwrap_err(), counter), "{counter:?}");
            }
            Counter::Tokens | Counter::SpendTotal | Counter::SpendDay | Counter::SpendMonth => {
                assert!(is_limit(&refused.unwrap_err(), counter) && exact.is_ok(), "{counter:?}");
            }
        }
    }
}

/// Two API keys of one wallet have counters of their own.
pub async fn api_keys_count_apart(stores: &dyn Stores) {
    let tenant = Tenant::new(stores, 10_000).await;
    let limits = Limits { concurrency: Some(1), ..Limits::default() };
    let other = tenant.another_api_key().await;
    tenant.admit(&tenant.claim().limits(limits).build()).await;
    tenant.admit(&tenant.claim().api_key(other).limits(limits).build()).await;
    let third = tenant.offer(&tenant.claim().limits(limits).build()).await;
    assert!(is_limit(&third.unwrap_err(), Counter::Concurrency));
}

/// Every ending leaves in the counters, each after the other, the values of the table of the operation's
/// specification: only proof that there was no run gives requests and tokens back, and the request only to the
/// first generation.
pub async fn every_ending_leaves_in_the_counters_what_it_should(stores: &dyn Stores) {
    let window = SpendWindow::Day;
    let limits = Limits {
        requests_per_minute: Some(90),
        tokens_per_minute: Some(9_000),
        concurrency: Some(90),
        spend: Some(SpendLimit { micros: Micros::new(5_000), window }),
    };
    let found = in_one_minute(stores, async || {
        let tenant = Tenant::new(stores, 10_000).await;
        let mut found = Vec::new();
        for (name, ends, _) in ENDINGS {
            let mut operation = tenant.admit(&tenant.claim().limits(limits).build()).await;
            for end in *ends {
                if operation.phase == Phase::Open {
                    let again = tenant.claim().request_key(operation.request_key);
                    let again = Event::Claim(Box::new(again.limits(limits).build()));
                    operation = tenant.step(operation.id, again).await;
                }
                operation = tenant.step(operation.id, end(&operation)).await;
            }
            found.push((*name, used(&tenant, limits).await));
        }
        found
    })
    .await;
    let mut sums = [0_i64; 4];
    for ((name, used), (_, _, left)) in found.into_iter().zip(ENDINGS) {
        // One API key for all endings: the counters hold the sum of what each has left.
        for (sum, left) in sums.iter_mut().zip(left) {
            *sum = sum.saturating_add(*left);
        }
        assert_eq!(used, sums, "requests, tokens, running and spend after: {name}");
    }
}

type End = fn(&Operation) -> Event;

/// The ways in which an operation of `hold` 100 and 100 tokens goes, a reopening before each ending but
/// the first, and what it leaves: requests, tokens, operations that run, spend.
const ENDINGS: &[(&str, &[End], [i64; 4])] = &[
    ("completed", &[|o| finish(o, 20, 10)], [1, 30, 0, 30]),
    ("recorded", &[|o| record(o, 20, 10)], [1, 100, 1, 100]),
    ("recorded, settled", &[|o| record(o, 20, 10), |_| Event::Settle], [1, 30, 0, 30]),
    ("not run", &[not_run], [0, 0, 0, 0]),
    ("refused", &[refuse], [1, 100, 0, 0]),
    ("given up", &[give_up], [1, 100, 0, 0]),
    ("disowned, never sent", &[|o| disown(o, SendStatus::Never)], [0, 0, 0, 0]),
    ("disowned, perhaps sent", &[|o| disown(o, SendStatus::Perhaps)], [1, 100, 0, 0]),
    ("cancelled, not run", &[|_| Event::AskCancel, not_run], [0, 0, 0, 0]),
    ("cancelled, given up", &[|_| Event::AskCancel, give_up], [1, 100, 0, 0]),
    ("not run twice", &[not_run, not_run], [1, 0, 0, 0]),
    ("not run three times", &[not_run, not_run, not_run], [2, 0, 0, 0]),
    ("not run, completed", &[not_run, |o| finish(o, 20, 10)], [1, 30, 0, 30]),
    ("not run, given up", &[not_run, give_up], [1, 100, 0, 0]),
    ("not run, cancelled, not run", &[not_run, |_| Event::AskCancel, not_run], [1, 0, 0, 0]),
];

fn disown(operation: &Operation, sent: SendStatus) -> Event {
    Event::Disown(Disown { claim: operation.owner.claim, sent })
}

/// Readings of requests, tokens, running operations and spend, as in the receipt of a claim that reserves a
/// minimum. The probe is given back.
async fn used(tenant: &Tenant<'_>, limits: Limits) -> [i64; 4] {
    let claim = tenant.claim().limits(limits).hold(0).tokens(0).build();
    let Receipt { counters: tally, .. } = tenant.offer(&claim).await.unwrap();
    let probe = tenant.load(operation_of(&claim)).await.operation.unwrap();
    tenant.step(probe.id, not_run(&probe)).await;
    let used = |counter| tally.used(counter).unwrap();
    // Less the probe's own request and place.
    let [requests, running] = [Counter::Requests, Counter::Concurrency].map(|it| used(it) - 1);
    [requests, used(Counter::Tokens), running, used(Counter::SpendDay)]
}

/// The receipt of a claim has the counters' new values, its refusal the counter that is full: callers need not
/// read them again.
pub async fn receipts_and_refusals_have_the_values_of_counters(stores: &dyn Stores) {
    let [admitted, settled, freed, refused] = in_one_minute(stores, async || {
        let tenant = Tenant::new(stores, 10_000).await;
        let limits = Limits {
            requests_per_minute: Some(9),
            tokens_per_minute: Some(150),
            concurrency: Some(9),
            spend: Some(SpendLimit { micros: Micros::new(900), window: SpendWindow::Day }),
        };
        let claim = |tokens| tenant.claim().limits(limits).tokens(tokens).build();
        let first = claim(100);
        let admitted = tenant.offer(&first).await.unwrap();
        let first = tenant.load(operation_of(&first)).await.operation.unwrap();
        let settled = tenant.offer_event(first.id, finish(&first, 20, 10)).await.unwrap();
        let second = tenant.admit(&claim(40)).await;
        let freed = tenant.offer_event(second.id, not_run(&second)).await.unwrap();
        let refused = tenant.offer(&claim(121)).await.unwrap_err();
        let CommitError::LimitReached(reached) = refused else { panic!("no limit: {refused:?}") };
        let asked = (reached.counter, reached.amount, reached.bound, reached.remaining());
        assert_eq!(asked, (Counter::Tokens, 121, 150, 120));
        assert!(reached.at >= freed.at);
        [admitted.counters, settled.counters, freed.counters, reached.counters]
    })
    .await;
    let used = |tally: &CounterReadings| Counter::ALL.map(|counter| tally.used(counter));
    // In the order of all counters: requests, tokens, concurrency, spend in total, a day, a month.
    assert_eq!(used(&admitted), [Some(1), Some(100), Some(1), None, Some(100), None]);
    assert_eq!(used(&settled), [None, Some(30), Some(0), None, Some(30), None]);
    assert_eq!(used(&freed), [Some(1), Some(30), Some(0), None, Some(30), None]);
    assert_eq!(used(&refused), [Some(1), Some(30), Some(0), None, Some(30), None]);
}

/// T2 and T2b correct the reservation to what was used: the request counts, the rest is the truth.
pub async fn settlements_correct_what_was_reserved(stores: &dyn Stores) {
    for settles_later in [false, true] {
        let (recorded, beyond, fitting, third) = in_one_minute(stores, async || {
            let tenant = Tenant::new(stores, 10_000).await;
            let claim = |hold: i64, tokens: u64| {
                tenant.claim().limits(limits_of_one()).hold(hold).tokens(tokens).build()
            };
            let first = tenant.admit(&claim(100, 100)).await;
            let mut recorded = None;
            if settles_later {
                tenant.step(first.id, record(&first, 20, 10)).await;
                recorded = Some(tenant.offer(&claim(1, 1)).await);
                tenant.step(first.id, Event::Settle).await;
            } else {
                tenant.step(first.id, finish(&first, 20, 10)).await;
            }
            let beyond = [tenant.offer(&claim(71, 70)).await, tenant.offer(&claim(70, 71)).await];
            let last = claim(70, 70);
            let fitting = tenant.offer(&last).await;
            let id = operation_of(&last);
            if let Some(last) = tenant.load(id).await.operation {
                tenant.step(last.id, finish(&last, 0, 0)).await;
            }
            (recorded, beyond, fitting, tenant.offer(&claim(0, 0)).await)
        })
        .await;
        let [dear, long] = beyond.map(Result::unwrap_err);
        assert!(is_limit(&dear, Counter::SpendTotal), "{dear:?}");
        assert!(is_limit(&long, Counter::Tokens), "{long:?}");
        assert!(fitting.is_ok(), "{fitting:?}");
        assert!(is_limit(&third.unwrap_err(), Counter::Requests), "both requests count");
        if let Some(recorded) = recorded {
            assert!(matches!(recorded, Err(CommitError::LimitReached(_))), "still reserved");
        }
    }
}

/// A correction beyond the bound is written: what was used was used.
pub async fn a_correction_is_never_refused(stores: &dyn Stores) {
    let next = in_one_minute(stores, async || {
        let tenant = Tenant::new(stores, 10_000).await;
        let limits = Limits { tokens_per_minute: Some(100), ..Limits::default() };
        let first = tenant.admit(&tenant.claim().limits(limits).tokens(10).build()).await;
        tenant.step(first.id, finish(&first, 5_000, 0)).await;
        tenant.offer(&tenant.claim().limits(limits).tokens(1).build()).await
    })
    .await;
    assert!(is_limit(&next.unwrap_err(), Counter::Tokens));
}

/// A correction goes to the windows of its operation's admission, which may be long over: today's
/// are not touched.
pub async fn a_correction_goes_to_the_window_of_the_admission(stores: &dyn Stores) {
    let (rest, beyond) = in_one_minute(stores, async || {
        let tenant = Tenant::new(stores, 10_000).await;
        let limits = Limits { tokens_per_minute: Some(100), ..Limits::default() };
        let claim = |tokens: u64| tenant.claim().limits(limits).tokens(tokens).build();
        let first = tenant.admit(&claim(10)).await;
        let settled = judged(&tenant.load(first.id).await, finish(&first, 900, 0));
        let long_ago = Timestamp::from_micros(first.admitted_at.as_micros() - DAYS_40);
        // Forty days ago is another minute, day and month, independent of the store's clock.
        let late = Transition { admitted_at: Some(long_ago), ..operation_change(&settled).clone() };
        stores.journal().commit(Arc::new(late)).await.unwrap();
        (tenant.offer(&claim(90)).await, tenant.offer(&claim(1)).await)
    })
    .await;
    assert!(rest.is_ok(), "{rest:?}");
    assert!(is_limit(&beyond.unwrap_err(), Counter::Tokens));
}

fn is_limit(error: &CommitError, counter: Counter) -> bool {
    matches!(error, CommitError::LimitReached(reached) if reached.counter == counter)
}

fn operation_of(claim: &Claim) -> OperationId {
    OperationId::of(claim.api_key, claim.request_key)
}

/// Runs a scenario until one has begun and ended in the same minute, and so in the same day and
/// month, and returns what that one found.
pub(super) async fn in_one_minute<T>(stores: &dyn Stores, scenario: impl AsyncFn() -> T) -> T {
    // Ends: a scenario takes less than a minute, so the turn spoils one of them at most in a row.
    loop {
        let minute = minute(stores).await;
        let found = scenario().await;
        if self::minute(stores).await == minute {
            return found;
        }
    }
}

async fn minute(stores: &dyn Stores) -> Timestamp {
    let now = stores.journal().load(sample::fresh()).await.unwrap().now;
    Counter::Requests.window(now)
}
