//! What callers are told of their mistakes: what was meant, what there is, and what to do.

use holdfast_tests::config::SIM;
use holdfast_tests::{Account, Request, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::{sim, sim_with};
use crate::check::error;
use crate::world::World;

const OTHER: &str = "holdfast/other-1";

/// The simulated model under two names.
fn world() -> World {
    let rates = "input = 2_000_000, output = 4_000_000";
    World::simulated(|config| config.model(OTHER, "sim", "sim-1", rates))
}

impl World {
    /// The message of a body's refusal.
    #[track_caller]
    fn refusal(
        &self,
        account: &Account,
        code: Code,
        param: Option<&'static str>,
        body: &str,
    ) -> String {
        let key = request_key();
        let told = self.gateway.complete(account, &key, body);
        let mut expected = error(code).echo(&key).replayed(false);
        if let Some(param) = param {
            expected = expected.param(param);
        }
        message(&expected.check(&told))
    }

    fn model(&self, account: &Account, model: &str) -> String {
        let body = sim("Hello").replace(SIM, model);
        self.refusal(account, Code::ModelNotFound, Some("model"), &body)
    }
}

fn message(error: &Value) -> String {
    error["message"].as_str().unwrap().to_owned()
}

#[test]
fn a_mistyped_model_is_told_with_the_one_that_was_meant() {
    let world = world();
    for mistyped in ["holdfast/sim1", "holdfast/Sim-1", "sim-1", "holdfast/sim_1"] {
        let told = world.model(&world.account, mistyped);
        assert!(told.contains("did you mean holdfast/sim-1?"), "{mistyped}: {told}");
    }
    let told = world.model(&world.account, "gpt-4o-mini");
    assert!(!told.contains("did you mean"), "{told}");
    let look = world.gateway.get(&world.account, "/v1/models/holdfast/sim1");
    let told = message(&error(Code::ModelNotFound).check(&look));
    assert!(told.contains("did you mean holdfast/sim-1?"), "{told}");
}

#[test]
fn models_of_others_are_not_given_away() {
    let world = world();
    let key = world.site.key_with("main", &["--name", "narrow", "--models", OTHER]);
    for mistyped in ["holdfast/sim1", "sim-1"] {
        let told = world.model(&key, mistyped);
        assert!(!told.contains("sim-1"), "{mistyped}: {told}");
    }
    assert!(world.model(&key, "holdfast/other1").contains("did you mean holdfast/other-1?"));
}

#[test]
fn a_mistyped_member_is_told_with_the_one_that_was_meant() {
    let world = world();
    let told = world.refusal(
        &world.account,
        Code::UnknownParameter,
        Some("temprature"),
        &sim_with("temprature", json!(1)),
    );
    assert!(told.contains("did you mean `temperature`?"), "{told}");
}

#[test]
fn what_is_not_json_is_told_by_its_place() {
    let world = world();
    let body = "{\"model\": \"holdfast/sim-1\",\n \"messages\": [],\n}";
    let told = world.refusal(&world.account, Code::InvalidJson, None, body);
    assert!(told.contains("at line 3, column 1, "), "{told}");
    assert!(told.contains("Remove the comma before it."), "{told}");
}

#[test]
fn a_currency_without_a_price_is_named() {
    let world = world();
    let made = world.site.cli(&["wallet", "create", "early", "--currency", "JPY"]);
    assert!(made.stderr.contains("no model has a price in JPY"), "{made:?}");
    let yen = world.site.account("yen", "JPY", "10.00");
    let told = world.refusal(&yen, Code::ModelNotAllowed, Some("model"), &sim("Hello"));
    assert!(told.contains("has no price in JPY"), "{told}");
}

#[test]
fn what_the_wallet_has_is_told_to_who_may_know() {
    let world = world();
    let poor = world.site.account("poor", "USD", "0.000123");
    let hidden = world.site.key_with("poor", &["--name", "hidden", "--hide-balance"]);
    let told = |account| world.refusal(account, Code::InsufficientFunds, None, &sim("Hello"));
    assert!(told(&poor).contains("the wallet has 123 available"), "{}", told(&poor));
    assert!(told(&hidden).contains("the wallet has less available"), "{}", told(&hidden));
}

#[test]
fn one_key_for_a_whole_client_is_told_why() {
    let world = world();
    let key = request_key();
    assert_eq!(world.gateway.complete(&world.account, &key, &sim("One")).status, 200);
    let told = world.gateway.complete(&world.account, &key, &sim("Two"));
    let told = error(Code::IdempotencyKeyConflict).echo(&key).replayed(false).check(&told);
    assert!(message(&told).contains("default header"), "{told}");
}

#[test]
fn other_endpoints_of_openai_are_named_as_not_served() {
    let world = world();
    for path in ["/v1/responses", "/v1/embeddings", "/v1/completions", "/responses"] {
        let told = world.gateway.send(&Request::post(path, "{}").bearer(&world.account.key));
        let told = message(&error(Code::NotFound).check(&told));
        let endpoint = path.trim_start_matches("/v1");
        assert!(told.contains(&format!("OpenAI's /v1{endpoint} is not served here")), "{told}");
        assert!(told.contains("POST /v1/chat/completions; see /docs"), "{told}");
        // A hint for one client, of the endpoint that it uses unless it is set up otherwise.
        let is_hinted = told.contains("`openai.chat(model)`");
        assert_eq!(is_hinted, endpoint == "/responses", "{told}");
    }
    let stored = world.gateway.get(&world.account, "/v1/chat/completions/chatcmpl_1");
    let stored = message(&error(Code::NotFound).check(&stored));
    assert!(stored.contains("GET /v1/operations/{idempotency-key}"), "{stored}");
    assert!(!stored.contains("AI SDK"), "{stored}");
    for path in ["/", "/v1", "/v3/anything"] {
        let told = message(&error(Code::NotFound).check(&world.gateway.get(&world.account, path)));
        assert!(told.contains("POST /v1/chat/completions; see /docs"), "{told}");
    }
    let told = world.gateway.get(&world.account, "/v1/chat/completions");
    let told = message(&error(Code::MethodNotAllowed).allow("POST").check(&told));
    assert!(told.contains("with POST"), "{told}");
}

#[test]
fn an_unknown_directive_of_the_simulated_models_is_named_before_it_binds_the_key() {
    let world = world();
    let key = request_key();
    let told = world.gateway.complete(&world.account, &key, &sim("[[sim: bogus 1s]]\nHello"));
    let expected = error(Code::UnsupportedParameter).param("messages[0].content");
    let told = message(&expected.echo(&key).replayed(false).check(&told));
    assert!(told.contains("`[[sim: bogus 1s]]`"), "{told}");
    assert_eq!(world.gateway.complete(&world.account, &key, &sim("Hello")).status, 200);
}

#[test]
fn the_simulated_models_answer_in_the_shape_that_is_asked_for() {
    let world = world();
    let said = |format: Value| -> Value {
        let key = request_key();
        let body = sim_with("response_format", format);
        let told = world.gateway.complete(&world.account, &key, &body);
        assert_eq!(told.status, 200, "{told:?}");
        let told = told.json();
        assert_eq!(told["choices"][0]["finish_reason"], "stop");
        serde_json::from_str(told["choices"][0]["message"]["content"].as_str().unwrap()).unwrap()
    };
    assert_eq!(said(json!({"type": "json_object"})), json!({"said": "You said: Hello there"}));
    let person = json!({
        "type": "object", "required": ["name", "age"], "additionalProperties": false,
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 18}},
    });
    let format = json!({"type": "json_schema", "json_schema": {
        "name": "person", "strict": true, "schema": person,
    }});
    assert_eq!(said(format), json!({"name": "Hello there", "age": 18}));
}

#[test]
fn the_simulated_models_refuse_what_is_longer_than_their_context() {
    let world = world();
    let key = request_key();
    // A token is four bytes, and the context is of 8,000 tokens.
    let long = sim(&"x".repeat(4 * 8_000 + 1));
    let told = world.gateway.complete(&world.account, &key, &long);
    let expected = error(Code::ContextLengthExceeded).param("messages").echo(&key).bound();
    let told = message(&expected.replayed(false).check(&told));
    assert!(told.starts_with("This model's maximum context length is 8000 tokens"), "{told}");
    assert_eq!(world.site.balance(&world.account), (10_000_000, 0));
    let fits = sim(&"x".repeat(4 * 8_000));
    assert_eq!(world.gateway.complete(&world.account, &request_key(), &fits).status, 200);
}

#[test]
fn a_wrong_api_key_is_told_in_the_words_of_openai() {
    let world = world();
    let request = Request::completion("hfk_wrong", &request_key(), sim("Hello"));
    let told = world.gateway.send(&request.without("Idempotency-Key"));
    let told = message(&error(Code::InvalidApiKey).check(&told));
    assert!(told.contains("Incorrect API key provided"), "{told}");
}
