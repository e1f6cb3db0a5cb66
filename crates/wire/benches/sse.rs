//! What framing server-sent events costs: JSON to the bytes of an event, and a stream of them, in pieces as a
//! network cuts them, to what they carry.
#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot be made")]

use divan::counter::{BytesCount, ItemsCount};
use divan::{AllocProfiler, Bencher, black_box};
use holdfast_wire::sse::{Decoder, event};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// A piece of an answer, as OpenAI's dialect spells it.
const CHUNK: &[u8] = br#"{"id":"chatcmpl-0123456789abcdef","object":"chat.completion.chunk","created":1790000000,"model":"acme/large-1","choices":[{"index":0,"delta":{"content":" word"},"finish_reason":null}]}"#;
const EVENTS: usize = 400;
/// Bytes of a line, and of an event, at most.
const MOST: usize = 1 << 20;

fn main() {
    divan::main();
}

#[divan::bench]
fn written(bencher: Bencher<'_, '_>) {
    let bencher = bencher.counter(BytesCount::new(CHUNK.len()));
    bencher.bench_local(|| black_box(event(black_box(CHUNK))));
}

/// A stream of events in pieces of so many bytes.
#[divan::bench(args = [100, 1_400, 16_384])]
fn read(bencher: Bencher<'_, '_>, piece: usize) {
    let stream = event(CHUNK).repeat(EVENTS);
    let bencher = bencher.counter(BytesCount::new(stream.len())).counter(ItemsCount::new(EVENTS));
    bencher.bench_local(|| {
        let mut decoder = Decoder::new(MOST, MOST);
        let mut carried = 0;
        for piece in black_box(&stream).chunks(piece) {
            let mut events = decoder.feed(piece);
            while let Some(event) = events.next_event().unwrap() {
                carried += event.data.len();
            }
        }
        // Nothing may be measured that did not read all of it.
        assert_eq!(carried, EVENTS * CHUNK.len());
    });
}
