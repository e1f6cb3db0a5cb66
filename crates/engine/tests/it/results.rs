//! What is told again: refusals, sealed content, and what is left when the content is gone.

use std::sync::atomic::Ordering;

use holdfast_domain::Micros;
use holdfast_domain::operation::ProviderRefusal;
use holdfast_domain::ports::CallFailure as ProviderFailure;
use holdfast_domain::private::Private;
use holdfast_engine::{Reply, ReplyBody, RequestFailure};
use holdfast_testkit::{Gate, Script, sample};

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, World, assert_failed, bearer, body, credential, operation_id, pass,
    says, secret, secs, setup, turns,
};

#[track_caller]
fn refusal(reply: &Reply) -> (ProviderRefusal, &[u8]) {
    match &reply.outcome {
        Ok(ReplyBody::Refused(refusal, Private(body))) => (*refusal, body),
        other => panic!("no refusal: {other:?}"),
    }
}

/// A second credential of the first API key, as a rotation leaves it.
fn rotate(world: &World) {
    world.store.add_credential(credential(3, sample::API_KEY, &secret(7)));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_the_provider_replays_identical_bytes() {
    for why in [ProviderRefusal::Request, ProviderRefusal::ContextLength] {
        let refused = Script::failing(ProviderFailure::Refused(why));
        let world = setup().script(refused).start().await;
        let first = world.ask(1, HELLO).await;
        let again = world.ask(1, HELLO).await;
        assert_eq!(refusal(&first).0, why);
        assert_eq!(refusal(&first), refusal(&again));
        assert_eq!((first.replayed, again.replayed), (false, true));
        assert!(str::from_utf8(refusal(&first).1).unwrap().contains(r#""charged_micros":0"#));
        assert_eq!(world.runs(), 1);
        assert_eq!(world.store.balances(), (FUNDS, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_stored_does_not_show_the_answer() {
    let world = setup().script(says("a well kept secret")).start().await;
    let first = world.ask(1, HELLO).await;
    let sealed = world.store.sealed(operation_id(1)).await.unwrap();
    let shown = |bytes: &[u8]| bytes.windows(4).any(|part| part == b"kept");
    assert!(shown(body(&first)));
    assert!(!shown(&sealed.sealed));
    assert_eq!(sealed.credential, bearer(1).id);
}

#[tokio::test(start_paused = true)]
async fn another_credential_of_the_api_key_gets_the_bill_and_not_the_content() {
    let world = setup().script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    rotate(&world);
    let reply = world.ask_as(&bearer(3), 1, HELLO).await;
    assert_failed!(reply, RequestFailure::ResultSealed(id, usage)
        if *id == operation_id(1) && usage.charge == Micros::new(ANSWER_COSTS));
    assert!(reply.replayed);
    assert_eq!(world.runs(), 1, "never a second run");
    assert_eq!(body(&world.ask(1, HELLO).await), body(&first), "the old one opens it");
}

#[tokio::test(start_paused = true)]
async fn a_caller_attached_with_another_credential_gets_no_content_either() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    rotate(&world);
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    let submission = world.submission_of(&bearer(3), 1, HELLO).await;
    let second = crate::world::PendingReplies::of(&world, submission);
    turns().await;
    gate.open();
    body(&first.told().await);
    assert_failed!(second.told().await, RequestFailure::ResultSealed(_, _));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_under_another_credential_keeps_its_code() {
    let why = ProviderRefusal::ContextLength;
    let refused = Script::failing(ProviderFailure::Refused(why));
    let world = setup().script(refused).start().await;
    refusal(&world.ask(1, HELLO).await);
    rotate(&world);
    let reply = world.ask_as(&bearer(3), 1, HELLO).await;
    assert_failed!(reply, RequestFailure::Refused(id, told) if *id == operation_id(1) && *told == why);
}

#[tokio::test(start_paused = true)]
async fn tampered_content_is_a_failure_of_ours_and_no_panic() {
    type Tamper = fn(&mut Vec<u8>);
    let tampers: [Tamper; 4] = [
        |sealed| sealed[0] ^= 1,
        |sealed| *sealed.last_mut().unwrap() ^= 1,
        |sealed| sealed.truncate(3),
        Vec::clear,
    ];
    for tamper in tampers {
        let world = setup().script(says("hi")).start().await;
        let first = world.ask(1, HELLO).await;
        world.store.alter(move |snapshot| {
            if let Some(result) = &mut snapshot.result {
                let mut sealed = result.sealed.to_vec();
                tamper(&mut sealed);
                result.sealed = sealed.into();
            }
        });
        assert_failed!(world.ask(1, HELLO).await, RequestFailure::Unreadable(id, Some(_)) if *id == operation_id(1));
        assert_eq!(world.runs(), 1);
        world.store.alter(|_snapshot| {});
        assert_eq!(body(&world.ask(1, HELLO).await), body(&first));
    }
}

#[tokio::test(start_paused = true)]
async fn content_of_an_unknown_format_or_of_another_fingerprint_does_not_open() {
    let world = setup().script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    world.store.alter(|snapshot| {
        if let Some(result) = &mut snapshot.result {
            result.format = 3;
        }
    });
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::Unreadable(..));
    world.store.alter(|snapshot| {
        if let Some(operation) = &mut snapshot.operation {
            // The same body, so that it is the same request all the same.
            operation.binding.fingerprint = sample::binding("moved", sample::terms()).fingerprint;
        }
    });
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::Unreadable(..));
}

#[tokio::test(start_paused = true)]
async fn a_purged_completion_is_answered_with_its_bill() {
    let world =
        setup().options(|options| options.results = secs(60)).script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    pass(secs(50)).await;
    body(&world.ask(1, HELLO).await);
    pass(secs(80)).await;
    let reply = world.ask(1, HELLO).await;
    assert_failed!(reply, RequestFailure::ResultExpired(id, usage)
        if *id == operation_id(1)
            && usage.charge == Micros::new(ANSWER_COSTS)
            && usage.metered.meters.prompt_tokens() == 7
            && usage.metered.meters.completion_tokens() == 2);
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn another_retention_is_for_results_that_are_kept_already_too() {
    let world = setup().script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    pass(secs(500)).await;
    body(&world.ask(1, HELLO).await);
    world.engine.keep_results(secs(60));
    pass(secs(61)).await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::ResultExpired(..));
}

#[tokio::test(start_paused = true)]
async fn a_busy_hour_of_results_is_deleted_as_fast_as_it_came() {
    let world = setup().start().await;
    world.store.old_results.store(3_600_000, Ordering::SeqCst);
    pass(secs(3_600)).await;
    assert_eq!(world.store.old_results.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_purged_refusal_keeps_its_code() {
    let why = ProviderRefusal::ContextLength;
    let refused = Script::failing(ProviderFailure::Refused(why));
    let world = setup().options(|options| options.results = secs(60)).script(refused).start().await;
    refusal(&world.ask(1, HELLO).await);
    pass(secs(130)).await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::Refused(id, told)
        if *id == operation_id(1) && *told == why);
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_deletes_nothing() {
    let world = setup().script(says("hi")).start().await;
    let told = world.ask(1, HELLO).await;
    let started = world.store.journal.now();
    let day = secs(86_400);
    for jump in [2 * day, 400 * day] {
        world.store.journal.set_now(started.after(jump));
        pass(secs(3_600)).await;
        assert!(world.store.sealed(operation_id(1)).await.is_some(), "{jump:?} ahead");
        // Right again.
        world.store.journal.set_now(started);
        pass(secs(120)).await;
        assert_eq!(body(&world.ask(1, HELLO).await), body(&told));
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_stays_ahead_is_believed_after_a_day() {
    let world = setup().script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    world.store.journal.advance(secs(48 * 3_600));
    pass(secs(23 * 3_600)).await;
    // Younger than a day by this process's own clock.
    assert!(world.store.sealed(operation_id(1)).await.is_some());
    pass(secs(2 * 3_600)).await;
    assert!(world.store.sealed(operation_id(1)).await.is_none());
}
