//! Operations whose owner is gone: who reaps them, when, and when not yet.

use holdfast_domain::operation::{Lease, Situation};
use holdfast_domain::ports::LeaseMode;
use holdfast_domain::secret::ServerSecret;
use holdfast_domain::{Journal, Nodes, OperationId, RequestKey};
use holdfast_engine::{LookupError, RequestFailure};
use holdfast_testkit::{Fault, Gate, sample};
use tokio::time::Instant;

use crate::store::Store;
use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, Setup, assert_failed, body, operation_id, pass, says, secret, secs,
    setup, text, turns,
};

/// An operation of node `b`, which has its name for `lease` seconds and was never heard of again.
async fn left_by_b(store: &Store, lease: u64, time: u64) -> OperationId {
    let node = sample::node("b");
    store.journal.heartbeat(&node, secs(lease), LeaseMode::Take).await.unwrap();
    leased(store, Lease { node, ends_at: sample::NOW.after(secs(1 << 30)) }, time).await
}

/// An operation under a claim that no task runs.
async fn leased(store: &Store, lease: Lease, time: u64) -> OperationId {
    let secret: ServerSecret = secret(7);
    let mut binding = sample::binding("hello", sample::terms());
    binding.terms.server_secret = secret.id();
    binding.body_digest = secret.body_digest_key(sample::API_KEY).digest(HELLO.as_bytes());
    let key: RequestKey = sample::request_key(9);
    let claim = sample::claim().request_key(key).binding(binding).lease(lease).time(secs(time));
    store.journal.commit(sample::admission(&claim.build())).await.unwrap();
    operation_id(9)
}

fn shared() -> Setup {
    setup().shared("a")
}

fn phase(store: &Store, id: OperationId) -> &'static str {
    store.journal.operation(id).unwrap().phase.label()
}

/// Runs an operation on a process, lets another take its name, and returns both.
async fn superseded() -> (crate::world::World, crate::world::World, Gate) {
    let gate = Gate::new();
    let first = setup().script(says("hi").wait(&gate)).start().await;
    let caller = first.asking(1, HELLO).await;
    gate.reached().await;
    caller.hang_up().await;
    let second = setup().on(&first.store).script(says("hi")).start().await;
    (first, second, gate)
}

#[tokio::test(start_paused = true)]
async fn a_retry_reaps_what_a_superseded_process_left() {
    let (first, second, _gate) = superseded().await;
    assert_eq!(first.store.phase(), "leased");
    assert_failed!(second.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
    assert_eq!(second.store.balances(), (FUNDS, 0));
    assert_eq!(second.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_look_up_reaps_what_a_superseded_process_left() {
    let (_first, second, _gate) = superseded().await;
    let caller = second.submission(1, HELLO).await.caller;
    let seen = second.engine.look_up(&caller, sample::request_key(1)).await.unwrap();
    assert_eq!(seen.situation, Situation::Completed);
    assert_eq!(second.store.phase(), "abandoned");
    assert_eq!(second.runs(), 0, "a look-up never runs anything");
}

#[tokio::test(start_paused = true)]
async fn the_reconciler_reaps_what_a_superseded_process_left_as_it_starts() {
    let (_first, second, _gate) = superseded().await;
    turns().await;
    assert_eq!(second.store.phase(), "abandoned");
    assert_eq!(second.store.balances(), (FUNDS, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_past_its_deadline_is_reaped_however_alive_its_node() {
    let world = shared().start().await;
    let id = left_by_b(&world.store, 1 << 30, 20).await;
    pass(secs(20)).await;
    assert_eq!(phase(&world.store, id), "leased");
    pass(secs(5)).await;
    assert_eq!(phase(&world.store, id), "abandoned");
    assert_eq!(world.store.balances(), (FUNDS, 0));
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_node_left_is_reaped_after_the_grace_and_not_before() {
    let world = shared().start().await;
    let id = left_by_b(&world.store, 15, 10_000).await;
    pass(secs(74)).await;
    assert_eq!(phase(&world.store, id), "leased");
    pass(secs(6)).await;
    assert_eq!(phase(&world.store, id), "abandoned");
}

#[tokio::test(start_paused = true)]
async fn a_fresh_process_believes_dead_leases_after_a_lease_of_its_own() {
    let store = Store::with_funds(FUNDS);
    let id = left_by_b(&store, 15, 10_000).await;
    pass(secs(1_000)).await;
    let _world = shared().on(&store).start().await;
    pass(secs(14)).await;
    assert_eq!(phase(&store, id), "leased");
    pass(secs(6)).await;
    assert_eq!(phase(&store, id), "abandoned");
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_does_not_look_like_the_death_of_other_nodes() {
    let gate = Gate::new();
    let world = shared().start().await;
    let b = setup().shared("b").on(&world.store).script(says("hi").wait(&gate)).start().await;
    let caller = b.asking(1, HELLO).await;
    gate.reached().await;
    pass(secs(30)).await;
    world.store.set_down(true);
    pass(secs(200)).await;
    let beats = world.store.hold_beats();
    world.store.set_down(false);
    // The reconciler may come before the first heartbeat that goes through.
    pass(secs(10)).await;
    assert_eq!(world.store.phase(), "leased");
    beats.open();
    pass(secs(10)).await;
    gate.open();
    body(&caller.told().await);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn dead_leases_are_believed_a_lease_after_the_store_came_back() {
    let world = shared().start().await;
    let id = left_by_b(&world.store, 15, 10_000).await;
    pass(secs(30)).await;
    world.store.set_down(true);
    pass(secs(200)).await;
    world.store.set_down(false);
    pass(secs(12)).await;
    assert_eq!(phase(&world.store, id), "leased");
    pass(secs(12)).await;
    assert_eq!(phase(&world.store, id), "abandoned");
}

#[tokio::test(start_paused = true)]
async fn a_process_does_not_reap_what_it_runs_although_the_stores_clock_has_jumped() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    pass(secs(30)).await;
    let _beats = world.store.hold_beats();
    world.store.journal.advance(secs(300));
    pass(secs(5)).await;
    assert_eq!(world.store.phase(), "leased");
    gate.open();
    body(&caller.told().await);
}

#[tokio::test(start_paused = true)]
async fn a_caller_does_not_wait_for_ever_for_a_reaping_without_a_verdict() {
    let gate = Gate::new();
    let first = setup().script(says("hi").wait(&gate)).start().await;
    let _caller = first.asking(1, HELLO).await;
    gate.reached().await;
    first.store.set_silent(true);
    let second = setup().on(&first.store).start().await;
    let caller = second.submission(1, HELLO).await.caller;
    let began = Instant::now();
    let seen = second.engine.look_up(&caller, sample::request_key(1)).await;
    assert!(matches!(seen, Err(LookupError::Unavailable(_))));
    assert_eq!(began.elapsed(), secs(10));
    assert_failed!(second.ask(1, HELLO).await, RequestFailure::Storage(_));
    assert_eq!(began.elapsed(), secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_this_process_that_no_task_runs_is_given_up_after_two_sightings() {
    let world = shared().start().await;
    turns().await;
    let node = world.store.lease_of("a").await.unwrap().node;
    let lease = Lease { node, ends_at: sample::NOW.after(secs(1 << 30)) };
    let id = leased(&world.store, lease, 10_000).await;
    pass(secs(5)).await;
    assert_eq!(phase(&world.store, id), "leased", "seen once: its task may not be back yet");
    pass(secs(4)).await;
    assert_eq!(phase(&world.store, id), "abandoned", "nobody knows whether it was sent");
    assert_failed!(world.ask(9, HELLO).await, RequestFailure::OutcomeUnknown(_));
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_task_died_before_it_sent_anything_is_given_up_as_not_run() {
    let world = setup().script(says("hi")).start().await;
    turns().await;
    world.store.journal.fail_next([Fault::Landed]);
    world.store.alter(|_snapshot| panic!("a bug in the task"));
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::Internal(Some(id)) if *id == operation_id(1));
    world.store.alter(|_snapshot| {});
    assert_eq!(world.store.phase(), "leased");
    pass(secs(9)).await;
    assert_eq!(world.store.phase(), "open");
    assert!(text(&world.ask(1, HELLO).await).contains("hi"));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_task_died_after_it_was_sent_is_given_up_as_run() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.set_buggy(true);
    gate.open();
    assert_failed!(caller.told().await, RequestFailure::Internal(Some(_)));
    world.store.set_buggy(false);
    assert_eq!(world.store.phase(), "leased");
    pass(secs(9)).await;
    assert_eq!(world.store.phase(), "abandoned");
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_this_process_runs_is_never_given_up() {
    let gate = Gate::new();
    let world = shared().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    pass(secs(120)).await;
    assert_eq!(world.store.phase(), "leased");
    gate.open();
    body(&caller.told().await);
}

#[tokio::test(start_paused = true)]
async fn what_this_process_runs_is_not_past_its_deadline_because_a_clock_has_jumped() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.journal.advance(secs(25 * 3_600));
    pass(secs(20)).await;
    let attached = world.asking(1, HELLO).await;
    let caller_of = world.submission(1, HELLO).await.caller;
    let seen = world.engine.look_up(&caller_of, sample::request_key(1)).await.unwrap();
    assert_eq!(seen.operation.phase.label(), "leased");
    gate.open();
    assert_eq!(body(&caller.told().await), body(&attached.told().await));
    assert_eq!(world.store.phase(), "completed");
}

#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_what_this_process_runs_though_a_clock_has_jumped() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.journal.advance(secs(25 * 3_600));
    let caller_of = world.submission(1, HELLO).await.caller;
    let seen = world.engine.cancel(&caller_of, sample::request_key(1)).await.unwrap();
    assert_eq!(seen.operation.phase.label(), "leased", "its own task ends it");
    assert!(text(&caller.told().await).contains("hi"), "what had arrived");
    assert_eq!(world.store.phase(), "completed");
}

#[tokio::test(start_paused = true)]
async fn a_retry_waits_for_a_dead_node_through_the_grace_and_is_answered() {
    let world = shared().start().await;
    let id = left_by_b(&world.store, 15, 10_000).await;
    let mut caller = world.asking(9, HELLO).await;
    pass(secs(60)).await;
    assert!(caller.is_waiting().await);
    assert_failed!(caller.told().await, RequestFailure::OutcomeUnknown(told) if *told == id);
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_panics_begins_anew() {
    let world = shared().start().await;
    world.store.alter(|_snapshot| panic!("a bug in the store"));
    let id = left_by_b(&world.store, 1 << 30, 20).await;
    pass(secs(30)).await;
    assert_eq!(phase(&world.store, id), "leased");
    world.store.alter(|_snapshot| {});
    pass(secs(9)).await;
    assert_eq!(phase(&world.store, id), "abandoned");
}
