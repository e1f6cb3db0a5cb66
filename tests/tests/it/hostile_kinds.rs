//! Providers of other dialects than OpenAI's that send what no answer can be.

use holdfast_tests::{Streaming, request_key};
use serde_json::{Value, json};

use crate::check::content;
use crate::kinds::{Kind, anthropic, bedrock, config, gemini};
use crate::streaming::check_stream;
use crate::world::World;

/// What stands where a text is said.
const TEXT: &str = "a text";
/// More than a model can have said.
const ABSURD: u64 = 1 << 39;
const TOO_MANY: &str = "a choice of the answer has more than 1024 tool calls";
const TOO_LONG: &str = "an event of the stream is longer than the provider's event_bytes";
const NO_JSON: &str = "the answer is not JSON";

/// An event's type, which only Bedrock's frames have beside it, and its JSON.
type Event = (&'static str, Value);

/// How a kind streams.
struct Dialect {
    kind: Kind,
    begins: Vec<Event>,
    says: Event,
    calls: Vec<Event>,
    /// Whether each call is an event of its own, so that the first are told before they are too many.
    tells_calls: bool,
    /// With usage that cannot be.
    ends: Vec<Event>,
}

impl Dialect {
    fn say(&self, stream: Streaming, (event, data): (&str, &str)) -> Streaming {
        match self.kind.name {
            "bedrock" => stream.frame_of(event, data),
            _ => stream.raw(&format!("data: {data}\n\n")),
        }
    }

    fn say_all(&self, stream: Streaming, events: &[Event]) -> Streaming {
        let said = |stream, (event, data): &Event| self.say(stream, (event, &data.to_string()));
        events.iter().fold(stream, said)
    }

    /// Says this, which is spelled as JSON has it.
    fn text(&self, stream: Streaming, text: &str) -> Streaming {
        let (event, data) = &self.says;
        self.say(stream, (event, &data.to_string().replace(TEXT, text)))
    }

    fn begun(&self) -> Streaming {
        self.say_all(Streaming::new(), &self.begins)
    }
}

fn dialects() -> [Dialect; 3] {
    let calls = 0..1_025;
    let block = |at: usize, block: Value| {
        ("", json!({"type": "content_block_start", "index": at, "content_block": block}))
    };
    let parts = |parts: Value| ("", json!({"candidates": [{"content": {"parts": parts}}]}));
    let frame = |at: usize, tool: Value| {
        ("contentBlockStart", json!({"contentBlockIndex": at, "start": {"toolUse": tool}}))
    };
    [
        Dialect {
            kind: anthropic(),
            begins: vec![block(0, json!({"type": "text", "text": ""}))],
            says: (
                "",
                json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": TEXT}}),
            ),
            calls: calls
                .clone()
                .map(|at| block(at, json!({"type": "tool_use", "name": "f"})))
                .collect(),
            tells_calls: true,
            ends: vec![
                (
                    "",
                    json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 5, "output_tokens": ABSURD}}),
                ),
                ("", json!({"type": "message_stop"})),
            ],
        },
        Dialect {
            kind: gemini(),
            begins: vec![],
            says: parts(json!([{"text": TEXT}])),
            calls: vec![parts(
                calls.clone().map(|_| json!({"functionCall": {"name": "f"}})).collect(),
            )],
            tells_calls: false,
            ends: vec![(
                "",
                json!({"candidates": [{"finishReason": "STOP"}], "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": ABSURD}}),
            )],
        },
        Dialect {
            kind: bedrock(),
            begins: vec![("messageStart", json!({"role": "assistant"}))],
            says: ("contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": TEXT}})),
            calls: calls.map(|at| frame(at, json!({"name": "f"}))).collect(),
            tells_calls: true,
            ends: vec![
                ("messageStop", json!({"stopReason": "end_turn"})),
                ("metadata", json!({"usage": {"inputTokens": 5, "outputTokens": ABSURD}})),
            ],
        },
    ]
}

#[test]
fn what_no_kind_can_mean_ends_its_answer_and_is_told() {
    for dialect in dialects() {
        let name = dialect.kind.name;
        let world = World::on_one_core(|upstream| config(&dialect.kind, upstream));
        let calls = dialect.say_all(Streaming::new(), &dialect.calls);
        if dialect.tells_calls {
            world.check_broken(calls, TOO_MANY);
        } else {
            world.check_unreadable(calls, TOO_MANY);
        }
        let long = dialect.text(Streaming::new(), &"x".repeat(1 << 20));
        world.check_unreadable(long, TOO_LONG);
        let garbage = dialect.text(dialect.begun(), "Good day");
        let garbage = dialect.say(garbage, (dialect.says.0, "..."));
        let said = world.check_broken(garbage, NO_JSON);
        assert_eq!(content(&said), "Good day", "{name}");
        world.end();
    }
}

#[test]
fn half_a_character_and_absurd_usage_are_an_answer_of_any_kind() {
    for dialect in dialects() {
        let name = dialect.kind.name;
        let world = World::on_one_core(|upstream| config(&dialect.kind, upstream));
        let whole = dialect.say_all(dialect.text(dialect.begun(), "\\ud83d"), &dialect.ends);
        world.upstream.next(whole.reply());
        let key = request_key();
        let told = world.asking(&key).begin(world.gateway.address()).events().rest();
        let told = check_stream(&told, &key, false);
        assert_eq!(content(&told), "\u{fffd}", "{name}");
        let tokens = told["usage"]["completion_tokens"].as_u64().unwrap();
        assert!(tokens < 10, "{name}: {tokens}");
        world.end();
    }
}
