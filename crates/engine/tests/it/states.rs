//! What a provider wants back of earlier turns: who gets it, when it is gone, and that it is never seen.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_domain::OperationId;
use holdfast_domain::answer::{ChoiceDelta, FinishReason, ToolCallDelta};
use holdfast_domain::request::ToolKind;
use holdfast_domain::state::{ProviderState, ProviderStates};
use holdfast_domain::usage::Meters;
use holdfast_engine::{Options, RequestFailure};
use holdfast_testkit::{Script, sample};

use crate::world::{
    HELLO, Setup, World, assert_failed, bearer, body, credential, operation_id, pass, says, secret,
    secs, setup, text, turns,
};

fn state(text: &str) -> ProviderState {
    ProviderState::new(text).unwrap()
}

/// A whole answer that calls a tool for each of these.
fn calls(states: &[Option<ProviderState>]) -> Script {
    let call = |(index, state): (u32, &Option<ProviderState>)| ToolCallDelta {
        index,
        kind: Some(ToolKind::Function),
        name: Some("look".to_owned()),
        input: Some("{}".to_owned()),
        state: state.clone(),
    };
    let tool_calls = (0..).zip(states).map(call).collect();
    let finish = Some(FinishReason::ToolCalls);
    let choice = ChoiceDelta { tool_calls, finish, ..ChoiceDelta::default() };
    Script::finishing(Meters::text(7, 2).ok()).delta(choice)
}

/// The next turn, with the results of calls.
fn results(ids: &[String]) -> String {
    let turn = |id: &String| {
        format!(
            r#",{{"role":"assistant","tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"look","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"{id}","content":"x"}}"#
        )
    };
    let turns: String = ids.iter().map(turn).collect();
    format!(
        r#"{{"model":"holdfast/sample","messages":[{{"role":"user","content":"hello"}}{turns}]}}"#
    )
}

fn id(key: u64, call: u32) -> String {
    operation_id(key).tool_call_id([0, call])
}

/// Its first operation calls two tools, the second of them with a state, and then it says something.
fn called() -> Setup {
    setup().wanting("shape").funds(100_000).script(calls(&[None, Some(state("signed"))]))
}

async fn in_second_turn(setup: Setup) -> World {
    let world = setup.script(says("so")).script(says("so")).start().await;
    body(&world.ask(1, HELLO).await);
    world
}

/// What the provider was handed in its newest call.
fn handed(world: &World) -> ProviderStates {
    world.scripted("one").calls().last().unwrap().states.clone()
}

#[tokio::test(start_paused = true)]
async fn what_came_with_a_call_goes_back_with_its_result_and_is_never_told() {
    let world = in_second_turn(called()).await;
    let told = world.ask(1, HELLO).await;
    assert!(text(&told).contains(&id(1, 1)), "{}", text(&told));
    assert!(!text(&told).contains("signed"), "{}", text(&told));
    let sealed = world.store.sealed(operation_id(1)).await.unwrap().sealed;
    assert!(!sealed.windows(6).any(|part| part == b"signed"));
    body(&world.ask(2, &results(&[id(1, 0), id(1, 1)])).await);
    assert_eq!(handed(&world), [(id(1, 1), state("signed"))].into());
}

#[tokio::test(start_paused = true)]
async fn another_process_hands_it_over_as_well() {
    let world = in_second_turn(called()).await;
    let other = setup().wanting("shape").on(&world.store).shared("b").script(says("so"));
    let other = other.start().await;
    body(&other.ask(2, &results(&[id(1, 1)])).await);
    assert_eq!(handed(&other), [(id(1, 1), state("signed"))].into());
}

#[tokio::test(start_paused = true)]
async fn another_api_key_finds_nothing_under_the_id_of_a_call() {
    let world = in_second_turn(called()).await;
    body(&world.ask_as(&bearer(2), 2, &results(&[id(1, 1)])).await);
    assert_eq!(handed(&world), ProviderStates::new());
}

#[tokio::test(start_paused = true)]
async fn only_the_credential_that_sealed_it_opens_it() {
    let world = in_second_turn(called()).await;
    world.store.add_credential(credential(3, sample::API_KEY, &secret(7)));
    body(&world.ask_as(&bearer(3), 2, &results(&[id(1, 1)])).await);
    assert_eq!(handed(&world), ProviderStates::new());
    body(&world.ask(3, &results(&[id(1, 1)])).await);
    assert_eq!(handed(&world).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn it_goes_with_the_result() {
    let kept = called().options(|options| options.results = secs(60));
    let world = in_second_turn(kept).await;
    pass(secs(50)).await;
    body(&world.ask(2, &results(&[id(1, 1)])).await);
    assert_eq!(handed(&world).len(), 1);
    pass(secs(80)).await;
    body(&world.ask(3, &results(&[id(1, 1)])).await);
    assert_eq!(handed(&world), ProviderStates::new());
}

#[tokio::test(start_paused = true)]
async fn it_goes_back_to_where_it_came_from_and_nowhere_else() {
    let from = in_second_turn(called()).await;
    let over = || setup().on(&from.store).script(says("so"));
    let model = |model: &mut holdfast_engine::Model| model.routes[0].model = "another".into();
    for (name, other) in [
        ("b", over().wanting("another shape")),
        ("c", over().wanting("shape").model(model)),
        ("d", over()),
    ] {
        let other = other.shared(name).start().await;
        body(&other.ask(u64::from(name.as_bytes()[0]), &results(&[id(1, 1)])).await);
        assert_eq!(handed(&other), ProviderStates::new(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_read_where_nothing_can_be_wanted() {
    let world = setup().wanting("shape").script(says("so")).script(says("so")).start().await;
    body(&world.ask(1, HELLO).await);
    body(&world.ask(2, &results(&["call_of_another".to_owned()])).await);
    assert_eq!(world.store.reads.load(Ordering::SeqCst), 0);
    let world = setup().script(says("so")).start().await;
    body(&world.ask(1, &results(&[id(7, 0)])).await);
    assert_eq!(world.store.reads.load(Ordering::SeqCst), 0, "its provider wants nothing back");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_is_not_sent_without_it() {
    let world = in_second_turn(called()).await;
    let gate = world.store.hold_loads();
    let caller = world.asking(2, &results(&[id(1, 1)])).await;
    gate.reached().await;
    world.store.set_down(true);
    gate.open();
    turns().await;
    world.store.set_down(false);
    assert_failed!(caller.told().await, RequestFailure::NotRun(..));
    assert_eq!(world.runs(), 1);
    body(&world.ask(2, &results(&[id(1, 1)])).await);
    assert_eq!(handed(&world).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_goes_along_unseen_is_held_for_as_if_it_filled_the_context() {
    let world = in_second_turn(called().funds(1_000)).await;
    let refused = world.ask(2, &results(&[id(1, 1)])).await;
    assert_failed!(refused, RequestFailure::InsufficientFunds { .. });
    body(&world.ask(3, &results(&["call_of_another".to_owned()])).await);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_open_is_as_if_it_were_gone() {
    let world = in_second_turn(called()).await;
    world.store.alter(|snapshot| {
        if let Some(result) = &mut snapshot.result {
            Arc::make_mut(&mut result.sealed)[0] ^= 1;
        }
    });
    body(&world.ask(2, &results(&[id(1, 1)])).await);
    assert_eq!(handed(&world), ProviderStates::new());
}

#[tokio::test(start_paused = true)]
async fn calls_of_the_newest_turns_are_looked_up_and_no_more_than_that() {
    let large = called().model(|model| model.body_bytes = 1 << 20);
    let world = in_second_turn(large).await;
    let other = |n: u128| OperationId::from_u128(n).tool_call_id([0, 0]);
    let mut ids: Vec<_> = (0..300).map(other).collect();
    ids.push(id(1, 1));
    body(&world.ask(2, &results(&ids)).await);
    assert_eq!(world.store.reads.load(Ordering::SeqCst), Options::LOOK_UPS_MAX);
    assert_eq!(handed(&world).len(), 1);
    ids.rotate_right(1);
    body(&world.ask(3, &results(&ids)).await);
    assert_eq!(handed(&world), ProviderStates::new());
}

#[tokio::test(start_paused = true)]
async fn more_than_is_kept_of_one_answer_is_as_if_it_were_gone() {
    let large = state(&"x".repeat(ProviderState::LEN_MAX));
    let all = vec![Some(large); 5];
    let kept = u32::try_from(Options::STATE_BYTES_MAX / ProviderState::LEN_MAX).unwrap();
    let setup = setup().wanting("shape").funds(100_000);
    let world = setup.script(calls(&all)).script(says("so")).start().await;
    body(&world.ask(1, HELLO).await);
    body(&world.ask(2, &results(&[id(1, kept - 1), id(1, kept)])).await);
    let handed: Vec<_> = handed(&world).into_keys().collect();
    assert_eq!(handed, [id(1, kept - 1)]);
}
