//! The official SDKs' helpers for structured answers and tools: what they give back is appended to the
//! conversation with all that they keep beside it, and the next turn works.

use holdfast_tests::upstream::{ArrivedRequest, Judge, Streaming, completion};
use holdfast_tests::{Config, Reply, Site, Upstream};
use serde_json::json;

use crate::clients::{NODE, PYTHON, Sdk, World};

/// Calls a tool until it is told a result, and answers then as it was asked to: whole or in pieces.
fn server() -> Upstream {
    let call = json!([{
        "index": 0, "id": "call_mark-of-id", "type": "function",
        "function": {"name": "look_up", "arguments": "{\"zip\":\"1\"}"},
    }]);
    let said = "{\"name\":\"Ada\"}";
    Upstream::start(Reply::Judged(Judge::new(move |arrived: &ArrivedRequest| {
        let body = arrived.json();
        let is_told = arrived.body.contains("\"role\":\"tool\"");
        if body["stream"] == true {
            let stream = Streaming::new().opening();
            let stream = match is_told {
                true => stream.text("{\"name\":").text("\"Ada\"}").finish("stop"),
                false => stream.delta(&json!({"tool_calls": call})).finish("tool_calls"),
            };
            return Reply::Stream(stream.usage().done());
        }
        let mut answer = completion(said);
        if !is_told {
            answer["choices"][0]["message"] =
                json!({"role": "assistant", "content": null, "tool_calls": call});
            answer["choices"][0]["finish_reason"] = json!("tool_calls");
        }
        Reply::json(200, &answer)
    })))
}

fn check_second_turns(sdk: &Sdk) {
    let upstream = server();
    let (site, account) = Site::funded(&Config::upstream(&upstream));
    let gateway = site.serve();
    let world = World { upstream, site, account, gateway };
    let told = world.run(sdk, "second_turn");
    let conversation = json!({"zips": ["1"], "names": ["Ada", "Ada"]});
    assert_eq!(told, json!([conversation, conversation]));
    world.check_charges(6);
    for arrived in world.upstream.arrived() {
        assert!(!arrived.body.contains("parsed"), "{}", arrived.body);
    }
}

#[test]
fn python_appends_what_its_helpers_give_back() {
    check_second_turns(&PYTHON);
}

#[test]
fn node_appends_what_its_helpers_give_back() {
    check_second_turns(&NODE);
}
