//! Stores that refuse, lose answers or fall silent: one hold, one run, one charge all the same.

use holdfast_engine::Failure;
use holdfast_testkit::{Fault, Gate};
use tokio::time::Instant;

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, HELLO_HOLDS, World, assert_failed, body, operation_id, pass, says,
    secs, setup, text, turns,
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
    let world = setup().script(says("hi")).start().await;
    world.store.journal.fail_next([Fault::Unavailable]);
    assert_failed!(world.ask(1, HELLO).await, Failure::Storage(None));
    assert!(world.store.journal.operations().is_empty());
    assert_eq!(world.runs(), 0);
    body(&world.ask(1, HELLO).await);
    check_settled_once(&world);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_finds_the_queue_full_is_told_so() {
    let world = setup().script(says("hi")).start().await;
    world.store.journal.fail_next([Fault::Overloaded]);
    assert_failed!(world.ask(1, HELLO).await, Failure::Overloaded);
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
    assert_failed!(world.ask(1, HELLO).await, Failure::Storage(None));
    assert_eq!(began.elapsed(), secs(10));
    assert_eq!(world.runs(), 0, "nothing is sent before the claim is known to be committed");
    world.store.set_silent(false);
    pass(secs(3)).await;
    check_settled_once(&world);
    body(&world.ask(1, HELLO).await);
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
    assert_failed!(first.told().await, Failure::Storage(Some(id)) if *id == operation_id(1));
    assert_eq!(began.elapsed(), secs(10));
    assert_failed!(second.told().await, Failure::Storage(Some(_)));
    assert_failed!(world.ask(1, HELLO).await, Failure::Storage(Some(_)));
    assert_eq!(world.store.phase(), "leased");
    assert_eq!(world.store.balances(), (FUNDS - HELLO_HOLDS, HELLO_HOLDS));
    world.store.set_silent(false);
    assert!(text(&world.ask(1, HELLO).await).contains("hi"));
    check_settled_once(&world);
}

#[tokio::test(start_paused = true)]
async fn a_result_is_offered_through_an_outage_of_the_store() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.set_down(true);
    gate.open();
    assert_failed!(first.told().await, Failure::Storage(Some(_)));
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
    assert_failed!(next.ask(1, HELLO).await, Failure::OutcomeUnknown(_));
    gate.open();
    turns().await;
    assert_failed!(first.told().await, Failure::OutcomeUnknown(_));
    assert_eq!(world.store.phase(), "abandoned");
    assert_eq!(world.store.balances(), (FUNDS, 0));
    assert_eq!(world.store.transfers("release"), 1);
}
