//! Answers of every shape that is one: what a model says arrives as it said it, and replays.

use holdfast_tests::upstream::completion;
use holdfast_tests::{Reply, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::acme;
use crate::check::{check_completion, content, error};
use crate::world::World;

/// What the upstream answers with, varied.
fn varied(vary: impl Fn(&mut Value)) -> Reply {
    let mut answer = completion("Good day");
    vary(&mut answer);
    Reply::json(200, &answer)
}

#[test]
fn every_character_arrives_as_it_was_said() {
    let world = World::new();
    let text = "\0\u{1}\t\r\n\"\\/\u{7f}\u{a0}e\u{301}\u{2028}\u{feff}\u{1f600}\u{10ffff}</script>";
    world.upstream.next(Reply::saying(text));
    let key = request_key();
    let first = world.gateway.complete(&world.account, &key, &acme("Say hello"));
    assert_eq!(content(&check_completion(&first, &key, false)), text);
    let again = world.gateway.complete(&world.account, &key, &acme("Say hello"));
    assert_eq!(again.body, first.body);
}

#[test]
fn every_character_of_a_prompt_reaches_the_upstream() {
    let world = World::new();
    let text = "\0\u{1}\t\r\n\"\\/\u{7f}\u{a0}e\u{301}\u{2028}\u{feff}\u{1f600}\u{10ffff}</script>";
    let key = request_key();
    check_completion(&world.gateway.complete(&world.account, &key, &acme(text)), &key, false);
    assert_eq!(world.upstream.arrived()[0].json()["messages"][0]["content"], text);
}

#[test]
fn a_long_answer_is_kept_whole_over_a_restart() {
    let World { upstream, site, account, gateway } = World::new();
    let text = "0123456789abcdef".repeat(200_000);
    upstream.next(Reply::saying(&text));
    let key = request_key();
    let first = gateway.complete(&account, &key, &acme("Say much"));
    assert_eq!(content(&check_completion(&first, &key, false)), text);
    gateway.stop();
    let gateway = site.serve();
    let again = gateway.complete(&account, &key, &acme("Say much"));
    check_completion(&again, &key, true);
    assert!(again.body == first.body);
    assert_eq!(upstream.runs(), 1);
}

#[test]
fn an_answer_without_end_is_no_answer() {
    let world = World::new();
    world.upstream.next(Reply::saying(&"x".repeat(17 * 1024 * 1024)));
    let key = request_key();
    let told = world.gateway.complete(&world.account, &key, &acme("Say much"));
    error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&told);
    assert_eq!(world.site.balance(&world.account), (10_000_000, 0));
}

#[test]
fn choices_come_in_their_order() {
    let world = World::new();
    world.upstream.next(varied(|answer| {
        let choice = |index: u32, text: &str, finish: &str| {
            json!({
                "index": index, "finish_reason": finish,
                "message": {"role": "assistant", "content": text},
            })
        };
        let [first, second] = [choice(0, "one", "stop"), choice(1, "two", "length")];
        answer["choices"] = json!([second, first]);
    }));
    let key = request_key();
    let body = acme("Say hello").replacen('{', "{\"n\":2,", 1);
    let told = world.gateway.complete(&world.account, &key, &body);
    let completion = check_completion(&told, &key, false);
    let said = |at: usize| {
        let choice = &completion["choices"][at];
        (
            choice["index"].clone(),
            choice["message"]["content"].clone(),
            choice["finish_reason"].clone(),
        )
    };
    assert_eq!(said(0), (json!(0), json!("one"), json!("stop")));
    assert_eq!(said(1), (json!(1), json!("two"), json!("length")));
    assert_eq!(completion["choices"].as_array().unwrap().len(), 2);
    assert_eq!(world.upstream.arrived()[0].json()["n"], 2);
}

#[test]
fn a_refusal_by_the_model_is_an_answer_and_is_paid() {
    let world = World::new();
    world.upstream.next(varied(|answer| {
        let message =
            json!({"role": "assistant", "content": null, "refusal": "I would rather not"});
        answer["choices"][0]["message"] = message;
    }));
    let key = request_key();
    let told = world.gateway.complete(&world.account, &key, &acme("Say hello"));
    let message = &check_completion(&told, &key, false)["choices"][0]["message"];
    assert_eq!(message["content"], json!(null));
    assert_eq!(message["refusal"], "I would rather not");
    assert_eq!(world.site.balance(&world.account), (10_000_000 - 367, 0));
}

#[test]
fn what_openai_requires_and_nobody_needs_may_be_missing() {
    let world = World::new();
    let bare = json!({
        "choices": [{"index": 0, "message": {"content": "Good day"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20},
    });
    world.upstream.next(Reply::json(200, &bare));
    let key = request_key();
    let told = world.gateway.complete(&world.account, &key, &acme("Say hello"));
    let completion = check_completion(&told, &key, false);
    assert_eq!(content(&completion), "Good day");
    assert_eq!(completion["usage"]["customer_charge_micros"], 250 + 200 + 7);
}
