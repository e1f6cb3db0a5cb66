//! Operations of every state that a caller can bring about, and the requests for them.

use serde_json::{Value, json};

use super::KeptOperation;
use super::exchange::{Exchange, Listener};
use crate::config::{ACME, SIM};
use crate::upstream::{Judge, Streaming, completion};
use crate::{Gate, Gateway, Reply, Request, Upstream, request_key};

/// Prompt whose answer waits for the gate.
const HELD: &str = "Say hello when the gate opens";
/// Prompt that is answered with two choices.
const TWICE: &str = "Say hello twice";
/// Prompt that is answered by a call of a tool.
const TOOL: &str = "Look the weather up";

/// The provider: answers each prompt as it is meant here, and those that are held after the gate.
pub(super) fn upstream(gate: &Gate) -> Upstream {
    let gate = gate.clone();
    let hello = Reply::as_wanted(
        Streaming::saying(&["Good ", "day, ", "“", "天", "”"]).reply(),
        Reply::saying("Good day, “天”"),
    );
    Upstream::start(Reply::Judged(Judge::new(move |arrived| {
        if arrived.body.contains(HELD) {
            Reply::saying("Good day").after(&gate)
        } else if arrived.body.contains(TOOL) {
            Reply::json(200, &call())
        } else if arrived.body.contains(TWICE) {
            Reply::json(200, &two_choices())
        } else {
            hello.clone()
        }
    })))
}

fn call() -> Value {
    let mut answer = completion("");
    answer["choices"][0]["finish_reason"] = json!("tool_calls");
    let function = json!({ "name": "weather", "arguments": "{\"place\": \"Łódź\"}" });
    answer["choices"][0]["message"] = json!({
        "role": "assistant", "content": null,
        "tool_calls": [{ "id": "call_1", "type": "function", "function": function }],
    });
    answer
}

fn two_choices() -> Value {
    let mut answer = completion("Good day");
    let mut second = answer["choices"][0].clone();
    second["index"] = json!(1);
    second["message"]["content"] = json!("Good evening");
    second["finish_reason"] = json!("length");
    answer["choices"].as_array_mut().expect("choices").push(second);
    answer
}

/// Prompt to a model, with more members of the request.
pub(super) struct Prompt {
    state: &'static str,
    model: &'static str,
    text: &'static str,
    more: Value,
    is_streamed: bool,
    /// Statuses of the answers by which the state is reached.
    statuses: &'static [u16],
}

impl Prompt {
    const fn new(state: &'static str, model: &'static str, text: &'static str) -> Self {
        Self { state, model, text, more: Value::Null, is_streamed: false, statuses: &[200] }
    }

    fn with(self, more: Value) -> Self {
        Self { more, ..self }
    }

    fn streamed(self) -> Self {
        Self { is_streamed: true, ..self }
    }

    fn answered(self, statuses: &'static [u16]) -> Self {
        Self { statuses, ..self }
    }

    /// The operation under a new key that no request has used yet.
    pub(super) fn operation(&self, bearer: &str) -> KeptOperation {
        let (key, mut body) = (request_key(), self.body());
        let whole = Exchange::completion(bearer, &key, &body);
        body["stream"] = json!(true);
        let stream = Exchange::completion(bearer, &key, &body);
        KeptOperation { state: self.state.to_owned(), asked: [whole, stream] }
    }

    fn body(&self) -> Value {
        let messages = json!([{ "role": "user", "content": self.text }]);
        let mut body = json!({ "model": self.model, "messages": messages });
        for (name, value) in self.more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        body
    }

    /// Brings the state about at this gateway.
    pub(super) fn bring_about(&self, gateway: &Gateway, bearer: &str) -> KeptOperation {
        let operation = self.operation(bearer);
        for status in self.statuses {
            let asked = &operation.asked[usize::from(self.is_streamed)];
            let answer = asked.send(gateway.address());
            assert_eq!(answer.status, *status, "{}: {answer:?}", asked.name());
        }
        operation
    }
}

/// Prompts whose operations end, each in its own way.
pub(super) fn ended() -> Vec<Prompt> {
    let tool = json!({ "type": "function", "function": {
        "name": "weather", "description": "The weather of a place",
        "parameters": { "type": "object", "properties": { "place": { "type": "string" } } },
    } });
    vec![
        Prompt::new("completed", ACME, "Say hello"),
        Prompt::new("completed", ACME, "Say hello in pieces").streamed(),
        Prompt::new("completed", ACME, TOOL).with(json!({ "tools": [tool] })),
        Prompt::new("completed", ACME, TWICE).with(json!({ "n": 2, "max_completion_tokens": 40 })),
        Prompt::new("completed", ACME, "Say hello 😀")
            .with(json!({
                "temperature": 0.7, "top_p": 1, "stop": ["\n"], "seed": 7, "user": "user-1",
                "metadata": { "order": "7" },
            }))
            .streamed(),
        Prompt::new("completed", SIM, "Hello\n[[sim: no-usage]]"),
        Prompt::new("completed", SIM, "Hello\n[[sim: absurd-usage]]").streamed(),
        Prompt::new("completed", SIM, "Hello\n[[sim: overrun]]"),
        Prompt::new("completed", SIM, "Hello again\n[[sim: fail-before-once]]")
            .answered(&[503, 200]),
        Prompt::new("refused", SIM, "Hello\n[[sim: refuse]]").answered(&[422]),
        Prompt::new("refused", SIM, "Hello\n[[sim: context-overflow]]").answered(&[400]),
        Prompt::new("abandoned", SIM, "Hello\n[[sim: fail-after]]").answered(&[502]),
        // A stream has its status before it breaks.
        Prompt::new("abandoned", SIM, "Hello\n[[sim: break]]").answered(&[502]),
    ]
}

/// Operations that their caller cancels: one before anything has arrived, and one after some of a stream.
pub(super) fn cancelled(
    gateway: &Gateway,
    upstream: &Upstream,
    bearer: &str,
) -> [KeptOperation; 2] {
    let cancel = |operation: &KeptOperation| {
        let key = operation.asked[0].key.as_deref().expect("a key");
        let cancel = Request::post(&format!("/v1/operations/{key}/cancel"), "").bearer(bearer);
        let answer = gateway.send(&cancel);
        assert_eq!(answer.status, 202, "{answer:?}");
    };
    let runs = upstream.runs();
    upstream.next(Reply::Silence);
    let nothing = Prompt::new("abandoned", ACME, "Never mind").operation(bearer);
    let waiting = nothing.asked[0].begin(gateway.address());
    upstream.wait_for(runs + 1);
    cancel(&nothing);
    assert_eq!(waiting.answer().status, 502);

    upstream.next(Streaming::new().opening().text("Good ").silence());
    let some = Prompt::new("completed", ACME, "That will do").operation(bearer);
    let mut events = some.asked[1].begin(gateway.address()).events();
    while !events.event().contains("Good ") {}
    cancel(&some);
    assert!(events.rest().events.concat().contains("length"), "the end of what had arrived");
    [nothing, some]
}

/// Operation that is proven not run, if the provider answers 429.
pub(super) fn open() -> Prompt {
    Prompt::new("open", ACME, "Say hello later").answered(&[503])
}

/// Operation whose answer does not come before the gate opens.
pub(super) fn held(state: &'static str) -> Prompt {
    Prompt::new(state, ACME, HELD)
}

impl KeptOperation {
    /// The operation as its caller reads it.
    pub(super) fn read(&self, bearer: &str) -> Exchange {
        let key = self.asked[0].key.as_deref().expect("a key");
        Exchange::get(Listener::Public, &format!("/v1/operations/{key}"), bearer)
    }
}
