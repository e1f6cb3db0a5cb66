//! What goes up of a request and what does not: clients keep things beside an answer that are no part of
//! the conversation, and callers name people and caches that are no provider's to tell apart.

use holdfast_tests::{Account, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::check::{check_completion, error};
use crate::world::World;

impl World {
    /// Asks, and tells what the upstream was sent.
    fn sent(&self, account: &Account, body: &Value) -> Value {
        let (runs, key) = (self.upstream.runs(), request_key());
        let told = self.gateway.complete(account, &key, &body.to_string());
        check_completion(&told, &key, false);
        self.upstream.arrived()[runs].json()
    }
}

fn asks(messages: Value) -> Value {
    json!({"model": "acme/large-1", "messages": messages})
}

/// A second turn as official SDKs, LangChain and LiteLLM send it.
fn second_turn() -> Value {
    json!([
        {"role": "user", "content": "Who?"},
        {
            "role": "assistant", "content": "Let me see.", "refusal": null, "audio": null,
            "function_call": null, "id": "chatcmpl_1", "parsed": {"name": "Ada"},
            "annotations": [{"type": "url_citation", "url_citation": {"url": "https://a.example"}}],
            "provider_specific_fields": {"refusal": null}, "reasoning": "Hm.",
            "reasoning_content": "Hm.", "reasoning_details": [{"type": "reasoning.text"}],
            "thinking_blocks": [{"type": "thinking", "thinking": "Hm.", "signature": "x"}],
            "tool_calls": [{
                "index": 0, "id": "call_1", "type": "function", "provider_specific_fields": null,
                "function": {
                    "name": "look_up", "arguments": "{}", "parsed_arguments": {"a": 1},
                    "provider_specific_fields": {"signature": "x"},
                },
            }],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "Ada"},
    ])
}

#[test]
fn what_clients_keep_beside_an_answer_does_not_go_up() {
    let world = World::configured(|config| config);
    let sent = world.sent(&world.account, &asks(second_turn()));
    let call = json!({
        "id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": "{}"},
    });
    let turn = json!({"role": "assistant", "content": "Let me see.", "tool_calls": [call]});
    assert_eq!(sent["messages"][1], turn);
}

#[test]
fn a_model_gets_what_it_accepts_of_it_by_name() {
    let accepts = "contract = 1\naccepts = [\"reasoning_content\"]";
    let world = World::configured(|config| config.replace("contract = 1", accepts));
    let sent = world.sent(&world.account, &asks(second_turn()));
    let turn = &sent["messages"][1];
    assert_eq!(turn["reasoning_content"], "Hm.");
    let mut names: Vec<_> = turn.as_object().unwrap().keys().collect();
    names.sort_unstable();
    assert_eq!(names, ["content", "reasoning_content", "role", "tool_calls"]);
}

#[test]
fn people_and_caches_go_up_under_pseudonyms_of_their_api_key() {
    let world = World::configured(|config| config);
    let other = world.site.another_key(&world.account.wallet, "other");
    let named = |user: &str| {
        let mut body = asks(json!([{"role": "user", "content": "Hello"}]));
        for name in ["user", "safety_identifier", "prompt_cache_key"] {
            body[name] = json!(format!("{user}@customer.example"));
        }
        body
    };
    let up = |account: &Account, user: &str| {
        let sent = world.sent(account, &named(user));
        assert!(!sent.to_string().contains("customer.example"), "{sent}");
        assert_eq!(sent["user"], sent["safety_identifier"]);
        assert_eq!(sent["user"], sent["prompt_cache_key"]);
        sent["user"].clone()
    };
    let ann = up(&world.account, "ann");
    assert_eq!(up(&world.account, "ann"), ann);
    assert_ne!(up(&world.account, "bob"), ann);
    assert_ne!(up(&other, "ann"), ann);
    // The key is bound to what the caller sent.
    let key = request_key();
    let told = world.gateway.complete(&world.account, &key, &named("ann").to_string());
    check_completion(&told, &key, false);
    let again = world.gateway.complete(&world.account, &key, &named("bob").to_string());
    error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&again);
}

/// A request with a picture.
fn shows(url: &str) -> Value {
    let picture = json!({"type": "image_url", "image_url": {"url": url}});
    asks(json!([{"role": "user", "content": [{"type": "text", "text": "What?"}, picture]}]))
}

const URL: &str = "messages[0].content[1].image_url.url";

impl World {
    #[track_caller]
    fn check_refused(&self, code: Code, url: &str) {
        let (runs, key) = (self.upstream.runs(), request_key());
        let told = self.gateway.complete(&self.account, &key, &shows(url).to_string());
        error(code).param(URL).echo(&key).replayed(false).check_case(url, &told);
        assert_eq!(self.upstream.runs(), runs, "{url}");
        let look = self.gateway.get(&self.account, &format!("/v1/operations/{key}"));
        error(Code::NotFound).check(&look);
    }

    #[track_caller]
    fn check_sent(&self, url: &str) {
        let sent = self.sent(&self.account, &shows(url));
        assert_eq!(sent["messages"][0]["content"][1]["image_url"]["url"], url);
    }
}

#[test]
fn a_picture_on_the_fetching_machine_is_refused_whatever_the_provider_takes() {
    let any = World::configured(|config| config.set("providers.acme", "image_urls", "\"any\""));
    for url in [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.1/",
        "http://localhost./a",
        "http://2130706433/",
        "http://0x7f000001/",
        "http://0177.0.0.1/",
        "HTTPS://[::1]/",
        "http://[::ffff:169.254.169.254]/",
        "http://[fe80::1]/",
        "http://0/",
    ] {
        any.check_refused(Code::InvalidValue, url);
    }
    any.check_sent("http://example.org/a.png");
    any.check_sent("https://example.org/a.png");
    any.check_sent("data:image/png;base64,AAAA");
}

#[test]
fn a_provider_is_handed_the_urls_of_pictures_that_its_operator_says() {
    let usual = World::configured(|config| config);
    usual.check_refused(Code::UnsupportedParameter, "http://example.org/a.png");
    usual.check_sent("https://example.org/a.png");
    usual.check_sent("data:image/png;base64,AAAA");
    let data = World::configured(|config| config.set("providers.acme", "image_urls", "\"data\""));
    data.check_refused(Code::UnsupportedParameter, "http://example.org/a.png");
    data.check_refused(Code::UnsupportedParameter, "https://example.org/a.png");
    data.check_sent("data:image/png;base64,AAAA");
}
