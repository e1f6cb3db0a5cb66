//! What reading a request costs: its JSON to a request, and that to its fingerprint by the canonical feed.
//! Without a network, and without the digest of the body.
#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot be made")]

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use holdfast_domain::ApiKeyId;
use holdfast_domain::request::{FINGERPRINT_VERSION, fingerprint};
use holdfast_domain::secret::{FingerprintKey, ServerSecret};
use holdfast_wire::chat::request::parse;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const QUESTION: &str = r#"{"model":"acme/large-1","messages":[{"role":"system","content":"You are a helpful assistant who answers in plain words."},{"role":"user","content":"What happens to the money of a request between its arrival and its answer?"}],"temperature":0.7,"max_completion_tokens":256}"#;
/// What a user and a model say by turns in a conversation, and how often.
const TURNS: usize = 24;

fn main() {
    divan::main();
}

/// A question of a few hundred bytes, and a conversation of some twelve thousand.
#[derive(Debug, Clone, Copy)]
enum Body {
    Question,
    Conversation,
}

const BODIES: [Body; 2] = [Body::Question, Body::Conversation];

impl Body {
    fn text(self) -> String {
        let turn = |at: usize| {
            let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
            let said = "a sentence with \\\"quotes\\\" and some more of it, \\u00e9. ".repeat(8);
            format!(r#"{{"role":"{role}","content":"{said}"}}"#)
        };
        match self {
            Self::Question => QUESTION.to_owned(),
            Self::Conversation => {
                let turns: Vec<_> = (0..TURNS).map(turn).collect();
                format!(r#"{{"model":"acme/large-1","messages":[{}]}}"#, turns.join(","))
            }
        }
    }
}

fn key() -> FingerprintKey {
    ServerSecret::new(&[7; 16]).unwrap().fingerprint_key(ApiKeyId::from_u128(1))
}

#[divan::bench(args = BODIES)]
fn parsed(bencher: Bencher<'_, '_>, body: Body) {
    let text = body.text();
    let bencher = bencher.counter(BytesCount::new(text.len()));
    bencher.bench_local(|| parse(black_box(text.as_bytes())).unwrap());
}

#[divan::bench(args = BODIES)]
fn fingerprinted(bencher: Bencher<'_, '_>, body: Body) {
    let (text, key) = (body.text(), key());
    let request = parse(text.as_bytes()).unwrap().request;
    let bencher = bencher.counter(BytesCount::new(text.len()));
    bencher.bench_local(|| fingerprint(&key, FINGERPRINT_VERSION, 1, black_box(&request)).unwrap());
}

/// Both, as each request has it.
#[divan::bench(args = BODIES)]
fn parsed_and_fingerprinted(bencher: Bencher<'_, '_>, body: Body) {
    let (text, key) = (body.text(), key());
    let bencher = bencher.counter(BytesCount::new(text.len()));
    bencher.bench_local(|| {
        let request = parse(black_box(text.as_bytes())).unwrap().request;
        fingerprint(&key, FINGERPRINT_VERSION, 1, &request).unwrap()
    });
}
