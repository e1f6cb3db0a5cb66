//! Any bytes as a provider's stream: the same events whatever pieces it comes in, and chunks that are
//! read or refused, never a panic. What they add is told to callers in chunks that can be read back.
//!
//! The first byte says how many choices were asked for and how long the pieces are.
#![no_main]

use holdfast_domain::answer::{Answer, Delta};
use holdfast_domain::model::PublicModelId;
use holdfast_domain::{OperationId, Timestamp};
use holdfast_wire::chat::chunk::{Chunks, Frame};
use holdfast_wire::chat::upstream::ChunkReader;
use holdfast_wire::sse::{Decoder, TooLong};
use libfuzzer_sys::fuzz_target;

const BYTES_MAX: usize = 4_096;

fuzz_target!(|input: &[u8]| {
    let Some((whim, stream)) = input.split_first() else { return };
    let whole = events([stream]);
    let length = usize::from(whim >> 2) % 23 + 1;
    assert_eq!(events(stream.chunks(length)), whole, "in pieces of {length} bytes");
    let n = u32::from(whim & 3) + 1;
    let Some(deltas) = read(n, whole.unwrap_or_default()) else { return };
    let mut answer = Answer::default();
    deltas.iter().for_each(|delta| answer.append(delta.clone()));
    let told = tell(&deltas, &answer);
    let Some(again) = read(n, told) else { panic!("what is told cannot be read") };
    let mut heard = Answer::default();
    again.into_iter().for_each(|delta| heard.append(delta));
    // What is judged by a moderation, and which tier it is, are of the answer and not of a choice.
    assert!(answer.choices().eq(heard.choices()), "what is told is not what was said");
});

/// The data of every event.
fn events<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Vec<u8>>, TooLong> {
    let mut decoder = Decoder::new(BYTES_MAX, BYTES_MAX);
    let mut all = Vec::new();
    for piece in pieces {
        let mut events = decoder.feed(piece);
        while let Some(event) = events.next_event()? {
            assert!(event.data.len() <= BYTES_MAX);
            all.push(event.data.to_vec());
        }
    }
    Ok(all)
}

/// What chunks add, where they are a whole answer.
fn read(n: u32, chunks: Vec<Vec<u8>>) -> Option<Vec<Delta>> {
    let mut reader = ChunkReader::new(n);
    let mut deltas = Vec::new();
    for chunk in chunks {
        deltas.extend(reader.read(&chunk).ok()?);
    }
    reader.end().ok()?;
    Some(deltas)
}

fn tell(deltas: &[Delta], answer: &Answer) -> Vec<Vec<u8>> {
    let model = PublicModelId::try_from("a/b").expect("an id");
    let mut chunks =
        Chunks::new(OperationId::from_u128(7), Timestamp::from_micros(1_790_000_000), &model);
    let mut frames: Vec<Frame> =
        deltas.iter().flat_map(|delta| chunks.delta(delta)).map(|piece| piece.frame).collect();
    frames.extend(chunks.finish(answer));
    let frames = frames.iter().map(|frame| frame.bytes(true));
    let data = frames.map(|bytes| {
        let data = bytes.strip_prefix(b"data: ").and_then(|rest| rest.strip_suffix(b"\n\n"));
        data.expect("one event each").to_vec()
    });
    data.collect()
}
