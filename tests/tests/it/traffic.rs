//! Shapes of real providers and clients that gateways of this kind stumble over, through the real binary: each
//! file of `fixtures/traffic` is one shape, with what its caller must get and pay.
//!
//! Every request of a file meets every answer of it, as one JSON body and as a stream, and each key is sent
//! twice: one run, one charge, the same bytes. The files' members are those of [`Fixture`]; one that a test here
//! does not name, or a member that is not known, ends the test.

mod fixture;

use std::collections::BTreeSet;

use holdfast_tests::config::UPSTREAM_MODEL;
use holdfast_tests::events::{DONE, End};
use holdfast_tests::{
    Account, Answer, Config, Gateway, Request, Site, StreamedAnswer, Upstream, request_key,
};
use serde_json::{Value, json};

use self::fixture::{Expectation, Fixture, UpstreamAnswer};
use crate::streaming::assembled;

/// A test for each file, so that one shape that fails hides no other.
macro_rules! shapes {
    ($($name:ident)*) => {
        const SHAPES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                Fixture::read(stringify!($name)).check();
            }
        )*
    };
}

shapes! {
    usage_cached_above_prompt
    usage_audio_beside_prompt
    usage_reasoning_beside_completion
    usage_rest_of_the_total
    usage_nothing_after_a_report
    calls_under_one_index
    calls_under_one_index_with_ids
    calls_without_arguments
    calls_with_arguments_as_an_object
    calls_not_in_a_list
    calls_of_null
    calls_without_a_type
    second_message
    finish_reason_empty
    finish_reason_of_other_servers
    content_parts_with_text
    empty_lists_for_objects
    events_or_not
    broken_stream
    request_stop_of_nothing
    request_nulls
    request_content_of_nothing
    request_tools_without_type
    request_cache_control
    request_cache_options
    tool_result_with_name
    system_later
    system_only
    image_type_alias
    schema_description
    context_overflow_openai
    context_overflow_bedrock
}

#[test]
fn every_file_is_a_test() {
    let files = std::fs::read_dir(fixture::folder()).unwrap();
    let names = files.map(|file| file.unwrap().path());
    let names: BTreeSet<_> =
        names.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    assert_eq!(names, SHAPES.iter().map(|name| (*name).to_owned()).collect());
}

impl Fixture {
    fn check(&self) {
        for kind in &self.kinds {
            let upstream = Upstream::start(UpstreamAnswer::plain(kind).reply());
            let (site, account) = Site::funded(&self.config(kind, &upstream));
            let gateway = site.serve();
            let world = World { upstream, gateway, account };
            for request in &self.requests {
                for answer in self.answers(kind) {
                    world.upstream.otherwise(answer.reply());
                    for streamed in self.modes(request) {
                        let mut body = request.clone();
                        body["stream"] = json!(streamed);
                        if streamed {
                            body["stream_options"] = json!({"include_usage": true});
                        }
                        world.check(&body, &self.expected, &format!("{kind} {body} {answer:?}"));
                    }
                }
            }
            site.verify();
        }
    }

    /// A model without bounds that matter, at prices that tell every kind of token from the others.
    fn config(&self, kind: &str, upstream: &Upstream) -> Config {
        let config = Config::upstream(upstream)
            .set("providers.acme", "kind", &format!("\"{kind}\""))
            .replace("input = 2_500_000, cached_input = 250_000, output = 10_000_000", PRICES)
            .replace("micros_each = { request = 7 }", "")
            .replace("context_tokens = 8_000", "context_tokens = 1_000_000")
            .replace(
                "max_output_tokens = 500",
                &format!("max_output_tokens = 50_000\n{}", self.model),
            );
        let config = match kind {
            "bedrock" => config.set("providers.acme", "region", "\"eu-central-1\""),
            "anthropic" => config.set("providers.acme", "sampling", "true"),
            _ => config,
        };
        self.provider
            .iter()
            .fold(config, |config, (key, value)| config.set("providers.acme", key, value))
    }
}

const PRICES: &str =
    "input = 1_000_000, cached_input = 100_000, cache_write = 1_250_000, output = 10_000_000";

/// A gateway, its caller, and the provider behind it.
struct World {
    upstream: Upstream,
    gateway: Gateway,
    account: Account,
}

/// What a caller got, in whichever way.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    status: u16,
    /// The first choice with its usage, or the error.
    answer: Result<Value, Value>,
    /// True for a stream that ended with its last event.
    is_done: bool,
}

impl World {
    fn check(&self, body: &Value, expected: &Expectation, case: &str) {
        let before = self.upstream.runs();
        let key = request_key();
        let request = Request::completion(&self.account.key, &key, body.to_string());
        let first = outcome(request.begin(self.gateway.address()).either());
        let again = outcome(request.begin(self.gateway.address()).either());
        assert_eq!(first.answer, again.answer, "a retry gets the same: {case}");
        let arrived = self.upstream.arrived();
        assert_eq!(arrived.len() - before, expected.runs, "{case}: {first:?}");
        expected.check(&first, case);
        if let Some(sent) = arrived.get(before) {
            assert!(sent.body.contains(UPSTREAM_MODEL) || sent.head.contains(UPSTREAM_MODEL));
            let sent = sent.json().to_string();
            for text in &expected.sent {
                assert!(sent.contains(text), "{text} is not sent: {case}: {sent}");
            }
            for text in &expected.not_sent {
                assert!(!sent.contains(text), "{text} is sent: {case}: {sent}");
            }
        }
    }
}

impl Expectation {
    #[track_caller]
    fn check(&self, outcome: &Outcome, case: &str) {
        let Some(code) = &self.error else {
            let answer = outcome.answer.as_ref();
            let answer = answer.unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!(outcome.status, 200, "{case}");
            assert!(outcome.is_done, "{case}: {outcome:?}");
            let message = &answer["choices"][0]["message"];
            if let Some(content) = &self.content {
                assert_eq!(message["content"].as_str().unwrap_or(""), content, "{case}");
            }
            assert_eq!(calls(message), self.calls, "{case}");
            assert_eq!(answer["choices"][0]["finish_reason"], self.finish, "{case}");
            let usage = &answer["usage"];
            let [prompt, completion, charge] = self.usage;
            assert_eq!(usage["prompt_tokens"], prompt, "{case}: {usage}");
            assert_eq!(usage["completion_tokens"], completion, "{case}: {usage}");
            assert_eq!(usage["customer_charge_micros"], charge, "{case}: {usage}");
            return;
        };
        let error = outcome.answer.as_ref().unwrap_err();
        assert_eq!(error["code"], *code, "{case}: {error}");
        assert_eq!(error["charged_micros"], 0, "{case}: {error}");
        let is_bound = error.get("operation_id").is_some();
        assert_eq!(
            is_bound,
            self.runs > 0,
            "a key is bound before its request runs: {case}: {error}"
        );
    }
}

/// Names and arguments of a message's calls. Arguments are JSON, or the test ends.
fn calls(message: &Value) -> Vec<(String, Value)> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let call = |call: &Value| {
        let function = &call["function"];
        let arguments = function["arguments"].as_str().unwrap();
        let arguments = serde_json::from_str(arguments).unwrap_or_else(|_| panic!("{call}"));
        (function["name"].as_str().unwrap().to_owned(), arguments)
    };
    calls.map(call).collect()
}

fn outcome(answer: Result<Answer, StreamedAnswer>) -> Outcome {
    let (status, body, is_done) = match answer {
        Ok(whole) => (whole.status, whole.json(), true),
        Err(streamed) => {
            let chunks = streamed.chunks();
            let error = chunks.iter().find(|chunk| chunk.get("error").is_some());
            let body = match error {
                Some(error) => error.clone(),
                None => fixture::with_calls_joined(&chunks, assembled(&chunks)),
            };
            let is_done = streamed.events.last().is_some_and(|event| event == DONE);
            (streamed.head.status, body, is_done && streamed.end == End::Whole)
        }
    };
    let answer = match body.get("error") {
        Some(error) => Err(error.clone()),
        None => Ok(body),
    };
    Outcome { status, answer, is_done }
}
