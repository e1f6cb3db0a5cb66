//! What writing an answer costs: what a model said to the body of a completion, and to the events of a stream.
#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot be made")]

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use holdfast_domain::answer::{Answer, ChoiceDelta, Delta, FinishReason};
use holdfast_domain::billing::UsageRecord;
use holdfast_domain::model::PublicModelId;
use holdfast_domain::price::PriceVersionId;
use holdfast_domain::usage::{MeterReading, Meters, MetersSource, UsageReasons};
use holdfast_domain::{Micros, OperationId, Timestamp};
use holdfast_wire::chat::chunk::Chunks;
use holdfast_wire::chat::completion::{CompletionView, render};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const ID: OperationId = OperationId::from_u128(0xabc);
const CREATED: Timestamp = Timestamp::from_micros(1_790_000_000_000_000);
/// A sentence with one character that JSON escapes.
const SENTENCE: &str =
    "The hold is released, and the rest goes back to the wallet of the caller.\n";
/// Deltas of a stream, a word each.
const DELTAS: usize = 100;

fn main() {
    divan::main();
}

fn delta(content: &str, finish: Option<FinishReason>) -> Delta {
    let content = Some(content.to_owned());
    Delta {
        choices: vec![ChoiceDelta { content, finish, ..ChoiceDelta::default() }],
        ..Delta::default()
    }
}

/// A whole completion whose text has so many bytes: a usual one, and a long one.
#[divan::bench(args = [400, 65_536])]
fn completion(bencher: Bencher<'_, '_>, bytes: usize) {
    let mut answer = Answer::default();
    let text = SENTENCE.repeat(bytes.div_ceil(SENTENCE.len()));
    answer.append(delta(&text, Some(FinishReason::Stop)));
    let model = PublicModelId::try_from("acme/large-1").unwrap();
    let usage = UsageRecord {
        metered: MeterReading {
            meters: Meters::text(1_234, 321).unwrap(),
            source: MetersSource::Reported,
            reasons: UsageReasons::NONE,
            provider_cost: None,
        },
        charge: Micros::new(12_345),
        shortfall: Micros::ZERO,
        price_version: PriceVersionId::from_stored("acme/large-1/USD/2026-01-01T00:00:00Z"),
    };
    let view = CompletionView {
        id: ID,
        created: CREATED,
        model: model.as_str(),
        answer: &answer,
        usage: &usage,
    };
    let bencher = bencher.counter(BytesCount::new(text.len()));
    bencher.bench_local(|| render(black_box(&view)));
}

/// A stream from its envelope to its last delta.
#[divan::bench]
fn stream(bencher: Bencher<'_, '_>) {
    let model = PublicModelId::try_from("acme/large-1").unwrap();
    let word = delta(" word", None);
    bencher.bench_local(|| {
        let mut chunks = Chunks::new(ID, CREATED, model.as_str());
        for _word in 0..DELTAS {
            black_box(chunks.delta(black_box(&word)));
        }
    });
}
