//! Lines of the log, in both formats: what an operator finds in one about a request that was refused, or whose
//! answer could not be read.

use holdfast_tests::{Answer, Reply, Request, request_key};
use holdfast_wire::error::Code;
use serde_json::{Value, json};

use crate::bodies::acme;
use crate::check::error;
use crate::world::World;

const UNREAD: &str = "the answer has content of an unknown kind, at choices[].message.content";
const COMPLAINT: &str = "an answer of a provider could not be read";

impl World {
    fn logging(format: &str) -> Self {
        Self::configured(|config| config.set("log", "format", &format!("\"{format}\"")))
    }

    fn ask(&self, key: &str, body: Value) -> Answer {
        self.gateway.complete(&self.account, key, &body.to_string())
    }

    /// Has a provider's answer be what cannot be read; the key that was used for that.
    fn unread(&self) -> String {
        let message = json!({ "content": 7, "mark": "Good day" });
        let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
        self.upstream.next(Reply::json(200, &json!({ "choices": [choice] })));
        let key = request_key();
        let answer = self.ask(&key, body());
        error(Code::OutcomeUnknown).echo(&key).replayed(false).bound().check(&answer);
        key
    }

    /// What the process has logged and printed until its end.
    fn log(self) -> String {
        self.gateway.stop();
        self.site.logs()
    }
}

/// The lines of a log in JSON, each of which is an object.
fn objects(log: &str) -> Vec<Value> {
    let lines = log.lines().filter(|line| !line.starts_with("holdfast"));
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|bad| panic!("{bad}: {line}")))
        .collect()
}

fn body() -> Value {
    serde_json::from_str(&acme("Say hello")).unwrap()
}

fn with(name: &str, value: Value) -> Value {
    let mut body = body();
    body[name] = value;
    body
}

#[test]
fn a_refused_request_has_its_model_its_field_and_its_caller_in_its_line() {
    let world = World::logging("json");
    for (body, status) in [
        (with("temperature", json!(9)), 400),
        (with("model", json!("acme/large-9")), 404),
        (with("messages", json!([{ "role": "user", "content": 7 }])), 400),
    ] {
        assert_eq!(world.ask(&request_key(), body).status, status);
    }
    let quote = with("n", json!(0)).to_string();
    let quote = Request::post("/v1/quotes", quote).bearer(&world.account.key);
    let quote = quote.header("Content-Type", "application/json");
    assert_eq!(world.gateway.send(&quote).status, 400);
    let site = &world.site;
    let key = site.json(&["key", "show", &world.account.id]);
    let wallet = site.json(&["wallet", "show", &world.account.wallet]);
    let lines = objects(&world.log());
    let requests: Vec<_> = lines.iter().filter(|line| line["message"] == "request").collect();
    assert_eq!(requests.len(), 4, "{requests:?}");
    for (line, (model, param, code)) in requests.iter().zip([
        ("acme/large-1", "temperature", "invalid_value"),
        ("acme/large-9", "model", "model_not_found"),
        ("acme/large-1", "messages[0].content", "invalid_value"),
        ("acme/large-1", "n", "invalid_value"),
    ]) {
        assert_eq!(line["level"], "INFO", "{line}");
        assert_eq!(
            (&line["model"], &line["error.param"]),
            (&json!(model), &json!(param)),
            "{line}"
        );
        assert_eq!(line["error.code"], code, "{line}");
        assert_eq!(line["api_key.id"], key["id"], "{line}");
        assert_eq!((&line["api_key.name"], &line["wallet.name"]), (&key["name"], &wallet["name"]));
    }
}

#[test]
fn an_answer_that_cannot_be_read_is_told_with_its_field_in_the_log_and_the_ledger() {
    let world = World::logging("json");
    let keys = [world.unread(), world.unread(), world.unread()];
    for key in &keys {
        let show = ["operation", "show", "--api-key", &world.account.id, key];
        assert_eq!(world.site.json(&show)["attempts"][0]["reason"], UNREAD);
        assert!(world.site.cli(&show).ok().contains(UNREAD));
    }
    let log = world.log();
    assert!(!log.contains("mark\\\""), "nothing of the answer: {log}");
    let lines = objects(&log);
    let of = |message: &str| -> Vec<&Value> {
        lines.iter().filter(|line| line["message"] == message).collect()
    };
    let requests = of("request");
    assert_eq!(requests.len(), keys.len());
    for line in requests {
        assert_eq!(line["provider.reason"], UNREAD, "{line}");
        assert_eq!(line["provider.class"], "unknown_unreadable", "{line}");
        assert_eq!((&line["model"], &line["http.status"]), (&json!("acme/large-1"), &json!(502)));
    }
    let complaints = of(COMPLAINT);
    assert_eq!(complaints.len(), 1, "once in a while, not with every request: {complaints:?}");
    let complaint = complaints[0];
    assert_eq!((&complaint["reason"], &complaint["level"]), (&json!(UNREAD), &json!("WARN")));
    assert_eq!(
        (&complaint["model"], &complaint["provider.name"]),
        (&json!("acme/large-1"), &json!("acme"))
    );
}

#[test]
fn a_request_that_a_provider_refuses_is_told_with_its_field_by_our_own_name() {
    let world = World::logging("json");
    let refusing = |param: &str| {
        let error = json!({"message": "canary", "type": "invalid_request_error", "param": param});
        world.upstream.next(Reply::json(400, &json!({ "error": error })));
        let key = request_key();
        assert_eq!(world.ask(&key, body()).status, 422);
        let show = ["operation", "show", "--api-key", &world.account.id, &key];
        world.site.json(&show)["attempts"][0]["reason"].clone()
    };
    let told = json!("the provider turns the request away for its field messages");
    assert_eq!(refusing("messages[0].content"), told);
    assert_eq!(refusing("canary"), Value::Null);
    let log = world.log();
    assert!(!log.contains("canary"), "{log}");
    let lines = objects(&log);
    let reasons = lines.iter().filter(|line| line["message"] == "request");
    let reasons = reasons.map(|line| (&line["provider.class"], &line["provider.reason"]));
    let refused = json!("refused");
    assert_eq!(reasons.collect::<Vec<_>>(), [(&refused, &told), (&refused, &Value::Null)]);
}

#[test]
fn the_manual_shows_a_line_as_it_is() {
    const MANUAL: &str = include_str!("../../../docs/reference/logs.md");
    let shown = MANUAL.split_once("```json\n").unwrap().1.split_once("\n```").unwrap().0;
    let world = World::logging("json");
    assert_eq!(world.ask(&request_key(), body()).status, 200);
    let lines = objects(&world.log());
    let line = lines.iter().find(|line| line["message"] == "request").unwrap();
    let names = |line: &Value| line.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&serde_json::from_str(shown).unwrap()), names(line), "{line}");
}

#[test]
fn text_for_people_is_a_line_an_event_and_spells_what_json_does() {
    let world = World::logging("pretty");
    assert_eq!(world.ask(&request_key(), with("temperature", json!(9))).status, 400);
    drop(world.unread());
    let said = world.log();
    assert!(said.contains(COMPLAINT), "{said}");
    let begins = |line: &str| {
        line.len() > 33
            && line.as_bytes()[10] == b'T'
            && line.as_bytes()[26] == b'Z'
            && ["ERROR ", " WARN ", " INFO ", "DEBUG ", "TRACE "].contains(&&line[28..34])
    };
    for line in said.lines().filter(|line| !line.starts_with("holdfast")) {
        assert!(begins(line), "{line}");
    }
    let line = said.lines().find(|line| line.contains("error.param")).unwrap();
    for part in [
        " holdfast_http::log: request request.id=",
        " http.status=400 ",
        " error.code=\"invalid_value\" error.param=\"temperature\" api_key.id=",
        " model=acme/large-1 ",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    let unread = format!(" provider.reason=\"{UNREAD}\" ");
    assert!(said.lines().any(|line| line.contains("http.status=502") && line.contains(&unread)));
}
