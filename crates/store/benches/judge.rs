//! What judging a batch costs: claims of so many operations on one wallet, against what a transaction has
//! read. Without SQL: it is what all dialects share.
#![expect(clippy::unwrap_used, reason = "a benchmark ends where it cannot be made")]

use std::sync::Arc;

use divan::counter::ItemsCount;
use divan::{AllocProfiler, Bencher, black_box};
use holdfast_domain::Micros;
use holdfast_domain::operation::Transition;
use holdfast_store::judge::{BatchState, WalletBalance};
use holdfast_testkit::sample;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

const HOLD: i64 = 2_000;

fn main() {
    divan::main();
}

fn claims(count: usize) -> Vec<Arc<Transition>> {
    let claim = |_at| {
        let claim = sample::claim().hold(HOLD).request_key(sample::fresh_request_key());
        sample::admission(&claim.claim_id(sample::fresh()).build())
    };
    (0..count).map(claim).collect()
}

/// A wallet that has enough for half of them: the others are refused.
fn state(count: usize) -> BatchState {
    let half = i64::try_from(count / 2).unwrap();
    let mut state = BatchState::default();
    let available = Micros::new(HOLD * half);
    let balance =
        WalletBalance { available, held: Micros::ZERO, low_balance: None, limits_revision: 0 };
    state.wallets.insert(sample::WALLET, balance);
    state
}

#[divan::bench(args = [2, 32, 256])]
fn claims_on_one_wallet(bencher: Bencher<'_, '_>, count: usize) {
    let changes = claims(count);
    let bencher = bencher.counter(ItemsCount::new(count)).with_inputs(|| state(count));
    bencher.bench_local_values(|mut state| {
        let judged = black_box(&changes).iter().map(|change| state.judge(change, sample::NOW));
        assert_eq!(judged.filter(Result::is_ok).count(), count / 2);
        state
    });
}
