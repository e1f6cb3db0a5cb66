//! A caller asks for the end of its operation: what its owner makes of it here and on another node,
//! and that asking and ending at once lose nothing.

use std::sync::Arc;

use holdfast_domain::operation::{Operation, Phase};
use holdfast_domain::ports::{CallFailure as ProviderFailure, NotRunProof};
use holdfast_domain::private::Private;
use holdfast_domain::usage::MetersSource;
use holdfast_engine::{LookupError, OperationLookup, RequestFailure, ResultState};
use holdfast_testkit::{Gate, Script, join_all, sample};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, PEER, PendingReplies, TOTAL, World, assert_failed, bearer, body,
    operation_id, pass, route, says, secs, setup, text, turns,
};

/// A call that is sent and says nothing until the gate opens.
fn silent(gate: &Gate) -> Script {
    Script::finishing(None).wait(gate)
}

async fn try_cancel(world: &World, n: u8, key: u64) -> Result<OperationLookup, LookupError> {
    let caller = world.engine.authenticate(&bearer(n).expose(), PEER).await.unwrap();
    world.engine.cancel(&caller, sample::request_key(key)).await
}

/// Asks, and says where the operation stood then.
async fn cancel(world: &World) -> &'static str {
    try_cancel(world, 1, 1).await.unwrap().operation.phase.label()
}

fn classes(operation: &Operation) -> Vec<(&str, bool)> {
    operation.attempts.iter().map(|a| (&*a.class, a.may_be_billed)).collect()
}

/// Nobody pays, and the key never runs again.
async fn check_abandoned(world: &World, asking: PendingReplies, runs: usize) {
    assert_failed!(asking.told().await, RequestFailure::OutcomeUnknown(id) if *id == operation_id(1));
    assert_eq!(world.store.phase(), "abandoned");
    assert_eq!(world.store.balances(), (FUNDS, 0));
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
    assert_eq!((world.runs(), world.store.operation().generation), (runs, 1));
    assert_eq!(cancel(world).await, "abandoned");
}

#[tokio::test(start_paused = true)]
async fn an_owner_in_this_process_cuts_its_call_at_once_and_nobody_pays() {
    let gate = Gate::new();
    let world = setup().script(silent(&gate)).start().await;
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    let attached = world.asking(1, HELLO).await;
    let began = Instant::now();
    assert_eq!(cancel(&world).await, "leased");
    assert_failed!(attached.told().await, RequestFailure::OutcomeUnknown(_));
    check_abandoned(&world, asking, 1).await;
    assert_eq!(began.elapsed(), secs(0));
    assert_eq!(classes(&world.store.operation()), [("unknown_cut", true)]);
}

#[tokio::test(start_paused = true)]
async fn asking_again_disturbs_nobody() {
    let gate = Gate::new();
    let owner = setup().shared("a").script(silent(&gate)).start().await;
    let asking = owner.asking(1, HELLO).await;
    gate.reached().await;
    let other = setup().on(&owner.store).shared("b").start().await;
    turns().await;
    assert_eq!(join_all((0..8).map(|_| cancel(&other))).await, ["leased"; 8]);
    let version = || owner.store.operation().version.get();
    assert_eq!(version(), 2, "admitted and asked once");
    pass(secs(5)).await;
    assert_eq!(version(), 3, "and ended");
    check_abandoned(&owner, asking, 1).await;
}

#[tokio::test(start_paused = true)]
async fn what_had_arrived_is_completed_with_length_and_paid_by_an_own_count() {
    let gate = Gate::new();
    let said = Script::finishing(None).say("Once upon a time").wait(&gate);
    let world = setup().script(said).start().await;
    let two = HELLO.replace("\"messages\"", "\"n\":2,\"messages\"");
    let asking = world.asking(1, &two).await;
    gate.reached().await;
    assert_eq!(cancel(&world).await, "leased");
    let reply = asking.told().await;
    let told = text(&reply);
    assert!(told.contains(r#""content":"Once upon a time""#), "{told}");
    assert_eq!(told.matches(r#""finish_reason":"length""#).count(), 2, "{told}");
    let row = world.store.operation();
    let Phase::Completed { usage, .. } = &row.phase else { panic!("{:?}", row.phase) };
    assert_eq!(usage.metered.source, MetersSource::Estimated);
    assert_eq!(usage.charge.get(), 6, "5 bytes in are 2 tokens, 16 bytes out are 4");
    assert_eq!(world.store.balances(), (FUNDS - 6, 0));
    assert_eq!(classes(&row), [("cut", true)]);
    assert_eq!(cancel(&world).await, "completed");
    assert_eq!(body(&world.ask(1, &two).await), body(&reply));
}

#[tokio::test(start_paused = true)]
async fn what_was_whole_when_it_was_cut_keeps_its_end() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    assert_eq!(cancel(&world).await, "leased");
    let reply = asking.told().await;
    assert!(text(&reply).contains(r#""finish_reason":"stop""#), "{}", text(&reply));
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_yet_is_never_sent_and_does_not_run_on_a_retry() {
    let connecting = Gate::new();
    let world = setup().script(says("hi").wait_before_send(&connecting)).start().await;
    let asking = world.asking(1, HELLO).await;
    connecting.reached().await;
    assert_eq!(cancel(&world).await, "leased");
    check_abandoned(&world, asking, 1).await;
    assert_eq!(classes(&world.store.operation()), [("not_run_connect", false)]);
}

#[tokio::test(start_paused = true)]
async fn what_proved_not_to_have_run_does_not_run_on_a_retry_either() {
    let gate = Gate::new();
    let not_run = Script::failing(ProviderFailure::NotRun(NotRunProof::Overloaded)).wait(&gate);
    let world = setup().script(not_run).script(says("second")).start().await;
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    // Asked elsewhere: the row says so and its task does not know yet, as the call ends by itself.
    let other = setup().on(&world.store).shared("b").start().await;
    turns().await;
    assert_eq!(cancel(&other).await, "leased");
    gate.open();
    check_abandoned(&world, asking, 1).await;
}

#[tokio::test(start_paused = true)]
async fn the_next_route_is_not_tried_after_a_cancel() {
    let (gate, connecting) = (Gate::new(), Gate::new());
    let not_run = Script::failing(ProviderFailure::NotRun(NotRunProof::Overloaded)).wait(&gate);
    let world = setup()
        .model(|model| model.routes = ["one", "two", "three"].map(route).to_vec())
        .script(not_run)
        .script_of("two", says("second").wait_before_send(&connecting))
        .script_of("three", says("third"))
        .start()
        .await;
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    gate.open();
    connecting.reached().await;
    assert_eq!(cancel(&world).await, "leased");
    check_abandoned(&world, asking, 1).await;
    assert_eq!((world.runs_of("two"), world.runs_of("three")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn an_owner_on_another_node_sees_it_within_a_heartbeat() {
    let gate = Gate::new();
    let owner = setup().shared("a").script(silent(&gate)).start().await;
    let asking = owner.asking(1, HELLO).await;
    gate.reached().await;
    let other = setup().on(&owner.store).shared("b").start().await;
    let attached = other.asking(1, HELLO).await;
    turns().await;
    let began = Instant::now();
    assert_eq!(cancel(&other).await, "leased");
    assert_failed!(attached.told().await, RequestFailure::OutcomeUnknown(_));
    assert!(began.elapsed() <= secs(5), "{:?}", began.elapsed());
    check_abandoned(&owner, asking, 1).await;
    assert_eq!(other.runs(), 0);
}

/// A cancel on a task of its own.
async fn cancelling(world: &World) -> JoinSet<Result<OperationLookup, LookupError>> {
    let caller = world.engine.authenticate(&bearer(1).expose(), PEER).await.unwrap();
    let engine = Arc::clone(&world.engine);
    let mut task = JoinSet::new();
    task.spawn(async move { engine.cancel(&caller, sample::request_key(1)).await });
    task
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_the_store_has_not_judged_is_waited_for_and_then_cancelled() {
    // The first claim of a key, and one that opens it again.
    for reopens in [false, true] {
        let never = Gate::new();
        let mut setup = setup();
        if reopens {
            setup = setup.script(Script::failing(ProviderFailure::NotRun(NotRunProof::Connect)));
        }
        let world = setup.script(silent(&never)).start().await;
        if reopens {
            assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
        }
        turns().await;
        let commits = world.store.hold_commits();
        let mut asking = world.asking(1, HELLO).await;
        commits.reached().await;
        let mut cancel = cancelling(&world).await;
        assert!(asking.is_waiting().await);
        assert!(cancel.try_join_next().is_none(), "nobody knows yet whether it will run");
        commits.open();
        let seen = cancel.join_next().await.unwrap().unwrap().unwrap();
        let told = asking.told().await;
        // Of a claim that opens a key again and its cancel, the first that the store takes wins.
        match seen.operation.phase.label() {
            "abandoned" if reopens => assert_failed!(told, RequestFailure::CancelledUnrun(_)),
            phase => {
                assert_eq!(phase, "leased");
                assert_failed!(told, RequestFailure::OutcomeUnknown(_));
            }
        }
        assert_eq!((world.store.phase(), world.store.balances()), ("abandoned", (FUNDS, 0)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_the_store_refuses_leaves_nothing_to_cancel() {
    let world = setup().funds(1).start().await;
    let commits = world.store.hold_commits();
    let asking = world.asking(1, HELLO).await;
    commits.reached().await;
    let mut cancel = cancelling(&world).await;
    turns().await;
    assert!(cancel.try_join_next().is_none(), "nobody knows yet whether it will run");
    commits.open();
    assert_failed!(asking.told().await, RequestFailure::InsufficientFunds { .. });
    let told = cancel.join_next().await.unwrap().unwrap();
    assert!(matches!(told, Err(LookupError::NotFound)), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_not_judged_in_time_is_no_proof_that_nothing_runs() {
    let world = setup().script(says("hi")).start().await;
    let commits = world.store.hold_commits();
    let _asking = world.asking(1, HELLO).await;
    commits.reached().await;
    let began = Instant::now();
    let told = try_cancel(&world, 1, 1).await;
    assert!(matches!(told, Err(LookupError::Unavailable(_))), "{told:?}");
    assert_eq!(began.elapsed(), secs(10));
}

#[tokio::test(start_paused = true)]
async fn what_is_not_this_api_keys_is_not_found() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    assert!(matches!(try_cancel(&world, 1, 1).await, Err(LookupError::NotFound)));
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    assert!(matches!(try_cancel(&world, 2, 1).await, Err(LookupError::NotFound)));
    assert!(!world.store.operation().cancel_asked);
    gate.open();
    body(&asking.told().await);
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_stays_as_it_is() {
    let world = setup().script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    assert_eq!(cancel(&world).await, "completed");
    assert_eq!(body(&world.ask(1, HELLO).await), body(&first));
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn what_is_open_ends_and_never_runs() {
    let not_run = Script::failing(ProviderFailure::NotRun(NotRunProof::Connect));
    let world = setup().script(not_run).script(says("hi")).start().await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
    let runs = world.runs();
    for _asked_again in 0..2 {
        assert_eq!(cancel(&world).await, "abandoned");
        assert_failed!(world.ask(1, HELLO).await, RequestFailure::CancelledUnrun(_));
    }
    assert_eq!((world.runs(), world.store.balances()), (runs, (FUNDS, 0)));
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_owner_left_is_reaped_instead() {
    let gate = Gate::new();
    let first = setup().script(silent(&gate)).start().await;
    let asking = first.asking(1, HELLO).await;
    gate.reached().await;
    asking.hang_up().await;
    let second = setup().on(&first.store).start().await;
    assert_eq!(cancel(&second).await, "abandoned");
    assert!(!first.store.operation().cancel_asked);
    assert_eq!(first.store.balances(), (FUNDS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_meets_the_wish_at_the_store_is_kept_and_paid() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    let ending = world.store.hold_commits();
    gate.open();
    ending.reached().await;
    world.store.hold_commits().open();
    assert_eq!(cancel(&world).await, "leased", "judged before the ending lands");
    ending.open();
    assert!(text(&asking.told().await).contains(r#""content":"hi""#));
    assert!(world.store.operation().cancel_asked);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wish_that_meets_the_result_at_the_store_finds_it_ended() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    let asked = world.store.hold_commits();
    let mut cancelling = cancelling(&world).await;
    asked.reached().await;
    world.store.hold_commits().open();
    gate.open();
    let reply = asking.told().await;
    asked.open();
    let seen = cancelling.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(seen.operation.phase.label(), "completed");
    assert!(matches!(seen.result, ResultState::Kept(Private(kept)) if kept == body(&reply)));
    assert!(!world.store.operation().cancel_asked);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_as_soon_as_what_it_waits_for_is_cancelled() {
    let gate = Gate::new();
    let world = setup().script(silent(&gate)).start().await;
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    world.engine.stop_admitting();
    let engine = Arc::clone(&world.engine);
    let mut drain = JoinSet::new();
    drain.spawn(async move { engine.drain(secs(3_600)).await });
    turns().await;
    let began = Instant::now();
    assert_eq!(cancel(&world).await, "leased");
    assert_eq!(drain.join_all().await, [true]);
    assert!(began.elapsed() < secs(10), "{:?}", began.elapsed());
    assert_failed!(asking.told().await, RequestFailure::OutcomeUnknown(_));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_nothing_says_so_and_asks_nobody() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    let _caller = world.engine.authenticate(&bearer(1).expose(), PEER).await.unwrap();
    world.store.set_silent(true);
    let began = Instant::now();
    assert!(matches!(try_cancel(&world, 1, 1).await, Err(LookupError::Unavailable(_))));
    assert_eq!(began.elapsed(), secs(10));
    world.store.set_silent(false);
    gate.open();
    body(&asking.told().await);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_had_begun_when_its_time_was_over_is_completed_with_length() {
    let never = Gate::new();
    let said = Script::finishing(None).say("Once upon a time").wait(&never);
    let world = setup().script(said).start().await;
    let began = Instant::now();
    let reply = world.ask(1, HELLO).await;
    assert!(text(&reply).contains(r#""finish_reason":"length""#), "{}", text(&reply));
    assert_eq!(began.elapsed(), TOTAL);
    assert_eq!(world.store.balances(), (FUNDS - 6, 0));
}
