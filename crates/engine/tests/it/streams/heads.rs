//! When a stream's head goes out where nothing is said yet, and who waits for what another process runs.

use std::sync::atomic::Ordering;

use holdfast_engine::{RequestFailure, StreamFailure};
use holdfast_testkit::{Gate, Script};
use tokio::time::Instant;

use super::{STREAM, is_silent, rest, said, stream, whole};
use crate::world::{
    FUNDS, HELLO, HELLO_HOLDS, PendingReplies, World, assert_failed, pass, says, secs, setup, text,
    turns,
};

/// A process that runs the key, as one without a stream asked, and another one on its store.
async fn two(gate: &Gate, waiters: usize) -> (World, PendingReplies, World) {
    let owner = setup().shared("a").script(says("hi").wait(gate)).start().await;
    let first = owner.asking(1, HELLO).await;
    gate.reached().await;
    let other = setup().on(&owner.store).shared("b").waiters_per_operation(waiters);
    (owner, first, other.start().await)
}

#[tokio::test(start_paused = true)]
async fn a_head_is_waited_for_five_seconds() {
    let (gate, never) = (Gate::new(), Gate::new());
    let script = Script::finishing(None).wait(&gate).say("hi").stop();
    let world = setup().script(script).script(says("no").wait(&never)).start().await;
    let began = Instant::now();
    let reply = world.ask(1, STREAM).await;
    assert_eq!(began.elapsed(), secs(5));
    assert_eq!((reply.replayed, reply.facts.phase), (false, Some("leased")));
    let mut first = stream(reply);
    assert!(!first.has_begun() && is_silent(&mut first).await);
    let joined = world.ask(1, STREAM).await;
    assert_eq!((began.elapsed(), joined.replayed), (secs(10), true));
    gate.open();
    assert_eq!(said(&whole(first).await), "hi");
    assert_eq!(said(&whole(stream(joined)).await), "hi");
    // What was begun for JSON is told at its end, and silent until then no longer than others.
    let json = world.asking(2, HELLO).await;
    never.reached().await;
    let began = Instant::now();
    let joined = stream(world.ask(2, STREAM).await);
    assert_eq!(began.elapsed(), secs(5));
    never.open();
    assert_eq!(said(&whole(joined).await), "no");
    assert!(text(&json.told().await).contains("no"));
}

#[tokio::test(start_paused = true)]
async fn an_error_has_its_status_until_the_claim_is_judged() {
    let world = setup().script(says("hi")).start().await;
    turns().await;
    world.store.set_silent(true);
    let began = Instant::now();
    assert_failed!(world.ask(1, STREAM).await, RequestFailure::Storage(None));
    assert_eq!(began.elapsed(), secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_retry_at_another_node_is_never_silent() {
    let gate = Gate::new();
    let (_owner, first, other) = two(&gate, 256).await;
    let began = Instant::now();
    let reply = other.ask(1, STREAM).await;
    assert_eq!((began.elapsed(), reply.replayed), (secs(5), true));
    let mut waits = stream(reply);
    assert!(!waits.has_begun() && is_silent(&mut waits).await);
    gate.open();
    assert_eq!(said(&whole(waits).await), "hi");
    assert!(text(&first.told().await).contains("hi"));
    // One that has not begun when its wait ends says so.
    let never = Gate::new();
    let (_owner, _first, other) = two(&never, 256).await;
    let mut hurried = other.submission(1, STREAM).await;
    hurried.retry_wait = secs(20);
    let began = Instant::now();
    let (events, broken) = rest(&mut stream(other.engine.complete(hurried).await)).await;
    assert_eq!((events.len(), began.elapsed()), (0, secs(20)));
    let broken = broken.unwrap();
    assert!(matches!(&broken, StreamFailure::Failed(RequestFailure::InProgress(_))), "{broken:?}");
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_for_another_process_share_one_look_a_second() {
    let gate = Gate::new();
    let (owner, first, other) = two(&gate, 256).await;
    let mut waiting = Vec::new();
    for n in 0..100 {
        waiting.push(other.asking(1, if n % 2 == 0 { HELLO } else { STREAM }).await);
        turns().await;
    }
    assert_eq!(other.engine.waiters(), 100);
    let reads = || owner.store.reads.load(Ordering::SeqCst);
    let before = reads();
    pass(secs(30)).await;
    // Both processes look at what is due at every heartbeat.
    assert!(reads() - before <= 30 + 2 * 8, "{}", reads() - before);
    gate.open();
    for waits in waiting {
        let reply = waits.told().await;
        assert!(reply.outcome.is_ok(), "{reply:?}");
        if let Ok(holdfast_engine::ReplyBody::Streamed(stream)) = reply.outcome {
            assert_eq!(said(&whole(*stream).await), "hi");
        }
    }
    drop(first.told().await);
    let before = reads();
    pass(secs(30)).await;
    assert!(reads() - before <= 2 * 8, "nobody looks for nobody");
    assert_eq!(other.engine.waiters(), 0);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_for_another_process_are_counted_here() {
    let gate = Gate::new();
    let (owner, first, other) = two(&gate, 2).await;
    let one = other.asking(1, HELLO).await;
    turns().await;
    let two = other.asking(1, STREAM).await;
    turns().await;
    assert_failed!(other.ask(1, HELLO).await, RequestFailure::TooManyWaiters);
    one.hang_up().await;
    turns().await;
    let three = other.asking(1, HELLO).await;
    turns().await;
    assert_eq!(owner.store.balances(), (FUNDS - HELLO_HOLDS, HELLO_HOLDS));
    gate.open();
    assert!(text(&three.told().await).contains("hi"));
    assert_eq!(said(&whole(stream(two.told().await)).await), "hi");
    drop(first.told().await);
}
