//! What reading a provider's answer costs: whole ones, with a text and with calls, and streams of a
//! hundred pieces of each.
#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot be made")]

use divan::{AllocProfiler, Bencher, black_box};
use holdfast_wire::chat::upstream::{ChunkReader, read_completion};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const PIECES: usize = 100;
const USAGE: &str = r#""usage":{"prompt_tokens":19,"completion_tokens":21,"total_tokens":40,"prompt_tokens_details":{"cached_tokens":0,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}"#;
const TEXT: &str = r#"{"role":"assistant","content":"The quick brown fox jumps over the lazy dog, and then it sleeps for a while under a tree.","refusal":null,"annotations":[]}"#;
const CALLS: &str = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\",\"unit\":\"celsius\"}"}},{"id":"call_2","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Bergen\",\"unit\":\"celsius\"}"}}],"refusal":null,"annotations":[]}"#;

fn main() {
    divan::main();
}

fn whole(bencher: Bencher<'_, '_>, message: &str, finish: &str) {
    let body = format!(
        r#"{{"id":"chatcmpl-0123456789abcdef","object":"chat.completion","created":1790000000,"model":"acme/large-1","choices":[{{"index":0,"message":{message},"logprobs":null,"finish_reason":"{finish}"}}],{USAGE},"service_tier":"default","system_fingerprint":"fp_0123456789"}}"#
    );
    bencher.bench_local(|| read_completion(black_box(body.as_bytes()), 1).unwrap());
}

#[divan::bench]
fn text(bencher: Bencher<'_, '_>) {
    whole(bencher, TEXT, "stop");
}

#[divan::bench]
fn calls(bencher: Bencher<'_, '_>) {
    whole(bencher, CALLS, "tool_calls");
}

fn chunk(delta: &str, finish: &str, usage: &str) -> Vec<u8> {
    let chunk = format!(
        r#"{{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1790000000,"model":"acme/large-1","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{finish}}}],{usage}}}"#
    );
    chunk.into_bytes()
}

/// A stream that begins with `first`, repeats `piece`, and ends with `last`.
fn stream(bencher: Bencher<'_, '_>, deltas: [&str; 3], finish: &str) {
    let [first, piece, last] = deltas.map(|delta| chunk(delta, "null", r#""usage":null"#));
    let end = chunk("{}", finish, USAGE);
    bencher.bench_local(|| {
        let mut reader = ChunkReader::new(1);
        reader.read(black_box(&first)).unwrap();
        for _ in 0..PIECES {
            black_box(reader.read(black_box(&piece)).unwrap());
        }
        reader.read(black_box(&last)).unwrap();
        reader.read(black_box(&end)).unwrap();
        reader.end().unwrap()
    });
}

#[divan::bench]
fn streamed_text(bencher: Bencher<'_, '_>) {
    let first = r#"{"role":"assistant","content":"","refusal":null}"#;
    stream(bencher, [first, r#"{"content":" word"}"#, "{}"], "\"stop\"");
}

#[divan::bench]
fn streamed_call(bencher: Bencher<'_, '_>) {
    let first = r#"{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"text\":\""}}]}"#;
    let piece = r#"{"tool_calls":[{"index":0,"function":{"arguments":" word"}}]}"#;
    let last = r#"{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}"#;
    stream(bencher, [first, piece, last], "\"tool_calls\"");
}
