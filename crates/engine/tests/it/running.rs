//! One key, one run, one charge: running, replaying, attaching.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use holdfast_domain::operation::Phase;
use holdfast_domain::private::Private;
use holdfast_engine::RequestFailure;
use holdfast_testkit::{Gate, join_all, sample};
use tokio::time::Instant;

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, HELLO_HOLDS, HELLO_RESPELLED, OTHER, PEER, PendingReplies, TOTAL,
    World, assert_failed, bearer, body, operation_id, pass, says, secs, setup, text, turns,
};

#[tokio::test(start_paused = true)]
async fn a_completion_runs_once_and_settles() {
    let world = setup().script(says("hi")).start().await;
    let reply = world.ask(1, HELLO).await;
    let row = world.store.operation();
    let Phase::Completed { usage, .. } = &row.phase else { panic!("{:?}", row.phase) };
    assert_eq!(usage.charge.get(), ANSWER_COSTS);
    assert_eq!(usage.shortfall.get(), 0);
    assert_eq!(row.hold.get(), HELLO_HOLDS);
    assert_eq!(row.deadline, row.admitted_at.after(TOTAL + secs(60)));
    let told = text(&reply);
    for part in [
        format!(r#""id":"{}""#, operation_id(1).completion_id()),
        format!(r#""created":{}"#, row.admitted_at.as_seconds()),
        r#""model":"holdfast/sample""#.to_owned(),
        r#""content":"hi""#.to_owned(),
        format!(r#""customer_charge_micros":{}"#, usage.charge.get()),
    ] {
        assert!(told.contains(&part), "{part} is not in {told}");
    }
    assert!(!reply.replayed);
    assert_eq!(reply.facts.operation, Some(row.id));
    assert_eq!(world.runs(), 1);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn the_provider_gets_the_bound_that_the_hold_was_computed_with() {
    let world = setup().script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    let [call] = &world.scripted("one").calls()[..] else { panic!("not one call") };
    assert_eq!(call.max_output_tokens, 50);
    assert_eq!(&*call.model, "one-model");
    assert_eq!(call.connect, secs(2));
}

#[tokio::test(start_paused = true)]
async fn funds_are_held_while_it_runs() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    assert_eq!(world.store.balances(), (FUNDS - HELLO_HOLDS, HELLO_HOLDS));
    assert_eq!(world.store.phase(), "leased");
    gate.open();
    body(&first.told().await);
}

#[tokio::test(start_paused = true)]
async fn a_replay_returns_identical_bytes_and_runs_nothing() {
    let world = setup().script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    pass(secs(3_600)).await;
    for again in [HELLO, HELLO_RESPELLED] {
        let reply = world.ask(1, again).await;
        assert_eq!(body(&reply), body(&first));
        assert!(reply.replayed);
        assert_eq!(reply.facts.usage, first.facts.usage);
    }
    assert_eq!(world.runs(), 1);
    assert_eq!(world.store.transfers("settle"), 1);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn fifty_callers_on_one_key_are_one_run_and_get_one_answer() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let mut callers = Vec::new();
    for n in 0..50 {
        callers.push(world.asking(1, [HELLO, HELLO_RESPELLED][n % 2]).await);
    }
    gate.reached().await;
    turns().await;
    gate.open();
    let replies = join_all(callers.into_iter().map(PendingReplies::told)).await;
    let bodies: BTreeSet<_> = replies.iter().map(|reply| body(reply).clone()).collect();
    assert_eq!(bodies.len(), 1);
    assert_eq!(replies.iter().filter(|reply| !reply.replayed).count(), 1);
    assert_eq!(world.runs(), 1);
    assert_eq!(world.store.transfers("hold"), 1);
    assert_eq!(world.store.transfers("settle"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_callers_on_several_threads_are_one_run() {
    let world = setup().script(says("hi")).start().await;
    let mut callers = Vec::new();
    for _caller in 0..50 {
        callers.push(world.asking(1, HELLO).await);
    }
    let replies = join_all(callers.into_iter().map(PendingReplies::told)).await;
    let bodies: BTreeSet<_> = replies.iter().map(|reply| body(reply).clone()).collect();
    assert_eq!(bodies.len(), 1);
    assert_eq!(world.runs(), 1);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn fifty_callers_of_two_processes_are_one_run() {
    let (one, two) = (Gate::new(), Gate::new());
    let first = setup().shared("a").script(says("hi").wait(&one)).start().await;
    let second = setup().on(&first.store).shared("b").script(says("hi").wait(&two)).start().await;
    let mut callers = Vec::new();
    for n in 0..50 {
        callers.push([&first, &second][n % 2].asking(1, HELLO).await);
    }
    turns().await;
    one.open();
    two.open();
    let replies = join_all(callers.into_iter().map(PendingReplies::told)).await;
    let bodies: BTreeSet<_> = replies.iter().map(|reply| body(reply).clone()).collect();
    assert_eq!(bodies.len(), 1);
    assert_eq!(first.runs() + second.runs(), 1);
    assert_eq!(first.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn the_same_key_of_another_api_key_is_another_operation() {
    let world = setup().script(says("one")).script(says("two")).start().await;
    let first = world.ask(1, HELLO).await;
    let second = world.ask_as(&bearer(2), 1, OTHER).await;
    assert!(text(&second).contains(r#""content":"two""#));
    assert!(!second.replayed);
    assert_ne!(first.facts.operation, second.facts.operation);
    assert_eq!(world.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_attached_caller_whose_wait_ends_gets_the_answer_later() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    let began = Instant::now();
    let mut impatient = world.submission(1, HELLO).await;
    impatient.retry_wait = secs(3);
    let reply = world.engine.complete(impatient).await;
    assert_failed!(reply, RequestFailure::InProgress(id) if *id == operation_id(1));
    assert_eq!(reply.facts.operation, Some(operation_id(1)), "for the log");
    assert_eq!(began.elapsed(), secs(3));
    gate.open();
    let first = first.told().await;
    assert_eq!(body(&world.ask(1, HELLO).await), body(&first));
    assert_eq!(world.runs(), 1);
}

/// A body that tells whether anybody still has it.
struct WatchedBody {
    text: &'static str,
    _held: Arc<()>,
}

impl AsRef<[u8]> for WatchedBody {
    fn as_ref(&self) -> &[u8] {
        self.text.as_bytes()
    }
}

/// Asks with such a body.
async fn asking_watched(world: &World, text: &'static str) -> (PendingReplies, Weak<()>) {
    let mut submission = world.submission(1, text).await;
    let held = Arc::new(());
    let watch = Arc::downgrade(&held);
    submission.body = Private(Bytes::from_owner(WatchedBody { text, _held: held }));
    (PendingReplies::of(world, submission), watch)
}

#[tokio::test(start_paused = true)]
async fn a_body_is_let_go_of_once_it_was_compared() {
    let gate = Gate::new();
    let owner = setup().shared("a").script(says("hi").wait(&gate)).start().await;
    let other = setup().on(&owner.store).shared("b").start().await;
    let mut callers = Vec::new();
    for (world, text) in [
        (&owner, HELLO),
        (&owner, HELLO),
        (&owner, HELLO_RESPELLED),
        (&other, HELLO),
        (&other, HELLO_RESPELLED),
    ] {
        let (mut caller, kept) = asking_watched(world, text).await;
        assert!(caller.is_waiting().await);
        assert!(kept.upgrade().is_none(), "{} waits and keeps its body", callers.len());
        callers.push(caller);
    }
    gate.open();
    for caller in callers {
        body(&caller.told().await);
    }
    assert_eq!(owner.runs() + other.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_caller_of_a_run_waits_longer_than_its_retry_wait() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let mut impatient = world.submission(1, HELLO).await;
    impatient.retry_wait = secs(3);
    let mut first = PendingReplies::of(&world, impatient);
    gate.reached().await;
    pass(secs(60)).await;
    assert!(first.is_waiting().await);
    gate.open();
    body(&first.told().await);
}

#[tokio::test(start_paused = true)]
async fn a_caller_waits_for_another_process_at_most_its_retry_wait() {
    let gate = Gate::new();
    let owner = setup().shared("a").script(says("hi").wait(&gate)).start().await;
    let first = owner.asking(1, HELLO).await;
    gate.reached().await;
    let other = setup().on(&owner.store).shared("b").start().await;
    let mut impatient = other.submission(1, HELLO).await;
    impatient.retry_wait = secs(3);
    assert_failed!(other.engine.complete(impatient).await, RequestFailure::InProgress(_));
    let patient = other.asking(1, HELLO).await;
    pass(secs(60)).await;
    gate.open();
    let patient = patient.told().await;
    assert_eq!(body(&patient), body(&first.told().await));
    assert!(patient.replayed);
    assert_eq!(other.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn more_callers_than_may_wait_for_one_operation_are_turned_away() {
    let gate = Gate::new();
    let few = setup().waiters_per_operation(2);
    let world = few.script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    let mut second = world.asking(1, HELLO).await;
    assert!(second.is_waiting().await);
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::TooManyWaiters);
    second.hang_up().await;
    let mut third = world.asking(1, HELLO).await;
    assert!(third.is_waiting().await);
    gate.open();
    assert_eq!(body(&third.told().await), body(&first.told().await));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn those_who_shared_a_claim_that_came_to_no_run_replay_nothing() {
    let gate = Gate::new();
    let owner = setup().shared("a").script(says("hi").wait(&gate)).start().await;
    let first = owner.asking(1, HELLO).await;
    gate.reached().await;
    let other = setup().on(&owner.store).shared("b").waiters_per_operation(2).start().await;
    let mut waiting = [other.asking(1, HELLO).await, other.asking(1, HELLO).await];
    for waiting in &mut waiting {
        assert!(waiting.is_waiting().await, "for the other process");
    }
    for said in [HELLO, OTHER] {
        let commits = other.store.hold_commits();
        let claiming = other.asking(1, said).await;
        commits.reached().await;
        let mut sharing = other.asking(1, said).await;
        assert!(sharing.is_waiting().await, "for the claim");
        commits.open();
        for told in [claiming.told().await, sharing.told().await] {
            assert!(!told.replayed);
            if said == HELLO {
                assert_failed!(told, RequestFailure::TooManyWaiters);
            } else {
                assert_failed!(told, RequestFailure::OtherRequest);
            }
        }
    }
    gate.open();
    for waiting in waiting {
        assert!(waiting.told().await.replayed);
    }
    assert!(!first.told().await.replayed);
}

#[tokio::test(start_paused = true)]
async fn an_api_key_has_only_so_many_requests_in_flight_until_it_lets_go_of_one() {
    let world = setup().operations_per_key(2).start().await;
    let caller = world.engine.authenticate(&bearer(1).expose(), PEER).await.unwrap();
    let other = world.engine.authenticate(&bearer(2).expose(), PEER).await.unwrap();
    let first = world.enter(&caller);
    let second = world.enter(&caller);
    assert!(first.is_some() && second.is_some());
    assert!(world.enter(&caller).is_none());
    assert!(world.enter(&other).is_some(), "another API key has its own count");
    drop(first);
    let third = world.enter(&caller);
    assert!(third.is_some());
    assert!(world.enter(&caller).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_callers_all_hung_up_runs_to_its_settlement() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    first.hang_up().await;
    gate.open();
    turns().await;
    assert_eq!(world.store.phase(), "completed");
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
    assert!(text(&world.ask(1, HELLO).await).contains(r#""content":"hi""#));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_hangs_up_while_its_claim_is_offered_leaves_the_operation_running() {
    let world = setup().script(says("hi")).start().await;
    let commits = world.store.hold_commits();
    let first = world.asking(1, HELLO).await;
    commits.reached().await;
    first.hang_up().await;
    commits.open();
    turns().await;
    assert_eq!(world.store.phase(), "completed");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn different_keys_run_side_by_side() {
    let gate = Gate::new();
    let slow = says("slow").wait(&gate);
    let world = setup().script(slow).script(says("quick")).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    assert!(text(&world.ask(2, HELLO).await).contains("quick"));
    gate.open();
    assert!(text(&first.told().await).contains("slow"));
    assert_eq!(world.store.journal.operations().len(), 2);
    let held = world.store.journal.wallet(sample::WALLET).map(|wallet| wallet.held.get());
    assert_eq!(held, Some(0));
}

#[tokio::test(start_paused = true)]
async fn who_hangs_up_has_the_run_that_it_started_in_flight_until_it_ends() {
    let gate = Gate::new();
    let world = setup().operations_per_key(1).script(says("hi").wait(&gate)).start().await;
    let caller = world.engine.authenticate(&bearer(1).expose(), PEER).await.unwrap();
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    asking.hang_up().await;
    assert!(world.enter(&caller).is_none(), "its run goes on");
    gate.open();
    turns().await;
    assert!(world.enter(&caller).is_some(), "its run has ended");
    body(&world.ask(1, HELLO).await);
    body(&world.ask(1, HELLO).await);
}
