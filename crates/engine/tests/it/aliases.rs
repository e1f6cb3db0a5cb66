//! Aliases of models: resolved once, told in every answer of the key that they bound, and never a way for a bound key
//! to another model.

use holdfast_domain::model::{Contract, ModelAlias, PublicModelId};
use holdfast_domain::ports::{CallFailure, NotRunProof};
use holdfast_domain::private::Private;
use holdfast_engine::{
    Catalogue, CompletionStream, Model, ReplyBody, RequestFailure, ServingConfig, StreamItem,
};
use holdfast_testkit::{Gate, Script, sample};

use crate::world::{
    HELLO, PendingReplies, World, assert_failed, body, model, operation_id, route, says, setup,
    text,
};

const ALIASED: &str = r#"{"model":"smart","messages":[{"role":"user","content":"hello"}]}"#;
/// The same request as [`ALIASED`] in other bytes.
const RESPELLED: &str =
    r#"{"messages":[{"content":"hello","role":"user"}], "model":"smart","n":1}"#;
const STREAMED: &str =
    r#"{"model":"smart","stream":true,"messages":[{"role":"user","content":"hello"}]}"#;
/// A name that was never an alias.
const NAMELESS: &str = r#"{"model":"smartest","messages":[{"role":"user","content":"hello"}]}"#;

fn with_alias(model: Model, alias: &str) -> Model {
    Model { aliases: vec![ModelAlias::try_from(alias).unwrap()], ..model }
}

fn other_model() -> Model {
    let id = PublicModelId::try_from("holdfast/other").unwrap();
    Model {
        contract: Contract { model: id, ..model().contract },
        routes: vec![route("two")],
        ..model()
    }
}

/// A configuration of these models in the place of a world's own.
fn offer(world: &World, models: impl IntoIterator<Item = Model>) -> ServingConfig {
    let providers = world.offer.providers.clone();
    ServingConfig::new(Catalogue::new(models), providers, world.offer.rules, Some(&world.offer))
}

async fn told(stream: &mut CompletionStream) -> String {
    let mut all = String::new();
    while let Some(StreamItem::Event(Private(event))) = stream.next().await {
        all.push_str(str::from_utf8(&event).unwrap());
    }
    all
}

async fn streamed(world: &World, key: u64, body: &str) -> String {
    let reply = world.ask(key, body).await;
    match reply.outcome {
        Ok(ReplyBody::Streamed(mut stream)) => told(&mut stream).await,
        other => unreachable_stream(&other),
    }
}

fn unreachable_stream(other: &Result<ReplyBody, RequestFailure>) -> String {
    assert!(other.is_ok(), "no stream: {other:?}");
    String::new()
}

#[track_caller]
fn names_only(told: &str, model: &str) {
    assert!(told.contains(&format!(r#""model":"{model}""#)), "{told}");
    let other = if model == "smart" { "holdfast/sample" } else { "smart" };
    assert!(!told.contains(&format!(r#""model":"{other}""#)), "{told}");
}

#[tokio::test(start_paused = true)]
async fn every_answer_of_a_key_names_the_model_as_its_binding_request_did() {
    let world = setup().script(says("hi")).script(says("hi")).script(says("hi"));
    let world = world.model(|model| *model = with_alias(model.clone(), "smart")).start().await;
    let first = world.ask(1, ALIASED).await;
    names_only(text(&first), "smart");
    let rows = world.store.journal.operations();
    let row = rows.iter().find(|row| row.id == operation_id(1)).unwrap();
    assert_eq!(row.model, sample::model(), "prices, limits and reports have the id");
    assert_eq!(row.alias.as_ref().map(ModelAlias::as_str), Some("smart"));
    // Another spelling of the model is the same request, and the answer is the one that was made.
    for again in [ALIASED, RESPELLED, HELLO] {
        let reply = world.ask(1, again).await;
        assert!(reply.replayed);
        assert_eq!(body(&reply), body(&first), "{again}");
    }
    names_only(&streamed(&world, 1, STREAMED).await, "smart");
    names_only(text(&world.ask(2, HELLO).await), "holdfast/sample");
    names_only(text(&world.ask(2, ALIASED).await), "holdfast/sample");
    names_only(&streamed(&world, 3, STREAMED).await, "smart");
    names_only(text(&world.ask(3, HELLO).await), "smart");
    assert_eq!(world.runs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_bound_key_keeps_its_model_when_its_alias_leads_elsewhere() {
    let world = setup().script(says("hi"));
    let mut world = world.model(|model| *model = with_alias(model.clone(), "smart")).start().await;
    let first = world.ask(1, ALIASED).await;
    let moved = || [model(), with_alias(other_model(), "smart")];
    let dropped = || [model(), other_model()];
    let alone = || [with_alias(other_model(), "smart"), other_model()];
    for models in [moved(), dropped(), alone()] {
        world.reload(offer(&world, models));
        for again in [ALIASED, RESPELLED] {
            let reply = world.ask(1, again).await;
            assert_eq!(body(&reply), body(&first), "{again}");
        }
        names_only(&streamed(&world, 1, STREAMED).await, "smart");
        let other = RESPELLED.replace("hello", "another");
        assert_failed!(world.ask(1, &other).await, RequestFailure::OtherRequest);
        assert_failed!(world.ask(1, NAMELESS).await, RequestFailure::OtherRequest);
        let by_id = HELLO.replace("holdfast/sample", "holdfast/other");
        assert_failed!(world.ask(1, &by_id).await, RequestFailure::OtherRequest);
    }
    assert_eq!(world.runs(), 1);
}

/// Spaces before a body that is then parsed on a thread of its own.
const SPACES: usize = 300 << 10;

#[tokio::test(start_paused = true)]
async fn a_large_body_whose_alias_is_gone_is_answered_in_the_form_that_it_wants() {
    let world = setup().script(says("hi"));
    let mut world = world
        .model(|model| {
            *model = Model { body_bytes: 1 << 20, ..with_alias(model.clone(), "smart") };
        })
        .start()
        .await;
    let large = |body: &str| format!("{}{body}", " ".repeat(SPACES));
    names_only(text(&world.ask(1, &large(ALIASED)).await), "smart");
    world.reload(offer(&world, [model()]));
    for streamed_body in [STREAMED.to_owned(), large(STREAMED)] {
        names_only(&streamed(&world, 1, &streamed_body).await, "smart");
    }
    for whole in [ALIASED.to_owned(), large(ALIASED)] {
        names_only(text(&world.ask(1, &whole).await), "smart");
    }
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_no_alias_bound_is_not_reached_by_one_that_leads_elsewhere() {
    let mut world = setup().script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    world.reload(offer(&world, [with_alias(model(), "smart")]));
    assert_eq!(body(&world.ask(1, ALIASED).await), body(&first));
    world.reload(offer(&world, [model(), with_alias(other_model(), "smart")]));
    assert_failed!(world.ask(1, ALIASED).await, RequestFailure::OtherRequest);
    assert_eq!(body(&world.ask(1, HELLO).await), body(&first));
}

#[tokio::test(start_paused = true)]
async fn an_open_key_does_not_run_again_by_an_alias_that_leads_elsewhere() {
    let not_run = || Script::failing(CallFailure::NotRun(NotRunProof::RateLimited));
    let world = setup().script(not_run()).script(says("hi"));
    let mut world = world.model(|model| *model = with_alias(model.clone(), "smart")).start().await;
    assert_failed!(world.ask(1, ALIASED).await, RequestFailure::NotRun(..));
    let balances = world.store.balances();
    world.reload(offer(&world, [model(), with_alias(other_model(), "smart")]));
    for again in [ALIASED, RESPELLED] {
        assert_failed!(world.ask(1, again).await, RequestFailure::OtherRequest);
    }
    assert_eq!(world.store.balances(), balances);
    // Under its own model it runs, and its answer has the name that bound the key.
    names_only(text(&world.ask(1, HELLO).await), "smart");
    names_only(text(&world.ask(1, ALIASED).await), "smart");
    assert_eq!(world.runs(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_joined_by_the_alias_that_began_it_after_that_has_moved() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate));
    let mut world = world.model(|model| *model = with_alias(model.clone(), "smart")).start().await;
    let first = world.asking(1, ALIASED).await;
    gate.reached().await;
    world.reload(offer(&world, [model(), with_alias(other_model(), "smart")]));
    let joined = PendingReplies::of(&world, world.submission(1, RESPELLED).await);
    let by_id = HELLO.replace("holdfast/sample", "holdfast/other");
    assert_failed!(world.ask(1, &by_id).await, RequestFailure::OtherRequest);
    gate.open();
    let (first, joined) = (first.told().await, joined.told().await);
    assert_eq!(body(&first), body(&joined));
    names_only(text(&first), "smart");
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_mistyped_alias_is_suggested_like_an_id() {
    let world = setup().model(|model| *model = with_alias(model.clone(), "smart")).start().await;
    let mistyped = ALIASED.replace("smart", "smrat");
    let reply = world.ask(1, &mistyped).await;
    assert_failed!(reply, RequestFailure::ModelNotFound { meant: Some(meant) } if &**meant == "smart");
}
