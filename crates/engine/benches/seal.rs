//! What sealing an answer costs, and opening it: the cipher with its key set up for each operation, as each
//! request and each replay has it.
#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot be made")]

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use holdfast_domain::CredentialId;
use holdfast_domain::limits::CounterReadings;
use holdfast_domain::operation::{Operation, Receipt, Version, decide};
use holdfast_domain::secret::{CredentialSecret, ResultKey};
use holdfast_domain::{Event, Snapshot};
use holdfast_engine::seal::{open, seal};
use holdfast_testkit::sample;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// Bytes of an answer.
const LENGTHS: [usize; 3] = [600, 4_096, 65_536];

fn main() {
    divan::main();
}

fn operation() -> (Operation, ResultKey) {
    let claim = Event::Claim(Box::new(sample::claim().build()));
    let admission = decide(&Snapshot::vacant(sample::NOW), claim).unwrap();
    let receipt =
        Receipt { version: Version::FIRST, at: sample::NOW, counters: CounterReadings::default() };
    let operation = admission.apply(None, receipt).unwrap();
    let key = CredentialSecret::new([5; 32]).result_key(operation.id);
    (operation, key)
}

#[divan::bench(args = LENGTHS)]
fn sealed(bencher: Bencher<'_, '_>, length: usize) {
    let ((operation, key), body) = (operation(), vec![b'a'; length]);
    let bencher = bencher.counter(BytesCount::new(length));
    bencher.bench_local(|| {
        seal(&key, CredentialId::from_u128(1), &operation, (black_box(&body), None)).unwrap()
    });
}

#[divan::bench(args = LENGTHS)]
fn opened(bencher: Bencher<'_, '_>, length: usize) {
    let ((operation, key), body) = (operation(), vec![b'a'; length]);
    let result = seal(&key, CredentialId::from_u128(1), &operation, (&body, None)).unwrap();
    let bencher = bencher.counter(BytesCount::new(length));
    bencher.bench_local(|| {
        let opened = open(&key, &operation, black_box(&result)).unwrap();
        assert_eq!(opened.body.len(), length);
        opened
    });
}
