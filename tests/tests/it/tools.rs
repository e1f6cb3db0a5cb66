//! Tools and their calls: passed on as they came, answered under ids of our own.

use holdfast_tests::upstream::{completion, marked};
use holdfast_tests::{Config, Reply, Site, Upstream, request_key};
use serde_json::{Value, json};

/// Parameters whose order and spelling of numbers a provider can see.
const PARAMETERS: &str = r#"{"type":"object","properties":{"zip":{"type":"string"},"age":{"type":"number","default":1.0}}}"#;

fn asks() -> String {
    let tool = format!(
        r#"{{"type":"function","function":{{"name":"look_up","parameters":{PARAMETERS}}}}}"#
    );
    format!(
        r#"{{"model":"acme/large-1","messages":[{{"role":"user","content":"Who?"}}],"tools":[{tool}]}}"#
    )
}

fn calls() -> Value {
    let mut answer = completion("");
    answer["choices"][0]["finish_reason"] = json!("tool_calls");
    answer["choices"][0]["message"] = json!({
        "role": "assistant",
        "content": null,
        "tool_calls": [{
            "id": "call-mark-of-id",
            "type": "function",
            "function": {"name": "look_up", "arguments": "{\"zip\": \"1\"}"},
        }],
    });
    answer
}

#[test]
fn a_tool_call_comes_back_under_an_id_of_our_own_and_replays() {
    let upstream = Upstream::start(Reply::json(200, &calls()));
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let key = request_key();
    let answer = gateway.complete(&account, &key, &asks());
    assert_eq!(answer.status, 200, "{answer:?}");
    let message = &answer.json()["choices"][0]["message"];
    let call = &message["tool_calls"][0];
    assert_eq!(call["function"], json!({"name": "look_up", "arguments": "{\"zip\": \"1\"}"}));
    let id = call["id"].as_str().unwrap();
    assert!(id.starts_with("call_"), "{id}");
    assert!(marked(&answer.json().to_string()).is_empty(), "{answer:?}");
    let again = gateway.complete(&account, &key, &asks());
    assert_eq!(again.body, answer.body);

    let result = json!({"role": "tool", "tool_call_id": id, "content": "Ada"});
    let mut next: Value = serde_json::from_str(&asks()).unwrap();
    next["messages"] = json!([{"role": "user", "content": "Who?"}, message, result]);
    upstream.next(Reply::saying("It is Ada"));
    let told = gateway.complete(&account, &request_key(), &next.to_string());
    assert_eq!(told.status, 200, "{told:?}");
    let arrived = upstream.arrived();
    assert_eq!(arrived.len(), 2);
    let sent = &arrived[0].body;
    assert!(sent.contains(PARAMETERS), "{sent:?}");
    assert_eq!(arrived[1].json()["messages"][2]["tool_call_id"], id);
    site.verify();
}
