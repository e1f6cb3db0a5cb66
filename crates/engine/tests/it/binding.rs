//! What a key is bound to, and what is refused before it is.

use std::sync::Arc;

use holdfast_domain::Micros;
use holdfast_domain::limits::{Counter, Limits, ReachedLimit};
use holdfast_domain::operation::{Binding, ProviderRefusal};
use holdfast_domain::ports::{CallFailure as ProviderFailure, NotRunProof};
use holdfast_domain::request::{FINGERPRINT_VERSION, UNFOLDED_VERSION, fingerprint};
use holdfast_domain::secret::BodyDigest;
use holdfast_engine::{RequestFailure, Secrets};
use holdfast_testkit::{Gate, Script, join_all, sample};
use holdfast_wire::chat::request::{BadRequest, parse_as};
use holdfast_wire::error::Code;

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, HELLO_HOLDS, HELLO_RESPELLED, OTHER, PendingReplies, assert_failed,
    body, operation_id, pass, says, secret, secs, setup, text, turns,
};

/// Holds 131.
const DEAR: &str =
    r#"{"model":"holdfast/sample","n":2,"messages":[{"role":"user","content":"hello"}]}"#;
const UNREADABLE: &str = r#"{"model":"holdfast/sample","messages":[],"later":1}"#;

#[tokio::test(start_paused = true)]
async fn a_different_request_is_a_conflict_while_the_first_runs_and_after_it() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    let conflict = world.ask(1, OTHER).await;
    assert_failed!(conflict, RequestFailure::OtherRequest);
    assert_eq!(conflict.facts.operation, None);
    gate.open();
    body(&first.told().await);
    assert_failed!(world.ask(1, OTHER).await, RequestFailure::OtherRequest);
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_told_as_soon_as_the_first_claim_is_committed() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let commits = world.store.hold_commits();
    let first = world.asking(1, HELLO).await;
    commits.reached().await;
    let mut other = world.asking(1, OTHER).await;
    assert!(other.is_waiting().await, "the first claim is only offered yet");
    commits.open();
    gate.reached().await;
    assert!(!other.is_waiting().await, "the first run has not ended, and need not");
    gate.open();
    body(&first.told().await);
}

#[tokio::test(start_paused = true)]
async fn a_different_request_gets_the_key_when_the_first_claim_is_refused() {
    let world = setup().funds(100).script(says("hi")).start().await;
    let commits = world.store.hold_commits();
    let dear = world.asking(1, DEAR).await;
    commits.reached().await;
    let mut cheap = world.asking(1, HELLO).await;
    assert!(cheap.is_waiting().await);
    commits.open();
    assert_failed!(dear.told().await, RequestFailure::InsufficientFunds { hold, .. } if hold.get() == 131);
    assert!(text(&cheap.told().await).contains("hi"));
    assert_failed!(world.ask(1, DEAR).await, RequestFailure::OtherRequest);
}

#[tokio::test(start_paused = true)]
async fn no_conflict_is_told_while_the_first_claim_is_only_offered() {
    let world = setup().start().await;
    let commits = world.store.hold_commits();
    let _first = world.asking(1, HELLO).await;
    commits.reached().await;
    let mut impatient = world.submission(1, OTHER).await;
    impatient.retry_wait = secs(3);
    assert_failed!(world.engine.complete(impatient).await, RequestFailure::Storage(None));
    assert_failed!(world.ask(1, OTHER).await, RequestFailure::Storage(None));
}

#[tokio::test(start_paused = true)]
async fn callers_that_asked_for_the_same_claim_are_told_the_same_refusal() {
    let world = setup().funds(HELLO_HOLDS - 1).start().await;
    let commits = world.store.hold_commits();
    let mut callers = Vec::new();
    for _caller in 0..50 {
        callers.push(world.asking(1, HELLO).await);
    }
    turns().await;
    commits.open();
    for reply in join_all(callers.into_iter().map(PendingReplies::told)).await {
        assert_failed!(reply, RequestFailure::InsufficientFunds { .. });
    }
    assert!(world.store.journal.operations().is_empty());
    assert_eq!(world.runs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_refused_claim_binds_nothing() {
    let world = setup().funds(HELLO_HOLDS - 1).start().await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::InsufficientFunds { hold, .. } if hold.get() == HELLO_HOLDS);
    assert!(world.store.journal.operations().is_empty());
    assert_eq!(world.store.balances(), (HELLO_HOLDS - 1, 0));
    assert_failed!(world.ask(1, DEAR).await, RequestFailure::InsufficientFunds { .. });
}

#[tokio::test(start_paused = true)]
async fn a_reached_limit_refuses_new_operations_and_replays_bound_ones() {
    let limits = Limits { requests_per_minute: Some(1), ..Limits::default() };
    let world = setup().limits(limits).script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    assert_failed!(
        world.ask(2, HELLO).await,
        RequestFailure::LimitReached(ReachedLimit { counter: Counter::Requests, .. })
    );
    assert_eq!(body(&world.ask(1, HELLO).await), body(&first));
    assert_eq!(world.store.journal.operations().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_bound_key_is_answered_although_its_model_has_vanished() {
    let world = setup().script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    let later = setup().on(&world.store).no_models().start().await;
    for again in [HELLO, HELLO_RESPELLED] {
        let reply = later.ask(1, again).await;
        assert_eq!(body(&reply), body(&first));
        assert!(reply.replayed);
    }
    assert_failed!(later.ask(1, OTHER).await, RequestFailure::OtherRequest);
    assert_failed!(later.ask(2, HELLO).await, RequestFailure::ModelNotFound { .. });
}

#[tokio::test(start_paused = true)]
async fn a_bound_key_is_answered_under_new_prices_a_new_contract_and_a_new_server_secret() {
    let world = setup().script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    let later = setup()
        .on(&world.store)
        .secrets(Secrets::new(secret(8), vec![secret(7)]))
        .model(|model| {
            model.prices[0].version = sample::priced("2026-11-01T00:00:00Z", 1_000_000_000);
            model.contract.version = 2;
        })
        .start()
        .await;
    for again in [HELLO, HELLO_RESPELLED] {
        assert_eq!(body(&later.ask(1, again).await), body(&first));
    }
    assert_failed!(later.ask(1, OTHER).await, RequestFailure::OtherRequest);
    assert_eq!(later.runs(), 0);
    assert_eq!(later.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn a_bound_key_is_answered_although_the_body_is_not_read_any_more() {
    let world = setup().script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    let digest: BodyDigest =
        secret(7).body_digest_key(sample::API_KEY).digest(UNREADABLE.as_bytes());
    // As an older version, which knew the field, would have bound it.
    world.store.alter(move |snapshot| {
        if let Some(operation) = &mut snapshot.operation {
            operation.binding.body_digest = digest;
        }
    });
    let reply = world.ask(1, UNREADABLE).await;
    assert_eq!(body(&reply), body(&first));
    assert!(reply.replayed);
    let another = UNREADABLE.replace("later", "latest");
    assert_failed!(world.ask(1, &another).await, RequestFailure::OtherRequest);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_read_waits_for_the_operation_that_is_bound_to_it() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let first = world.asking(1, HELLO).await;
    gate.reached().await;
    let later = setup().on(&world.store).shared("b").no_models().start().await;
    let mut again = later.asking(1, HELLO).await;
    assert!(again.is_waiting().await);
    gate.open();
    assert_eq!(body(&again.told().await), body(&first.told().await));
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_before_the_claim_binds_nothing() {
    let world = setup().start().await;
    let unknown = HELLO.replace("holdfast/sample", "holdfast/other");
    let long = HELLO.replace("hello", &"o".repeat(10_000));
    let wanting = HELLO.replace("\"messages\"", "\"max_tokens\":51,\"messages\"");
    assert_failed!(world.ask(1, UNREADABLE).await, RequestFailure::BadRequest(bad) if bad.code != Code::InvalidJson);
    assert_failed!(world.ask(1, "{").await, RequestFailure::BadRequest(bad) if bad.code == Code::InvalidJson);
    assert_failed!(world.ask(1, &unknown).await, RequestFailure::ModelNotFound { .. });
    assert_failed!(world.ask(1, &long).await, RequestFailure::TooLarge { limit: 10_000 });
    assert_failed!(world.ask(1, &wanting).await, RequestFailure::BadRequest(bad) if bad.code == Code::InvalidValue);
    assert_eq!(world.store.journal.offers(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_not_given_where_the_store_cannot_say_whether_the_key_is_bound() {
    let world = setup().start().await;
    // The reconciler has looked.
    turns().await;
    world.store.journal.fail_loads(1);
    assert_failed!(world.ask(1, UNREADABLE).await, RequestFailure::Storage(None));
    assert_failed!(world.ask(1, UNREADABLE).await, RequestFailure::BadRequest(_));
}

#[tokio::test(start_paused = true)]
async fn the_maximum_charge_refuses_before_binding_and_is_ignored_by_a_replay() {
    let world = setup().script(says("hi")).start().await;
    let mut frugal = world.submission(1, HELLO).await;
    frugal.max_charge = Ok(Some(Micros::new(HELLO_HOLDS - 1)));
    let refused = world.engine.complete(frugal.clone()).await;
    assert_failed!(refused, RequestFailure::ChargeLimit { hold, allowed }
        if hold.get() == HELLO_HOLDS && allowed.get() == HELLO_HOLDS - 1);
    assert_eq!(world.store.journal.offers(), 0);
    let mut exact = frugal.clone();
    exact.max_charge = Ok(Some(Micros::new(HELLO_HOLDS)));
    let first = world.engine.complete(exact).await;
    assert_eq!(body(&world.engine.complete(frugal.clone()).await), body(&first));

    let unreadable = Arc::new(BadRequest {
        code: Code::InvalidValue,
        param: None,
        message: "not a number".to_owned(),
    });
    let mut malformed = frugal;
    malformed.max_charge = Err(unreadable);
    assert_eq!(body(&world.engine.complete(malformed.clone()).await), body(&first));
    malformed.request_key = sample::request_key(2);
    let refused = world.engine.complete(malformed).await;
    assert_failed!(refused, RequestFailure::BadRequest(bad) if bad.message == "not a number");
    assert_eq!(world.store.journal.operations().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_maximum_charge_applies_to_an_open_operation_which_it_leaves_open() {
    let not_run = Script::failing(ProviderFailure::NotRun(NotRunProof::Connect));
    let world = setup().script(not_run).script(says("hi")).start().await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
    let mut frugal = world.submission(1, HELLO).await;
    frugal.max_charge = Ok(Some(Micros::new(1)));
    assert_failed!(world.engine.complete(frugal).await, RequestFailure::ChargeLimit { .. });
    assert_eq!(world.store.phase(), "open");
    assert_failed!(world.ask(1, OTHER).await, RequestFailure::OtherRequest);
    assert!(text(&world.ask(1, HELLO).await).contains("hi"));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_by_the_provider_replays_although_the_model_has_vanished() {
    let refused = Script::failing(ProviderFailure::Refused(ProviderRefusal::Request));
    let world = setup().script(refused).start().await;
    let first = world.ask(1, HELLO).await.outcome.unwrap();
    let later = setup().on(&world.store).no_models().start().await;
    let again = later.ask(1, HELLO).await.outcome.unwrap();
    assert_eq!(format!("{first:?}"), format!("{again:?}"));
    assert_eq!(world.store.operation().id, operation_id(1));
}

/// A row that a release before the fold wrote is compared by the form that it had then.
#[tokio::test(start_paused = true)]
async fn a_row_of_the_first_fingerprint_version_is_compared_by_that_version() {
    let world =
        setup().options(|options| options.results = secs(60)).script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    // Content is sealed under the fingerprint, and goes: what is left is whether the request is the same.
    pass(secs(130)).await;
    let key = secret(7).fingerprint_key(sample::API_KEY);
    let request = parse_as(UNFOLDED_VERSION, HELLO.as_bytes(), &|_alias| None).unwrap();
    world.store.alter(move |snapshot| {
        if let Some(operation) = &mut snapshot.operation {
            let Binding { terms, fingerprint: bound, .. } = &mut operation.binding;
            terms.fingerprint_version = UNFOLDED_VERSION;
            *bound = fingerprint(&key, UNFOLDED_VERSION, terms.contract, &request).unwrap();
        }
    });
    let with = |members: &str| HELLO.replace("{\"model\"", &format!("{{{members},\"model\""));
    let later = setup().on(&world.store).shared("b").no_models().start().await;
    for world in [&world, &later] {
        let nothing = with(r#""stop":[],"tools":null,"not_known_here":null,"functions":"""#);
        // The null of a member that is not known was told apart then.
        let nothing_then = nothing.replace("\"not_known_here\":null,", "");
        for same in [HELLO, HELLO_RESPELLED, &nothing_then] {
            assert_failed!(world.ask(1, same).await, RequestFailure::ResultExpired(..));
        }
        let cached = with(r#""prompt_cache_options":{"mode":"implicit"}"#);
        for other in [OTHER, &nothing, &cached] {
            assert_failed!(world.ask(1, other).await, RequestFailure::OtherRequest);
        }
    }
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_row_of_an_unknown_fingerprint_version_is_neither_a_conflict_nor_a_run() {
    let world = setup().script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    let make_later = || {
        world.store.alter(|snapshot| {
            if let Some(operation) = &mut snapshot.operation {
                operation.binding.terms.fingerprint_version = FINGERPRINT_VERSION + 1;
            }
        });
    };
    make_later();
    let later = setup()
        .on(&world.store)
        .shared("b")
        .secrets(Secrets::new(secret(8), vec![secret(7)]))
        .start()
        .await;
    let unserved = setup().on(&world.store).shared("c").no_models().start().await;
    for world in [&world, &later, &unserved] {
        let again = world.ask(1, HELLO).await;
        assert_eq!(body(&again), body(&first));
        assert!(again.replayed);
        for unknown in [HELLO_RESPELLED, OTHER] {
            assert_failed!(world.ask(1, unknown).await, RequestFailure::Storage(None));
        }
    }
    assert_eq!((world.runs(), later.runs()), (1, 0));
    assert_eq!(world.store.balances(), (FUNDS - ANSWER_COSTS, 0));
}

#[tokio::test(start_paused = true)]
async fn an_open_row_of_an_unknown_fingerprint_version_is_left_to_those_who_know_it() {
    let not_run = Script::failing(ProviderFailure::NotRun(NotRunProof::Connect));
    let world = setup().script(not_run).script(says("hi")).start().await;
    assert_failed!(world.ask(1, HELLO).await, RequestFailure::NotRun(..));
    world.store.alter(|snapshot| {
        if let Some(operation) = &mut snapshot.operation {
            operation.binding.terms.fingerprint_version = FINGERPRINT_VERSION + 1;
        }
    });
    for body in [HELLO, HELLO_RESPELLED, OTHER] {
        assert_failed!(world.ask(1, body).await, RequestFailure::Storage(None));
    }
    assert_eq!((world.runs(), world.store.phase()), (1, "open"));
}
