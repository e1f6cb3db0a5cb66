//! `guarantee = "one-charge"`: an unknown outcome goes to the next route as well, and is paid once.

use holdfast_domain::ports::{
    CallFailure as ProviderFailure, NotRunProof, UnknownReason, UnreadableReason,
};
use holdfast_domain::private::Private;
use holdfast_engine::{Guarantee, ReplyBody, RequestFailure, StreamFailure, StreamItem};
use holdfast_testkit::{Gate, Script, sample};

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, PEER, Setup, World, assert_failed, bearer, body, route, says,
    setup, text,
};

const UNKNOWN: ProviderFailure = ProviderFailure::Unknown(UnknownReason::Status);
const STREAM: &str =
    r#"{"model":"holdfast/sample","messages":[{"role":"user","content":"hello"}],"stream":true}"#;

fn one_charge() -> Setup {
    setup().model(|model| {
        model.routes = vec![route("one"), route("two")];
        model.guarantee = Guarantee::OneCharge;
    })
}

#[track_caller]
fn check_attempts(world: &World, expected: &[(&str, &str, bool)]) {
    let attempts = world.store.operation().attempts;
    let told: Vec<_> =
        attempts.iter().map(|it| (&*it.route, &*it.class, it.may_be_billed)).collect();
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn the_next_route_answers_after_an_unknown_outcome_and_is_charged_once() {
    for why in [
        UnknownReason::Status,
        UnknownReason::Broken,
        UnknownReason::Timeout,
        UnknownReason::Unreadable(UnreadableReason::Json),
    ] {
        let failing = Script::failing(ProviderFailure::Unknown(why));
        let world = one_charge().script(failing).script_of("two", says("second")).start().await;
        let first = world.ask(1, HELLO).await;
        assert!(text(&first).contains("second"));
        assert_eq!(body(&world.ask(1, HELLO).await), body(&first));
        check_attempts(
            &world,
            &[("one/one-model", why.label(), true), ("two/two-model", "finished", true)],
        );
        assert_eq!((world.runs_of("one"), world.runs_of("two")), (1, 1));
        assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
        assert_eq!(world.store.transfers("settle"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_repeats_calls_has_the_only_run() {
    let (failing, second) = (Script::failing(UNKNOWN), says("second"));
    let setup = one_charge().repeating_calls().script(failing).script_of("two", second);
    let world = setup.start().await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
    assert_eq!((world.runs_of("one"), world.runs_of("two")), (1, 0));
    assert_eq!((world.store.phase(), world.store.balances()), ("abandoned", (FUNDS, 0)));

    // Proof that nothing ran leads on, as ever.
    let unsent = Script::failing(ProviderFailure::NotRun(NotRunProof::Connect));
    let setup = one_charge().repeating_calls().script(unsent).script_of("two", says("second"));
    let world = setup.start().await;
    assert!(text(&world.ask(1, HELLO).await).contains("second"));
}

#[tokio::test(start_paused = true)]
async fn what_may_have_run_is_given_up_where_no_route_answers() {
    for last in [UNKNOWN, ProviderFailure::NotRun(NotRunProof::Connect)] {
        let setup = one_charge().script(Script::failing(UNKNOWN));
        let world = setup.script_of("two", Script::failing(last)).start().await;
        for _again in 0..2 {
            assert_failed!(world.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
        }
        assert_eq!((world.runs_of("one"), world.runs_of("two")), (1, 1));
        assert_eq!(world.store.phase(), "abandoned");
        assert_eq!(world.store.balances(), (FUNDS, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_goes_to_the_next_route_until_somebody_has_heard_of_it() {
    let silent = Script::failing(ProviderFailure::Unknown(UnknownReason::Broken));
    let world = one_charge().script(silent).script_of("two", says("second")).start().await;
    let Ok(ReplyBody::Streamed(mut stream)) = world.ask(1, STREAM).await.outcome else { panic!() };
    let mut said = String::new();
    while let Some(piece) = stream.next().await {
        let StreamItem::Event(Private(event)) = piece else { panic!("it broke") };
        said.push_str(str::from_utf8(&event).unwrap());
    }
    assert!(said.contains("second") && said.contains("[DONE]"), "{said}");
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));

    let begun = Script::failing(ProviderFailure::Unknown(UnknownReason::Broken)).say("Hel");
    let world = one_charge().script(begun).script_of("two", says("second")).start().await;
    let Ok(ReplyBody::Streamed(mut stream)) = world.ask(1, STREAM).await.outcome else { panic!() };
    let mut last = None;
    while let Some(piece) = stream.next().await {
        last = Some(piece);
    }
    let broken = matches!(
        last,
        Some(StreamItem::Broken(StreamFailure::Failed(RequestFailure::OutcomeUnknown(_))))
    );
    assert!(broken, "{last:?}");
    assert_eq!((world.runs_of("one"), world.runs_of("two")), (1, 0));
    assert_eq!(world.store.balances(), (FUNDS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_goes_nowhere_else() {
    let never = Gate::new();
    let slow = Script::finishing(None).wait(&never);
    let world = one_charge().script(slow).script_of("two", says("second")).start().await;
    let caller = world.asking(1, HELLO).await;
    never.reached().await;
    let canceller = world.engine.authenticate(&bearer(1).expose(), PEER).await.unwrap();
    drop(world.engine.cancel(&canceller, sample::request_key(1)).await.unwrap());
    assert_failed!(caller.told().await, RequestFailure::OutcomeUnknown(_));
    assert_eq!(world.runs_of("two"), 0);
}
