//! What callers look at besides completions.

use std::sync::atomic::Ordering;
use std::time::Duration;

use holdfast_domain::model::PublicModelId;
use holdfast_domain::operation::{ProviderRefusal, Situation};
use holdfast_domain::ports::{CallFailure as ProviderFailure, NotRunProof, UnknownReason};
use holdfast_domain::private::Private;
use holdfast_engine::{LookupError, OperationLookup, Readiness, ResultState};
use holdfast_testkit::{Gate, Script, sample};
use tokio::time::{Instant, timeout};

use crate::world::{
    ANSWER_COSTS, FUNDS, HELLO, HELLO_HOLDS, PEER, World, bearer, body, credential, operation_id,
    pass, says, secret, secs, setup, turns,
};

async fn look_up_as(world: &World, n: u8, key: u64) -> Result<OperationLookup, LookupError> {
    let caller = world.engine.authenticate(&bearer(n).expose(), PEER).await.unwrap();
    world.engine.look_up(&caller, sample::request_key(key)).await
}

async fn look_up(world: &World) -> OperationLookup {
    look_up_as(world, 1, 1).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_look_up_shows_a_completed_operation_with_its_answer() {
    let world = setup().script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    let seen = look_up(&world).await;
    assert_eq!(seen.situation, Situation::Completed);
    assert_eq!(seen.operation.id, world.store.operation().id);
    let ResultState::Kept(Private(kept)) = seen.result else { panic!("{:?}", seen.result) };
    assert_eq!(kept, body(&first));
}

#[tokio::test(start_paused = true)]
async fn a_look_up_shows_what_runs_and_what_is_open() {
    let gate = Gate::new();
    let not_run = Script::failing(ProviderFailure::NotRun(NotRunProof::Connect)).wait(&gate);
    let world = setup().script(not_run).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    let seen = look_up(&world).await;
    assert_eq!(seen.situation, Situation::InProgress);
    assert!(matches!(seen.result, ResultState::None));
    gate.open();
    assert!(caller.told().await.outcome.is_err());
    assert_eq!(look_up(&world).await.situation, Situation::NotStarted);
    assert_eq!(world.runs(), 1, "a look-up never runs anything");
}

#[tokio::test(start_paused = true)]
async fn a_look_up_shows_how_refused_and_abandoned_operations_ended() {
    let refused = Script::failing(ProviderFailure::Refused(ProviderRefusal::Request));
    let world = setup().script(refused).start().await;
    assert!(world.ask(1, HELLO).await.outcome.is_ok());
    assert!(matches!(look_up(&world).await.result, ResultState::Kept(_)));
    let unknown = Script::failing(ProviderFailure::Unknown(UnknownReason::Broken));
    let world = setup().script(unknown).start().await;
    assert!(world.ask(1, HELLO).await.outcome.is_err());
    let seen = look_up(&world).await;
    assert_eq!(seen.situation, Situation::Completed);
    assert!(matches!(seen.result, ResultState::None));
}

#[tokio::test(start_paused = true)]
async fn a_look_up_settles_what_was_recorded() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    world.store.journal.break_wallet(sample::WALLET);
    gate.open();
    assert!(caller.told().await.outcome.is_err());
    let seen = look_up(&world).await;
    assert_eq!(seen.situation, Situation::Stale);
    assert!(matches!(seen.result, ResultState::None));
    world.store.journal.repair_wallet(sample::WALLET);
    assert_eq!(look_up(&world).await.situation, Situation::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_look_up_does_not_show_sealed_or_deleted_content() {
    let world =
        setup().options(|options| options.results = secs(60)).script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    world.store.add_credential(credential(3, sample::API_KEY, &secret(7)));
    let sealed = look_up_as(&world, 3, 1).await.unwrap();
    assert!(matches!(sealed.result, ResultState::Sealed));
    pass(secs(130)).await;
    assert!(matches!(look_up(&world).await.result, ResultState::Expired));
}

#[tokio::test(start_paused = true)]
async fn a_look_up_of_content_that_does_not_open_says_so() {
    let world = setup().script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    world.store.alter(|snapshot| {
        if let Some(result) = &mut snapshot.result {
            result.sealed = [].into();
        }
    });
    let seen = look_up_as(&world, 1, 1).await;
    assert!(matches!(seen, Err(LookupError::Unreadable(id, Some(_))) if id == operation_id(1)));
}

#[tokio::test(start_paused = true)]
async fn an_operation_is_there_for_its_own_api_key_alone() {
    let world = setup().script(says("hi")).start().await;
    body(&world.ask(1, HELLO).await);
    assert!(matches!(look_up_as(&world, 2, 1).await, Err(LookupError::NotFound)));
    assert!(matches!(look_up_as(&world, 1, 2).await, Err(LookupError::NotFound)));
    let caller = world.submission(1, HELLO).await.caller;
    world.store.set_down(true);
    let seen = world.engine.look_up(&caller, sample::request_key(1)).await;
    assert!(matches!(seen, Err(LookupError::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn the_wallet_shows_what_is_available_and_what_is_held() {
    let gate = Gate::new();
    let world = setup().script(says("hi").wait(&gate)).start().await;
    let caller = world.asking(1, HELLO).await;
    gate.reached().await;
    let bearer = world.submission(1, HELLO).await.caller;
    let wallet = world.engine.account(&bearer).await.unwrap().wallet;
    assert_eq!((wallet.available.get(), wallet.held.get()), (FUNDS - HELLO_HOLDS, HELLO_HOLDS));
    gate.open();
    body(&caller.told().await);
    let wallet = world.engine.account(&bearer).await.unwrap().wallet;
    assert_eq!((wallet.available.get(), wallet.held.get()), (FUNDS - ANSWER_COSTS, 0));
    world.store.set_down(true);
    assert!(matches!(world.engine.account(&bearer).await, Err(LookupError::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn the_models_that_are_listed_are_those_that_the_caller_can_pay_for() {
    let world = setup().start().await;
    let caller = world.submission(1, HELLO).await.caller;
    let now = world.engine.now();
    let models = world.offer.models(&caller, now);
    let listed: Vec<_> = models.map(|(m, _)| &m.contract.model).collect();
    assert_eq!(listed, [&sample::model()]);
    let (_, price) = world.offer.model(&caller, &sample::model(), now).unwrap();
    assert_eq!(price.version, sample::price());
    let other = PublicModelId::try_from("holdfast/other").unwrap();
    assert!(world.offer.model(&caller, &other, now).is_none());
    assert_eq!(world.offer.catalogue.body_bytes_max(), 10_000);
    let euros = setup().on(&world.store).model(|model| {
        model.prices[0].version.currency = "EUR".parse().unwrap();
    });
    let euros = euros.start().await;
    assert_eq!(euros.offer.models(&caller, now).count(), 0);
    assert!(euros.offer.model(&caller, &sample::model(), now).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_process_without_an_acknowledged_heartbeat_for_a_lease_is_not_ready() {
    let world = setup().shared("a").start().await;
    turns().await;
    let beats = world.store.hold_beats();
    pass(secs(14)).await;
    assert_eq!(world.engine.readiness().await, Readiness::Ready);
    pass(secs(1)).await;
    assert_eq!(world.engine.readiness().await, Readiness::Storage);
    beats.open();
    pass(secs(5)).await;
    assert_eq!(world.engine.readiness().await, Readiness::Ready);
}

/// A full disk refuses what is written at once, and is still read.
#[tokio::test(start_paused = true)]
async fn a_process_whose_newest_heartbeat_failed_is_not_ready_until_the_next() {
    let world = setup().start().await;
    turns().await;
    world.store.set_down(true);
    pass(secs(5)).await;
    world.store.set_down(false);
    assert_eq!(world.engine.readiness().await, Readiness::Storage);
    pass(secs(1)).await;
    assert_eq!(world.engine.readiness().await, Readiness::Ready);
}

#[tokio::test(start_paused = true)]
async fn a_process_is_ready_when_its_store_answers_within_two_seconds() {
    let world = setup().start().await;
    let moment = Duration::from_millis(250);
    assert_eq!(world.engine.readiness().await, Readiness::Ready);
    world.store.set_down(true);
    let reads = world.store.reads.load(Ordering::SeqCst);
    assert_eq!(world.engine.readiness().await, Readiness::Ready, "the verdict of a moment ago");
    assert_eq!(world.store.reads.load(Ordering::SeqCst), reads, "nobody has looked again");
    pass(moment).await;
    assert_eq!(world.engine.readiness().await, Readiness::Storage);
    world.store.set_down(false);
    pass(moment).await;
    turns().await;
    let loads = world.store.hold_loads();
    let began = Instant::now();
    assert_eq!(world.engine.readiness().await, Readiness::Storage);
    assert_eq!(began.elapsed(), secs(2));
    loads.open();
    pass(moment).await;
    assert_eq!(timeout(secs(1), world.engine.readiness()).await, Ok(Readiness::Ready));
}

#[tokio::test(start_paused = true)]
async fn what_a_load_withholds_is_read_and_opened_all_the_same() {
    let world = setup().script(says("hi")).start().await;
    let first = world.ask(1, HELLO).await;
    world.store.alter(|snapshot| {
        if let Some(result) = &mut snapshot.result {
            (result.withheld, result.sealed) = (result.sealed.len(), [].into());
        }
    });
    let ResultState::Kept(Private(kept)) = look_up(&world).await.result else {
        panic!("it is kept")
    };
    assert_eq!(kept, body(&first));
    assert_eq!(body(&world.ask(1, HELLO).await), body(&first));
    assert_eq!(world.runs(), 1);
}
