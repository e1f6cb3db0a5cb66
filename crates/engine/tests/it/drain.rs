//! The end of a process: what runs may finish, what does not is cut, and the name is given back.

use std::sync::Arc;
use std::time::Duration;

use holdfast_engine::{Engine, Readiness, RequestFailure};
use holdfast_testkit::Gate;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, OTHER, World, assert_failed, body, pass, says, secs, setup, text,
    turns,
};

/// Longer than any drain may take.
const FOR_EVER: Duration = secs(3_600);

struct Drain(JoinSet<bool>);

impl Drain {
    fn of(world: &World, drain_time: Duration) -> Self {
        let engine: Arc<Engine> = Arc::clone(&world.engine);
        let mut task = JoinSet::new();
        task.spawn(async move { engine.drain(drain_time).await });
        Self(task)
    }

    async fn finished(mut self) -> bool {
        timeout(FOR_EVER, self.0.join_next()).await.unwrap().unwrap().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_drain_lets_what_runs_finish_and_gives_the_name_back() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    let drain = Drain::of(&world, secs(30));
    pass(secs(20)).await;
    assert_failed!(world.ask(2, HELLO).await, RequestFailure::Draining);
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::Draining);
    assert_eq!(world.engine.readiness().await, Readiness::Draining);
    assert!(world.store.lease_of("a").await.is_some());
    gate.open();
    assert!(text(&caller.told().await).contains("hi"));
    assert!(drain.finished().await);
    assert_eq!(world.store.lease_of("a").await, None);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_stops_admitting_is_not_ready_and_finishes_what_runs() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    world.engine.stop_admitting();
    assert_eq!(world.engine.readiness().await, Readiness::Draining);
    assert_failed!(world.ask(2, HELLO).await, RequestFailure::Draining);
    gate.open();
    body(&caller.told().await);
}

#[tokio::test(start_paused = true)]
async fn what_was_sent_is_cut_at_the_drain_deadline_and_abandoned() {
    let never = Gate::new();
    let world = setup().script(says("hi").wait(&never)).start().await;
    let caller = world.asking(1, HELLO).await;
    never.reached().await;
    let began = Instant::now();
    assert!(!Drain::of(&world, secs(30)).finished().await);
    assert_eq!(began.elapsed(), secs(30));
    assert_failed!(caller.told().await, RequestFailure::OutcomeUnknown(_));
    assert_eq!(world.store.phase(), "abandoned");
    assert_eq!(world.store.balances(), (FUNDS, 0));
    assert_eq!(world.store.lease_of("a").await, None);
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_by_the_drain_deadline_is_open() {
    let world = setup().script(says("hi")).start().await;
    let commits = world.store.hold_commits();
    let caller = world.asking(1, HELLO).await;
    commits.reached().await;
    let drain = Drain::of(&world, secs(5));
    pass(secs(7)).await;
    assert!(world.store.lease_of("a").await.is_some(), "an ending is awaited");
    commits.open();
    assert_failed!(caller.told().await, RequestFailure::NotRun(..));
    assert!(!drain.finished().await);
    assert_eq!(world.store.phase(), "open");
    assert_eq!(world.store.balances(), (FUNDS, 0));
    assert_eq!(world.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_still_connects_at_the_drain_deadline_is_open() {
    let connecting = Gate::new();
    let world = setup().script(says("hi").wait_before_send(&connecting)).start().await;
    let caller = world.asking(1, HELLO).await;
    connecting.reached().await;
    assert!(!Drain::of(&world, secs(5)).finished().await);
    assert_failed!(caller.told().await, RequestFailure::NotRun(..));
    assert_eq!(world.store.phase(), "open");
    assert_eq!(world.store.balances(), (FUNDS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_caller_whose_turn_comes_during_a_drain_starts_nothing() {
    let world = setup().funds(100).script(says("hi")).start().await;
    let commits = world.store.hold_commits();
    let dear = HELLO.replace("\"messages\"", "\"n\":2,\"messages\"");
    let refused = world.asking(1, &dear).await;
    commits.reached().await;
    let mut next = world.asking(1, HELLO).await;
    assert!(next.is_waiting().await);
    world.engine.stop_admitting();
    commits.open();
    assert_failed!(refused.told().await, RequestFailure::InsufficientFunds { .. });
    assert_failed!(next.told().await, RequestFailure::Draining);
    assert!(world.store.journal.operations().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_although_the_store_is_silent() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.set_silent(true);
    gate.open();
    let began = Instant::now();
    assert!(!Drain::of(&world, secs(5)).finished().await);
    assert!(began.elapsed() <= secs(60), "{:?}", began.elapsed());
    assert_failed!(caller.told().await, RequestFailure::Storage(Some(_)));
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_although_heartbeats_and_reads_hang() {
    let world = setup().start().await;
    turns().await;
    let _beats = world.store.hold_beats();
    let _loads = world.store.hold_loads();
    pass(secs(10)).await;
    let began = Instant::now();
    assert!(Drain::of(&world, secs(5)).finished().await, "nothing ran");
    assert!(began.elapsed() <= secs(60), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_although_a_reaping_has_no_verdict() {
    let never = Gate::new();
    let first = setup().script(says("hi").wait(&never)).start().await;
    let caller = first.asking(1, HELLO).await;
    never.reached().await;
    first.store.set_silent(true);
    let second = setup().on(&first.store).start().await;
    turns().await;
    assert!(Drain::of(&second, secs(5)).finished().await);
    assert_failed!(first.ask(1, OTHER).await, RequestFailure::OtherRequest);
    caller.hang_up().await;
}
