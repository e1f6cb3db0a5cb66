//! How answers that stream end: whole, broken, cut by a bound, a cancel or a drain; and what is told then.

use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::answer::{ChoiceDelta, FinishReason};
use holdfast_domain::operation::{Phase, ProviderRefusal};
use holdfast_domain::ports::{CallFailure as ProviderFailure, NotRunProof, UnknownReason};
use holdfast_domain::private::Private;
use holdfast_domain::usage::{Meters, MetersSource};
use holdfast_engine::{Options, ReplyBody, RequestFailure, StreamFailure};
use holdfast_testkit::{Gate, Script, sample};
use tokio::task::JoinSet;

use super::{METERED, STREAM, event, finishes, hello, rest, said, stream, whole};
use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, PEER, World, assert_failed, bearer, pass, route, says, secs, setup,
    text, turns,
};

async fn cancel(world: &World) {
    let caller = world.engine.authenticate(&bearer(1).expose(), PEER).await.unwrap();
    drop(world.engine.cancel(&caller, sample::request_key(1)).await.unwrap());
}

async fn drain(world: &World, drain_time: Duration) -> JoinSet<bool> {
    let engine = Arc::clone(&world.engine);
    let mut task = JoinSet::new();
    task.spawn(async move { engine.drain(drain_time).await });
    turns().await;
    task
}

#[tokio::test(start_paused = true)]
async fn an_end_before_the_first_piece_is_an_error_of_the_usual_kind() {
    let failing = |failure| setup().script(Script::failing(failure)).start();
    let world = failing(ProviderFailure::Unknown(UnknownReason::Status)).await;
    assert_failed!(world.ask(1, STREAM).await, RequestFailure::OutcomeUnknown(_));
    assert_failed!(world.ask(1, STREAM).await, RequestFailure::OutcomeUnknown(_));
    let world = failing(ProviderFailure::NotRun(NotRunProof::Overloaded)).await;
    assert_failed!(world.ask(1, STREAM).await, RequestFailure::NotRun(..));
    let world = failing(ProviderFailure::Refused(ProviderRefusal::Request)).await;
    for _again in 0..2 {
        let reply = world.ask(1, STREAM).await;
        assert!(matches!(reply.outcome, Ok(ReplyBody::Refused(ProviderRefusal::Request, _))));
    }
    let world = setup().funds(10).start().await;
    assert_failed!(world.ask(1, STREAM).await, RequestFailure::InsufficientFunds { .. });
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_upstream_has_no_end_and_costs_nothing() {
    for failure in [
        ProviderFailure::Unknown(UnknownReason::Broken),
        // What has said something has run, whatever its provider makes of that.
        ProviderFailure::NotRun(NotRunProof::Overloaded),
    ] {
        let script = Script::failing(failure).say("Hel");
        let twice = setup().model(|model| model.routes.push(route("two")));
        let world = twice.script(script).script_of("two", says("no")).start().await;
        let mut broken = stream(world.ask(1, STREAM).await);
        let (events, why) = rest(&mut broken).await;
        assert_eq!(said(&events), "Hel");
        assert!(!events.iter().any(|event| finishes(event) || event.contains("DONE")));
        let why = why.unwrap();
        assert!(
            matches!(&why, StreamFailure::Failed(RequestFailure::OutcomeUnknown(_))),
            "{why:?}"
        );
        assert_eq!(world.store.phase(), "abandoned");
        assert_eq!(world.store.balances(), (FUNDS, 0));
        assert_failed!(world.ask(1, STREAM).await, RequestFailure::OutcomeUnknown(_));
        assert_failed!(world.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
        assert_eq!((world.runs(), world.runs_of("two")), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refusal_in_the_middle_is_that_of_a_repeated_request() {
    let refused = ProviderFailure::Refused(ProviderRefusal::ContextLength);
    let world = setup().script(Script::failing(refused).say("Hel")).start().await;
    let (_events, why) = rest(&mut stream(world.ask(1, STREAM).await)).await;
    let Some(StreamFailure::Refused(ProviderRefusal::ContextLength, Private(told))) = why else {
        panic!("{why:?}")
    };
    let again = world.ask(1, HELLO).await;
    let Ok(ReplyBody::Refused(_, Private(body))) = again.outcome else { panic!("{again:?}") };
    assert_eq!(told, body);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_ends_what_was_said_with_length() {
    let never = Gate::new();
    let world = setup().script(Script::finishing(None).say("Once upon a time").wait(&never));
    let world = world.start().await;
    let mut stream = stream(world.ask(1, METERED).await);
    drop((event(&mut stream).await, event(&mut stream).await));
    cancel(&world).await;
    let (events, broken) = rest(&mut stream).await;
    assert!(broken.is_none());
    assert!(events[0].contains(r#""finish_reason":"length""#), "{events:?}");
    let Phase::Completed { usage, .. } = world.store.operation().phase else { panic!() };
    assert_eq!(usage.metered.source, MetersSource::Estimated);
    let cost = format!(r#""customer_charge_micros":{}"#, usage.charge.get());
    assert!(events[1].contains(&cost), "{events:?}");
    let again = world.ask(1, HELLO).await;
    assert!(text(&again).contains(r#""finish_reason":"length""#));
}

#[tokio::test(start_paused = true)]
async fn an_end_with_calls_that_never_came_is_told_and_kept_as_a_cut() {
    let never = Gate::new();
    let ended = ChoiceDelta { finish: Some(FinishReason::ToolCalls), ..ChoiceDelta::default() };
    let script = Script::finishing(None).say("hi").delta(ended).wait(&never);
    let world = setup().script(script).start().await;
    let mut first = stream(world.ask(1, STREAM).await);
    drop((event(&mut first).await, event(&mut first).await));
    cancel(&world).await;
    let (events, broken) = rest(&mut first).await;
    assert!(broken.is_none());
    assert!(events[0].contains(r#""finish_reason":"length""#), "{events:?}");
    let again = whole(stream(world.ask(1, STREAM).await)).await;
    assert!(again.iter().any(|event| event.contains(r#""finish_reason":"length""#)), "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_in_time_has_an_unknown_outcome() {
    let never = Gate::new();
    let times = setup().model(|model| model.timeouts.first_token = secs(60));
    let world = times.script(Script::finishing(None).wait(&never)).start().await;
    let began = tokio::time::Instant::now();
    let mut silent = stream(world.ask(1, STREAM).await);
    assert_eq!(began.elapsed(), secs(5), "its head is there");
    let broken = rest(&mut silent).await.1.unwrap();
    assert!(
        matches!(&broken, StreamFailure::Failed(RequestFailure::OutcomeUnknown(_))),
        "{broken:?}"
    );
    assert_eq!(began.elapsed(), secs(60));
    assert_eq!(world.store.balances(), (FUNDS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_choice_that_is_opened_without_a_word_is_no_answer() {
    let times = || {
        setup().model(|model| {
            model.timeouts.first_token = secs(60);
            model.timeouts.between_tokens = secs(30);
        })
    };
    let never = Gate::new();
    let opened = || Script::finishing(None).say("").wait(&never);
    let world = times().script(opened()).start().await;
    let began = tokio::time::Instant::now();
    let (_events, broken) = rest(&mut stream(world.ask(1, STREAM).await)).await;
    assert_eq!(began.elapsed(), secs(60), "the first word is still to come");
    let broken = broken.unwrap();
    assert!(
        matches!(&broken, StreamFailure::Failed(RequestFailure::OutcomeUnknown(_))),
        "{broken:?}"
    );
    assert_eq!(world.store.balances(), (FUNDS, 0));

    let world = times().script(opened()).start().await;
    let mut stream = stream(world.ask(1, STREAM).await);
    drop(event(&mut stream).await);
    cancel(&world).await;
    assert!(rest(&mut stream).await.1.is_some());
    assert_eq!(world.store.phase(), "abandoned");
    assert_eq!(world.store.balances(), (FUNDS, 0));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_whole_and_reported_is_charged_by_that_however_its_call_ends() {
    let never = Gate::new();
    let reported = Meters::text(7, 2).unwrap();
    let times = || setup().model(|model| model.timeouts.between_tokens = secs(30));
    let script = || Script::finishing(None).say("hi").stop().report(reported).wait(&never);
    let world = times().script(script()).start().await;
    let events = whole(stream(world.ask(1, STREAM).await)).await;
    assert!(events.iter().any(|event| event.contains(r#""finish_reason":"stop""#)), "{events:?}");
    let Phase::Completed { usage, .. } = world.store.operation().phase else { panic!() };
    assert_eq!(usage.metered.source, MetersSource::Reported);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));

    let world = times().script(script()).start().await;
    let mut stream = stream(world.ask(1, STREAM).await);
    drop((event(&mut stream).await, event(&mut stream).await));
    let mut draining = drain(&world, secs(5)).await;
    assert!(rest(&mut stream).await.1.is_none(), "nothing is missing of it");
    assert!(!draining.join_next().await.unwrap().unwrap());
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_falls_silent_has_said_what_it_said() {
    let (first, never) = (Gate::new(), Gate::new());
    let times = setup().model(|model| {
        model.timeouts.first_token = secs(60);
        model.timeouts.between_tokens = secs(30);
    });
    let script = Script::finishing(None).wait(&first).say("Hel").wait(&never);
    let world = times.script(script).start().await;
    let asking = world.asking(1, STREAM).await;
    first.reached().await;
    pass(secs(10)).await;
    first.open();
    let stream = stream(asking.told().await);
    let began = tokio::time::Instant::now();
    let events = whole(stream).await;
    assert_eq!(began.elapsed(), secs(30));
    assert_eq!(said(&events), "Hel");
    assert!(events.iter().any(|event| event.contains(r#""finish_reason":"length""#)));
    assert_eq!(world.store.phase(), "completed");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_whole_may_take_the_whole_time() {
    let gate = Gate::new();
    let times = setup().model(|model| {
        model.timeouts.first_token = secs(60);
        model.timeouts.between_tokens = secs(30);
    });
    let world = times.script(Script::finishing(None).wait(&gate).say("hi").stop()).start().await;
    let asking = world.asking(1, HELLO).await;
    gate.reached().await;
    pass(secs(500)).await;
    gate.open();
    assert!(text(&asking.told().await).contains("hi"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_grows_too_large_is_ended_there() {
    let much = "x".repeat(Options::STREAM_BYTES_MAX / 2);
    let script = Script::finishing(None).say("a").say(&much).say(&much).say("b").stop();
    let bounded = setup().model(|model| model.contract.max_output_tokens = 900);
    let world = bounded.script(script).start().await;
    let events = whole(stream(world.ask(1, STREAM).await)).await;
    let told: usize = events.iter().map(String::len).sum();
    assert!(told <= Options::STREAM_BYTES_MAX + 4_096, "{told}");
    assert_eq!(said(&events).len(), 1 + much.len(), "what came before it");
    assert!(events.iter().any(|event| event.contains(r#""finish_reason":"length""#)));
    let json = world.ask(1, HELLO).await;
    assert!(text(&json).contains(r#""finish_reason":"length""#));
}

#[tokio::test(start_paused = true)]
async fn what_still_streams_at_the_drain_deadline_is_broken_off() {
    let (first, never) = (Gate::new(), Gate::new());
    let world = setup().script(hello(&[&first, &never])).start().await;
    let mut stream = stream(world.ask(1, STREAM).await);
    drop((event(&mut stream).await, event(&mut stream).await));
    let mut draining = drain(&world, secs(30)).await;
    assert_failed!(world.ask(2, STREAM).await, RequestFailure::Draining);
    first.open();
    assert_eq!(said(&[event(&mut stream).await]), "lo", "it goes on until then");
    let (events, broken) = rest(&mut stream).await;
    assert_eq!(events, Vec::<String>::new());
    let broken = broken.unwrap();
    assert!(
        matches!(&broken, StreamFailure::Failed(RequestFailure::OutcomeUnknown(_))),
        "{broken:?}"
    );
    assert!(!draining.join_next().await.unwrap().unwrap());
    assert_eq!(world.store.phase(), "abandoned");
    assert_eq!(world.store.balances(), (FUNDS, 0));
}

#[tokio::test(start_paused = true)]
async fn what_streams_may_end_during_a_drain() {
    let (first, last) = (Gate::new(), Gate::new());
    let world = setup().script(hello(&[&first, &last])).start().await;
    let stream = stream(world.ask(1, STREAM).await);
    let mut draining = drain(&world, secs(30)).await;
    first.open();
    last.open();
    assert_eq!(said(&whole(stream).await), "Hello");
    assert!(draining.join_next().await.unwrap().unwrap());
}

#[tokio::test(start_paused = true)]
async fn a_settlement_that_the_store_does_not_take_leaves_the_stream_open_ended() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let mut stream = stream(world.ask(1, STREAM).await);
    world.store.set_silent(true);
    gate.open();
    let (events, broken) = rest(&mut stream).await;
    assert!(!events.iter().any(|event| finishes(event)));
    let broken = broken.unwrap();
    assert!(
        matches!(&broken, StreamFailure::Failed(RequestFailure::Storage(Some(_)))),
        "{broken:?}"
    );
    world.store.set_silent(false);
    pass(secs(10)).await;
    assert_eq!(said(&whole(self::stream(world.ask(1, STREAM).await)).await), "hi");
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}
