//! Which route a request takes: by weight, by how routes fare and by how many calls they have; and what is
//! told where none is left.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::admin::offer::{ModelOffer, RouteHealth};
use holdfast_domain::ports::{
    CallFailure as ProviderFailure, NotRunProof, Provider, UnknownReason,
};
use holdfast_engine::{
    BreakerRules, Catalogue, Reply, RequestFailure, ServingConfig, ServingRules, SkippedRoute,
};
use holdfast_testkit::{Gate, Script, ScriptedProvider};

use crate::world::{
    HELLO, OTHER, Setup, World, assert_failed, body, model, operation_id, pass, route, says, secs,
    setup, text,
};

const REFUSED: ProviderFailure = ProviderFailure::NotRun(NotRunProof::Connect);
const RATE_LIMITED: ProviderFailure = ProviderFailure::NotRun(NotRunProof::RateLimited);

fn two_routes() -> Setup {
    setup().model(|model| model.routes = vec![route("one"), route("two")])
}

/// So many calls of a route end so.
fn scripts(mut setup: Setup, route: &'static str, script: &Script, times: u32) -> Setup {
    for _time in 0..times {
        setup = setup.script_of(route, script.clone());
    }
    setup
}

#[track_caller]
fn passed_over(reply: &Reply) -> SkippedRoute {
    match &reply.outcome {
        Err(RequestFailure::PassedOver(passed_over)) => passed_over.clone(),
        other => panic!("not passed over: {other:?}"),
    }
}

/// Asks under one key after the other, and says how often each route was called meanwhile.
async fn calls(world: &World, keys: std::ops::Range<u64>) -> (usize, usize) {
    let before = (world.runs_of("one"), world.runs_of("two"));
    for key in keys {
        body(&world.ask(key, HELLO).await);
    }
    (world.runs_of("one") - before.0, world.runs_of("two") - before.1)
}

#[tokio::test(start_paused = true)]
async fn routes_of_one_priority_share_by_weight() {
    let equals = |weights: [u32; 2]| {
        let setup = setup().funds(1_000_000).model(|model| {
            model.routes = vec![route("one"), route("two")];
            for (route, weight) in model.routes.iter_mut().zip(weights) {
                (route.priority, route.weight) = (7, weight);
            }
        });
        scripts(scripts(setup, "one", &says("hi"), 400), "two", &says("hi"), 400)
    };
    let (one, two) = calls(&equals([1, 3]).start().await, 0..400).await;
    assert_eq!(one + two, 400);
    // Six standard deviations: this chance fails once in half a billion times.
    assert!((48..=152).contains(&one), "{one} of 400 with a quarter of the weight");
}

#[tokio::test(start_paused = true)]
async fn a_route_that_fails_is_left_alone_until_it_answers_again() {
    let failing = scripts(two_routes(), "one", &Script::failing(REFUSED), 3);
    let failing = failing.script(Script::failing(REFUSED)).script(says("back")).script(says("hi"));
    let world = scripts(failing, "two", &says("second"), 30).start().await;
    assert_eq!(calls(&world, 0..3).await, (3, 3), "three failures, each answered by the second");
    assert_eq!(calls(&world, 3..6).await, (0, 3), "left alone");
    pass(secs(5)).await;
    assert_eq!(calls(&world, 6..9).await, (1, 3), "one finds out that it still fails");
    pass(secs(9)).await;
    assert_eq!(calls(&world, 9..10).await, (0, 1), "twice as long");
    pass(secs(1)).await;
    assert_eq!(calls(&world, 10..12).await, (2, 0), "it is back");
}

#[tokio::test(start_paused = true)]
async fn one_request_at_a_time_finds_out() {
    let account = Script::failing(ProviderFailure::NotRun(NotRunProof::Account));
    let slow = Gate::new();
    let setup = two_routes().script(account).script(says("back").wait(&slow));
    let world = scripts(setup, "two", &says("second"), 3).script(says("hi")).start().await;
    assert_eq!(calls(&world, 0..1).await, (1, 1), "one refusal of the account is enough");
    pass(secs(5)).await;
    let probe = world.asking(1, HELLO).await;
    slow.reached().await;
    assert_eq!(calls(&world, 2..4).await, (0, 2), "the others do not wait for it");
    slow.open();
    assert!(text(&probe.told().await).contains("back"));
    assert_eq!(calls(&world, 4..5).await, (1, 0));
}

#[tokio::test(start_paused = true)]
async fn the_first_piece_of_a_stream_brings_a_route_back() {
    let stream = HELLO.replace("\"messages\"", "\"stream\":true,\"messages\"");
    let account = Script::failing(ProviderFailure::NotRun(NotRunProof::Account));
    let never = Gate::new();
    let setup = two_routes().script(account).script(says("Once").wait(&never)).script(says("hi"));
    let world = setup.script_of("two", says("second")).start().await;
    assert_eq!(calls(&world, 0..1).await, (1, 1));
    pass(secs(5)).await;
    drop(world.ask(1, &stream).await);
    assert_eq!(calls(&world, 2..3).await, (1, 0));
    assert_eq!(world.runs(), 3, "while the stream goes on");
}

#[tokio::test(start_paused = true)]
async fn where_all_routes_fail_they_are_tried_all_the_same() {
    let failing = scripts(two_routes(), "one", &Script::failing(REFUSED), 3);
    let failing = scripts(failing, "two", &Script::failing(REFUSED), 3);
    let world = failing.script_of("one", says("back")).start().await;
    for key in 0..3 {
        assert_failed!(world.ask(key, HELLO).await, RequestFailure::NotRun(..));
    }
    assert!(text(&world.ask(3, HELLO).await).contains("back"));
    assert_eq!((world.runs_of("one"), world.runs_of("two")), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn a_sole_route_that_wants_to_be_left_alone_is_told_of_at_once_and_binds_nothing() {
    let limited = Script::failing(RATE_LIMITED).retry_after(secs(20));
    let world = setup().script(says("first")).script(limited).script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    assert_failed!(world.ask(2, HELLO).await, RequestFailure::NotRun(..));
    let offers = world.store.journal.offers();
    pass(secs(8)).await;
    let told = world.ask(3, HELLO).await;
    let SkippedRoute { route, class, after } = passed_over(&told);
    assert_eq!((&*route, class, after), ("one/one-model", "passed_over_cooling", Some(secs(12))));
    assert_eq!(told.facts.route.as_deref(), Some("one/one-model"), "for the log");
    assert_eq!(told.facts.class.as_deref(), Some("passed_over_cooling"));
    assert!(!told.replayed);
    // An open key waits as well, and a bound one has its answer.
    passed_over(&world.ask(2, HELLO).await);
    assert!(text(&world.ask(1, HELLO).await).contains("first"));
    assert_failed!(world.ask(1, OTHER).await, RequestFailure::OtherRequest);
    assert_eq!(world.store.journal.offers(), offers, "nothing was claimed");
    assert_eq!(world.runs(), 2);
    pass(secs(12)).await;
    body(&world.ask(2, HELLO).await);
}

/// Wait of a caller whose request did not run.
#[track_caller]
fn wait(reply: &Reply) -> Duration {
    match &reply.outcome {
        Err(RequestFailure::NotRun(_id, wait)) => *wait,
        other => panic!("not proven not run: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_not_run_reply_has_the_time_to_the_next_route() {
    let limited = |seconds| Script::failing(RATE_LIMITED).retry_after(secs(seconds));
    let sole = setup().script(limited(38)).start().await;
    assert_eq!(wait(&sole.ask(1, HELLO).await), secs(38));

    // The first of two that can be.
    let both = two_routes().script(limited(38)).script_of("two", limited(20)).start().await;
    assert_eq!(wait(&both.ask(1, HELLO).await), secs(20));

    // One that cools by a guess of ours is the last resort: it can be tried at once.
    let account = Script::failing(ProviderFailure::NotRun(NotRunProof::Account));
    let one = two_routes().script(limited(38)).script_of("two", account).start().await;
    assert_eq!(wait(&one.ask(1, HELLO).await), Duration::ZERO);

    // At most ten minutes of a provider's pause are kept, also with shorter cool-downs.
    let long = setup().script(limited(86_400)).script(says("hi")).start().await;
    assert_eq!(wait(&long.ask(1, HELLO).await), secs(600));
    pass(secs(599)).await;
    passed_over(&long.ask(1, HELLO).await);
    pass(secs(1)).await;
    body(&long.ask(1, HELLO).await);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_a_request_and_a_cancelled_call_say_nothing_against_a_route() {
    let refused = ProviderFailure::Refused(holdfast_domain::operation::ProviderRefusal::Request);
    let cut = Script::failing(ProviderFailure::Unknown(UnknownReason::Cut));
    let setup = scripts(two_routes(), "one", &Script::failing(refused).retry_after(secs(9)), 4);
    let world = scripts(setup, "one", &cut, 4).script(says("hi")).start().await;
    for key in 0..8 {
        drop(world.ask(key, HELLO).await);
    }
    assert_eq!(calls(&world, 8..9).await, (1, 0));
}

#[tokio::test(start_paused = true)]
async fn what_was_passed_over_is_written_down_where_nothing_else_was_left() {
    let limited = Script::failing(RATE_LIMITED).retry_after(secs(20));
    let setup = two_routes().script_of("one", Script::failing(REFUSED)).script_of("two", limited);
    let world = setup.script(Script::failing(REFUSED)).start().await;
    assert_failed!(world.ask(2, HELLO).await, RequestFailure::NotRun(..));
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
    let operations = world.store.journal.operations();
    let row = operations.iter().find(|row| row.id == operation_id(1)).unwrap();
    let attempts = &row.attempts;
    let told: Vec<_> = attempts.iter().map(|it| (&*it.route, &*it.class)).collect();
    assert_eq!(
        told,
        [("two/two-model", "passed_over_cooling"), ("one/one-model", "not_run_connect")]
    );
    assert!(attempts.iter().all(|attempt| !attempt.may_be_billed));
    assert_eq!(attempts[0].latency, Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_full_route_is_passed_over_and_where_all_are_full_nothing_is_bound() {
    let (first, second) = (Gate::new(), Gate::new());
    let world = two_routes()
        .model(|model| model.routes.iter_mut().for_each(|route| route.concurrency = Some(1)))
        .script(says("one").wait(&first))
        .script_of("two", says("two").wait(&second))
        .script(says("one again"))
        .start()
        .await;
    let one = world.asking(1, HELLO).await;
    first.reached().await;
    let two = world.asking(2, HELLO).await;
    second.reached().await;
    let offers = world.store.journal.offers();
    let told = world.ask(3, HELLO).await;
    let full = passed_over(&told);
    assert_eq!((full.class, full.after), ("passed_over_full", None));
    assert_eq!(world.store.journal.offers(), offers, "nothing was claimed");
    // Who follows a run needs no route.
    let follower = world.asking(1, HELLO).await;
    first.open();
    for caller in [one, follower] {
        assert!(text(&caller.told().await).contains("one"));
    }
    assert!(text(&world.ask(3, HELLO).await).contains("one again"));
    second.open();
    assert!(text(&two.told().await).contains("two"));
    assert_eq!((world.runs_of("one"), world.runs_of("two")), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_not_claimed_gives_its_place_back() {
    let bounded = |model: &mut holdfast_engine::Model| model.routes[0].concurrency = Some(1);
    let world = setup().funds(0).model(bounded).start().await;
    for key in 0..3 {
        assert_failed!(world.ask(key, HELLO).await, RequestFailure::InsufficientFunds { .. });
    }
}

/// What is known of a route stays with its provider, not with a configuration.
#[tokio::test(start_paused = true)]
async fn another_offer_keeps_what_is_known_of_a_route_as_long_as_its_provider_stays() {
    let limited = Script::failing(RATE_LIMITED).retry_after(secs(20));
    let mut world = setup().script(limited).script(says("hi")).start().await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
    let rules = ServingRules {
        answer_bytes: 1 << 30,
        operations_per_key: 9,
        waiters_per_operation: 9,
        cool_down: BreakerRules { failures: 9, first: secs(1), longest: secs(1) },
    };
    let offer = |providers: BTreeMap<String, Arc<dyn Provider>>, before: &ServingConfig| {
        let mut model = model();
        (model.routes[0].weight, model.routes[0].priority) = (9, 9);
        ServingConfig::new(Catalogue::new([model]), providers, rules, Some(before))
    };
    world.reload(offer(world.offer.providers.clone(), &world.offer));
    passed_over(&world.ask(1, HELLO).await);
    let another: Arc<dyn Provider> = Arc::new(ScriptedProvider::new([says("another")]));
    world.reload(offer(BTreeMap::from([("one".to_owned(), another)]), &world.offer));
    assert!(text(&world.ask(1, HELLO).await).contains("another"));
}

/// What is told of a route: its health, the rest of its cool-down, and its calls.
fn offered(world: &World, at: usize) -> (RouteHealth, Option<Duration>, u32) {
    let offers = world.engine.serving().offers();
    let [ModelOffer { contract, routes }] = &offers[..] else { panic!("{offers:?}") };
    assert_eq!(*contract, model().contract);
    let route = &routes[at];
    let priority = u32::try_from(at).unwrap();
    assert_eq!((route.priority, route.weight, route.concurrency), (priority, 3, Some(5)));
    (route.health, route.cools_for, route.in_flight)
}

#[tokio::test(start_paused = true)]
async fn an_operator_is_told_how_each_route_fares() {
    let (slow, asked) = (Gate::new(), Script::failing(RATE_LIMITED).retry_after(secs(20)));
    let setup = setup().model(|model| {
        model.routes = vec![route("one"), route("two")];
        for route in &mut model.routes {
            (route.weight, route.concurrency) = (3, Some(5));
        }
    });
    let setup = scripts(setup, "one", &Script::failing(REFUSED), 3);
    let setup = setup.script(says("back").wait(&slow)).script(asked);
    let mut world = scripts(setup, "two", &says("second"), 4).start().await;
    let offers = world.engine.serving().offers();
    let names: Vec<_> = offers[0].routes.iter().map(|route| &*route.name).collect();
    assert_eq!(names, ["one/one-model", "two/two-model"]);
    assert_eq!(offered(&world, 0), (RouteHealth::Well, None, 0));
    assert_eq!(calls(&world, 0..3).await, (3, 3));
    pass(secs(2)).await;
    assert_eq!(offered(&world, 0), (RouteHealth::LastResort, Some(secs(3)), 0));
    assert_eq!(offered(&world, 1), (RouteHealth::Well, None, 0), "the other one has answered");
    pass(secs(3)).await;
    assert_eq!(offered(&world, 0), (RouteHealth::Probe, None, 0));
    let probe = world.asking(3, HELLO).await;
    slow.reached().await;
    assert_eq!(offered(&world, 0).2, 1);
    slow.open();
    assert!(text(&probe.told().await).contains("back"));
    assert_eq!(offered(&world, 0), (RouteHealth::Well, None, 0));
    assert_eq!(calls(&world, 4..5).await, (1, 1));
    pass(secs(1)).await;
    assert_eq!(offered(&world, 0), (RouteHealth::LeftAlone, Some(secs(19)), 0));
    let rules = ServingRules {
        answer_bytes: 1,
        operations_per_key: 1,
        waiters_per_operation: 1,
        cool_down: BreakerRules { failures: 1, first: secs(1), longest: secs(1) },
    };
    let none = ServingConfig::new(Catalogue::new([]), BTreeMap::new(), rules, None);
    world.reload(none);
    assert_eq!(world.engine.serving().offers(), [], "what is served at this moment");
}
