//! What a model says with a call of a tool and wants back with its result, through the whole gateway: it
//! arrives at the provider again, and nobody else ever sees it.

use std::fs;

use holdfast_tests::postgres::Database;
use holdfast_tests::upstream::{Streaming, marked};
use holdfast_tests::{
    Account, Config, Gateway, Reply, Request, Site, StreamedAnswer, Upstream, request_key,
};
use serde_json::{Value, json};

use crate::check::{check_completion, content};
use crate::streaming::check_stream;

/// What the model wants back. It is full of a mark that may be seen nowhere.
const SIGNATURE: &str = "mark-of-extra-signed";

struct Kind {
    name: &'static str,
    more: Option<(&'static str, &'static str)>,
    /// A call of a tool; in pieces where those are text.
    calls: (Value, Option<Streaming>),
    /// What comes of it.
    concludes: (Value, Option<Streaming>),
    /// Where the earlier turn of the model is in what is sent, and what is there: `<id>` is the call's.
    place: &'static str,
    sent: Value,
}

fn events(all: &[Value]) -> Streaming {
    all.iter().fold(Streaming::new(), |stream, event| stream.event(event))
}

fn anthropic() -> Kind {
    let thought = json!({"type": "thinking", "thinking": "Hm.", "signature": SIGNATURE});
    let redacted = json!({"type": "redacted_thinking", "data": SIGNATURE});
    let text = |text| json!({"type": "text", "text": text});
    let call = |id| json!({"type": "tool_use", "id": id, "name": "look_up", "input": {"zip": "1"}});
    let answer = |content: Value, reason| {
        json!({
            "id": "msg_mark-of-id", "type": "message", "role": "assistant", "model": "mark-of-model",
            "content": content, "stop_reason": reason,
            "usage": {"input_tokens": 60, "output_tokens": 20},
        })
    };
    let start = |at, block: &Value| json!({"type": "content_block_start", "index": at, "content_block": block});
    let delta =
        |at, delta: Value| json!({"type": "content_block_delta", "index": at, "delta": delta});
    let stop = |at| json!({"type": "content_block_stop", "index": at});
    let end = |reason| {
        let delta = json!({"stop_reason": reason});
        [
            json!({"type": "message_delta", "delta": delta, "usage": {"input_tokens": 60, "output_tokens": 20}}),
            json!({"type": "message_stop"}),
        ]
    };
    let called = [
        start(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, json!({"type": "thinking_delta", "thinking": "Hm."})),
        delta(0, json!({"type": "signature_delta", "signature": SIGNATURE})),
        stop(0),
        start(1, &redacted),
        stop(1),
        start(2, &text("")),
        delta(2, json!({"type": "text_delta", "text": "Let me see."})),
        stop(2),
        start(3, &json!({"type": "tool_use", "id": "mark-of-id", "name": "look_up", "input": {}})),
        delta(3, json!({"type": "input_json_delta", "partial_json": "{\"zip\": \"1\"}"})),
        stop(3),
    ];
    let said =
        [start(0, &text("")), delta(0, json!({"type": "text_delta", "text": "Ada"})), stop(0)];
    let seen = text("Let me see.");
    Kind {
        name: "anthropic",
        more: None,
        calls: (
            answer(json!([thought, redacted, seen, call("mark-of-id")]), "tool_use"),
            Some(events(&[&called[..], &end("tool_use")].concat())),
        ),
        concludes: (
            answer(json!([text("Ada")]), "end_turn"),
            Some(events(&[&said[..], &end("end_turn")].concat())),
        ),
        place: "/messages/1/content",
        sent: json!([thought, redacted, seen, call("<id>")]),
    }
}

fn gemini() -> Kind {
    let answer = |parts: Value| {
        json!({
            "candidates": [{"content": {"parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 60, "candidatesTokenCount": 20, "totalTokenCount": 80},
            "modelVersion": "mark-of-model", "responseId": "mark-of-id",
        })
    };
    let piece = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]});
    let thought = json!({"text": "Hm.", "thought": true});
    let text = |text| json!({"text": text});
    let call = |id: Option<&str>| {
        let mut call = json!({"name": "look_up", "args": {"zip": "1"}});
        if let Some(id) = id {
            call["id"] = json!(id);
        }
        json!({"functionCall": call, "thoughtSignature": SIGNATURE})
    };
    Kind {
        name: "gemini",
        more: None,
        calls: (
            answer(json!([thought, text("Let me see."), call(None)])),
            Some(events(&[
                piece(json!([thought])),
                piece(json!([text("Let me see.")])),
                piece(json!([call(None)])),
                answer(json!([text("")])),
            ])),
        ),
        concludes: (
            answer(json!([text("Ada")])),
            Some(events(&[piece(json!([text("A")])), answer(json!([text("da")]))])),
        ),
        place: "/contents/1/parts",
        sent: json!([text("Let me see."), call(Some("<id>"))]),
    }
}

fn bedrock() -> Kind {
    let thought =
        json!({"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": SIGNATURE}}});
    let text = |text| json!({"text": text});
    let call = |id| json!({"toolUse": {"toolUseId": id, "name": "look_up", "input": {"zip": "1"}}});
    let answer = |content: Value, reason| {
        json!({
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": reason,
            "usage": {"inputTokens": 60, "outputTokens": 20},
        })
    };
    let seen = text("Let me see.");
    Kind {
        name: "bedrock",
        more: Some(("region", "\"eu-central-1\"")),
        calls: (answer(json!([thought, seen, call("mark-of-id")]), "tool_use"), None),
        concludes: (answer(json!([text("Ada")]), "end_turn"), None),
        place: "/messages/1/content",
        sent: json!([thought, seen, call("<id>")]),
    }
}

impl Kind {
    fn config(&self, upstream: &Upstream) -> Config {
        let name = format!("\"{}\"", self.name);
        let accepting = "contract = 1\naccepts = [\"reasoning_content\"]";
        let config = Config::upstream(upstream)
            .set("providers.acme", "kind", &name)
            .replace("contract = 1", accepting);
        self.more
            .into_iter()
            .fold(config, |config, (key, value)| config.set("providers.acme", key, value))
    }

    /// What is sent as the model's earlier turn, with everything that it wants back.
    fn sent(&self, id: &str) -> Value {
        serde_json::from_str(&self.sent.to_string().replace("<id>", id)).unwrap()
    }

    /// Whether and how it may be asked: whole, and as a stream.
    fn deliveries(&self) -> Vec<bool> {
        if self.calls.1.is_some() { vec![false, true] } else { vec![false] }
    }
}

fn reply((whole, streamed): &(Value, Option<Streaming>)) -> Reply {
    let whole = Reply::json(200, whole);
    match streamed {
        Some(streamed) => Reply::as_wanted(Reply::Stream(streamed.clone()), whole),
        None => whole,
    }
}

/// A request of these turns.
fn asks(turns: &[Value]) -> Value {
    let zip = json!({"type": "object", "properties": {"zip": {"type": "string"}}});
    let tool = json!({"type": "function", "function": {"name": "look_up", "parameters": zip}});
    json!({"model": "acme/large-1", "messages": turns, "tools": [tool]})
}

fn user() -> Value {
    json!({"role": "user", "content": "Who?"})
}

/// The next turn, with the model's message as it came.
fn answers(message: &Value) -> Value {
    let id = &message["tool_calls"][0]["id"];
    let result = json!({"role": "tool", "tool_call_id": id, "content": "Ada"});
    asks(&[user(), message.clone(), result])
}

#[track_caller]
fn check_unseen(text: &str) {
    assert_eq!(marked(text), Vec::<&str>::new(), "{text}");
}

/// Asks, by a stream or not, and tells the completion as whoever asks again gets it.
fn ask(gateway: &Gateway, account: &Account, mut body: Value, streams: bool) -> Value {
    let key = request_key();
    if streams {
        body["stream"] = json!(true);
        let request = Request::completion(&account.key, &key, body.to_string());
        let streamed: StreamedAnswer = request.begin(gateway.address()).events().rest();
        check_stream(&streamed, &key, false);
        check_unseen(&streamed.events.concat());
    } else {
        let told = gateway.complete(account, &key, &body.to_string());
        check_completion(&told, &key, false);
        check_unseen(&told.everything());
    }
    body["stream"] = json!(false);
    let again = gateway.complete(account, &key, &body.to_string());
    check_unseen(&again.everything());
    check_unseen(&gateway.get(account, &format!("/v1/operations/{key}")).everything());
    check_completion(&again, &key, true)
}

/// Nothing of it is on the disk in clear.
fn check_sealed(site: &Site) {
    for file in fs::read_dir(site.path("holdfast-data")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let length = SIGNATURE.len();
        assert!(!bytes.windows(length).any(|window| window == SIGNATURE.as_bytes()));
    }
}

#[test]
fn what_a_model_wants_back_goes_back_after_a_restart_however_it_was_asked() {
    for kind in [anthropic(), gemini(), bedrock()] {
        let upstream = Upstream::start(reply(&kind.concludes));
        let (site, account) = Site::funded(&kind.config(&upstream));
        for streams in kind.deliveries() {
            let gateway = site.serve();
            upstream.next(reply(&kind.calls));
            let called = ask(&gateway, &account, asks(&[user()]), streams);
            let message = called["choices"][0]["message"].clone();
            assert_eq!(message["reasoning_content"], "Hm.", "{}", kind.name);
            assert_eq!(message["content"], "Let me see.", "{}", kind.name);
            let id = message["tool_calls"][0]["id"].as_str().unwrap();
            check_sealed(&site);
            gateway.stop();
            let gateway = site.serve();
            for streams in kind.deliveries() {
                let runs = upstream.runs();
                let told = ask(&gateway, &account, answers(&message), streams);
                assert_eq!(content(&told), "Ada", "{}", kind.name);
                let sent = upstream.arrived()[runs].json();
                assert_eq!(sent.pointer(kind.place), Some(&kind.sent(id)), "{}", kind.name);
            }
            gateway.stop();
        }
        assert!(!site.logs().contains(SIGNATURE), "{}", kind.name);
        site.verify();
    }
}

#[test]
fn another_api_key_and_another_credential_find_nothing_of_it() {
    for kind in [anthropic(), gemini()] {
        let upstream = Upstream::start(reply(&kind.concludes));
        let (site, account) = Site::funded(&kind.config(&upstream));
        let other = site.another_key(&account.wallet, "other");
        let rotated = site.rotate(&account, "1h");
        let gateway = site.serve();
        upstream.next(reply(&kind.calls));
        let key = request_key();
        let called = gateway.complete(&account, &key, &asks(&[user()]).to_string());
        let message = check_completion(&called, &key, false)["choices"][0]["message"].clone();
        let next = answers(&message).to_string();
        let gone = |account: &Account| {
            let runs = upstream.runs();
            assert_eq!(gateway.complete(account, &request_key(), &next).status, 200);
            let sent = upstream.arrived()[runs].body.clone();
            assert!(sent.contains("look_up") && sent.contains("Ada"), "{sent}");
            !sent.contains(SIGNATURE)
        };
        assert!(gone(&other), "{}", kind.name);
        assert!(gone(&rotated), "{}", kind.name);
        assert!(!gone(&account), "{}", kind.name);
        site.verify();
    }
}

#[test]
fn postgres_what_a_model_wants_back_is_found_by_another_node() {
    let kind = anthropic();
    let upstream = Upstream::start(reply(&kind.concludes));
    let database = Database::migrated();
    let (site, account) = Site::funded(&database.configure(kind.config(&upstream)));
    let [first, second] = [site.serve(), site.serve()];
    upstream.next(reply(&kind.calls));
    let called = ask(&first, &account, asks(&[user()]), true);
    let message = &called["choices"][0]["message"];
    let id = message["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!(content(&ask(&second, &account, answers(message), false)), "Ada");
    let sent = upstream.arrived()[1].json();
    assert_eq!(sent.pointer(kind.place), Some(&kind.sent(id)));
    site.verify();
    drop(database);
}
