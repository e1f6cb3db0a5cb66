//! What agents send in their second step to models behind APIs that OpenAI's dialect is translated to: taken,
//! held for and paid, or refused before the key is bound.

use holdfast_tests::{Config, Reply, Request, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::check::{check_completion, error};
use crate::kinds::{Kind, anthropic, bedrock, config, gemini, plain};
use crate::world::World;

fn world(kind: &Kind, edit: impl Fn(Config) -> Config) -> World {
    World::with(Reply::json(200, &kind.answer), |upstream| edit(config(kind, upstream)))
}

impl World {
    /// Asks, and returns what the provider was sent.
    fn sent_once(&self, body: &Value) -> String {
        let (runs, key) = (self.upstream.runs(), request_key());
        let answer = self.gateway.complete(&self.account, &key, &body.to_string());
        check_completion(&answer, &key, false);
        let again = self.gateway.complete(&self.account, &key, &body.to_string());
        assert_eq!(again.body, answer.body);
        assert_eq!(self.upstream.runs(), runs + 1);
        self.upstream.arrived()[runs].json().to_string()
    }

    fn refused(&self, body: &Value, param: &'static str) {
        let (runs, key) = (self.upstream.runs(), request_key());
        let answer = self.gateway.complete(&self.account, &key, &body.to_string());
        error(Code::UnsupportedParameter).param(param).echo(&key).replayed(false).check(&answer);
        assert_eq!(self.upstream.runs(), runs);
        // The key is free.
        let look = self.gateway.get(&self.account, &format!("/v1/operations/{key}"));
        error(Code::NotFound).check(&look);
    }

    /// Prompt tokens that a hold of this body is made for.
    fn held_tokens(&self, body: &Value) -> i64 {
        let request = Request::post("/v1/quotes", body.to_string()).bearer(&self.account.key);
        let quote = self.gateway.send(&request.header("Content-Type", "application/json"));
        quote.json()["lines"][0]["units"].as_i64().unwrap()
    }
}

fn kinds() -> [Kind; 3] {
    [anthropic(), gemini(), bedrock()]
}

fn asks(more: Value) -> Value {
    let mut body = json!({"model": "acme/large-1", "max_tokens": 100});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// A conversation with instructions in its middle, a named result and a picture under a usual wrong name.
fn second_step() -> Value {
    asks(json!({
        "messages": [
            {"role": "system", "content": ""},
            {"role": "user", "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/jpg;base64,/9j/4AAQ"}},
            ]},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"}},
            ]},
            {"role": "system", "content": "Answer in French."},
            {"role": "tool", "tool_call_id": "call_1", "name": "look_up", "content": "sunny"},
        ],
        "tools": [{"type": "function", "function": {"name": "look_up"}}],
        "prompt_cache_options": {"mode": "implicit"},
        "response_format": {"type": "json_schema", "json_schema": {
            "name": "city", "description": "A city.", "schema": {"type": "object"},
        }},
    }))
}

#[test]
fn a_second_step_runs_on_every_kind() {
    for kind in kinds() {
        let world = world(&kind, |config| config);
        let sent = world.sent_once(&second_step());
        for said in
            ["<system-reminder>\\nAnswer in French.\\n</system-reminder>", "sunny", "A city."]
        {
            assert!(sent.contains(said), "{}: {said}: {sent}", kind.name);
        }
        for left_out in ["image/jpg", "prompt_cache_options", "\"text\":\"\"", "\"system\""] {
            assert!(!sent.contains(left_out), "{}: {left_out}: {sent}", kind.name);
        }
        let (result, reminder) = (sent.find("sunny"), sent.find("<system-reminder>"));
        assert!(result < reminder, "{}: {sent}", kind.name);
        world.site.verify();
    }
}

#[test]
fn what_contradicts_or_says_nothing_is_refused_before_the_key_is_bound() {
    for kind in kinds() {
        let world = world(&kind, |config| config);
        let mut misnamed = second_step();
        misnamed["messages"][4]["name"] = json!("another");
        world.refused(&misnamed, "messages[4].name");
        for alone in ["Say hello.", ""] {
            world.refused(
                &asks(json!({"messages": [{"role": "system", "content": alone}]})),
                "messages",
            );
        }
    }
}

#[test]
fn an_operator_may_refuse_instructions_after_the_first_turn() {
    for kind in kinds() {
        let world =
            world(&kind, |config| config.set("providers.acme", "late_system", "\"refuse\""));
        world.refused(&second_step(), "messages[3].role");
    }
}

#[test]
fn a_hold_counts_the_marks_of_folded_instructions_and_of_no_others() {
    let said = |role: &str| {
        asks(json!({"messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "yo"},
            {"role": role, "content": "Answer in French."},
        ]}))
    };
    for kind in kinds() {
        let world = world(&kind, |config| config);
        let tokens = |role| world.held_tokens(&said(role));
        // 37 bytes of marks, at a token each.
        for role in ["system", "developer"] {
            assert_eq!(tokens(role) - tokens("user"), 37, "{}", kind.name);
        }
    }
    let world = world(&plain(), |config| config);
    assert_eq!(world.held_tokens(&said("user")), world.held_tokens(&said("system")));
}

#[test]
fn ignored_fields_reach_no_provider_and_stay_part_of_the_request() {
    let ignores = "contract = 1\nignores = [\"user\", \"reasoning_effort\", \"metadata\"]";
    let named = |user: &str| {
        asks(json!({
            "messages": [{"role": "user", "content": "hi"}],
            "user": user, "reasoning_effort": "high", "metadata": {"team": "blue"},
        }))
    };
    for kind in kinds().into_iter().chain([plain()]) {
        let world = world(&kind, |config| config.replace("contract = 1", ignores));
        let sent = world.sent_once(&named("ada"));
        let ours = ["user_id", "\"user\":", "effort", "thinking", "blue", "etadata"];
        assert!(!ours.iter().any(|member| sent.contains(member)), "{}: {sent}", kind.name);
        let key = request_key();
        let first = world.gateway.complete(&world.account, &key, &named("ada").to_string());
        check_completion(&first, &key, false);
        let other = world.gateway.complete(&world.account, &key, &named("eve").to_string());
        error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&other);
        let shown = world.site.json(&["check-config"]);
        let fields = json!([{
            "model": "acme/large-1", "accepts": [], "ignores": ["user", "reasoning_effort", "metadata"],
        }]);
        assert_eq!(shown["fields"], fields, "{}", kind.name);
        let said = world.site.cli(&["check-config"]).ok();
        assert!(said.contains("acme/large-1: user, reasoning_effort, metadata"), "{said}");
        world.site.verify();
    }
}
