//! This process as a node: how it takes its name, what a silent store forbids it, and what happens
//! when another process takes the name.

use std::time::Duration;

use holdfast_domain::operation::Lease;
use holdfast_domain::ports::{
    CallFailure as ProviderFailure, HeartbeatOutcome, LeaseMode, NotRunProof,
};
use holdfast_domain::{Journal, Nodes};
use holdfast_engine::{Readiness, RequestFailure, StartError};
use holdfast_testkit::{Gate, Script, sample};
use tokio::time::{Instant, timeout};

use crate::store::Store;
use crate::world::{FUNDS, HELLO, assert_failed, body, pass, route, says, secs, setup, turns};

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_without_an_acknowledged_heartbeat_for_ten_seconds() {
    let world = setup().shared("a").script(says("hi")).script(says("hi")).start().await;
    turns().await;
    let beats = world.store.hold_beats();
    pass(secs(9)).await;
    body(&world.ask(1, HELLO).await);
    pass(secs(1)).await;
    assert_failed!(world.ask(2, HELLO).await, RequestFailure::NotRun(..));
    pass(secs(6)).await;
    assert_failed!(world.ask(3, HELLO).await, RequestFailure::Storage(None));
    assert_eq!(world.runs(), 1);
    body(&world.ask(1, HELLO).await);
    beats.open();
    pass(secs(5)).await;
    body(&world.ask(2, HELLO).await);
}

#[tokio::test(start_paused = true)]
async fn the_next_route_is_not_tried_without_an_acknowledged_heartbeat() {
    let gate = Gate::new();
    let not_run = Script::failing(ProviderFailure::NotRun(NotRunProof::Connect)).wait(&gate);
    let world = setup()
        .shared("a")
        .model(|model| {
            model.routes = vec![route("one"), route("two")];
        })
        .script(not_run)
        .script_of("two", says("hi"))
        .start()
        .await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    let _beats = world.store.hold_beats();
    pass(secs(15)).await;
    gate.open();
    assert_failed!(caller.told().await, RequestFailure::NotRun(..));
    assert_eq!(world.runs_of("two"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_counts_from_when_it_was_sent() {
    let world = setup().shared("a").script(says("hi")).start().await;
    turns().await;
    let beats = world.store.hold_beats();
    pass(secs(4)).await;
    beats.reached().await;
    pass(secs(9)).await;
    let _silent = world.store.hold_beats();
    // Sent nine seconds ago and acknowledged now.
    beats.open();
    pass(secs(2)).await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
}

#[tokio::test(start_paused = true)]
async fn the_clock_that_keys_end_by_does_not_run_ahead_by_a_slow_heartbeat() {
    let world = setup().shared("a").start().await;
    turns().await;
    let beats = world.store.hold_beats();
    pass(secs(4)).await;
    beats.reached().await;
    pass(secs(3)).await;
    beats.open();
    turns().await;
    let (told, truly) = (world.engine.now(), world.store.journal.now());
    assert!(
        told <= truly && truly <= told.after(Duration::from_millis(1)),
        "{told:?} is not {truly:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_hangs_does_not_stop_those_after_it() {
    let world = setup().shared("a").script(says("hi")).start().await;
    turns().await;
    let beats = world.store.hold_beats();
    pass(secs(5)).await;
    beats.reached().await;
    world.store.let_beats_pass();
    pass(secs(20)).await;
    body(&world.ask(1, HELLO).await);
}

#[tokio::test(start_paused = true)]
async fn a_process_with_a_lock_on_its_name_never_expires_itself() {
    let world = setup().script(says("hi")).script(says("hi")).start().await;
    let _beats = world.store.hold_beats();
    pass(secs(3_600)).await;
    body(&world.ask(1, HELLO).await);
    assert_eq!(world.engine.readiness().await, Readiness::Storage);
}

#[tokio::test(start_paused = true)]
async fn a_process_with_a_lock_on_its_name_does_not_reap_what_it_runs() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    let beats = world.store.hold_beats();
    pass(secs(300)).await;
    beats.open();
    pass(secs(60)).await;
    gate.open();
    body(&caller.told().await);
}

#[tokio::test(start_paused = true)]
async fn a_superseded_process_takes_nothing_new_and_says_so() {
    let gate = Gate::new();
    let first = setup().script(says("hi").wait(&gate)).start().await;
    let running = first.asking(1, HELLO).await;
    gate.reached().await;
    assert!(timeout(secs(60), first.engine.superseded()).await.is_err());
    let second = setup().on(&first.store).script(says("second")).start().await;
    timeout(secs(5), first.engine.superseded()).await.unwrap();
    assert_failed!(first.ask(2, HELLO).await, RequestFailure::Draining);
    assert_eq!(first.engine.readiness().await, Readiness::Draining);
    gate.open();
    assert_failed!(running.told().await, RequestFailure::OutcomeUnknown(_));
    body(&second.ask(2, HELLO).await);
    assert_eq!(second.engine.readiness().await, Readiness::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_superseded_process_does_not_try_the_next_route() {
    let gate = Gate::new();
    let not_run = Script::failing(ProviderFailure::NotRun(NotRunProof::Connect)).wait(&gate);
    let first = setup()
        .model(|model| {
            model.routes = vec![route("one"), route("two")];
        })
        .script(not_run)
        .script_of("two", says("hi"))
        .start()
        .await;
    let caller = first.asking(1, HELLO).await;
    gate.reached().await;
    let _second = setup().on(&first.store).start().await;
    first.engine.superseded().await;
    gate.open();
    let reply = caller.told().await;
    assert!(reply.outcome.is_err());
    assert_eq!(first.runs_of("two"), 0);
    assert_eq!(first.store.balances(), (FUNDS, 0));
}

async fn leased_by_another(store: &Store, name: &str, lease: u64) {
    let node = sample::node(name);
    let beat = store.journal.heartbeat(&node, secs(lease), LeaseMode::Take).await.unwrap();
    assert!(matches!(beat, HeartbeatOutcome::Held { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_start_waits_for_a_name_until_its_lease_ends() {
    let store = Store::with_funds(FUNDS);
    leased_by_another(&store, "a", 15).await;
    let began = Instant::now();
    let world = setup().on(&store).shared("a").try_start().await.unwrap();
    let waited = began.elapsed();
    assert!(secs(15) <= waited && waited <= secs(16), "{waited:?}");
    assert_eq!(world.engine.readiness().await, Readiness::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_start_under_a_name_that_is_renewed_ends() {
    let store = Store::with_funds(FUNDS);
    let first = setup().on(&store).shared("a").start().await;
    let began = Instant::now();
    let second = setup().on(&store).shared("a").try_start().await;
    let Err(StartError::NameInUse(name)) = second.map(|_world| ()) else { panic!("it started") };
    assert_eq!(name, "a");
    assert!(began.elapsed() <= secs(5));
    assert_eq!(first.engine.readiness().await, Readiness::Ready);
    assert!(timeout(secs(60), first.engine.superseded()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_start_without_a_store_ends() {
    let store = Store::with_funds(FUNDS);
    store.set_down(true);
    let started = setup().on(&store).try_start().await;
    assert!(matches!(started.map(|_world| ()), Err(StartError::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_cannot_be_given_up_does_not_stop_the_heartbeats() {
    let world = setup().shared("a").start().await;
    turns().await;
    let node = world.store.lease_of("a").await.unwrap().node;
    let stray = Lease { node, ends_at: sample::NOW.after(secs(1 << 30)) };
    let claim = sample::claim().lease(stray).build();
    world.store.journal.commit(sample::admission(&claim)).await.unwrap();
    world.store.set_silent(true);
    pass(secs(120)).await;
    let lease = world.store.lease_of("a").await.unwrap();
    assert!(lease.ends_at > world.store.journal.now(), "its lease is live");
}

#[tokio::test]
async fn a_lease_is_renewed_while_every_thread_of_the_engine_is_held_up() {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    let world = setup()
        .options(|options| {
            options.heartbeat = Duration::from_millis(5);
            options.heartbeat_runtime = Some(runtime.handle().clone());
        })
        .start()
        .await;
    let before = world.store.n_beats();
    // This thread is all that the engine has.
    let until = std::time::Instant::now() + secs(5);
    while world.store.n_beats() < before + 3 {
        assert!(std::time::Instant::now() < until, "no heartbeat came");
        std::thread::yield_now();
    }
    drop(world);
    runtime.shutdown_background();
}
