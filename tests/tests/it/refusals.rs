//! Requests that are refused before anything runs: each with its whole answer, and none of them binds
//! a key or moves money.

use holdfast_tests::config::SIM;
use holdfast_tests::{Config, Gate, Reply, Request, Site, Upstream, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::{acme, sim, sim_with};
use crate::check::{check_completion, error, until};
use crate::world::World;

impl World {
    /// A body is refused with this code, and its key is as free as before.
    #[track_caller]
    fn check_body(
        &self,
        code: Code,
        param: Option<&'static str>,
        body: impl Into<Vec<u8>>,
    ) -> Value {
        let key = request_key();
        let told = Request::completion(&self.account.key, &key, body);
        let told = self.gateway.send(&told);
        let mut expected = error(code).echo(&key).replayed(false);
        if let Some(param) = param {
            expected = expected.param(param);
        }
        let told = expected.check(&told);
        self.check_unbound(&key);
        told
    }

    #[track_caller]
    fn check_unbound(&self, request_key: &str) {
        let look = self.gateway.get(&self.account, &format!("/v1/operations/{request_key}"));
        error(Code::NotFound).check(&look);
    }

    #[track_caller]
    fn check_untouched(&self) {
        assert_eq!(self.site.balance(&self.account), (10_000_000, 0));
        assert_eq!(self.site.verify()["operations"], 0);
    }
}

#[test]
fn a_request_needs_an_idempotency_key() {
    let world = World::simulated(|config| config);
    let request = world.request("x", &sim("Hello there")).without("Idempotency-Key");
    let told = error(Code::IdempotencyKeyRequired).check(&world.gateway.send(&request));
    let message = told["message"].as_str().unwrap();
    for client in ["Python: ", "Node: ", "curl: "] {
        assert!(message.contains(client), "it shows how: {message}");
    }
    world.check_untouched();
}

#[test]
fn an_idempotency_key_has_one_spelling() {
    let world = World::simulated(|config| config);
    for (bad, why) in [
        ("", "not 36 characters"),
        ("order-4711", "not 36 characters"),
        ("7f2c1a9e5b7d4c3e9a510f8e6d2b4c11", "not 36 characters"),
        ("7F2C1A9E-5B7D-4C3E-9A51-0F8E6D2B4C11", "capital letters"),
        ("\"\"7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11\"\"", "quotation marks"),
        ("\"7F2C1A9E-5B7D-4C3E-9A51-0F8E6D2B4C11\"", "capital letters"),
        ("stainless-python-retry-7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11", "`stainless-`"),
        ("7f2c1a9e-5b7d-1c3e-9a51-0f8e6d2b4c11", "version 4"),
        ("7f2c1a9e-5b7d-7c3e-9a51-0f8e6d2b4c11", "version 4"),
        ("7f2c1a9e-5b7d-4c3e-fa51-0f8e6d2b4c11", "version 4"),
        ("00000000-0000-0000-0000-000000000000", "version 4"),
        ("7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4cgg", "version 4"),
    ] {
        let told = world.gateway.send(&world.request(bad, &sim("Hello there")));
        let told = error(Code::IdempotencyKeyMalformed).check(&told);
        let message = told["message"].as_str().unwrap();
        assert!(message.contains(why), "{bad}: {message}");
        assert!(bad.len() < 8 || !message.contains(bad), "it is not repeated: {message}");
    }
    let key = request_key();
    let twice = world.request(&key, &sim("Hello there")).header("Idempotency-Key", &key);
    let told = error(Code::IdempotencyKeyMalformed).check(&world.gateway.send(&twice));
    assert!(told["message"].as_str().unwrap().contains("sent more than once"), "{told}");
    world.check_untouched();
}

#[test]
fn a_key_in_a_path_has_the_same_spelling() {
    let world = World::simulated(|config| config);
    let look = |key: &str| world.gateway.get(&world.account, &format!("/v1/operations/{key}"));
    error(Code::IdempotencyKeyMalformed).check(&look("7F2C1A9E-5B7D-4C3E-9A51-0F8E6D2B4C11"));
    let told = error(Code::IdempotencyKeyMalformed).check(&look("1"));
    assert!(told["message"].as_str().unwrap().starts_with("The path must end with"), "{told}");
    let told = error(Code::NotFound).check(&look("7f2c1a9e-5b7d-4c3e-9a51-0f8e6d2b4c11"));
    assert!(told["message"].as_str().unwrap().contains("no operation under this"), "{told}");
}

#[test]
fn a_body_is_one_strict_json_object() {
    let world = World::simulated(|config| config);
    let good = sim("Hello there");
    let nested = |levels: usize| {
        let open = "[".repeat(levels) + &"]".repeat(levels);
        good.replace("\"Hello there\"", &open).into_bytes()
    };
    for bad in [
        Vec::new(),
        b"not JSON".to_vec(),
        b"[]".to_vec(),
        b"\"text\"".to_vec(),
        format!("\u{feff}{good}").into_bytes(),
        format!("{good} {{}}").into_bytes(),
        format!("{good}x").into_bytes(),
        good.trim_end_matches('}').into(),
        good.replacen('{', "{\"model\":\"holdfast/sim-1\",", 1).into_bytes(),
        good.replacen('{', "{\"\\u006dodel\":\"holdfast/sim-1\",", 1).into_bytes(),
        good.replace("{\"content\"", "{\"content\":\"\",\"content\"").into_bytes(),
        good.replace("Hello there", "\\ud800").into_bytes(),
        good.replace("Hello there", "a\u{1}b").into_bytes(),
        good.replace("Hello there", "@")
            .bytes()
            .map(|b| if b == b'@' { 0xff } else { b })
            .collect(),
        nested(65),
        good.replacen('{', "{\"temperature\":01,", 1).into_bytes(),
        good.replacen('{', "{\"temperature\":NaN,", 1).into_bytes(),
    ] {
        let told = world.check_body(Code::InvalidJson, None, bad);
        assert!(!told["message"].as_str().unwrap().contains("Hello"), "{told}");
    }
    world.check_untouched();
}

#[test]
fn depth_is_counted_to_sixty_four() {
    let world = World::simulated(|config| config);
    let nested = |levels: usize| {
        let inner = "[".repeat(levels) + &"]".repeat(levels);
        format!("{{\"model\":\"{SIM}\",\"messages\":{inner}}}")
    };
    // The object is the first level.
    world.check_body(Code::InvalidValue, Some("messages[0]"), nested(63));
    world.check_body(Code::InvalidJson, None, nested(64));
}

#[test]
fn a_field_has_a_value_that_it_can_have() {
    let world = World::simulated(|config| config);
    for (name, value) in [
        ("temperature", json!(2.1)),
        ("temperature", json!("hot")),
        ("top_p", json!(-0.1)),
        ("n", json!(0)),
        ("n", json!(1.5)),
        ("max_completion_tokens", json!(0)),
        ("max_completion_tokens", json!(501)),
        ("max_tokens", json!(-1)),
        ("presence_penalty", json!(3)),
        ("seed", json!("7")),
        ("stop", json!(7)),
        ("user", json!(7)),
        ("metadata", json!(["x"])),
        ("stream", json!("yes")),
        ("messages", json!([])),
        ("messages", json!("Hello")),
    ] {
        world.check_body(Code::InvalidValue, Some(name), sim_with(name, value));
    }
    let deep = json!([{"role": "user", "content": [{"type": "text", "text": 7}]}]);
    let deep = sim_with("messages", deep);
    world.check_body(Code::InvalidValue, Some("messages[0].content[0].text"), deep);
    world.check_body(
        Code::InvalidValue,
        Some("model"),
        r#"{"messages":[{"role":"user","content":"Hi"}]}"#,
    );
    let both = sim_with("max_tokens", json!(7)).replacen('{', "{\"max_completion_tokens\":8,", 1);
    world.check_body(Code::InvalidValue, Some("max_tokens"), both);
    world.check_untouched();
}

#[test]
fn a_field_that_nobody_reads_is_refused() {
    let world = World::simulated(|config| config);
    for name in ["top_k", "chat_template_kwargs", "Model"] {
        world.check_body(Code::UnknownParameter, Some(name), sim_with(name, json!(true)));
    }
    let message = json!([{"role": "user", "content": "Hello", "weight": 1}]);
    let body = sim_with("messages", message);
    world.check_body(Code::UnknownParameter, Some("messages[0].weight"), body);
    world.check_untouched();
}

#[test]
fn what_is_only_for_streams_is_refused_without_one() {
    let world = World::simulated(|config| config);
    let options = sim_with("stream_options", json!({"include_usage": true}));
    world.check_body(Code::InvalidValue, Some("stream_options"), options);
    let key = request_key();
    let whole = world.gateway.complete(&world.account, &key, &sim_with("stream", json!(false)));
    check_completion(&whole, &key, false);
}

#[test]
fn whatever_is_wrong_with_an_api_key_the_answer_is_the_same() {
    let world = World::simulated(|config| config);
    let revoked = world.site.another_key(&world.account.wallet, "revoked");
    let _view = world.site.json(&["key", "revoke", &revoked.id, "--yes"]);
    let unknown = "hfk_0000000000000000000001_0000000000000000000000000000000000000000001";
    let swapped = {
        let (id, secret) = world.account.key.rsplit_once('_').unwrap();
        let turned: String = secret.chars().rev().collect();
        format!("{id}_{turned}")
    };
    let bare = world.request(&request_key(), &sim("Hello there")).without("Authorization");
    let key = &world.account.key;
    let bad = [
        bare.clone(),
        bare.clone().header("Authorization", "Bearer"),
        bare.clone().header("Authorization", "Bearer "),
        bare.clone().header("Authorization", key),
        bare.clone().header("Authorization", &format!("Basic {key}")),
        bare.clone().bearer("sk-something-else"),
        bare.clone().bearer(unknown),
        bare.clone().bearer(&swapped),
        bare.clone().bearer(&revoked.key),
        bare.clone().bearer(&format!("{key}0")),
        bare.clone().bearer(key).bearer(key),
        bare.header("api-key", key),
    ];
    let mut bodies = Vec::new();
    for request in &bad {
        let answer = world.gateway.send(request);
        let echo = answer.header("idempotency-key").unwrap().to_owned();
        error(Code::InvalidApiKey).echo(&echo).check(&answer);
        bodies.push(answer.body);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "nobody learns what was wrong");
    world.check_untouched();
}

#[test]
fn a_revoked_key_stops_within_seconds() {
    let world = World::simulated(|config| config);
    let key = request_key();
    check_completion(&world.gateway.send(&world.request(&key, &sim("Hello there"))), &key, false);
    let _view = world.site.json(&["key", "revoke", &world.account.id, "--yes"]);
    until("the revocation bites", || {
        let answer = world.gateway.get(&world.account, "/v1/wallet");
        (answer.status == 401).then_some(())
    });
    error(Code::InvalidApiKey)
        .echo(&key)
        .check(&world.gateway.send(&world.request(&key, &sim("Hello there"))));
}

#[test]
fn what_runs_under_a_revoked_key_finishes_and_is_paid() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let request = Request::completion(&account.key, &key, acme("Say hello"));
    let running = request.begin(gateway.address());
    upstream.wait_for(1);
    let _view = site.json(&["key", "revoke", &account.id, "--yes"]);
    until("the revocation bites", || {
        (gateway.get(&account, "/v1/wallet").status == 401).then_some(())
    });
    gate.open();
    check_completion(&running.answer(), &key, false);
    assert_eq!(site.balance(&account), (10_000_000 - 367, 0));
    error(Code::InvalidApiKey).echo(&key).check(&gateway.send(&request));
    site.verify();
}

#[test]
fn a_wallet_pays_for_the_whole_hold_or_nothing() {
    let world = World::simulated(|config| config);
    let poor = world.site.account("poor", "USD", "0");
    let key = request_key();
    let told = world.gateway.complete(&poor, &key, &sim("Hello there"));
    let told = error(Code::InsufficientFunds).echo(&key).replayed(false).check(&told);
    // 11 bytes, 16 for the message's frame and 64 for any at 2 micros; 500 out at 4; the request.
    let hold = (11 + 16 + 64) * 2 + 500 * 4 + 7;
    assert!(told["message"].as_str().unwrap().contains(&hold.to_string()), "{told}");
    let look = world.gateway.get(&poor, &format!("/v1/operations/{key}"));
    error(Code::NotFound).check(&look);

    let missing = "0.002188";
    let _deposit = world.site.json(&["wallet", "deposit", &poor.wallet, missing]);
    let told = world.gateway.complete(&poor, &key, &sim("Hello there"));
    error(Code::InsufficientFunds).echo(&key).replayed(false).check(&told);
    let _deposit = world.site.json(&["wallet", "deposit", &poor.wallet, "0.000001"]);
    assert_eq!(world.site.balance(&poor), (hold, 0));
    check_completion(&world.gateway.complete(&poor, &key, &sim("Hello there")), &key, false);
    world.site.verify();
}

#[test]
fn requests_at_once_cannot_hold_more_than_there_is() {
    let gate = Gate::new();
    let upstream = Upstream::start(Reply::saying("Good day").after(&gate));
    let (site, _rich) = Site::funded(&Config::upstream(&upstream));
    // 9 bytes, 16 and 64 at 2.5 micros; 500 out at 10; the request.
    let hold = 223 + 5_000 + 7;
    let poor = site.account("poor", "USD", "0.015690");
    assert_eq!(site.balance(&poor), (3 * hold, 0));
    let gateway = site.serve();
    let keys: Vec<_> = (0..10).map(|_| request_key()).collect();
    let begin = |key: &String| {
        Request::completion(&poor.key, key, acme("Say hello")).begin(gateway.address())
    };
    let waiting: Vec<_> = keys.iter().map(begin).collect();
    upstream.wait_for(3);
    assert_eq!(site.balance(&poor), (0, 3 * hold));
    until("the others are refused", || {
        let refused = gateway.said().matches("insufficient_funds").count();
        (refused >= 7).then_some(())
    });
    gate.open();
    let mut refused = 0;
    for (key, waiting) in keys.iter().zip(waiting) {
        let told = waiting.answer();
        if told.status == 200 {
            check_completion(&told, key, false);
        } else {
            error(Code::InsufficientFunds).while_held().echo(key).replayed(false).check(&told);
            refused += 1;
        }
    }
    assert_eq!(refused, 7);
    assert_eq!(upstream.runs(), 3);
    assert_eq!(site.balance(&poor), (3 * (hold - 367), 0));
    site.verify();
}

#[test]
fn a_caller_may_bound_the_hold() {
    let world = World::simulated(|config| config);
    let hold = 2_189;
    let key = request_key();
    let bounded = |micros: &str| {
        world.request(&key, &sim("Hello there")).header("Holdfast-Max-Charge-Micros", micros)
    };
    let told = world.gateway.send(&bounded("2188"));
    let told = error(Code::ChargeLimitExceeded).echo(&key).replayed(false).check(&told);
    let message = told["message"].as_str().unwrap();
    assert!(message.contains(&hold.to_string()) && message.contains("2188"), "{message}");
    world.check_unbound(&key);
    world.check_untouched();
    check_completion(&world.gateway.send(&bounded("2189")), &key, false);
    let replay = world.gateway.send(&bounded("0"));
    check_completion(&replay, &key, true);
    for bad in ["-1", "1.5", "", "ten"] {
        check_completion(&world.gateway.send(&bounded(bad)), &key, true);
        let unbound = request_key();
        let request =
            world.request(&unbound, &sim("Hello there")).header("Holdfast-Max-Charge-Micros", bad);
        let told = world.gateway.send(&request);
        let expected = error(Code::InvalidValue).echo(&unbound).replayed(false);
        expected.param("Holdfast-Max-Charge-Micros").check(&told);
        world.check_unbound(&unbound);
    }
}

#[test]
fn a_model_is_paid_for_in_its_own_currencies() {
    let world = World::simulated(|config| config);
    let europe = world.site.account("europe", "EUR", "10.00");
    let key = request_key();
    let told = world.gateway.complete(&europe, &key, &sim("Hello there"));
    error(Code::ModelNotAllowed).echo(&key).replayed(false).param("model").check(&told);
    let list = world.gateway.get(&europe, "/v1/models").json();
    assert_eq!(list["data"], json!([]));
    error(Code::ModelNotFound).check(&world.gateway.get(&europe, &format!("/v1/models/{SIM}")));
    assert_eq!(world.site.balance(&europe), (10_000_000, 0));
}

#[test]
fn only_configured_models_exist() {
    let world = World::simulated(|config| config);
    for id in ["holdfast/sim-2", "HOLDFAST/SIM-1", "holdfast/sim-1 ", "sim-1"] {
        let body = sim_with("model", json!(id));
        let key = request_key();
        let told = world.gateway.complete(&world.account, &key, &body);
        error(Code::ModelNotFound).echo(&key).replayed(false).param("model").check(&told);
        world.check_unbound(&key);
    }
    for id in ["holdfast/sim-2", "sim-1", "a/b/c"] {
        let told = world.gateway.get(&world.account, &format!("/v1/models/{id}"));
        error(Code::ModelNotFound).check(&told);
    }
    world.check_untouched();
}

#[test]
fn paths_and_methods_are_these_and_no_others() {
    let world = World::simulated(|config| config);
    for path in ["/", "/v1", "/v2/chat/completions", "/v1/chat/completions/", "/metrics", "/admin"]
    {
        error(Code::NotFound).check(&world.gateway.get(&world.account, path));
    }
    let get = world.gateway.get(&world.account, "/v1/chat/completions");
    error(Code::MethodNotAllowed).allow("POST").check(&get);
    for (path, allowed) in [
        ("/v1/wallet", "GET, HEAD"),
        ("/v1/models", "GET, HEAD"),
        ("/healthz", "GET, HEAD"),
        ("/readyz", "GET, HEAD"),
    ] {
        let post = Request::post(path, "").bearer(&world.account.key);
        error(Code::MethodNotAllowed).allow(allowed).check(&world.gateway.send(&post));
    }
    for (mistake, right) in
        [("/chat/completions", "/v1/chat/completions"), ("/v1/models/", "/v1/models")]
    {
        let told = world.gateway.get(&world.account, mistake);
        let said = error(Code::NotFound).check(&told)["message"].to_string();
        assert!(said.contains(&format!("send the request to {right}.")), "{said}");
    }
    let key = request_key();
    let delete = world.request(&key, &sim("Hello there")).method("DELETE");
    error(Code::MethodNotAllowed).allow("POST").echo(&key).check(&world.gateway.send(&delete));
    world.check_untouched();
}

#[test]
fn a_body_is_announced_as_json() {
    let world = World::simulated(|config| config);
    for kind in [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("json")]
    {
        let key = request_key();
        let request = world.request(&key, &sim("Hello there")).without("Content-Type");
        let request = match kind {
            None => request,
            Some(kind) => request.header("Content-Type", kind),
        };
        error(Code::UnsupportedMediaType).echo(&key).check(&world.gateway.send(&request));
    }
    world.check_untouched();
    for kind in ["application/json; charset=utf-8", "Application/JSON"] {
        let key = request_key();
        let request = world
            .request(&key, &sim("Hello there"))
            .without("Content-Type")
            .header("Content-Type", kind);
        check_completion(&world.gateway.send(&request), &key, false);
    }
}
