//! Members that a model ignores, one by one.

use std::collections::BTreeMap;

use holdfast_domain::model::IgnoredField;
use holdfast_domain::request::{
    CacheMode, CacheOptions, CacheRetention, Opaque, ReasoningEffort, Request, ResponseFormat,
    Verbosity,
};
use holdfast_testkit::sample;

/// A request with every member that can be ignored.
fn full() -> Request {
    let number = Some("0.5".parse().unwrap());
    let opaque = || Some(Opaque::from_json("{}".to_owned()));
    let text = || Some("x".to_owned());
    Request {
        frequency_penalty: number,
        logit_bias: BTreeMap::from([("7".to_owned(), 1)]),
        logprobs: true,
        metadata: BTreeMap::from([("a".to_owned(), "b".to_owned())]),
        moderation: opaque(),
        parallel_tool_calls: Some(false),
        prediction: opaque(),
        presence_penalty: number,
        prompt_cache_key: text(),
        prompt_cache_options: Some(CacheOptions { mode: Some(CacheMode::Explicit), ttl: None }),
        prompt_cache_retention: Some(CacheRetention::Day),
        reasoning_effort: Some(ReasoningEffort::High),
        response_format: Some(ResponseFormat::JsonObject),
        safety_identifier: text(),
        seed: Some(7),
        store: Some(true),
        temperature: number,
        top_logprobs: Some(3),
        top_p: number,
        user: text(),
        verbosity: Some(Verbosity::Low),
        ..plain()
    }
}

fn plain() -> Request {
    let call = sample::call("hello");
    Request::new(call.request.model.clone(), call.request.messages.clone())
}

#[test]
fn each_member_is_left_out_alone_and_all_of_them_leave_the_question() {
    let all = IgnoredField::ALL;
    assert!(*full().without_ignored(&all).unwrap() == plain());
    for field in all {
        let others: Vec<_> = all.iter().copied().filter(|other| *other != field).collect();
        let only = full().without_ignored(&others);
        // `top_logprobs` goes with `logprobs`, without which it is an error.
        if field != IgnoredField::TopLogprobs {
            assert!(*only.clone().unwrap() != plain(), "{}", field.label());
            let rest = only.unwrap().without_ignored(&[field]).unwrap();
            assert!(*rest == plain(), "{}", field.label());
        }
        assert!(*full().without_ignored(&[field]).unwrap() != full(), "{}", field.label());
        assert!(plain().without_ignored(&[field]).is_none(), "{}: copied", field.label());
    }
    assert!(full().without_ignored(&[]).is_none());
}

#[test]
fn a_word_that_the_model_accepts_is_left_out_with_its_member() {
    let word = Opaque::from_json("\"default\"".to_owned());
    let extras = BTreeMap::from([("reasoning_effort".to_owned(), word)]);
    let asked = Request { extras, ..plain() };
    assert!(*asked.without_ignored(&[IgnoredField::ReasoningEffort]).unwrap() == plain());
    assert!(asked.without_ignored(&[IgnoredField::User]).is_none());
}
