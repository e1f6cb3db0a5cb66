//! Routes in their order, and what a failure of each class leads to.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_domain::operation::{Operation, Phase, ProviderRefusal};
use holdfast_domain::ports::{
    Call, CallFailure as ProviderFailure, NotRunProof, Provider, Sink, UnknownReason,
    UnreadableReason,
};
use holdfast_domain::usage::{Meters, UsageReport};
use holdfast_engine::{ReplyBody, RequestFailure};
use holdfast_testkit::{Gate, Script, sample};
use tokio::time::Instant;

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, HELLO_HOLDS, Setup, TOTAL, World, assert_failed, body,
    operation_id, pass, route, says, secs, setup, text,
};

const NOT_RUN: ProviderFailure = ProviderFailure::NotRun(NotRunProof::Connect);

fn two_routes() -> Setup {
    setup().model(|model| model.routes = vec![route("one"), route("two")])
}

fn classes(operation: &Operation) -> Vec<(&str, &str, bool)> {
    let attempts = operation.attempts.iter();
    attempts.map(|a| (&*a.route, &*a.class, a.may_be_billed)).collect()
}

/// Nothing is held or charged, and the key answers so for ever without running.
async fn check_abandoned(world: &World) {
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(id) if *id == operation_id(1));
    assert_eq!(world.store.phase(), "abandoned");
    assert_eq!(world.store.balances(), (FUNDS, 0));
    assert_eq!(world.store.transfers("settle"), 0);
    let offers = world.store.journal.offers();
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
    assert_eq!(world.store.journal.offers(), offers + 1, "one claim was offered, nothing else");
    assert_eq!(world.store.operation().generation, 1);
}

#[tokio::test(start_paused = true)]
async fn the_next_route_answers_when_the_first_provably_did_not_run() {
    for why in [
        NotRunProof::Connect,
        NotRunProof::RateLimited,
        NotRunProof::Overloaded,
        NotRunProof::Account,
    ] {
        let not_run = Script::failing(ProviderFailure::NotRun(why));
        let world = two_routes().script(not_run).script_of("two", says("second")).start().await;
        assert!(text(&world.ask(1, HELLO).await).contains("second"));
        assert_eq!((world.runs_of("one"), world.runs_of("two")), (1, 1));
        assert_eq!(
            classes(&world.store.operation()),
            [("one/one-model", why.label(), false), ("two/two-model", "finished", true)]
        );
        assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_route_is_not_tried_after_an_unknown_outcome() {
    for why in [
        UnknownReason::Status,
        UnknownReason::Broken,
        UnknownReason::Timeout,
        UnknownReason::Unreadable(UnreadableReason::Json),
    ] {
        let unknown = Script::failing(ProviderFailure::Unknown(why));
        let world = two_routes().script(unknown).script_of("two", says("second")).start().await;
        check_abandoned(&world).await;
        assert_eq!((world.runs_of("one"), world.runs_of("two")), (1, 0));
        assert_eq!(classes(&world.store.operation()), [("one/one-model", why.label(), true)]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_route_is_not_tried_after_a_refusal() {
    let refused = Script::failing(ProviderFailure::Refused(ProviderRefusal::Request));
    let world = two_routes().script(refused).script_of("two", says("second")).start().await;
    let told = world.ask(1, HELLO).await.outcome.unwrap();
    assert!(matches!(told, ReplyBody::Refused(ProviderRefusal::Request, _)));
    assert_eq!((world.runs_of("one"), world.runs_of("two")), (1, 0));
    assert_eq!(world.store.phase(), "refused");
    assert_eq!(world.store.balances(), (FUNDS, 0));
    assert_eq!(classes(&world.store.operation()), [("one/one-model", "refused", true)]);
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_ran_nowhere_is_open_and_runs_again_under_the_next_generation() {
    let failing = || Script::failing(NOT_RUN);
    let world =
        two_routes().script(failing()).script_of("two", failing()).script(says("hi")).start().await;
    let reply = world.ask(1, HELLO).await;
    assert_failed!(reply, RequestFailure::NotRun(id, _) if *id == operation_id(1));
    assert!(!reply.replayed);
    let open = world.store.operation();
    assert_eq!((open.phase.label(), open.generation), ("open", 1));
    assert_eq!(open.attempts.len(), 2);
    assert_eq!(world.store.balances(), (FUNDS, 0));

    let reply = world.ask(1, HELLO).await;
    assert!(text(&reply).contains("hi"));
    assert!(!reply.replayed);
    let row = world.store.operation();
    assert_eq!((row.phase.label(), row.generation), ("completed", 2));
    assert_ne!(row.owner.claim, open.owner.claim);
    assert_eq!(classes(&row), [("one/one-model", "finished", true)]);
    assert_eq!(world.store.transfers("hold"), 2);
    assert_eq!(world.store.transfers("settle"), 1);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn an_open_operation_is_held_at_the_price_of_its_next_run() {
    let world = setup().script(Script::failing(NOT_RUN)).start().await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
    let dearer = setup()
        .on(&world.store)
        .model(|model| {
            let version = &mut model.prices[0].version;
            *version = sample::priced("2026-11-01T00:00:00Z", 2_000_000);
        })
        .script(says("hi"))
        .start()
        .await;
    body(&dearer.ask(1, HELLO).await);
    let row = dearer.store.operation();
    assert_eq!(row.hold.get(), 2 * HELLO_HOLDS);
    assert_eq!(dearer.store.balances(), (FUNDS - 2 * ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn the_total_timeout_covers_all_routes() {
    let (slow, never) = (Gate::new(), Gate::new());
    let world = two_routes()
        .script(Script::failing(NOT_RUN).wait(&slow))
        .script_of("two", Script::finishing(None).wait(&never))
        .start()
        .await;
    let began = Instant::now();
    let caller = world.asking(1, HELLO).await;
    pass(TOTAL - secs(1)).await;
    slow.open();
    assert_failed!(caller.told().await, RequestFailure::OutcomeUnknown(_));
    assert_eq!(began.elapsed(), TOTAL);
    assert_eq!(world.runs_of("two"), 1);
    check_abandoned(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_still_connects_when_its_time_is_over_did_not_run() {
    let connecting = Gate::new();
    let world = two_routes()
        .script(says("late").wait_before_send(&connecting))
        .script_of("two", says("late"))
        .script(says("hi"))
        .start()
        .await;
    let began = Instant::now();
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
    assert_eq!(began.elapsed(), TOTAL);
    assert_eq!(world.store.phase(), "open");
    assert_eq!(classes(&world.store.operation()), [("one/one-model", "not_run_connect", false)]);
    assert_eq!(world.runs_of("two"), 0);
    body(&world.ask(1, HELLO).await);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_once_the_total_timeout_is_over() {
    let world = setup().script(says("late")).start().await;
    world.store.set_silent(true);
    let caller = world.asking(1, HELLO).await;
    assert_failed!(caller.told().await, RequestFailure::Storage(_));
    pass(TOTAL).await;
    world.store.set_silent(false);
    pass(secs(3)).await;
    assert_eq!(world.store.phase(), "open", "proven not run");
    assert_eq!(world.runs(), 0);
    assert_eq!(world.store.balances(), (FUNDS, 0));
}

/// Panics after it was called.
struct PanickingProvider;

#[async_trait]
impl Provider for PanickingProvider {
    async fn run(
        &self,
        _: &Call,
        _: &mut dyn Sink,
    ) -> Result<Option<UsageReport>, ProviderFailure> {
        panic!("a bug in a provider");
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_panics_abandons_its_operation_and_no_other() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let other = world.asking(2, HELLO).await;
    gate.reached().await;
    let panicking = setup()
        .on(&world.store)
        .shared("b")
        .provider("one", Arc::new(PanickingProvider))
        .start()
        .await;
    assert_failed!(panicking.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
    assert_failed!(panicking.ask(1, HELLO).await, RequestFailure::OutcomeUnknown(_));
    assert_failed!(panicking.ask(3, HELLO).await, RequestFailure::OutcomeUnknown(_));
    gate.open();
    body(&other.told().await);
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_broken_answer_is_an_unknown_outcome() {
    let meters = Meters::text(7, 2).ok();
    let unended = Script::finishing(meters).say("hi");
    let empty = Script::finishing(meters);
    for broken in [unended, empty] {
        let world = setup().script(broken).start().await;
        check_abandoned(&world).await;
        assert_eq!(
            classes(&world.store.operation()),
            [("one/one-model", "unknown_unreadable", true)]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_with_fewer_choices_than_were_asked_for_is_broken() {
    let two = HELLO.replace("\"messages\"", "\"n\":2,\"messages\"");
    let world = setup().script(says("only one")).start().await;
    assert_failed!(world.ask(1, &two).await, RequestFailure::OutcomeUnknown(_));
    assert!(matches!(world.store.operation().phase, Phase::Abandoned { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_route_without_a_configured_provider_did_not_run() {
    let world = two_routes().unconfigured("one").script_of("two", says("second")).start().await;
    assert!(text(&world.ask(1, HELLO).await).contains("second"));
    assert_eq!(
        classes(&world.store.operation()),
        [("one/one-model", "not_run_account", false), ("two/two-model", "finished", true)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_without_routes_did_not_run() {
    let world = setup().model(|model| model.routes.clear()).start().await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
    assert_eq!(world.store.phase(), "open");
    assert_eq!(world.store.balances(), (FUNDS, 0));
}
