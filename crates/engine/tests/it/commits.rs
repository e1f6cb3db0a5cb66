//! Stores that refuse, lose answers or fall silent: one hold, one run, one charge all the same.

use holdfast_engine::{Readiness, RequestFailure};
use holdfast_testkit::{Fault, Gate};
use tokio::time::Instant;

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, HELLO_HOLDS, OTHER, World, assert_failed, body, operation_id, pass,
    says, secs, setup, text, turns,
};

#[track_caller]
fn check_settled_once(world: &World) {
    assert_eq!(world.runs(), 1);
    assert_eq!(world.store.phase(), "completed");
    assert_eq!(world.store.operation().generation, 1);
    assert_eq!(world.store.transfers("hold"), 1);
    assert_eq!(world.store.transfers("settle"), 1);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_the_store_cannot_take_leaves_the_key_unbound() {
    for why in [Fault::Unavailable, Fault::Forbidden] {
        let world = setup().script(says("hi")).start().await;
        world.store.journal.fail_next([why]);
        assert_failed!(world.ask(1, HELLO).await, RequestFailure::Storage(None));
        assert!(world.store.journal.operations().is_empty(), "{why:?}");
        assert_eq!(world.runs(), 0);
        body(&world.ask(1, HELLO).await);
        check_settled_once(&world);
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_finds_the_queue_full_is_told_so() {
    let world = setup().script(says("hi")).start().await;
    world.store.journal.fail_next([Fault::Overloaded]);
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::Overloaded);
    assert!(world.store.journal.operations().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_holds_once_and_runs_once() {
    for lost in [Fault::Landed, Fault::NotLanded, Fault::LandsLate] {
        for again in [Fault::None, Fault::Unavailable, Fault::Overloaded, lost] {
            let world = setup().script(says("hi")).start().await;
            world.store.journal.fail_next([lost, again]);
            assert!(text(&world.ask(1, HELLO).await).contains("hi"), "{lost:?} {again:?}");
            check_settled_once(&world);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_and_row_were_lost_is_followed_to_its_row() {
    let world = setup().script(says("hi")).start().await;
    world.store.journal.fail_next([Fault::Landed]);
    world.store.journal.fail_loads(3);
    assert!(text(&world.ask(1, HELLO).await).contains("hi"));
    check_settled_once(&world);
}

#[tokio::test(start_paused = true)]
async fn a_settlement_whose_answer_was_lost_charges_once() {
    for lost in [Fault::Landed, Fault::NotLanded, Fault::LandsLate] {
        for again in [Fault::None, Fault::Unavailable, Fault::Overloaded, lost] {
            let world = setup().script(says("hi")).start().await;
            world.store.journal.fail_next([Fault::None, lost, again]);
            let first = world.ask(1, HELLO).await;
            assert_eq!(body(&world.ask(1, HELLO).await), body(&first), "{lost:?} {again:?}");
            check_settled_once(&world);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_not_judge_a_claim_in_ten_seconds_does_not_keep_the_caller_waiting() {
    let world = setup().script(says("hi")).start().await;
    world.store.set_silent(true);
    let began = Instant::now();
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::Storage(None));
    assert_eq!(began.elapsed(), secs(10));
    assert_eq!(world.runs(), 0, "nothing is sent before the claim is known to be committed");
    world.store.set_silent(false);
    pass(secs(3)).await;
    check_given_back(&world);
    body(&world.ask(1, HELLO).await);
    assert_eq!((world.runs(), world.store.operation().generation), (1, 2));
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

/// A claim that came too late for everybody: it is free, and has not run.
#[track_caller]
fn check_given_back(world: &World) {
    assert_eq!(world.runs(), 0, "nobody waits for it");
    assert_eq!(world.store.phase(), "open");
    assert_eq!(world.store.transfers("hold"), 1);
    assert_eq!(world.store.transfers("release"), 1);
    assert_eq!(world.store.balances(), (FUNDS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_comes_late_does_not_run_for_those_who_hung_up() {
    let world = setup().script(says("hi")).start().await;
    let commits = world.store.hold_commits();
    let caller = world.asking(1, HELLO).await;
    commits.reached().await;
    pass(secs(1)).await;
    caller.hang_up().await;
    pass(secs(10)).await;
    commits.open();
    turns().await;
    check_given_back(&world);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_comes_in_time_runs_for_those_as_well_who_hung_up() {
    let world = setup().script(says("hi")).start().await;
    let commits = world.store.hold_commits();
    let caller = world.asking(1, HELLO).await;
    commits.reached().await;
    caller.hang_up().await;
    pass(secs(9)).await;
    commits.open();
    turns().await;
    check_settled_once(&world);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_comes_late_runs_for_one_who_waits_still() {
    let world = setup().script(says("hi")).start().await;
    let commits = world.store.hold_commits();
    let first = world.asking(1, HELLO).await;
    commits.reached().await;
    pass(secs(5)).await;
    let second = world.asking(1, HELLO).await;
    assert_failed!(first.told().await, RequestFailure::Storage(None));
    pass(secs(2)).await;
    commits.open();
    assert!(text(&second.told().await).contains("hi"));
    check_settled_once(&world);
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_while_a_late_claim_is_given_back_claims_anew() {
    let world = setup().script(says("hi")).start().await;
    let commits = world.store.hold_commits();
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::Storage(None));
    let endings = world.store.hold_commits();
    commits.open();
    endings.reached().await;
    let mut caller = world.asking(1, HELLO).await;
    let other = world.ask(1, OTHER).await;
    assert_failed!(other, RequestFailure::OtherRequest);
    assert!(caller.is_waiting().await);
    assert_eq!(world.runs(), 0);
    endings.open();
    assert!(text(&caller.told().await).contains("hi"));
    assert_eq!((world.runs(), world.store.operation().generation), (1, 2));
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn nobody_gets_a_final_answer_while_the_settlement_is_uncertain() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.set_silent(true);
    let began = Instant::now();
    let second = world.asking(1, HELLO).await;
    gate.open();
    assert_failed!(first.told().await, RequestFailure::Storage(Some(id)) if *id == operation_id(1));
    assert_eq!(began.elapsed(), secs(10));
    assert_failed!(second.told().await, RequestFailure::Storage(Some(_)));
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::Storage(Some(_)));
    assert_eq!(world.store.phase(), "leased");
    assert_eq!(world.store.balances(), (FUNDS - HELLO_HOLDS, HELLO_HOLDS));
    world.store.set_silent(false);
    assert!(text(&world.ask(1, HELLO).await).contains("hi"));
    check_settled_once(&world);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_the_store_has_lost_is_told_as_such_and_nothing_more_comes_here() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).script(says("ho")).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    let second = world.asking(1, HELLO).await;
    assert_eq!(world.engine.readiness().await, Readiness::Ready);
    world.store.journal.lose_operation(operation_id(1));
    gate.open();
    assert_failed!(first.told().await, RequestFailure::ClaimLost(id) if *id == operation_id(1));
    assert_failed!(second.told().await, RequestFailure::ClaimLost(_));
    assert_eq!(world.engine.readiness().await, Readiness::LostCommits);
    assert_eq!(world.store.balances(), (FUNDS, 0));
    // What comes all the same is answered by what there is.
    assert!(text(&world.ask(1, HELLO).await).contains("ho"));
    pass(secs(60)).await;
    assert_eq!(world.engine.readiness().await, Readiness::LostCommits);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_the_store_cannot_hold_is_given_up_at_once_and_costs_nothing() {
    let world = setup().script(says("hi")).start().await;
    world.store.journal.set_result_bytes_max(16);
    let began = Instant::now();
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
    assert_eq!(began.elapsed(), secs(0));
    assert_eq!(world.store.phase(), "abandoned");
    assert_eq!(world.store.balances(), (FUNDS, 0));
    assert_eq!(world.store.journal.offers(), 3, "the claim, the result, and its end");
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_result_is_offered_through_an_outage_of_the_store() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.set_down(true);
    gate.open();
    assert_failed!(first.told().await, RequestFailure::Storage(Some(_)));
    pass(secs(120)).await;
    world.store.set_down(false);
    pass(secs(3)).await;
    check_settled_once(&world);
}

#[tokio::test(start_paused = true)]
async fn a_late_result_of_a_reaped_operation_is_not_charged_and_not_told() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    // The next process of the same name reaps it at once.
    let next = setup().on(&world.store).start().await;
    assert_failed!(next.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
    gate.open();
    turns().await;
    assert_failed!(first.told().await, RequestFailure::OutcomeUnknown(_));
    assert_eq!(world.store.phase(), "abandoned");
    assert_eq!(world.store.balances(), (FUNDS, 0));
    assert_eq!(world.store.transfers("lapse"), 1);
}
