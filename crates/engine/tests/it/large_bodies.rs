//! Large bodies that are compared with what their key is bound to: never by the worker that has them.
//!
//! Engine and test share one thread. Its CPU clock has what the worker did, and not the work of other threads.

use std::time::Duration;

use holdfast_domain::model::{Contract, ModelAlias, PublicModelId};
use holdfast_domain::request::FINGERPRINT_VERSION;
use holdfast_engine::{Catalogue, Model, Reply, RequestFailure, ServingConfig};
use holdfast_testkit::{Gate, Script, sample};
use holdfast_wire::chat::request::parse_as;

use crate::polls::cpu;
use crate::world::{PendingReplies, World, assert_failed, body, model, route, says, setup};

/// Escapes of a body, each of six bytes.
const ESCAPES: usize = 500_000;

fn large() -> String {
    let text = "\\u00e9".repeat(ESCAPES);
    format!(r#"{{"model":"smart","messages":[{{"role":"user","content":"{text}"}}]}}"#)
}

fn roomy(model: Model) -> Model {
    let contract = Contract { context_tokens: 1 << 24, ..model.contract };
    Model { body_bytes: 8 << 20, contract, ..model }
}

fn with_alias(model: Model) -> Model {
    Model { aliases: vec![ModelAlias::try_from("smart").unwrap()], ..model }
}

fn other_model() -> Model {
    let id = PublicModelId::try_from("holdfast/other").unwrap();
    let contract = Contract { model: id, ..model().contract };
    roomy(Model { contract, routes: vec![route("two")], ..model() })
}

fn offer(world: &World, models: impl IntoIterator<Item = Model>) -> ServingConfig {
    let providers = world.offer.providers.clone();
    ServingConfig::new(Catalogue::new(models), providers, world.offer.rules, Some(&world.offer))
}

async fn world(script: Script) -> World {
    let vary = |model: &mut Model| *model = with_alias(roomy(model.clone()));
    setup().funds(1 << 40).script(script).model(vary).start().await
}

/// CPU time of the worker for a parse.
fn parse_takes(body: &str) -> Duration {
    let begun = cpu();
    let any = |_alias: &ModelAlias| Some(sample::model());
    parse_as(FINGERPRINT_VERSION, body.as_bytes(), &any).unwrap();
    cpu().saturating_sub(begun)
}

/// Asks, with the CPU time that the worker had for it.
async fn asked(world: &World, body: &str) -> (Reply, Duration) {
    let submission = world.submission(1, body).await;
    let begun = cpu();
    let reply = world.engine.complete(submission).await;
    (reply, cpu().saturating_sub(begun))
}

#[tokio::test(start_paused = true)]
async fn a_refused_large_body_is_compared_on_a_thread() {
    let (large, mut world) = (large(), world(says("hi")).await);
    let (first, _) = asked(&world, &large).await;
    world.reload(offer(&world, [roomy(model())]));
    let respelled = format!(" {large}");
    let (again, took) = asked(&world, &respelled).await;
    assert_eq!(body(&again), body(&first));
    let parse = parse_takes(&respelled);
    assert!(took < parse / 2, "{took:?}, a parse takes {parse:?}");
    let (other, _) = asked(&world, &large.replacen("\\u00e9", "\\u00e8", 1)).await;
    assert_failed!(other, RequestFailure::OtherRequest);
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_large_body_joins_a_run_after_a_comparison_on_a_thread() {
    let gate = Gate::new();
    let (large, mut world) = (large(), world(says("hi").wait(&gate)).await);
    let first = world.asking(1, &large).await;
    gate.reached().await;
    world.reload(offer(&world, [roomy(model()), with_alias(other_model())]));
    let other = large.replacen("\\u00e9", "\\u00e8", 1);
    // A body that differs is judged at once.
    let (reply, took) = asked(&world, &other).await;
    assert_failed!(reply, RequestFailure::OtherRequest);
    let parse = parse_takes(&other);
    assert!(took < parse / 2, "{took:?}, a parse takes {parse:?}");
    let submission = world.submission(1, &format!(" {large}")).await;
    let joined = PendingReplies::of(&world, submission);
    gate.open();
    let (first, joined) = (first.told().await, joined.told().await);
    assert_eq!(body(&first), body(&joined));
    assert_eq!(world.runs(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_with_a_large_body_is_compared_on_a_thread() {
    let (large, mut world) = (large(), world(says("hi")).await);
    // With the digest, the fingerprint and the run of a claim.
    let (first, claim) = asked(&world, &large).await;
    world.reload(offer(&world, [roomy(model()), with_alias(other_model())]));
    let respelled = format!(" {large}");
    let (again, took) = asked(&world, &respelled).await;
    assert_eq!(body(&again), body(&first));
    let parse = parse_takes(&respelled);
    assert!(took < claim + parse / 2, "{took:?} after {claim:?}, a parse takes {parse:?}");
    let (other, _) = asked(&world, &large.replacen("\\u00e9", "\\u00e8", 1)).await;
    assert_failed!(other, RequestFailure::OtherRequest);
    assert_eq!(world.runs(), 1);
}
