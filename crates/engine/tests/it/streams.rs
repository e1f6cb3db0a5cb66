//! Answers that are told as they are said: to whoever started the run, to those who come later, and again
//! from what was kept.

mod endings;
mod heads;

use holdfast_domain::private::Private;
use holdfast_domain::usage::Meters;
use holdfast_engine::{
    CompletionStream, Reply, ReplyBody, RequestFailure, StreamFailure, StreamItem,
};
use holdfast_testkit::{Gate, Script, sample};
use tokio::task::JoinSet;

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, PEER, PendingReplies, assert_failed, bearer, body, credential,
    operation_id, pass, says, secret, secs, setup, text, turns,
};

/// [`HELLO`] as a stream.
const STREAM: &str =
    r#"{"model":"holdfast/sample","messages":[{"role":"user","content":"hello"}],"stream":true}"#;
/// The same with a chunk that tells what it cost.
const METERED: &str = r#"{"model":"holdfast/sample","messages":[{"role":"user","content":"hello"}],"stream":true,"stream_options":{"include_usage":true}}"#;

#[track_caller]
fn stream(reply: Reply) -> CompletionStream {
    match reply.outcome {
        Ok(ReplyBody::Streamed(stream)) => *stream,
        other => panic!("no stream: {other:?}"),
    }
}

/// A whole answer in pieces that wait for each other, with usage.
fn hello(gates: &[&Gate; 2]) -> Script {
    let [first, last] = gates;
    Script::finishing(Meters::text(7, 2).ok()).say("Hel").wait(first).say("lo").wait(last).stop()
}

async fn event(stream: &mut CompletionStream) -> String {
    match stream.next().await {
        Some(StreamItem::Event(Private(event))) => String::from_utf8(event.to_vec()).unwrap(),
        other => panic!("no event: {other:?}"),
    }
}

/// Whether nothing comes, after everybody had a turn.
async fn is_silent(stream: &mut CompletionStream) -> bool {
    tokio::select! {
        biased;
        _piece = stream.next() => false,
        () = turns() => true,
    }
}

/// What is left of a stream, and why it broke, if it did.
async fn rest(stream: &mut CompletionStream) -> (Vec<String>, Option<StreamFailure>) {
    let mut events = Vec::new();
    loop {
        match stream.next().await {
            Some(StreamItem::Event(Private(event))) => {
                events.push(String::from_utf8(event.to_vec()).unwrap());
            }
            Some(StreamItem::Broken(broken)) => {
                assert!(stream.next().await.is_none(), "nothing follows");
                return (events, Some(broken));
            }
            None => return (events, None),
        }
    }
}

async fn whole(mut stream: CompletionStream) -> Vec<String> {
    let (events, broken) = rest(&mut stream).await;
    assert!(broken.is_none(), "{broken:?}");
    events
}

/// The text of the first choice.
fn said(events: &[String]) -> String {
    let pieces = events.iter().filter_map(|event| event.split_once(r#""delta":{"content":""#));
    pieces.filter_map(|(_, piece)| piece.split_once('"')).map(|(text, _)| text).collect()
}

fn finishes(event: &str) -> bool {
    event.contains(r#""finish_reason":""#)
}

#[tokio::test(start_paused = true)]
async fn each_piece_is_told_as_it_is_said() {
    let (first, last) = (Gate::new(), Gate::new());
    let world = setup().script(hello(&[&first, &last])).start().await;
    let reply = world.ask(1, METERED).await;
    assert!(!reply.replayed);
    assert_eq!(reply.facts.operation, Some(operation_id(1)));
    assert_eq!(reply.facts.phase, Some("leased"));
    let mut stream = stream(reply);
    let opening = event(&mut stream).await;
    assert!(opening.contains(r#""role":"assistant""#), "{opening}");
    assert!(opening.contains(r#""usage":null"#), "{opening}");
    assert_eq!(said(&[event(&mut stream).await]), "Hel");
    assert!(is_silent(&mut stream).await);
    first.open();
    assert_eq!(said(&[event(&mut stream).await]), "lo");
    assert!(is_silent(&mut stream).await);
    last.open();
    let (events, broken) = rest(&mut stream).await;
    assert!(broken.is_none());
    let [finish, usage, done] = &events[..] else { panic!("{events:?}") };
    assert!(finish.contains(r#""finish_reason":"stop""#), "{finish}");
    let cost = format!(r#""customer_charge_micros":{ANSWER_COSTS}"#);
    assert!(usage.contains(r#""choices":[]"#) && usage.contains(&cost), "{usage}");
    assert_eq!(done, "data: [DONE]\n\n");
    assert_eq!(stream.facts().phase, Some("completed"));
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn usage_is_told_to_those_who_ask_for_it() {
    let (first, last) = (Gate::new(), Gate::new());
    let world = setup().script(hello(&[&first, &last])).start().await;
    let plain = stream(world.ask(1, STREAM).await);
    let metered = stream(world.ask(1, METERED).await);
    first.open();
    last.open();
    let (plain, metered) = (whole(plain).await, whole(metered).await);
    assert!(plain.iter().all(|event| !event.contains("usage")), "{plain:?}");
    assert_eq!(metered.len(), plain.len() + 1);
    let (done, told) = metered.split_last().unwrap();
    assert_eq!(done, "data: [DONE]\n\n");
    assert!(told.iter().all(|event| event.contains(r#""usage":"#)), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn the_end_is_told_only_when_the_settlement_has_committed() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let mut stream = stream(world.ask(1, STREAM).await);
    let commits = world.store.hold_commits();
    gate.open();
    commits.reached().await;
    assert!(!finishes(&event(&mut stream).await));
    assert_eq!(said(&[event(&mut stream).await]), "hi");
    assert!(is_silent(&mut stream).await);
    assert_eq!(world.store.phase(), "leased");
    commits.open();
    let events = whole(stream).await;
    assert!(finishes(&events[0]), "{events:?}");
    assert_eq!(world.store.phase(), "completed");
}

#[tokio::test(start_paused = true)]
async fn who_comes_later_gets_all_from_the_first_chunk() {
    let (first, last) = (Gate::new(), Gate::new());
    let world = setup().script(hello(&[&first, &last])).start().await;
    let one = stream(world.ask(1, STREAM).await);
    let reply = world.ask(1, STREAM).await;
    assert!(reply.replayed);
    let two = stream(reply);
    first.open();
    last.reached().await;
    let three = stream(world.ask(1, STREAM).await);
    last.open();
    let one = whole(one).await;
    assert_eq!(said(&one), "Hello");
    assert_eq!((whole(two).await, whole(three).await), (one.clone(), one));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_readers_of_one_run_get_the_same() {
    let (first, last) = (Gate::new(), Gate::new());
    let world = setup().script(hello(&[&first, &last])).start().await;
    let mut readers = vec![stream(world.ask(1, STREAM).await)];
    for _reader in 1..50 {
        readers.push(stream(world.ask(1, STREAM).await));
    }
    let mut told = JoinSet::new();
    for reader in readers {
        told.spawn(whole(reader));
    }
    first.open();
    last.open();
    let told = told.join_all().await;
    assert_eq!(said(&told[0]), "Hello");
    assert!(told.iter().all(|events| *events == told[0]));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn whoever_hangs_up_changes_nothing() {
    for pieces in 0..6 {
        let (first, last) = (Gate::new(), Gate::new());
        let world = setup().script(hello(&[&first, &last])).start().await;
        let mut left = stream(world.ask(1, STREAM).await);
        let mut stays = stream(world.ask(1, STREAM).await);
        for piece in 0..pieces {
            if piece == 2 {
                first.open();
            }
            if piece == 3 {
                last.open();
            }
            drop(left.next().await);
        }
        drop(left);
        first.open();
        last.open();
        let (events, broken) = rest(&mut stays).await;
        assert!(broken.is_none());
        assert_eq!(said(&events), "Hello");
        assert_eq!(world.store.phase(), "completed");
        assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
        let again = world.ask(1, STREAM).await;
        assert!(again.replayed);
        assert_eq!(said(&whole(stream(again)).await), "Hello");
        assert_eq!(world.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_needs_to_read_for_it_to_end() {
    let (first, last) = (Gate::new(), Gate::new());
    let world = setup().script(hello(&[&first, &last])).start().await;
    let slow = stream(world.ask(1, STREAM).await);
    first.open();
    last.open();
    turns().await;
    assert_eq!(world.store.phase(), "completed");
    // What it has not read is there for it as long as it stays.
    assert_eq!(said(&whole(slow).await), "Hello");
}

#[tokio::test(start_paused = true)]
async fn what_was_streamed_replays_as_either() {
    let world = setup().script(says("hi")).start().await;
    let first = whole(stream(world.ask(1, METERED).await)).await;
    let json = world.ask(1, HELLO).await;
    assert!(json.replayed);
    assert!(text(&json).contains(r#""content":"hi""#));
    let again = whole(stream(world.ask(1, METERED).await)).await;
    assert_eq!(said(&again), said(&first));
    assert_eq!(again[again.len() - 2..], first[first.len() - 2..], "usage and end");
    assert_eq!(body(&world.ask(1, HELLO).await), body(&json));
    assert_eq!(world.runs(), 1);
    assert_eq!(world.store.transfers("settle"), 1);
}

#[tokio::test(start_paused = true)]
async fn one_run_serves_those_who_want_json_and_those_who_want_a_stream() {
    for (starts, joins) in [(STREAM, HELLO), (HELLO, STREAM)] {
        let gate = Gate::new();
        let world = setup().script(says("hi").wait(&gate)).start().await;
        let first = world.asking(1, starts).await;
        gate.reached().await;
        let mut second = world.asking(1, joins).await;
        assert!(second.is_waiting().await, "until it has ended");
        gate.open();
        let (first, second) = (first.told().await, second.told().await);
        assert_eq!((first.replayed, second.replayed), (false, true));
        let (json, streamed) = if joins == HELLO { (second, first) } else { (first, second) };
        assert!(text(&json).contains(r#""content":"hi""#));
        let events = whole(stream(streamed)).await;
        assert_eq!(said(&events), "hi");
        assert!(text(&json).contains(&operation_id(1).completion_id()));
        assert!(events[0].contains(&operation_id(1).completion_id()));
        assert_eq!(world.runs(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn wait_ends_only_before_the_first_piece() {
    let (first, last) = (Gate::new(), Gate::new());
    let script = Script::finishing(None).wait(&first).say("Hel").wait(&last).say("lo").stop();
    let world = setup().script(script).start().await;
    let starts = world.asking(1, STREAM).await;
    first.reached().await;
    let mut joins = world.submission(1, STREAM).await;
    joins.retry_wait = secs(20);
    let mut hurried = joins.clone();
    hurried.retry_wait = secs(4);
    assert_failed!(world.engine.complete(hurried).await, RequestFailure::InProgress(_));
    let broken = rest(&mut stream(world.engine.complete(joins.clone()).await)).await.1.unwrap();
    assert!(matches!(&broken, StreamFailure::Failed(RequestFailure::InProgress(_))), "{broken:?}");
    let asking = PendingReplies::of(&world, joins);
    turns().await;
    first.open();
    let joined = stream(asking.told().await);
    pass(secs(25)).await;
    last.open();
    assert_eq!(said(&whole(joined).await), "Hello");
    drop(starts);
}

#[tokio::test(start_paused = true)]
async fn another_credential_does_not_hear_what_it_cannot_read_again() {
    let (first, last) = (Gate::new(), Gate::new());
    let world = setup().script(hello(&[&first, &last])).start().await;
    let one = stream(world.ask(1, STREAM).await);
    world.store.add_credential(credential(3, sample::API_KEY, &secret(7)));
    let rotated = world.submission_of(&bearer(3), 1, STREAM).await;
    let mut two = PendingReplies::of(&world, rotated);
    assert!(two.is_waiting().await);
    first.open();
    last.open();
    assert_eq!(said(&whole(one).await), "Hello");
    assert_failed!(two.told().await, RequestFailure::ResultSealed(..));
}

#[tokio::test(start_paused = true)]
async fn a_run_of_another_process_is_replayed_when_it_has_ended() {
    let gate = Gate::new();
    let owner = setup().shared("a").script(says("hi").wait(&gate)).start().await;
    let first = stream(owner.ask(1, STREAM).await);
    let other = setup().on(&owner.store).shared("b").start().await;
    let mut waits = other.asking(1, STREAM).await;
    assert!(waits.is_waiting().await);
    gate.open();
    let (first, second) = tokio::join!(whole(first), waits.told());
    assert!(second.replayed);
    assert_eq!(said(&whole(stream(second)).await), said(&first));
    assert_eq!((owner.runs(), other.runs()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_reader_counts_as_in_hand_until_it_goes() {
    let (first, last) = (Gate::new(), Gate::new());
    let world = setup().operations_per_key(1).script(hello(&[&first, &last])).start().await;
    let reader = stream(world.ask(1, STREAM).await);
    let caller = world.engine.authenticate(&bearer(1).expose(), PEER).await.unwrap();
    first.open();
    last.open();
    turns().await;
    assert_eq!(world.store.phase(), "completed");
    assert!(world.enter(&caller).is_none(), "its reader is still there");
    drop(reader);
    assert!(world.enter(&caller).is_some());
}
