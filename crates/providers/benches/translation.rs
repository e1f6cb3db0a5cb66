//! What translating costs for each kind: a conversation to what its provider is sent, and its provider's
//! answer, whole and in pieces, to what the engine is told. Time, bytes in, allocations. Without a network,
//! and without the request's way from and to the caller.
//!
//! Conversation and answers are the same for all kinds, each spelled as the kind spells it: the answers
//! are those of `fixtures/`, with the text and the number of pieces of a usual one.
#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot be made")]

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use holdfast_domain::answer::Delta;
use holdfast_domain::ports::{Call, ResponseMode, Sink};
use holdfast_domain::state::ProviderStates;
use holdfast_net::BaseUrl;
use holdfast_providers::kinds::{Anthropic, Bedrock, Gemini, HttpOptions, Kind, OpenAi, Region};
use holdfast_providers::{HttpProvider, LateSystem, ServerOptions};
use holdfast_wire::chat::request::parse;
use holdfast_wire::chat::upstream::BoundField;
use serde_json::{Value, json};

#[path = "../tests/it/frames.rs"]
mod frames;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// Kinds by their names in the configuration. Azure OpenAI speaks OpenAI's dialect.
const KINDS: [&str; 4] = ["openai", "anthropic", "gemini", "bedrock"];

/// What a user and a model say by turns, and how often.
const TURNS: usize = 10;
/// Words of an answer: of one that streams, pieces.
const WORDS: usize = 400;
const WORD: &str = " measure";

fn main() {
    divan::main();
}

/// A conversation to what the provider is sent; the bytes are those of the caller's body.
#[divan::bench(args = KINDS)]
fn request(bencher: Bencher<'_, '_>, kind: &str) {
    let (call, length) = call(ResponseMode::Whole);
    let bencher = bencher.counter(BytesCount::new(length));
    let provider = provider(kind);
    bencher.bench_local(|| provider.render(black_box(&call)).unwrap());
}

/// A whole answer.
#[divan::bench(args = KINDS)]
fn whole(bencher: Bencher<'_, '_>, kind: &str) {
    let (call, _length) = call(ResponseMode::Whole);
    let (provider, body) = (provider(kind), whole_answer(kind));
    bencher.counter(BytesCount::new(body.len())).bench_local(|| {
        let mut heard = CountingSink::default();
        provider.read_whole(black_box(&body), &call, &mut heard).unwrap();
        heard.check();
    });
}

/// An answer that comes word by word, each in a piece of its own.
#[divan::bench(args = KINDS)]
fn streamed(bencher: Bencher<'_, '_>, kind: &str) {
    let (call, _length) = call(ResponseMode::Streamed);
    let (provider, pieces) = (provider(kind), streamed_answer(kind));
    let length: usize = pieces.iter().map(Vec::len).sum();
    bencher.counter(BytesCount::new(length)).bench_local(|| {
        let mut heard = CountingSink::default();
        let pieces = black_box(&pieces).iter().map(Vec::as_slice);
        provider.read_stream(pieces, &call, &mut heard).unwrap();
        heard.check();
    });
}

/// A provider of the usual options, which is not connected to.
fn provider(kind: &str) -> HttpProvider {
    let kind = match kind {
        "openai" => Kind::OpenAi(OpenAi::new(BoundField::MaxCompletionTokens)),
        "anthropic" => {
            Kind::Anthropic(Anthropic { sampling: false, late_system: LateSystem::Fold })
        }
        "gemini" => Kind::Gemini(Gemini { skip_signatures: false, late_system: LateSystem::Fold }),
        _ => {
            let region = Region::try_from("eu-central-1").unwrap();
            Kind::Bedrock(Bedrock { region, keys: None, late_system: LateSystem::Fold })
        }
    };
    let server = ServerOptions::new(BaseUrl::try_from("http://localhost").unwrap());
    HttpProvider::new(HttpOptions { server, kind }).unwrap()
}

/// What the engine is told, counted instead of kept.
#[derive(Default)]
struct CountingSink {
    bytes: usize,
}

impl CountingSink {
    /// Nothing may be measured that did not read all of it.
    fn check(self) {
        assert_eq!(self.bytes, WORDS * WORD.len());
    }
}

impl Sink for CountingSink {
    fn on_send(&mut self) {}

    fn on_delta(&mut self, delta: Delta) {
        let texts = delta.choices.iter().filter_map(|choice| choice.content.as_deref());
        self.bytes += texts.map(str::len).sum::<usize>();
    }
}

/// A conversation with tools, and the bytes of its body.
fn call(arrival: ResponseMode) -> (Call, usize) {
    let mut messages = vec![json!({"role": "system", "content": WORD.repeat(60)})];
    for _turn in 0..TURNS {
        messages.push(json!({"role": "user", "content": WORD.repeat(40)}));
        messages.push(json!({"role": "assistant", "content": WORD.repeat(80)}));
    }
    messages.push(json!({"role": "user", "content": "Which one is it?"}));
    let arguments = "{\"place\": \"here\", \"unit\": \"m\"}";
    let called = json!({"name": "measure", "arguments": arguments});
    let calls = json!([{"id": "call_1", "type": "function", "function": called}]);
    messages.push(json!({"role": "assistant", "tool_calls": calls}));
    messages.push(json!({"role": "tool", "tool_call_id": "call_1", "content": "12"}));
    let schema = json!({
        "type": "object",
        "properties": {"place": {"type": "string"}, "unit": {"type": "string"}},
        "required": ["place"],
    });
    let tool = |name| {
        let function = json!({"name": name, "description": WORD.repeat(10), "parameters": schema});
        json!({"type": "function", "function": function})
    };
    let tools = ["measure", "weigh", "count"].map(tool);
    let body = json!({"model": "acme/large-1", "messages": messages, "tools": tools}).to_string();
    let call = Call {
        request: Arc::new(parse(body.as_bytes()).unwrap().request),
        model: "upstream-model".into(),
        max_output_tokens: 1_000,
        context_tokens: 100_000,
        key: None,
        connect: Duration::from_secs(1),
        response_mode: arrival,
        states: ProviderStates::new(),
    };
    (call, body.len())
}

/// The answer of the case `text`, with more to say.
fn whole_answer(kind: &str) -> Vec<u8> {
    let answer: Value = serde_json::from_str(&fixture(kind, "text/answer.json")).unwrap();
    let body = answer.get("body").unwrap().to_string();
    body.replace("\"Hello\"", &format!("\"{}\"", WORD.repeat(WORDS))).into_bytes()
}

/// The answer of the case `stream_text`, whose first piece of text comes again and again instead of what
/// it says there.
fn streamed_answer(kind: &str) -> Vec<Vec<u8>> {
    let (file, end) = match kind {
        "bedrock" => ("stream_text/answer.frames", "\n"),
        _ => ("stream_text/answer.sse", "\n\n"),
    };
    let mut pieces = Vec::new();
    for event in fixture(kind, file).split_inclusive(end) {
        let n_times = if event.contains("\"Hel\"") { WORDS } else { 1 };
        let event = event.replace("\"Hel\"", &format!("\"{WORD}\"")).replace("\"lo\"", "\"\"");
        let piece = match kind {
            "bedrock" => frames::frame(event.trim_end().split_once(' ').unwrap()),
            _ => event.into_bytes(),
        };
        pieces.extend(std::iter::repeat_n(piece, n_times));
    }
    pieces
}

/// OpenAI's cases are Azure's: the dialect is one.
fn fixture(kind: &str, file: &str) -> String {
    let folder = if kind == "openai" { "azure-openai" } else { kind };
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    fs::read_to_string(fixtures.join(folder).join(file)).unwrap()
}
